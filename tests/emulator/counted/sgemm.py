"""The twelve kernels of siboehm/SGEMM_CUDA, as its runner launches them."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.case import Case

from warpsim.launch import Dim3

from .program import Program, f32, floats, i32, launched

SIZES = ((256, 256, 32), (128, 512, 64))
"""M, N, K."""
# Number, name, template arguments; rows and columns of a CTA's tile, threads of a CTA.
_KERNELS = (
    (3, "sgemm_shared_mem_block", "<32>", 32, 32, 1024),
    (4, "sgemm1DBlocktiling", "<64, 64, 8, 8>", 64, 64, 512),
    (5, "sgemm2DBlocktiling", "<128, 128, 8, 8, 8>", 128, 128, 256),
    (6, "sgemmVectorize", "<128, 128, 8, 8, 8>", 128, 128, 256),
    (7, "sgemmResolveBankConflicts", "<128, 128, 8, 8, 8>", 128, 128, 256),
    (8, "sgemmResolveBankExtraCol", "<128, 128, 8, 8, 8>", 128, 128, 256),
    (9, "sgemmAutotuned", "<128, 128, 16, 8, 8>", 128, 128, 256),
    (10, "sgemmWarptiling", "<128, 128, 16, 64, 64, 4, 8, 4, 128>", 128, 128, 128),
    (11, "sgemmDoubleBuffering", "<128, 256, 16, 128, 32, 1, 8, 8, 256>", 128, 256, 256),
    (12, "runSgemmDoubleBuffering2", "<128, 128, 16, 64, 64, 4, 8, 4, 128>", 128, 128, 128),
)


def _run(number: int, name: str, grid: Dim3, block: Dim3, size: Dim3) -> Case:
    m, n, k = size
    arrays = {"a": floats(m * k, 1), "b": floats(k * n, 2), "c": floats(m * n, 3)}
    return launched(
        f"{number} {name} {m}x{n}x{k}",
        name,
        grid,
        block,
        arrays,
        *(i32(m), i32(n), i32(k), f32(0.5), "a", "b", f32(3.0), "c"),
    )


def _runs() -> Iterator[Case]:
    for size in SIZES:
        m, n, _ = size
        by_rows = (m // 32, n // 32, 1)
        yield _run(1, "sgemm_naive", by_rows, (32, 32, 1), size)
        yield _run(2, "sgemm_global_mem_coalesce", by_rows, (1024, 1, 1), size)
        for number, name, _arguments, rows, columns, threads in _KERNELS:
            grid = by_rows if number == 3 else (n // columns, m // rows, 1)
            yield _run(number, name, grid, (threads, 1, 1), size)


SGEMM = Program(
    name="sgemm",
    repository="siboehm/SGEMM_CUDA",
    commit="60cba6f9b20a198116c76f18de8047f44df8c8b8",
    file="src/kernels.cuh",
    kernels=(
        "sgemm_global_mem_coalesce<32>",
        *(f"{name}{arguments}" for _, name, arguments, *_ in _KERNELS),
    ),
    runs=_runs,
)
