"""`inspect --build --ninja`: ninja makes the code of the cache, and editors read the commands."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from support import Kx

from kernelexp.evidence.build import store

NINJA = [sys.executable, "-m", "ninja", "-f", "out/build.ninja"]


def ninja(project: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(NINJA, cwd=project, capture_output=True, text=True, check=False)


def code(folder: Path) -> set[str]:
    """The SASS of all listings, without what is printed before it."""
    return {path.read_text().partition("Function : ")[2] for path in folder.rglob("*.sass")}


def test_ninja_makes_the_code_of_the_cache(scale: Path, kx: Kx) -> None:
    kx("inspect", "--build", "S1", cwd=scale)
    assert kx("inspect", "--build", "S1", "--ninja", "out", cwd=scale).exit_code == 0
    done = ninja(scale)
    assert done.returncode == 0, done.stdout
    result = code(scale / "out")
    assert len(result) == 2
    assert result == code(store.builds(scale))


def test_ninja_builds_again_what_a_header_changed(scale: Path, kx: Kx) -> None:
    source = scale / "variants/scale/scale.cu"
    (source.parent / "own.cuh").write_text("#define OWN 1.0f\n")
    source.write_text('#include "own.cuh"\n' + source.read_text())
    kx("inspect", "--build", "scale@sm_90a", "--ninja", "out", cwd=scale)
    assert ninja(scale).returncode == 0
    assert "no work to do" in ninja(scale).stdout
    (source.parent / "own.cuh").write_text("#define OWN 2.0f\n")
    assert "PTX" in ninja(scale).stdout


def test_the_commands_of_editors_name_source_and_folder(scale: Path, kx: Kx) -> None:
    kx("inspect", "--build", "--ninja", "out", cwd=scale)
    commands = json.loads((scale / "out/compile_commands.json").read_text())
    assert {command["directory"] for command in commands} == {str(scale.resolve())}
    assert all((scale / command["file"]).is_file() for command in commands)
    assert all("-lineinfo" in command["arguments"] for command in commands)


def test_ninja_writes_the_named_variants_alone(scale: Path, kx: Kx) -> None:
    kx("inspect", "--build", "S1", "--ninja", "out", cwd=scale)
    text = (scale / "out/build.ninja").read_text()
    assert text.count(": ptx ") == 2


def test_ninja_is_for_writing_files_alone(scale: Path, kx: Kx) -> None:
    assert kx("inspect", "--build", "S1", "--ninja", "out", "--json", cwd=scale).exit_code == 2
    (scale / "out").write_text("")
    result = kx("inspect", "--build", "S1", "--ninja", "out", cwd=scale)
    assert result.exit_code == 2
    assert "--ninja out" in result.stderr
