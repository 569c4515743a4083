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

# How figures of config.cuh and config_sm90a.cuh come about, for the sentences on limits.
TERMS: Mapping[str, Mapping[str, str]] = {
    "sm_100a": {
        "threads": "({Config::FIRST_EPILOGUE_WARP} + {Config::EPILOGUE_WARPS} epilogue warps) x 32",
        "dynamic_smem_bytes": "{Config::STAGES} stages x {Config::STAGE_BYTES} B"
        " + barriers {Config::BUFFERS_OFFSET - Config::TMEM_ADDRESS_OFFSET} B"
        " + {Config::EPILOGUE_WARPS} warps x {Config::BUFFER_BYTES} B of staging",
        "tmem_columns": "{Config::TILE_N} columns x {Config::ACCUMULATORS} accumulators",
    },
    "sm_90a": {
        "threads": "({Config::WARPGROUPS} warpgroups that multiply + 1 that loads) x 128",
        "dynamic_smem_bytes": "B {Config::RESIDENT_BYTES} B"
        " + {Config::STAGES} stages x {Config::STAGE_BYTES} B"
        " + {Config::BUFFERS} x {Config::BUFFER_BYTES} B of staging"
        " + table {Config::TABLE_BYTES} B"
        " + barriers {Config::SMEM_BYTES - Config::FULL_OFFSET} B",
    },
}

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
    """The table as the epilogue of a variant reads it."""
    table = inputs["combined"]
    if not _is_hopper(axes):
        return {"combined": _in_blocks(table)} if axes["combined"] == "blocked" else {}
    return {"combined": _in_fragments(table)} if axes["combined"] in FRAGMENTS else {}


FRAGMENTS = ("blocked", "registers")
"""Values of `combined` on sm_90a that read 16 bytes a lane."""


def _is_hopper(axes: Axes) -> bool:
    """Whether the axes are those of the sm_90a source, the only one with operand_b."""
    return "operand_b" in axes


def _in_blocks(table: torch.Tensor) -> torch.Tensor:
    """[7 row blocks][24 column blocks][32 rows][32 columns].

    A warp's 32 rows begin at table row 192 at most, so that it may run on to row 223: the last
    block of rows is filled with the table's first ones.
    """
    import torch

    period, n = table.shape
    row_blocks = -(-period // 32)
    rows = torch.arange(32 * row_blocks, device=table.device) % period
    return table[rows].reshape(row_blocks, 32, n // 32, 32).transpose(1, 2).contiguous()


def _in_fragments(table: torch.Tensor) -> torch.Tensor:
    """Each 32 columns of a row as [4 lanes of a quad][4 groups of 8 columns][2 columns]: the order
    of wgmma's fragments."""
    groups = table.reshape(len(table), -1, 4, 4, 2).transpose(2, 3)
    return groups.reshape(table.shape).contiguous()


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


def budget(axes: Axes, arch: str) -> Budget | None:
    """A group of four CTAs, which config.cuh refuses, would need each CTA to hold the tile of all
    four; for what it accepts, its exports are the budget."""
    group, tile_n = int(axes.get("cta_group", 1)), int(axes["tile_n"])
    if group <= 2:
        return None
    return Budget(
        threads=0,
        dynamic_smem_bytes=0,
        tmem_columns=tile_n * group,
        cluster=group,
        terms={"tmem_columns": f"{tile_n} columns x {group} CTAs"},
    )


def launch(axes: Axes, size: Size, exports: Mapping[str, int]) -> Launch:
    """Arguments: tensor maps of a and b, the table, the output, the number of rows of tiles.

    Where the output is stored by TMA, after those of a and b, its tensor map and the address of b.
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

    stored: tuple[TensorMap | Pointer, ...] = ()
    if "out_box_rows" in exports:
        stored = (
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
        grid=(_ctas(axes, size, exports), 1, 1),
        block=(exports["threads"], 1, 1),
        cluster=(exports["cluster"], 1, 1),
        dynamic_smem_bytes=exports["dynamic_smem_bytes"],
        arguments=(
            operand("a", size["m"], exports["a_box_rows"]),
            operand("b", size["n"], exports["b_box_rows"]),
            *stored,
            Pointer(array="combined"),
            Pointer(array="out"),
            Scalar(type="u32", value=size["m"] // exports["tile_m"]),
        ),
    )


def _ctas(axes: Axes, size: Size, exports: Mapping[str, int]) -> int:
    """Whole clusters, as many for each strip of columns that stays in a CTA."""
    if not _is_hopper(axes):
        return size["ctas"]
    stays = axes["operand_b"] != "streamed"
    each = size["n"] // exports["tile_n"] if stays else exports["cluster"]
    return max(1, size["ctas_sm_90a"] // each) * each


def tiles(axes: Axes, size: Size, exports: Mapping[str, int]) -> int:
    """Of a cluster on sm_100a, of a CTA on sm_90a."""
    return size["m"] // exports["tile_m"] * (size["n"] // exports["tile_n"])


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
