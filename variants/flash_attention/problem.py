"""Attention: out = softmax(q k^T / sqrt(d)) v for each head of each sequence, F16 in and out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from kernelexp.launch import Argument, Launch, Pointer, Scalar, TensorMap
from kernelexp.problem import Array, Axes, Chunk, Size, Tolerance, Work

if TYPE_CHECKING:
    import torch

# Batch, heads, queries and keys of a sequence, columns of a head.
SIZES: Mapping[str, Size] = {
    # The published analysis's shape.
    "full": {"b": 1, "h": 8, "s": 512, "d": 64},
    "long": {"b": 4, "h": 16, "s": 4096, "d": 64},
    "long128": {"b": 4, "h": 16, "s": 4096, "d": 128},
    # Two tiles of queries at least, and two tiles of keys, for tiles of up to 192.
    "emulated": {"b": 1, "h": 1, "s": 256, "d": 64},
    # Rings of stages go round more than once, and a head follows another.
    "emulated_ring": {"b": 1, "h": 2, "s": 512, "d": 64},
    "emulated128": {"b": 2, "h": 1, "s": 384, "d": 128},
}


def outputs(size: Size) -> Mapping[str, Array]:
    return {"out": Array(shape=(_heads(size) * size["s"], size["d"]), dtype="f16")}


def _heads(size: Size) -> int:
    return size["b"] * size["h"]


def inputs(size: Size, seed: int, device: str) -> Mapping[str, torch.Tensor]:
    """q, k and v, [b, h, s, d], normally distributed: scores have a standard deviation of 1."""
    import torch

    generator = torch.Generator(device).manual_seed(seed)
    shape = (size["b"], size["h"], size["s"], size["d"])
    return {
        name: torch.randn(shape, generator=generator, device=device).half()
        for name in ("q", "k", "v")
    }


def reference(inputs: Mapping[str, torch.Tensor], size: Size) -> Iterator[Chunk]:
    """In float64, a head at a time: 134 MB of scores for 4,096 keys."""
    import torch

    q, k, v = (inputs[name].flatten(0, 1) for name in ("q", "k", "v"))
    for head in range(_heads(size)):
        scores = q[head].double() @ k[head].double().T / math.sqrt(size["d"])
        values = torch.softmax(scores, dim=1) @ v[head].double()
        yield Chunk(array="out", first=head * size["s"], values=values)


def tolerance(size: Size, arch: str) -> Tolerance:
    return Tolerance(
        rtol=2.0**-10,
        atol=2.0**-8 / math.sqrt(size["s"]),
        why="rounding to F16 is off by 2^-11 of the value at most. Probabilities are rounded to "
        "F16 where a tensor core multiplies them: the sum of s such errors, each 2^-11 of its "
        "term with a standard deviation of 0.58 of that, has one of 2^-11 / sqrt(s) with these "
        "inputs (exp of a normal distribution has a mean square of e times its squared mean). "
        "2^-8 / sqrt(s) is eight times that, and less than what one lost key of 512 changes.",
    )


def launch(axes: Axes, size: Size, exports: Mapping[str, int]) -> Launch:
    """Tiles of queries by heads. On Hopper tensor maps of q, k, v and the output, else their
    addresses; then the number of keys and the scale of the scores."""
    if reason := _misfit(axes, size, exports):
        raise ValueError(reason)
    is_hopper = axes["phase"] == "hopper"
    scale = 1 / math.sqrt(size["d"])
    arguments = _maps(size, exports) if is_hopper else _pointers()
    # From phase 5 on the exponential is to base 2.
    takes_exp2 = is_hopper or axes["phase"] in (5, 6, 7)
    return Launch(
        entry="flash_attention",
        grid=(_query_tiles(size, exports), _heads(size), 1),
        block=(exports["threads"], 1, 1),
        dynamic_smem_bytes=exports["dynamic_smem_bytes"],
        arguments=(
            *arguments,
            Scalar(type="u32", value=size["s"]),
            Scalar(type="f32", value=scale * math.log2(math.e) if takes_exp2 else scale),
        ),
    )


def _misfit(axes: Axes, size: Size, exports: Mapping[str, int]) -> str:
    """Why a variant can't have a problem of this size; empty where it can."""
    if axes["phase"] == "hopper":
        if size["d"] > exports["head_dim"]:
            return f"head_dim={exports['head_dim']} has no room for {size['d']} columns"
        return ""
    for name in ("block_m", "block_n"):
        if size["s"] % exports[name]:
            return f"{name}={exports[name]} does not divide {size['s']} queries or keys"
    if size["d"] != exports["head_dim"]:
        return f"phase {axes['phase']} has {exports['head_dim']} columns, not {size['d']}"
    return ""


def _pointers() -> tuple[Argument, ...]:
    return tuple(Pointer(array=name) for name in ("q", "k", "v", "out"))


def _maps(size: Size, exports: Mapping[str, int]) -> tuple[Argument, ...]:
    """Rows of a head, [heads][s][d]: a box ends where its head does. Columns past d are zeros."""

    def rows(array: str, count: int) -> TensorMap:
        return TensorMap(
            array=array,
            element="f16",
            shape=(size["d"], size["s"], _heads(size)),
            strides_bytes=(2 * size["d"], 2 * size["d"] * size["s"]),
            box=(exports["box_columns"], count, 1),
            swizzle="128B",
        )

    return (
        rows("q", exports["q_box_rows"]),
        rows("k", exports["block_n"]),
        rows("v", exports["block_n"]),
        rows("out", exports["out_box_rows"]),
    )


def _query_tiles(size: Size, exports: Mapping[str, int]) -> int:
    return -(-size["s"] // exports["block_m"])


def tiles(axes: Axes, size: Size, exports: Mapping[str, int]) -> int:
    """Tiles of queries by tiles of keys."""
    key_tiles = -(-size["s"] // exports["block_n"])
    return _heads(size) * _query_tiles(size, exports) * key_tiles


def work(size: Size) -> Work:
    rows = _heads(size) * size["s"]
    return Work(flops=4 * rows * size["s"] * size["d"], bytes=4 * rows * size["d"] * 2)


PEERS = ("SDPA, flash", "SDPA, cuDNN", "SDPA, memory-efficient", "torch, three kernels")


def peers(
    inputs: Mapping[str, torch.Tensor], size: Size
) -> Mapping[str, Callable[[], torch.Tensor]]:
    """PyTorch's three fused kernels, and scores, softmax and output as kernels of their own."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    q, k, v = inputs["q"], inputs["k"], inputs["v"]
    flat_q, flat_k, flat_v = q.flatten(0, 1), k.flatten(0, 1), v.flatten(0, 1)
    none = flat_q.new_empty(())  # beta=0: not read

    def fused(backend: SDPBackend) -> Callable[[], torch.Tensor]:
        def call() -> torch.Tensor:
            with sdpa_kernel(backend):
                return torch.nn.functional.scaled_dot_product_attention(q, k, v)

        return call

    def unfused() -> torch.Tensor:
        scores = torch.baddbmm(none, flat_q, flat_k.mT, beta=0, alpha=1 / math.sqrt(size["d"]))
        return torch.bmm(torch.softmax(scores, dim=-1), flat_v)

    backends = (
        SDPBackend.FLASH_ATTENTION,
        SDPBackend.CUDNN_ATTENTION,
        SDPBackend.EFFICIENT_ATTENTION,
    )
    return dict(zip(PEERS, (*(fused(each) for each in backends), unfused), strict=True))
