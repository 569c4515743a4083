"""What adopt prints of a source."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import Kx

from kernelexp.model import errors

KERNEL = "__global__ void {}(float* y) {{ y[threadIdx.x] = {}; }}\n"


@pytest.fixture
def own(tmp_path: Path, hashed: Path, kx: Kx) -> Path:
    kx("init", str(tmp_path / "own"), "--empty", cwd=tmp_path)
    return tmp_path / "own"


def test_neighbouring_lines_that_were_left_out_are_one_range(own: Path, kx: Kx) -> None:
    others = [KERNEL.format(name, 1) + "\n" for name in "abc"]
    shared = "__device__ int kept() { return 1; }\n"
    text = "".join([*others, shared, KERNEL.format("d", 2), KERNEL.format("wanted", "kept()")])
    (own.parent / "many.cu").write_text(text)
    result = kx("adopt", "../many.cu", "--arch", "sm_90a", "--entry", "wanted", cwd=own)
    assert result.exit_code == errors.OK, result.stderr
    assert "left out of the copy of many.cu, lines: 1-5, 8\n" in result.stdout


def test_what_adopt_prints_of_long_types_and_many_files_fits_a_screen(own: Path, kx: Kx) -> None:
    for n in range(9):
        (own.parent / f"h{n}.cuh").write_text(KERNEL.format(f"k{n}", n))
    includes = "".join(f'#include "h{n}.cuh"\n' for n in range(9))
    parameters = ", ".join(f"const unsigned long long* array_{n}" for n in range(4))
    main = f"__global__ void long_one({parameters}, float* y) {{ *y = *array_0 + *array_3; }}\n"
    (own.parent / "many.cu").write_text(includes + main)
    result = kx("adopt", "../many.cu", "--arch", "sm_90a", "--entry", "long_one", cwd=own)
    assert result.exit_code == errors.OK, result.stderr
    assert "left out of the copies of 6 more files" in result.stdout
    lines = result.stdout.splitlines()
    assert len(lines) < 40
    own = [line for line in lines if not line.startswith("blank: ")]
    assert [line for line in own if len(line) > 80] == []
