"""The runner of cases, and, where a folder of them is at hand, the page that shows its table."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest
from harness import ptx

from warpsim.launch import Launch, Pointer

ROOT = Path(__file__).parents[2]
FOLDER = os.environ.get("KX_PUBLIC", "")
CASES = sorted(path.stem for path in Path(FOLDER).glob("*.npz")) if FOLDER else []
DOUBLE = """
mul.wide.u32 %d0, %t, 4; add.u64 %d1, %in, %d0; add.u64 %d2, %out, %d0;
ld.global.f32 %r0, [%d1]; add.f32 %r0, %r0, %r0; st.global.f32 [%d2], %r0;
"""


def table(folder: Path, *names: str) -> list[str]:
    script = ROOT / "benchmarks" / "public_kernels.py"
    command = [sys.executable, str(script), str(folder), *names]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    return done.stdout.splitlines()[2:]


@pytest.mark.parametrize(("wanted", "result"), [(6.0, "right"), (np.nan, "right"), (7.0, "wrong")])
def test_a_case_is_executed_and_its_arrays_are_compared(tmp_path, wanted, result):
    launch = Launch(
        entry="k",
        grid=(1, 1, 1),
        block=(32, 1, 1),
        arguments=(Pointer(array="in"), Pointer(array="out")),
    )
    case = {
        "repository": "own",
        "file": "double.ptx",
        "kernel": "k",
        "arch": "sm_100a",
        "size": "32",
        "launch": launch,
        "unwritten": ["out"],
    }
    values = np.full(32, 3, np.float32)
    np.savez(
        tmp_path / "double.npz",
        case=np.array(msgspec.json.encode(case)),
        **{"in.in": values, "in.out": np.zeros_like(values), "want.out": np.full(32, wanted)},
    )
    (tmp_path / "double.ptx").write_text(ptx(DOUBLE, ["in", "out"]))
    (line,) = table(tmp_path)
    assert line == f"| own | double.ptx | `k` | sm_100a | 32 | 10 | {result} |"


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_public_kernel_does_what_the_table_says(name):
    (line,) = table(Path(FOLDER), name)
    assert line in (ROOT / "benchmarks" / "public_kernels.txt").read_text()
