"""y = softmax(x) along rows. What else is possible: python -m pydoc kernelexp.model.problem."""

from kernelexp import Array, Chunk, Launch, Pointer, Scalar, Tolerance, Work

# "full" is timed on a GPU, "emulated" executed on the CPU. The last pass over a row is not full.
# With a second small size and tiles(), counts are scaled to the full problem.
SIZES = {
    "full": {"rows": 65_536, "columns": 1000},
    "emulated": {"rows": 3, "columns": 1000},
    "emulated_more": {"rows": 6, "columns": 1000},
}
ROWS_AT_ONCE = 4096


def outputs(size):
    return {"y": Array(shape=(size["rows"], size["columns"]), dtype="f32")}


def inputs(size, seed, device):
    import torch

    generator = torch.Generator(device).manual_seed(seed)
    shape = (size["rows"], size["columns"])
    return {"x": torch.randn(shape, generator=generator, device=device)}


def reference(inputs, size):
    """In float64, in pieces that fit into memory."""
    for first in range(0, size["rows"], ROWS_AT_ONCE):
        rows = inputs["x"][first : first + ROWS_AT_ONCE].double()
        yield Chunk(array="y", first=first, values=rows.softmax(dim=1))


def tolerance(size, arch):
    return Tolerance(
        rtol=2**-19,
        atol=0.0,
        why="two exponentials of 2 ulp, about ten roundings in a sum of positive terms, a division",
    )


def launch(axes, size, exports):
    return Launch(
        entry="row_softmax",
        grid=(size["rows"], 1, 1),
        block=(exports["threads"], 1, 1),
        arguments=(
            Pointer(array="x"),
            Pointer(array="y"),
            Scalar(type="u32", value=size["columns"]),
        ),
    )


def tiles(axes, size):
    """A CTA has one row."""
    return size["rows"]


def work(size):
    """Each element is read once and written once, whatever the kernel does."""
    return Work(flops=0, bytes=8 * size["rows"] * size["columns"])
