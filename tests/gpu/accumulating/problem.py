"""c = x * scale + beta * c: an array that is read and written, and a workspace that starts as 0."""

from __future__ import annotations

from kernelexp.launch import Launch, Pointer, Scalar
from kernelexp.problem import Array, Chunk, Tolerance

COLS = 1024
BETA = 2.0
# `short` takes under 50 us and is timed in CUDA graphs, `full` launch by launch.
SIZES = {"full": {"rows": 49_152}, "short": {"rows": 2_048}, "emulated": {"rows": 16}}


def outputs(size):
    return {"c": Array(shape=(size["rows"], COLS), dtype="f32")}


def workspaces(axes, size):
    return {"tickets": Array(shape=(1,), dtype="s32", zero=True)}


def inputs(size, seed, device):
    import torch

    generator = torch.Generator(device=device).manual_seed(seed)
    x, c = (torch.randn(size["rows"], COLS, generator=generator, device=device) for _ in range(2))
    scale = torch.rand(COLS, generator=generator, device=device).add_(0.5)
    return {"x": x, "scale": scale, "c": c}


def reference(inputs, size):
    step = 8192
    for first in range(0, size["rows"], step):
        rows = slice(first, first + step)
        product = inputs["x"][rows].double() * inputs["scale"].double()
        yield Chunk(array="c", first=first, values=product + BETA * inputs["c"][rows].double())


def tolerance(size, arch):
    return Tolerance(rtol=1e-6, atol=1e-5, why="two roundings of values of size 10")


def launch(axes, size):
    beta = Scalar(type="f32", value=BETA)
    pointers = {name: Pointer(array=name) for name in ("x", "scale", "c", "tickets")}
    arguments = {"scales": (pointers["c"], beta)}
    return [
        Launch(
            entry=entry,
            grid=(size["rows"], 1, 1),
            block=(256, 1, 1),
            arguments=arguments.get(entry, (*pointers.values(), beta)),
        )
        for entry in axes["entry"].split("+")
    ]


def peers(inputs, size):
    def in_place():
        return inputs["c"].mul_(BETA).add_(inputs["x"] * inputs["scale"])

    return {"torch": in_place}
