"""out[j, i] = in[i, j] of a square matrix of floats."""

from kernelexp.launch import Launch, Pointer, Scalar
from kernelexp.problem import Array, Budget, Chunk, Tolerance, Work

TILE, ROWS = 32, 8
SIZES = {"full": {"n": 8192}, "emulated": {"n": 128}}


def outputs(size):
    return {"out": Array(shape=(size["n"], size["n"]), dtype="f32")}


def inputs(size, seed, device):
    import torch

    generator = torch.Generator(device).manual_seed(seed)
    return {"in": torch.randn((size["n"], size["n"]), generator=generator, device=device)}


def reference(inputs, size):
    yield Chunk(array="out", first=0, values=inputs["in"].double().T)


def tolerance(size):
    return Tolerance(rtol=0.0, atol=0.0, why="every element is copied as it is")


def budget(axes, arch):
    return Budget(threads=TILE * ROWS, dynamic_smem_bytes=0)


def launch(axes, size, exports):
    tiles = size["n"] // TILE
    return Launch(
        entry="transpose",
        grid=(tiles, tiles, 1),
        block=(TILE, ROWS, 1),
        arguments=(Pointer(array="out"), Pointer(array="in"), Scalar(type="s32", value=size["n"])),
    )


def work(size):
    return Work(flops=0, bytes=2 * 4 * size["n"] ** 2)
