"""patch_embed_gemm for the tests: compiled once a variant, run on a few tiles, held to float64."""

from __future__ import annotations

import functools
import importlib.util
import re
from pathlib import Path
from types import ModuleType

import numpy as np
from harness import compile_cu

import warpsim as emulator

FOLDER = Path(__file__).parents[2] / "variants" / "patch_embed_gemm"
INCLUDE = FOLDER.parent / "include"
# 4 stages, 5 epilogue warps, x32: the builds of ncu's two published reports.
BASELINE = {
    "stages": 4,
    "tmem_load": "x32",
    "epilogue_warps": 5,
    "epilogue_bounds": "constant",
    "store": "direct_v8",
    "phase2_unroll": 4,
    "combined": "inline",
    "mainloop_wait": "poll",
    "cta_group": 2,
    "tile_n": 256,
}
COLUMN_TILES = 3


@functools.cache
def problem() -> ModuleType:
    spec = importlib.util.spec_from_file_location("patch_embed_problem", FOLDER / "problem.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@functools.cache
def ptx(store: str, **axes: object) -> str:
    chosen = {**BASELINE, "store": store, **axes}
    return compile_cu(
        FOLDER / "patch_embed_gemm_sm100a.cu",
        defines=[f"KX_{axis.upper()}={value}" for axis, value in chosen.items()],
        include=[INCLUDE, FOLDER],
    )


def exports(text: str) -> dict[str, int]:
    """What the source tells its host; a zero is not spelled."""
    result = re.findall(r"\.b?[us]?32 kx_(\w+)(?: = (\d+))?;", text)
    return {name: int(value or 0) for name, value in result}


def e4m3(codes: np.ndarray) -> np.ndarray:
    sign = np.where(codes >> 7, -1.0, 1.0)
    exponent, mantissa = (codes >> 3 & 15).astype(int), (codes & 7).astype(int)
    normal = (8 + mantissa) * 2.0 ** (exponent - 10)
    return sign * np.where(exponent == 0, mantissa * 2.0**-9, normal)


def bf16(bits: np.ndarray) -> np.ndarray:
    return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


@functools.cache
def inputs(m: int) -> dict[str, np.ndarray]:
    """No two rows alike: |a| < 2, |b| < 0.25, subnormals and zeros among them."""
    rng = np.random.default_rng(m)

    def codes(rows: int, below: int) -> np.ndarray:
        sign = rng.integers(0, 2, (rows, 768)) << 7
        return (rng.integers(0, below, (rows, 768)) | sign).astype(np.uint8)

    table = rng.normal(size=(196, 768)).astype(np.float32).view(np.uint32) >> 16
    return {"a": codes(m, 0x40), "b": codes(768, 0x28), "combined": table.astype(np.uint16)}


@functools.cache
def reference(m: int) -> np.ndarray:
    given = inputs(m)
    table = bf16(given["combined"])[np.arange(m) % 196]
    return e4m3(given["a"]) @ e4m3(given["b"]).T + table


class Outcome:
    """A run: its result, the output, whether every element is within the rounding bound."""

    def __init__(self, result: emulator.Result, out: np.ndarray, want: np.ndarray) -> None:
        self.result = result
        self.out = out
        error = np.abs(bf16(out) - want)
        self.right = bool((error <= 2.0**-11 + 2.0**-8 * np.abs(want)).all())
        self.found = {finding.name for finding in result.findings}


@functools.lru_cache(maxsize=8)
def load(text: str) -> emulator.Module:
    return emulator.load(text)


def run(
    text: str, *, m: int = 256, ctas: int = 2, schedule: emulator.Schedule | None = None
) -> Outcome:
    size = {"m": m, "n": 768, "k": 768, "period": 196, "ctas": ctas}
    launch = problem().launch({}, size, exports(text))
    out = np.zeros((m, 768), np.uint16)
    arrays = {**inputs(m), "out": out}
    result = emulator.run(
        load(text), launch, arrays, schedule=schedule, unwritten=["out"], limit=2_000_000
    )
    return Outcome(result, out, reference(m))
