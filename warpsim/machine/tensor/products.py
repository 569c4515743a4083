"""Products of matrices in the registers of a warp: dense, sparse, and with scale factors."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import msgspec
import numpy as np

from warpsim.arithmetic.matrices import fragments, scaled, sparse
from warpsim.arithmetic.matrices.fragments import WIDTH
from warpsim.arithmetic.operands import is_finite
from warpsim.machine.core.arrays import Array, first_true
from warpsim.machine.core.site import Site
from warpsim.machine.wave.machine import Machine, WarpSet

ROWS, COLUMNS = 16, 8
METADATA, FACTORS = "sparsity-metadata", "scale-factors"
"""Findings."""


class Sparsity(NamedTuple):
    """Where the metadata of a sparse A is."""

    slot: int
    selector: int
    """Which lanes' words count."""
    ordered: bool = False
    """Whether the indices of a group must ascend."""


class Selection(NamedTuple):
    """Where the lanes' words have the factors of a matrix."""

    byte: Array
    """The first of a row's, [n, 32]."""
    lane: Array
    """Which lanes of each four, or which two, have them."""


class Scales(NamedTuple):
    """The factors of A and of B."""

    kind: str
    """ue8m0 or ue4m3."""
    per_row: int
    """1, 2 or 4 bytes of a lane's word."""
    a: int
    b: int
    """Slots of the words."""
    selections: Callable[[list[Array]], tuple[Selection, Selection]]
    """Of A's and of B's."""


class Product(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """D = A * B + C of an instruction; registers as slots."""

    site: Site
    a_type: str
    b_type: str
    d_type: str
    a: tuple[int, ...]
    b: tuple[int, ...]
    c: tuple[int, ...]
    d: tuple[int, ...]
    saturate: bool = False
    fused: bool = False
    """Whether FP8 and narrower numbers are multiplied as they are; else as f16, in two steps."""
    sparsity: Sparsity | None = None
    scales: Scales | None = None

    @property
    def width(self) -> int:
        """Bits that an element takes in a register."""
        return 4 if self.is_packed else WIDTH[self.a_type]

    @property
    def is_packed(self) -> bool:
        """Whether E2M1 takes four bits, instead of a byte."""
        return self.scales is not None and self.scales.per_row > 1


def multiply(product: Product, R: list[Array], warps: WarpSet) -> None:
    """The product in each warp of a set."""
    a = fragments.codes([R[slot] for slot in product.a], ROWS, product.a_type, product.width)
    b = fragments.codes([R[slot] for slot in product.b], COLUMNS, product.b_type, product.width)
    c = fragments.accumulator([R[slot] for slot in product.c])
    if product.scales is not None:
        result = _scaled(product, product.scales, R, warps, a, b, c)
    elif product.sparsity is not None:
        result = _sparse(product, product.sparsity, R, warps, a, b, c)
    else:
        result = _dense(product, a, b, c)
    for slot, value in zip(product.d, fragments.registers(result), strict=True):
        R[slot][...] = value


def _dense(product: Product, a: Array, b: Array, c: Array) -> Array:
    types = product.a_type, product.b_type, product.d_type
    return fragments.products(a, b, c, *types, product.saturate, fused=product.fused)


def _sparse(
    product: Product,
    sparsity: Sparsity,
    R: list[Array],
    warps: WarpSet,
    a: Array,
    b: Array,
    c: Array,
) -> Array:
    count, stored = len(a), a.shape[2]
    words = np.broadcast_to(R[sparsity.slot], (count, 32))
    array = metadata(words, stored, product.width, sparsity)
    for row, sentence in meaningless(array, product.width, sparsity.ordered):
        warps.machine.report(METADATA, sentence, product.site, int(warps.warps[row]))
    widened = product.width == 8 and product.d_type != "s32" and not product.fused
    return sparse.product(
        *(a, b, c),
        sparse.located(array, product.width),
        functools.partial(_dense, product),
        by_row=widened or not is_finite(b, product.b_type),
    )


def metadata(words: Array, stored: int, width: int, sparsity: Sparsity) -> Array:
    """The nibbles of each row's groups, [n, 16, groups]."""
    return sparse.nibbles(words, sparse.groups(stored, width), width, sparsity.selector)


def meaningless(array: Array, width: int, ordered: bool) -> list[tuple[int, str]]:
    """The first dimension's places at which metadata means nothing, each with a sentence."""
    wrong = sparse.meaningless(array, width, ordered)
    if not wrong.any():
        return []
    places = []
    for place in np.flatnonzero(wrong.any(axis=(1, 2))).tolist():
        row, group = first_true(wrong[place])
        value = int(array[place, row, group])
        sentence = (
            f"the metadata of row {row}, group {group} of the sparse matrix is {value:#06b}, for "
            "which the behaviour is undefined."
        )
        places.append((place, sentence))
    return places


def _scaled(
    product: Product, scales: Scales, R: list[Array], warps: WarpSet, a: Array, b: Array, c: Array
) -> Array:
    first, second = scales.selections(R)
    left = _factors(R[scales.a], first, scales.per_row, 2, product.site, warps)
    right = _factors(R[scales.b], second, scales.per_row, 1, product.site, warps)
    results = []
    for matrices in zip(a, b, c, left, right, strict=True):
        if product.is_packed:
            results.append(scaled.mma_e2m1(*matrices, scale_type=scales.kind))
        else:
            a_type, b_type = product.a_type, product.b_type
            results.append(scaled.mma(*matrices, a_type=a_type, b_type=b_type))
    return np.stack(results)


def _factors(
    words: Array, selection: Selection, per_row: int, lanes: int, site: Site, warps: WarpSet
) -> Array:
    """The factors of each row of A, of which two `lanes` of each four have those of rows r and
    r + 8, or of each column of B, which one lane has: [n, rows, per_row]."""
    count = warps.count
    data = np.broadcast_to(words, (count, 32)).reshape(count, 8, 4)
    factors = np.empty((count, 8 * lanes, per_row), np.uint8)
    chosen = [np.broadcast_to(part, (count, 32)) for part in selection]
    for row in range(count):
        byte, lane = (int(part[row, 0]) for part in chosen)
        alike = all((part[row] == part[row, 0]).all() for part in chosen)
        if not alike or byte % per_row or byte > 3 or lane >= 4 // lanes:
            _report_selection(warps.machine, site, int(warps.warps[row]), byte, lane, alike)
        first = lane * lanes % 4
        shifts = 8 * (byte % 4 // per_row * per_row + np.arange(per_row, dtype=np.uint32))
        parts = data[row, :, first : first + lanes, None] >> shifts & np.uint32(255)
        factors[row] = parts.swapaxes(0, 1).reshape(-1, per_row)
    return factors


def _report_selection(
    machine: Machine, site: Site, place: int, byte: int, lane: int, alike: bool
) -> None:
    sentence = (
        f"scale factors from byte {byte} and thread {lane}, for which the behaviour is undefined."
    )
    if not alike:
        sentence = "the threads of a warp select different scale factors."
    machine.report(FACTORS, sentence, site, place)
