"""The kernels of tests/gpu/kernels: which there are, and how they are compiled."""

import os
from pathlib import Path

import pytest

from kernelexp.system import toolchain
from kernelexp.system.process import processes

KERNELS = Path(__file__).parent / "kernels"
ARCH = os.environ.get("KX_GPU_ARCH", "sm_90a")
needs_gpu = pytest.mark.skipif(
    os.environ.get("KX_GPU") != "1", reason="launches on a GPU: set KX_GPU=1 where one is"
)


def compile_kernels(name, arch, folder):
    return compile_source(KERNELS / f"{name}.cu", arch, folder)


def compile_source(source, arch, folder):
    compiler = toolchain.find(None, folder).nvcc
    cubin = folder / f"{source.stem}.{arch}.cubin"
    argv = [compiler, "-cubin", f"-arch={arch}", "-std=c++17", "-O3", "-o", str(cubin), str(source)]
    completed = processes.run(argv, timeout_s=120)
    assert completed.returncode == 0, completed.stderr
    return cubin


HONEST = {
    "plain": {},
    "vectorised": {},
    "rows_from_two_ends": {},
    "staged": {},
    "large_smem": {},
    "atomics": {},
    "cluster": {},
    "async_copies": {},
    "tma": {},
    "twice": {},
    "late_ctas": {},
    "transposed": {"layout": "transposed"},
}
CHEATING = (
    "does_nothing",
    "writes_zeros",
    "stops_working",
    "every_other_launch",
    "keeps_sums",
    "first_inputs",
    "leaves_out_last_row",
    "leaves_out_sums",
    "one_nan",
    "one_wrong_element",
    "low_precision",
    "swaps_two_rows",
    "writes_past_the_end",
    "zeroes_its_input",
    "lacks_a_barrier",
)
