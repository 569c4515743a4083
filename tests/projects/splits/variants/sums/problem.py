"""Sums of `rows` rows of `columns` floats, split over CTAs: two launches."""

from kernelexp.launch import Launch, Pointer, Scalar
from kernelexp.problem import Array, Chunk, Tolerance

SIZES = {
    "full": {"rows": 1 << 16, "columns": 128},
    "emulated": {"rows": 32, "columns": 128},
    "twice": {"rows": 64, "columns": 128},
}


def outputs(size):
    return {"y": Array(shape=(size["rows"],), dtype="float32")}


def workspaces(axes, size):
    return {"sums": Array(shape=(size["rows"], axes["splits"]), dtype="float64")}


def inputs(size, seed, device):
    import torch

    generator = torch.Generator(device).manual_seed(seed)
    return {"x": torch.randn(size["rows"], size["columns"], generator=generator, device=device)}


def reference(inputs, size):
    yield Chunk(array="y", first=0, values=inputs["x"].double().sum(dim=1))


def tolerance(size, arch, axes):
    return Tolerance(rtol=2**-23, atol=1e-9 * axes["splits"], why="sums in double precision")


def launch(axes, size):
    partial_sums = Launch(
        entry="partial_sums",
        grid=(size["rows"], axes["splits"], 1),
        block=(32, 1, 1),
        arguments=(
            Pointer(array="x"),
            Pointer(array="sums"),
            Scalar(type="int32", value=size["columns"]),
        ),
    )
    add_up = Launch(
        entry="add_up",
        grid=(size["rows"] // 32, 1, 1),
        block=(32, 1, 1),
        arguments=(Pointer(array="sums"), Pointer(array="y")),
    )
    return [partial_sums, add_up]
