"""A Triton kernel, compiled for a card that need not be here, and executed on the CPU."""

from __future__ import annotations

import numpy as np
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, CompiledKernel

from kernelexp import emulator
from kernelexp.launch import Launch, Pointer, Scalar

ROWS, COLUMNS, BLOCK = 3, 300, 512
COUNTERS = (
    "ptx__inst_executed",
    "ptx__inst_executed_shuffle",
    "ptx__inst_executed_barrier",
    "ptx__memory_l1_wavefronts_shared",
    "ptx__l1tex__t_sectors_pipe_lsu_mem_global_op_ld",
)


@triton.jit
def softmax(x, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    values = tl.load(x + row * columns + at, mask=inside, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, axis=0))
    tl.store(y + row * columns + at, powers / tl.sum(powers, axis=0), mask=inside)


def compiled(num_warps: int) -> CompiledKernel:
    """For an H100 or H200: sm_90, warps of 32 lanes."""
    source = ASTSource(
        fn=softmax,
        signature={"x": "*fp32", "y": "*fp32", "columns": "i32", "BLOCK": "constexpr"},
        constexprs={"BLOCK": BLOCK},
    )
    target = GPUTarget("cuda", 90, 32)
    return triton.compile(source, target=target, options={"num_warps": num_warps})


def launch(kernel: CompiledKernel) -> Launch:
    """As Triton would launch it: its own parameters, and two scratch pointers that it adds."""
    return Launch(
        entry=kernel.metadata.name,
        grid=(ROWS, 1, 1),
        block=(32 * kernel.metadata.num_warps, 1, 1),
        dynamic_smem_bytes=kernel.metadata.shared,
        arguments=(
            Pointer(array="x"),
            Pointer(array="y"),
            Scalar(type="s32", value=COLUMNS),
            Scalar(type="u64", value=0),
            Scalar(type="u64", value=0),
        ),
    )


def main() -> None:
    x = np.random.default_rng(1).standard_normal((ROWS, COLUMNS), dtype=np.float32)
    powers = np.exp(x.astype(np.float64))
    want = powers / powers.sum(axis=1, keepdims=True)
    for num_warps in (1, 4):
        kernel = compiled(num_warps)
        arrays = {"x": x.copy(), "y": np.empty_like(x)}
        done = emulator.compare(
            emulator.load(kernel.asm["ptx"]), [launch(kernel)], arrays, unwritten=["y"]
        )
        error = np.max(np.abs(arrays["y"] / want - 1))
        first = done.results[0]
        print(f"num_warps={num_warps}: {'right' if error < 1e-5 else 'wrong'},", end=" ")
        print(f"{len(done.findings)} findings under {len(done.results)} schedules")
        for name in COUNTERS:
            print(f"  {name} {first.counters.kernel[name]}")


if __name__ == "__main__":
    main()
