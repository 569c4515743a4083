"""What compilers have made is found again by content, in a fresh environment too."""

from __future__ import annotations

import os
import subprocess
import uuid
from pathlib import Path

import kept
import pytest

from kernelexp.system.toolchain import Toolchain


def test_another_time_of_the_same_compiler_makes_nothing_anew(tmp_path: Path) -> None:
    program, word, made = tmp_path / "compiler", uuid.uuid4().hex, []
    program.write_text(word)

    def make(folder: Path) -> Path:
        made.append(folder)
        (folder / "output").write_text(program.read_text())
        return folder / "output"

    assert kept.output([str(program), word], [], make).decode() == word
    os.utime(program, (1e9, 1e9))
    assert kept.output([str(program), word], [], make).decode() == word
    assert len(made) == 1
    program.write_text("another")
    assert kept.output([str(program), word], [], make).decode() == "another"


def test_cubins_that_are_disassembled_together_are_listed_as_each_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, usual_tools: Toolchain
) -> None:
    # Of a uniform predicate, whose guard is not in the margin, is the second one's longest line.
    initialised = """.shared .align 8 .b64 at; .reg .pred %p; .reg .b32 %r; mov.u32 %r, %tid.x;
    setp.ne.u32 %p, %r, 0; @%p bra MEET; mbarrier.init.shared::cta.b64 [at], 1; MEET: bar.sync 0;"""
    cubins = []
    for body in ("bar.sync 0;", initialised):
        text = f".version 9.0 .target sm_100a .address_size 64 .entry k() {{ {body} ret; }}"
        (tmp_path / "k.ptx").write_text(text.replace(" .", "\n.", 3))
        argv = [usual_tools.ptxas, "-arch=sm_100a", "k.ptx", "-o", "k.cubin"]
        subprocess.run(argv, cwd=tmp_path, check=True)
        cubins.append((tmp_path / "k.cubin").read_bytes())
    alone = [kept.run([usual_tools.cuobjdump, "-sass", "c"], {"c": cubin}) for cubin in cubins]
    monkeypatch.setattr(kept, "_FOLDER", tmp_path / "kept")
    started = []
    plain = kept._run
    monkeypatch.setattr(kept, "_run", lambda *given: started.append(given) or plain(*given))
    assert kept.listings(usual_tools.cuobjdump, cubins) == [text.decode() for text in alone]
    assert len(started) == 1
