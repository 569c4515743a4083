"""y = factor * x over `count` floats."""

from kernelexp.launch import Launch, Pointer, Scalar
from kernelexp.problem import Array, Budget, Chunk, Tolerance

SIZES = {"full": {"count": 1 << 20}, "emulated": {"count": 4096}}
FACTOR = 3.0
THREADS = 256


def outputs(size):
    return {"y": Array(shape=(size["count"],), dtype="f32")}


def inputs(size, seed, device):
    import torch

    generator = torch.Generator(device).manual_seed(seed)
    return {"x": torch.randn(size["count"], generator=generator, device=device)}


def reference(inputs, size):
    yield Chunk(array="y", first=0, values=inputs["x"].double() * FACTOR)


def tolerance(size, arch):
    return Tolerance(rtol=2**-24, atol=0.0, why="one rounding of an exact product")


def constraints(axes, arch):
    if axes["order"] == "backward" and axes["width"] == 4:
        yield "order backward exists for widths 1 and 2 only."


def budget(axes, arch):
    return Budget(threads=THREADS, dynamic_smem_bytes=0)


def launch(axes, size, exports):
    count = size["count"] // axes["width"]
    return Launch(
        entry="scale",
        grid=(-(-count // THREADS), 1, 1),
        block=(exports["threads"], 1, 1),
        arguments=(
            Pointer(array="x"),
            Pointer(array="y"),
            Scalar(type="f32", value=FACTOR),
            Scalar(type="s32", value=count),
        ),
    )
