"""The compiler on a piece of the kernels' sources."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from kernelexp.system.process import processes
from kernelexp.system.process.processes import Completed
from kernelexp.system.toolchain import Toolchain

VARIANTS = Path(__file__).parents[2] / "variants"

Nvcc = Callable[..., Completed]
ExportsOf = Callable[[str, Mapping[str, object]], dict[str, int]]


@pytest.fixture
def nvcc(tools: Toolchain, tmp_path: Path) -> Nvcc:
    """Compiles a text, with the kernels' headers in reach, to tmp_path/source.ptx."""

    def compile_text(text: str, axes: Mapping[str, object] | None = None) -> Completed:
        source = tmp_path / "source.cu"
        source.write_text(text)
        defines = [f"-DKX_{axis.upper()}={value}" for axis, value in (axes or {}).items()]
        include = ["-I", str(VARIANTS / "include"), "-I", str(VARIANTS / "patch_embed_gemm")]
        target = ["-arch=compute_100a", "-ptx", "-o", str(source.with_suffix(".ptx"))]
        return processes.run(
            [tools.nvcc, "-std=c++17", *target, *include, *defines, str(source)], timeout_s=60
        )

    return compile_text


@pytest.fixture
def exports_of(nvcc: Nvcc, tmp_path: Path) -> ExportsOf:
    """What a header computes for a combination, as the compiler leaves it in the PTX."""

    def read(header: str, axes: Mapping[str, object]) -> dict[str, int]:
        done = nvcc(f'#include "{header}"\n', axes)
        assert done.returncode == 0, done.stderr
        ptx = (tmp_path / "source.ptx").read_text()
        exports = re.findall(r"\bkx_(\w+)(?: = (\d+))?;", ptx)
        return {name: int(value or 0) for name, value in exports}  # no initialiser for a 0

    return read
