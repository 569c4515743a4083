"""Kernels of public repositories: scans, sorts, norms, attention, tensor cores by mma.sync."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from conformance.case import Array, Case

from warpsim.launch import Dim3, Scalar

from .program import Program, bfloats, f32, floats, halves, i32, integers, launched, u32, u64, zeros

_SAMPLES = {
    "repository": "NVIDIA/cuda-samples",
    "commit": "c94ff366aed18c797b8a85dfaac7817b0228b420",
}
_LLMC = {"repository": "karpathy/llm.c", "commit": "f1e2ace651495b74ae22d45d1723443fd00ecd3a"}
_HGEMM = {
    "repository": "Bruce-Lee-LY/cuda_hgemm",
    "commit": "0d26c2e4415ab0d0af5a6bfae301275c608d46b4",
}
_LEARN = {
    "repository": "gau-nernst/learn-cuda",
    "commit": "1454f8b71499a68eacdbf44c08e36a7003d8ab99",
}
_MINIMAL = {
    "repository": "tspeterkim/flash-attention-minimal",
    "commit": "00f8f46712d493665c900c32fa3a261c8ef3e20c",
}
_RODINIA = {"repository": "yuhc/gpu-rodinia", "commit": "9c10d3ea16ddba2ba057cc3951a9efc4c2cc18a4"}
_CONCEPTS = "Samples/2_Concepts_and_Techniques"
_DOMAIN = "Samples/5_Domain_Specific"
_RELAXED = ("--expt-relaxed-constexpr",)
_GROUPS = "#include <cooperative_groups.h>\n#include <cooperative_groups/reduce.h>\n"


def _between(low: float, high: float, count: int, seed: int) -> Array:
    values = np.random.default_rng(seed).uniform(low, high, count)
    return values.astype(np.float32).view(np.uint32)


# ---- NVIDIA/cuda-samples -------------------------------------------------------------------------


def _reductions() -> Iterator[Case]:
    count = 4096
    for name, ctas, words in (
        ("reduce0", 16, 256),
        ("reduce1", 16, 256),
        ("reduce3", 8, 256),
        ("reduce6", 4, 256),
        ("reduce7", 4, 9),
        ("cg_reduce", 4, 256),
    ):
        arrays = {"i": floats(count), "o": zeros(ctas)}
        grid = (ctas, 1, 1)
        yield launched(name, name, grid, (256, 1, 1), arrays, "i", "o", u32(count), smem=4 * words)


def _scan() -> Iterator[Case]:
    arrays = {"o": zeros(3072), "i": integers(3072, 100)}
    name = "scanExclusiveShared"
    yield launched(name, name, (3, 1, 1), (256, 1, 1), arrays, "o", "i", u32(1024))


def _shuffled_scan() -> Iterator[Case]:
    arrays = {"d": integers(768, 100), "p": zeros(3)}
    name = "shfl_scan_test"
    yield launched(name, name, (3, 1, 1), (256, 1, 1), arrays, "d", i32(32), "p", smem=32)


def _histogram_of_bytes() -> Iterator[Case]:
    arrays = {"o": zeros(4 * 256), "i": integers(3840, 1 << 32)}
    name = "histogram256Kernel"
    yield launched(name, name, (4, 1, 1), (192, 1, 1), arrays, "o", "i", u32(3840))


def _histogram_of_64() -> Iterator[Case]:
    arrays = {"o": zeros(2 * 64), "i": integers(4 * 640, 1 << 32)}
    name = "histogram64Kernel"
    yield launched(name, name, (2, 1, 1), (64, 1, 1), arrays, "o", "i", u32(640))


def _transposes() -> Iterator[Case]:
    width, height = 128, 64
    for name in (
        "copySharedMem",
        "transposeNaive",
        "transposeCoalesced",
        "transposeNoBankConflicts",
        "transposeDiagonal",
    ):
        arrays = {"o": zeros(width * height), "i": floats(width * height)}
        extent = (i32(width), i32(height))
        yield launched(name, name, (4, 2, 1), (32, 16, 1), arrays, "o", "i", *extent)


def _sort() -> Iterator[Case]:
    keys = integers(2048, 1 << 32)
    arrays = {"ok": zeros(2048), "ov": zeros(2048), "k": keys, "v": integers(2048, 2048)}
    name = "bitonicSortShared"
    order = (u32(1024), u32(1))
    yield launched(name, name, (2, 1, 1), (512, 1, 1), arrays, "ok", "ov", "k", "v", *order)


def _options() -> Iterator[Case]:
    count = 1024
    arrays = {
        "c": zeros(count),
        "p": zeros(count),
        "s": _between(5, 30, count, 1),
        "x": _between(1, 100, count, 2),
        "t": _between(0.25, 10, count, 3),
    }
    name, given = "BlackScholesGPU", (f32(0.02), f32(0.3), i32(count))
    yield launched(name, name, (4, 1, 1), (128, 1, 1), arrays, *"cpsxt", *given)


def _walsh() -> Iterator[Case]:
    arrays = {"o": zeros(3072), "i": floats(3072)}
    name = "fwtBatch1Kernel"
    yield launched(name, name, (3, 1, 1), (256, 1, 1), arrays, "o", "i", i32(10), smem=4096)


# ---- karpathy/llm.c ------------------------------------------------------------------------------


def _norms() -> Iterator[Case]:
    columns = 384
    rows = 24
    for name, grid, block, words in (
        ("layernorm_forward_kernel3", (6, 1, 1), (128, 1, 1), 0),
        ("layernorm_forward_kernel5", (24, 1, 1), (128, 1, 1), 0),
        ("layernorm_forward_kernel6", (6, 1, 1), (32, 4, 1), 6 * columns),
    ):
        arrays = {
            "o": zeros(rows * columns),
            "m": zeros(rows),
            "r": zeros(rows),
            "x": floats(rows * columns),
            "w": floats(columns, 1),
            "b": floats(columns, 2),
        }
        yield launched(
            name, name, grid, block, arrays, *"omrxwb", i32(rows), i32(columns), smem=4 * words
        )


def _softmaxes() -> Iterator[Case]:
    rows, columns = 12, 300
    for name, ctas, words in (
        ("softmax_forward_kernel4", rows, 4),
        ("softmax_forward_online_kernel2", 3, 0),
        ("softmax_forward_online_kernel8", 3, 0),
    ):
        arrays = {"o": zeros(rows * columns), "x": floats(rows * columns)}
        extent = (i32(rows), i32(columns))
        grid = (ctas, 1, 1)
        yield launched(name, name, grid, (128, 1, 1), arrays, "o", "x", *extent, smem=4 * words)


def _tiled_attention(entry: str, keys: int, columns: int) -> Case:
    heads, tiles = 4, keys // 32
    size = heads * keys * columns
    arrays = {
        **{name: floats(size, seed) for seed, name in enumerate("qkv")},
        "l": zeros(heads * keys),
        "m": np.full(heads * keys, -np.inf, np.float32).view(np.uint32),
        "o": zeros(size),
    }
    numbers = (keys, columns, tiles, tiles, 32, 32)
    return launched(
        entry,
        entry,
        (2, 2, 1),
        (32, 1, 1),
        arrays,
        *("q", "k", "v", *map(i32, numbers), f32(1 / math.sqrt(columns)), "l", "m", "o"),
        smem=4 * (3 * 32 * columns + 32 * 32),
    )


def _attention_of_llmc() -> Iterator[Case]:
    yield _tiled_attention("attention_forward_kernel2", 96, 32)


def _optimizer() -> Iterator[Case]:
    count = 1000
    arrays = {
        "p": floats(count, 1),
        "g": floats(count, 2),
        "m": floats(count, 3),
        "v": _between(0, 1, count, 4),
    }
    rates = map(f32, (1e-3, 0.9, 0.999, 0.1, 0.001, 1e-8, 0.01))
    name = "adamw_kernel2"
    number = Scalar(type="s64", value=count)
    yield launched(name, name, (2, 1, 1), (512, 1, 1), arrays, *"pgmv", number, *rates)


def _classifier() -> Iterator[Case]:
    rows, words = 4, 320
    arrays = {
        "d": zeros(rows * words),
        "l": zeros(rows),
        "x": floats(rows * words, 1),
        "g": floats(rows, 2),
        "t": integers(rows, words),
    }
    name = "fused_classifier_kernel5"
    extent = map(i32, (2, 2, words, words))
    yield launched(
        name, name, (rows, 1, 1), (1024, 1, 1), arrays, "d", "l", u64(0), *"xgt", *extent
    )


def _triangle() -> Iterator[Case]:
    tokens, channels, heads = 128, 64, 2
    arrays = {"o": zeros(heads * tokens * tokens), "x": floats(tokens * 3 * channels)}
    extent = map(i32, (tokens, channels, heads))
    name = "trimul_global"
    yield launched(name, name, (1, 1, heads), (16, 16, 1), arrays, "o", "x", *extent)


def _linear() -> Iterator[Case]:
    rows, channels, outputs = 128, 64, 256
    arrays = {
        "o": zeros(rows * outputs),
        "x": floats(rows * channels, 1),
        "w": floats(outputs * channels, 2),
        "b": floats(outputs, 3),
    }
    name = "matmul_forward_kernel4"
    yield launched(name, name, (1, 2, 1), (16, 16, 1), arrays, *"oxwb", i32(channels), i32(outputs))


def _permutation() -> Iterator[Case]:
    extent = (3, 5, 7, 11)
    count = math.prod(extent)
    arrays = {"x": floats(count), "o": zeros(count)}
    name = "permute_kernel"
    yield launched(name, name, (5, 1, 1), (256, 1, 1), arrays, "x", "o", *map(i32, extent))


# ---- tensor cores --------------------------------------------------------------------------------


def _half_product(entry: str, grid: Dim3, block: Dim3, size: Dim3, smem: int) -> Case:
    m, n, k = size
    arrays = {
        "a": halves(m * k, 1),
        "b": halves(k * n, 2),
        "c": np.zeros(m * n, np.uint16),
    }
    return launched(entry, entry, grid, block, arrays, *"abc", *map(u64, size), smem=smem)


def _mma_naive() -> Iterator[Case]:
    yield _half_product("mmaNaiveKernel", (8, 4, 1), (32, 1, 1), (64, 64, 64), 0)


def _mma_stages() -> Iterator[Case]:
    yield _half_product("mmaAsyncStage3Kernel", (16, 1, 1), (256, 1, 1), (256, 128, 96), 73728)


def _mma_permuted() -> Iterator[Case]:
    yield _half_product("mmaPermutedKernel", (16, 1, 1), (256, 1, 1), (256, 128, 96), 65536)


def _wmma_padding() -> Iterator[Case]:
    yield _half_product("wmmaPaddingKernel", (16, 1, 1), (256, 1, 1), (256, 128, 96), 69632)


def _bf16_product(name: str, entry: str, smem: int) -> Case:
    m, n, k = 128, 64, 256
    arrays = {
        "a": bfloats(m * k, 1),
        "b": bfloats(k * n, 2),
        "c": np.zeros(m * n, np.uint16),
    }
    extent = map(i32, (m, n, k))
    return launched(name, entry, (2, 1, 1), (128, 1, 1), arrays, *"abc", *extent, smem=smem)


def _matmuls() -> Iterator[Case]:
    for stride, copies, swizzle in ((64, 0, 0), (72, 1, 0), (64, 1, 1)):
        entry = f"_Z16matmul_v1_kernelILi64ELi64ELi64ELi2ELi2ELi{stride}ELb{copies}ELb{swizzle}EE"
        name = f"matmul_v1_kernel stride={stride} cp.async={copies} swizzle={swizzle}"
        yield _bf16_product(name, f"{entry}vPK13__nv_bfloat16S2_PS0_iii", 128 * stride * 2)


def _pipelined_matmul() -> Iterator[Case]:
    yield _bf16_product("matmul_v6_kernel", "matmul_v6_kernel", 128 * 64 * 2 * 2)


def _attention_of_mma() -> Iterator[Case]:
    sequences, queries, keys, columns = 2, 128, 192, 64
    arrays = {
        "q": bfloats(sequences * queries * columns, 1),
        "k": bfloats(sequences * keys * columns, 2),
        "v": bfloats(sequences * keys * columns, 3),
        "o": np.zeros(sequences * queries * columns, np.uint16),
    }
    name = "attention_v5_kernel"
    extent = map(i32, (sequences, queries, keys))
    yield launched(name, name, (4, 1, 1), (128, 1, 1), arrays, *"qkvo", *extent, smem=192 * 64 * 2)


def _attention_minimal() -> Iterator[Case]:
    yield _tiled_attention("forward_kernel", 64, 32)


# ---- yuhc/gpu-rodinia ----------------------------------------------------------------------------


def _heat() -> Iterator[Case]:
    side, iterations = 64, 2
    arrays = {
        "p": floats(side * side, 1),
        "s": _between(300, 340, side * side, 2),
        "d": zeros(side * side),
    }
    extent = map(i32, (side, side, iterations, iterations))
    material = map(f32, (0.5, 1.5, 2.5, 3.5, 0.25, 0.001))
    name = "calculate_temp"
    yield launched(
        name, name, (6, 6, 1), (16, 16, 1), arrays, i32(iterations), *"psd", *extent, *material
    )


def _alignment() -> Iterator[Case]:
    columns = 65
    arrays = {"r": integers(columns * columns, 20), "m": integers(columns * columns, 50, 1)}
    numbers = map(i32, (columns, 10, 2, 4))
    name = "needle_cuda_shared_1"
    yield launched(name, name, (2, 1, 1), (16, 1, 1), arrays, "r", "m", *numbers)


PUBLIC = (
    Program(
        name="reduction",
        **_SAMPLES,
        file=f"{_CONCEPTS}/reduction/reduction_kernel.cu",
        kernels=(
            *("reduce0<float>", "reduce1<float>", "reduce3<float>", "cg_reduce<float>"),
            *("reduce6<float, 256, true>", "reduce7<float, 256, true>"),
        ),
        runs=_reductions,
        before=_GROUPS,
    ),
    Program(name="scan", **_SAMPLES, file=f"{_CONCEPTS}/scan/scan.cu", runs=_scan),
    Program(
        name="shfl_scan",
        **_SAMPLES,
        file=f"{_CONCEPTS}/shfl_scan/shfl_scan.cu",
        runs=_shuffled_scan,
    ),
    Program(
        name="histogram256",
        **_SAMPLES,
        file=f"{_CONCEPTS}/histogram/histogram256.cu",
        runs=_histogram_of_bytes,
    ),
    Program(
        name="histogram64",
        **_SAMPLES,
        file=f"{_CONCEPTS}/histogram/histogram64.cu",
        runs=_histogram_of_64,
    ),
    Program(
        name="transposes",
        **_SAMPLES,
        file="Samples/6_Performance/transpose/transpose.cu",
        runs=_transposes,
    ),
    Program(
        name="bitonic_sort",
        **_SAMPLES,
        file=f"{_CONCEPTS}/sortingNetworks/bitonicSort.cu",
        runs=_sort,
    ),
    Program(
        name="black_scholes",
        **_SAMPLES,
        file=f"{_DOMAIN}/BlackScholes/BlackScholes_kernel.cuh",
        runs=_options,
    ),
    Program(
        name="walsh_transform",
        **_SAMPLES,
        file=f"{_DOMAIN}/fastWalshTransform/fastWalshTransform_kernel.cuh",
        runs=_walsh,
        before=_GROUPS,
    ),
    Program(name="layernorm", **_LLMC, file="dev/cuda/layernorm_forward.cu", runs=_norms),
    Program(name="softmax", **_LLMC, file="dev/cuda/softmax_forward.cu", runs=_softmaxes),
    Program(
        name="attention_llmc",
        **_LLMC,
        file="dev/cuda/attention_forward.cu",
        runs=_attention_of_llmc,
    ),
    Program(name="adamw", **_LLMC, file="dev/cuda/adamw.cu", runs=_optimizer),
    Program(
        name="classifier",
        **_LLMC,
        file="dev/cuda/classifier_fused.cu",
        kernels=("fused_classifier_kernel5<true, false>",),
        runs=_classifier,
    ),
    Program(
        name="triangle",
        **_LLMC,
        file="dev/cuda/trimat_forward.cu",
        kernels=("trimul_global<matmul_tri4>",),
        runs=_triangle,
    ),
    Program(name="linear", **_LLMC, file="dev/cuda/matmul_forward.cu", runs=_linear),
    Program(name="permutation", **_LLMC, file="dev/cuda/permute.cu", runs=_permutation),
    Program(
        name="mma_naive",
        **_HGEMM,
        file="src/mma/mma_naive.cu",
        include=("src/common",),
        runs=_mma_naive,
    ),
    Program(
        name="mma_stages",
        **_HGEMM,
        file="src/mma/mma_async_stage3.cu",
        include=("src/common",),
        runs=_mma_stages,
    ),
    Program(
        name="mma_permuted",
        **_HGEMM,
        file="src/mma/mma_permuted.cu",
        include=("src/common",),
        runs=_mma_permuted,
    ),
    Program(
        name="wmma_padding",
        **_HGEMM,
        file="src/wmma/wmma_padding.cu",
        include=("src/common",),
        runs=_wmma_padding,
    ),
    Program(
        name="matmul_sm80",
        **_LEARN,
        file="02b_matmul_sm80/matmul_v1.cu",
        kernels=(
            "matmul_v1_kernel<64, 64, 64, 2, 2, 64, false, false>",
            "matmul_v1_kernel<64, 64, 64, 2, 2, 72, true, false>",
            "matmul_v1_kernel<64, 64, 64, 2, 2, 64, true, true>",
        ),
        runs=_matmuls,
        options=_RELAXED,
    ),
    Program(
        name="matmul_sm80_pipelined",
        **_LEARN,
        file="02b_matmul_sm80/matmul_v6.cu",
        kernels=("matmul_v6_kernel<64, 64, 64, 2, 2, 2, 8>",),
        runs=_pipelined_matmul,
        options=_RELAXED,
    ),
    Program(
        name="attention_mma",
        **_LEARN,
        file="07_attention/attention_v5.cu",
        kernels=("attention_v5_kernel<64, 64, 64, 4>",),
        runs=_attention_of_mma,
    ),
    Program(name="attention_minimal", **_MINIMAL, file="flash.cu", runs=_attention_minimal),
    Program(name="heat", **_RODINIA, file="cuda/hotspot/hotspot.cu", runs=_heat),
    Program(name="alignment", **_RODINIA, file="cuda/nw/needle_kernel.cu", runs=_alignment),
)
