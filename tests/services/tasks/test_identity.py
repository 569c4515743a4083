"""Which solutions are the same one."""

from __future__ import annotations

import subprocess
from pathlib import Path

import msgspec
import pytest
from support import ROOT

from kernelexp.services.tasks import formats, identity
from kernelexp.system.toolchain import Toolchain


@pytest.mark.parametrize("cuobjdump", ["", "/bin/false"])
def test_libraries_that_differ_where_cuobjdump_sees_nothing_are_others(
    tools: Toolchain, tmp_path: Path, cuobjdump: str
) -> None:
    chosen = msgspec.structs.replace(tools, cuobjdump=cuobjdump or tools.cuobjdump)
    folder = ROOT / "docs/examples/tasks"
    task = formats.recognise(folder).read(folder, folder / "solve.cu", 32)
    keys = []
    for text in ("one", "two", "one"):
        source, library = tmp_path / "a.c", tmp_path / "a.so"
        source.write_text(f'__attribute__((section(".nv_fatbin"))) char code[] = "{text}";')
        subprocess.run(["gcc", "-shared", "-fPIC", source, "-o", library], check=True)
        keys.append(identity.key(task, "", [library], chosen, tmp_path))
    assert keys[0] == keys[2]
    assert keys[0] != keys[1]
