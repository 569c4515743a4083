"""Patch embedding as one GEMM: out[m, n] = a[m, k] @ b[n, k]^T + combined[row % period, n].

SigLIP2's patch embedding of 4,736 images of 196 patches: E4M3 operands, BF16 output; bias and
positional embedding are pre-added in BF16 into one table of 196 rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from kernelexp.launch import Launch, Pointer, Scalar, TensorMap
from kernelexp.problem import Array, Axes, Budget, Chunk, Size, Tolerance, Work

if TYPE_CHECKING:
    import torch

SIZES: Mapping[str, Size] = {
    "full": {"m": 928_256, "n": 768, "k": 768, "period": 196, "ctas": 148, "ctas_sm_90a": 132},
    # One cluster of two CTAs with 6 tiles of 256 x 256: both directions of the snake, each
    # accumulator used three times, the stages nine times (their parities flip more than once), and
    # a table that wraps inside a tile.
    # On sm_90a four CTAs: one for each strip of 192 columns that stays in shared memory.
    "emulated": {"m": 512, "n": 768, "k": 768, "period": 196, "ctas": 2, "ctas_sm_90a": 4},
    # The same 6 tiles over four clusters: 1, 2, 1 and 2 tiles, beginning at odd ones too.
    "uneven": {"m": 512, "n": 768, "k": 768, "period": 196, "ctas": 8, "ctas_sm_90a": 12},
}

N = 768
"""Columns of the output, which the sources know too."""

REFERENCE_ROWS = 16_384
"""Rows of the reference computed at a time: 100 MB in float64."""


def outputs(size: Size) -> Mapping[str, Array]:
    return {"out": Array(shape=(size["m"], size["n"]), dtype="bf16")}


def inputs(size: Size, seed: int, device: str) -> Mapping[str, torch.Tensor]:
    """Random operands, no two rows alike: a[m, k] and b[n, k] in E4M3, combined[period, n] in BF16.

    |a| < 2 and |b| < 0.25, each exponent and each mantissa equally likely, subnormals and zeros
    among them: products of the tensor core's sums are then aligned over 13 binary orders, and
    out = a @ b^T has a standard deviation near 2, like the table that is added to it.
    """
    import torch

    generator = torch.Generator(device).manual_seed(seed)

    def e4m3(shape: tuple[int, int], codes: int) -> torch.Tensor:
        magnitude = torch.randint(
            0, codes, shape, generator=generator, device=device, dtype=torch.uint8
        )
        sign = torch.randint(0, 2, shape, generator=generator, device=device, dtype=torch.uint8)
        return (magnitude | sign << 7).view(torch.float8_e4m3fn)

    def bf16(*shape: int) -> torch.Tensor:
        values = torch.randn(shape, generator=generator, device=device)
        return values.to(torch.bfloat16)

    bias, position = bf16(size["n"]), bf16(size["period"], size["n"])
    return {
        "a": e4m3((size["m"], size["k"]), 0x40),  # E4M3 code 0x40 is 2.0
        "b": e4m3((size["n"], size["k"]), 0x28),  # and 0x28 is 0.25
        "combined": bias + position,
    }


def arrange(inputs: Mapping[str, torch.Tensor], axes: Axes) -> Mapping[str, torch.Tensor]:
    """With combined=blocked, the table as [7 row blocks][24 column blocks][32 rows][32 columns].

    A warp's 32 rows begin at table row 192 at most, so that it may run on to row 223: the last
    block of rows is filled with the table's first ones.

    On sm_90a, with combined=blocked and combined=registers, each 32 columns of a row in the order
    of wgmma's fragments: [4 lanes of a quad][4 groups of 8 columns][2 columns].
    """
    if _is_hopper(axes) and axes["combined"] in ("blocked", "registers"):
        table = inputs["combined"]
        groups = table.reshape(len(table), -1, 4, 4, 2).transpose(2, 3)
        return {**inputs, "combined": groups.reshape(table.shape).contiguous()}
    if axes["combined"] != "blocked":
        return inputs
    import torch

    table = inputs["combined"]
    period, n = table.shape
    row_blocks = -(-period // 32)
    rows = torch.arange(32 * row_blocks, device=table.device) % period
    blocks = table[rows].reshape(row_blocks, 32, n // 32, 32).transpose(1, 2).contiguous()
    return {**inputs, "combined": blocks}


def reference(inputs: Mapping[str, torch.Tensor], size: Size) -> Iterator[Chunk]:
    """The output in float64, from the exact values of the operands and of the BF16 table."""
    import torch

    a, b = inputs["a"], inputs["b"].float().double()
    table = inputs["combined"].double()
    for first in range(0, size["m"], REFERENCE_ROWS):
        rows = a[first : first + REFERENCE_ROWS].float().double()
        place = torch.arange(first, first + len(rows), device=a.device) % size["period"]
        yield Chunk(array="out", first=first, values=rows @ b.T + table[place])


def tolerance(size: Size, arch: str) -> Tolerance:
    """Of the architecture's tensor cores."""
    if arch == "sm_90a":
        return Tolerance(
            rtol=2.0**-8,
            atol=2.0**-5,
            why="rounding to BF16 is off by 2^-8 of the value at most. A wgmma on E4M3 cuts each "
            "of the 33 terms of its sum, the accumulator among them, at 2^-13 of the largest "
            "(arXiv 2511.10909): at 2^-10 where that is 8 to 16. The worst sum of the 33 x 24 "
            "cuts in 713 million elements was 0.0163 on an H200, about half of 2^-5.",
        )
    return Tolerance(
        rtol=2.0**-8,
        atol=2.0**-11,
        why="rounding to BF16 is off by 2^-8 of the value at most. Each of the 24 MMAs of a sum "
        "cuts its 33 terms at 2^-25 of the largest, which is below 16 with these inputs: "
        "24 x 33 x 2^-25 x 16 < 2^-11.",
    )


def _is_hopper(axes: Axes) -> bool:
    """Whether the axes are those of the sm_90a source, the only one with operand_b."""
    return "operand_b" in axes


def constraints(axes: Axes, arch: str) -> Iterator[str]:
    if _is_hopper(axes):
        yield from _hopper_constraints(axes)
        return
    if axes["cta_group"] == 4:
        yield (
            "cta_group=4: a tensor core works with that of one other CTA at most, tcgen05 has "
            ".cta_group::1 and .cta_group::2 only (PTX ISA 9.1, section 9.7.16.5)"
        )
    if axes["combined"] == "prestage" and axes["store"] != "staged":
        yield "combined=prestage fills the staging buffers before phase 1, which store=staged has"
    if axes["epilogue_bounds"] == "runtime" and _has_buffers(axes):
        yield (
            "epilogue_bounds=runtime: rows are copied from and to shared memory by vectors of a "
            "width that the number of columns decides at compile time, so that store=staged and "
            "combined=smem_prefetch need epilogue_bounds=constant"
        )


def _hopper_constraints(axes: Axes) -> Iterator[str]:
    """The static_asserts of config_sm90a.cuh."""
    tile_m, tile_n = int(axes["tile_m"]), int(axes["tile_n"])
    shares = 2 if axes["schedule"] == "cooperative" else 1
    is_resident = axes["operand_b"] == "resident"
    is_transposed = axes["operand_b"] == "registers"
    accumulators = tile_m // shares * tile_n // 128
    if is_transposed != (axes["combined"] == "resident"):
        yield (
            "operand_b=registers frees the shared memory that combined=resident takes, whose "
            "fragments are transposed: there is neither without the other"
        )
    if is_transposed:
        yield from _transposed_constraints(axes)
        return
    if tile_m % (64 * shares):
        yield (
            f"tile_m={tile_m}, schedule={axes['schedule']}: a warpgroup multiplies 64 rows at a "
            "time (PTX ISA 9.1, section 9.7.15.2)"
        )
    if accumulators > 192:
        yield (
            f"{accumulators} accumulators a thread: 192 at most leave the epilogue its registers"
        )
    if is_resident and N // tile_n % int(axes["cluster"]):
        yield "operand_b=resident gives each CTA of a cluster columns of its own"
    if int(axes["boxes"]) > tile_n // 64:
        yield f"boxes={axes['boxes']}: a warp's tile has {tile_n // 64} boxes of 64 columns"
    if axes["prefetch"] and not is_resident:
        yield "prefetch is of A, which operand_b=resident waits for alone"
    if axes["order"] == "snake" and is_resident:
        yield "order=snake turns in a row of tiles, of which operand_b=resident has one a CTA"
    if axes["order"] == "period" and not is_resident:
        yield "order=period goes down a strip of columns, which operand_b=resident does"
    if axes["combined"] == "registers" and accumulators > 96:
        yield (
            "combined=registers holds half as many registers as there are accumulators, so that "
            "there can be 96 of those at most"
        )
    if axes["combined"] == "registers" and axes["order"] != "period":
        yield "combined=registers needs order=period: other orders read the table for each tile"


def _transposed_constraints(axes: Axes) -> Iterator[str]:
    """The static_asserts of config_sm90a.cuh where B's columns are the rows of an MMA."""
    tile_m, tile_n = int(axes["tile_m"]), int(axes["tile_n"])
    if tile_n > 192:
        yield f"tile_n={tile_n}: 64 columns are a warpgroup's, and a CTA has room for three"
    elif tile_m * tile_n > 64 * 256:
        yield (
            f"tile_m={tile_m}, tile_n={tile_n}: beside 96 registers of B, {tile_n // 64} "
            f"warpgroups leave a thread no room for {tile_m // 2} accumulators"
        )
    if axes["store"] not in ("tma", "tma_evict_first"):
        yield "with operand_b=registers a warpgroup stores together, by TMA"
    if axes["order"] in ("snake", "period"):
        yield (
            f"order={axes['order']}: with operand_b=registers a CTA goes down one strip, and has "
            "the table in shared memory"
        )


def _has_buffers(axes: Axes) -> bool:
    return axes["store"] == "staged" or axes["combined"] == "smem_prefetch"


def budget(axes: Axes, arch: str) -> Budget:
    """The arithmetic of config.cuh, for combinations too that can't be compiled."""
    if _is_hopper(axes):
        return _hopper_budget(axes)
    stages, warps = int(axes["stages"]), int(axes["epilogue_warps"])
    group, tile_n = int(axes["cta_group"]), int(axes["tile_n"])
    a_bytes, b_bytes = 128 * 128, tile_n // group * 128
    barriers = -(-(8 + 8 * (2 * stages + 4)) // 128) * 128
    buffer = 32 * (2 * tile_n + 16) if _has_buffers(axes) else 0
    smem = stages * (a_bytes + b_bytes) + barriers + warps * buffer
    smem_term = f"{stages} stages x {a_bytes + b_bytes:,} B + barriers {barriers} B"
    if buffer:
        smem_term += f" + {warps} warps x {buffer:,} B of staging"
    # A group of four CTAs was refused for its columns: each would hold the tile of all four.
    buffers, of = (2, "accumulators") if group <= 2 else (group, "CTAs")
    return Budget(
        threads=32 * (2 + warps),
        dynamic_smem_bytes=smem,
        tmem_columns=tile_n * buffers,
        cluster=group,
        terms={
            "threads": f"(2 + {warps} epilogue warps) x 32",
            "dynamic_smem_bytes": smem_term,
            "tmem_columns": f"{tile_n} columns x {buffers} {of}",
        },
    )


def _hopper_budget(axes: Axes) -> Budget:
    """The arithmetic of config_sm90a.cuh."""
    stages, tile_m, tile_n = int(axes["stages"]), int(axes["tile_m"]), int(axes["tile_n"])
    a_bytes, b_bytes = tile_m * 128, tile_n * 128
    operand_b = axes["operand_b"]
    is_transposed = operand_b == "registers"
    warpgroups = tile_n // 64 if is_transposed else 2
    buffers, box = (warpgroups, 8192) if is_transposed else (8, 2048)
    buffer = 0 if axes["store"] == "direct" else int(axes["boxes"]) * box
    parts = {
        f"B {6 * b_bytes:,} B": 6 * b_bytes if operand_b == "resident" else 0,
        f"{stages} stages x {(stage := a_bytes + b_bytes * (operand_b == 'streamed')):,} B": stages
        * stage,
        f"{buffers} x {buffer:,} B of staging": buffers * buffer,
        f"table {196 * (2 * tile_n + 16):,} B": 196 * (2 * tile_n + 16) * is_transposed,
        f"barriers {8 * (2 * stages + 1 + warpgroups)} B": 8 * (2 * stages + 1 + warpgroups),
    }
    return Budget(
        threads=128 * (warpgroups + 1),
        dynamic_smem_bytes=sum(parts.values()),
        cluster=int(axes["cluster"]),
        terms={
            "threads": f"({warpgroups} warpgroups that multiply + 1 that loads) x 128",
            "dynamic_smem_bytes": " + ".join(term for term, part in parts.items() if part),
        },
    )


def _hopper_ctas(axes: Axes, size: Size) -> int:
    """Whole clusters, as many for each strip of columns that stays in shared memory."""
    each = N // int(axes["tile_n"]) if axes["operand_b"] != "streamed" else int(axes["cluster"])
    return max(1, size["ctas_sm_90a"] // each) * each


def launch(axes: Axes, size: Size, exports: Mapping[str, int]) -> Launch:
    """Arguments: tensor maps of a and b, the table, the output, the number of rows of tiles.

    On sm_90a, after those of a and b, a tensor map of the output, too, and the address of b.
    """

    def operand(array: str, rows: int, box_rows: int) -> TensorMap:
        return TensorMap(
            array=array,
            element="u8",
            shape=(size["k"], rows),
            strides_bytes=(size["k"],),
            box=(exports["tile_k"], box_rows),
            swizzle="128B",
        )

    hopper: tuple[TensorMap | Pointer, ...] = ()
    ctas = size["ctas"]
    if _is_hopper(axes):
        ctas = _hopper_ctas(axes, size)
        hopper = (
            TensorMap(
                array="out",
                element="bf16",
                shape=(size["n"], size["m"]),
                strides_bytes=(2 * size["n"],),
                box=(exports["out_box_columns"], exports["out_box_rows"]),
                swizzle="128B",
            ),
            Pointer(array="b"),
        )
    return Launch(
        entry="patch_embed_gemm",
        grid=(ctas, 1, 1),
        block=(exports["threads"], 1, 1),
        cluster=(exports["cluster"], 1, 1),
        dynamic_smem_bytes=exports["dynamic_smem_bytes"],
        arguments=(
            operand("a", size["m"], exports["a_box_rows"]),
            operand("b", size["n"], exports["b_box_rows"]),
            *hopper,
            Pointer(array="combined"),
            Pointer(array="out"),
            Scalar(type="u32", value=size["m"] // exports["tile_m"]),
        ),
    )


def tiles(axes: Axes, size: Size) -> int:
    """Of a cluster: 256 rows with cta_group=2, of a CTA: 128 rows without; on sm_90a of a CTA."""
    if _is_hopper(axes):
        return size["m"] // int(axes["tile_m"]) * (size["n"] // int(axes["tile_n"]))
    rows = 128 * int(axes["cta_group"])
    return size["m"] // rows * (size["n"] // int(axes["tile_n"]))


def work(size: Size) -> Work:
    m, n, k = size["m"], size["n"], size["k"]
    return Work(flops=2 * m * n * k, bytes=m * k + n * k + 2 * size["period"] * n + 2 * m * n)


PEERS = ("torch._scaled_mm, product only", "torch.compile")


def peers(
    inputs: Mapping[str, torch.Tensor], size: Size
) -> Mapping[str, Callable[[], torch.Tensor]]:
    """cuBLAS through torch._scaled_mm: the product alone, and the whole job compiled by torch.

    mode="max-autotune" takes as long: +109.40% and +109.52% of the kernel's time in one run of H1
    on an H200 (torch 2.11.0).
    """
    import torch

    a, b_t, table = inputs["a"], inputs["b"].t(), inputs["combined"]
    one = torch.ones((), device=a.device)
    rows = torch.arange(size["m"], device=a.device) % size["period"]

    def product() -> torch.Tensor:
        return torch._scaled_mm(
            a, b_t, scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=True
        )

    if size["m"] % size["period"] == 0:

        def whole() -> torch.Tensor:
            images = product().view(-1, size["period"], size["n"])
            return (images + table).view(size["m"], size["n"])

    else:

        def whole() -> torch.Tensor:
            return product() + table[rows]

    return dict(zip(PEERS, (product, torch.compile(whole)), strict=True))
