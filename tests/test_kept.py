"""What compilers have made is found again by content, in a fresh environment too."""

from __future__ import annotations

import os
import uuid
from pathlib import Path

import kept


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
