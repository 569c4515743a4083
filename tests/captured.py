"""Captures as a GPU's would be, of kernels whose results are known."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

import kept

from kernelexp.evidence.programs import captures
from kernelexp.evidence.programs.captures import Allocation, Capture, PassedParameter
from kernelexp.system.toolchain import Toolchain
from warpsim.launch import Dim3

SAXPY = """
struct View { const float* data; int count; };
__constant__ float twice[1] = {2.0f};
extern "C" __global__ void saxpy(float a, View x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < x.count) y[i] = a * twice[0] * x.data[i] + y[i];
}
"""
X, Y, VARIABLE = 0x7F12_3400_0000, 0x7F12_3480_0000, 0x7F12_3500_0000
"""Where a driver had them."""
COUNT = 100


def compile_cubin(tools: Toolchain, source: str) -> bytes:
    command = [tools.nvcc, "-arch=sm_90a", "-cubin", "-o", "k.cubin", "k.cu"]
    return kept.run(command, {"k.cu": source}, "k.cubin")


def write(
    folder: Path,
    cubin: bytes,
    symbol: str,
    parameters: Sequence[bytes],
    regions: Sequence[tuple[int, bytes, bytes]],
    grid: Dim3 = (1, 1, 1),
    block: Dim3 = (32, 1, 1),
) -> Capture:
    """regions: address, contents before and after."""
    folder.mkdir()
    (folder / captures.CUBIN).write_bytes(cubin)
    for index, (_, before, after) in enumerate(regions):
        (folder / f"{index}.before").write_bytes(before)
        if before != after:
            (folder / f"{index}.after").write_bytes(after)
    capture = Capture(
        format=captures.FORMAT,
        symbol=symbol,
        launch=7,
        number=1,
        process=1,
        device="NVIDIA H200",
        correlation=1,
        grid=grid,
        block=block,
        cluster=(1, 1, 1),
        shared=0,
        cooperative=False,
        attributes=(),
        modules=1,
        chosen=True,
        parameters=tuple(PassedParameter(offset=0, data=item.hex()) for item in parameters),
        regions=tuple(
            Allocation(
                address=address,
                size=len(before),
                allocation=address,
                allocated=len(before),
                changed=before != after,
                variable="twice" if address == VARIABLE else "",
            )
            for address, before, after in regions
        ),
    )
    captures.write(folder, capture)
    return capture


def write_saxpy(folder: Path, cubin: bytes, symbol: str = "saxpy", twice: float = 2.0) -> Capture:
    """Of numbers that are exact in any order; x and y do not begin where their allocations do."""
    x = [float(i) for i in range(COUNT)]
    y = [float(1000 - i) for i in range(COUNT)]
    after = [1.5 * twice * first + second for first, second in zip(x, y, strict=True)]
    pad = b"\x11" * 512
    parameters = (
        struct.pack("<f", 1.5),
        struct.pack("<Qi4x", X + 512, COUNT),
        struct.pack("<Q", Y + 512),
    )
    floats = f"<{COUNT}f"
    regions = (
        (VARIABLE, struct.pack("<f", twice), struct.pack("<f", twice)),
        (X, pad + struct.pack(floats, *x), pad + struct.pack(floats, *x)),
        (Y, pad + struct.pack(floats, *y), pad + struct.pack(floats, *after)),
    )
    return write(folder, cubin, symbol, parameters, regions, grid=(4, 1, 1))
