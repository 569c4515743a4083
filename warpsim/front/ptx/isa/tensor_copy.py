"""Tensor copies (TMA): boxes of an array, to and from shared memory."""

from __future__ import annotations

from collections.abc import Callable

from warpsim.front.ptx.decoder import PtxDecoder
from warpsim.front.ptx.registry import builder
from warpsim.front.ptx.syntax import Address, Operand, Vector
from warpsim.machine.copies import tensor_copies, tensor_maps
from warpsim.machine.copies.copying import CopyDestination
from warpsim.machine.core.arrays import Array, Mask
from warpsim.machine.core.asynchronous import Issuer
from warpsim.machine.wave.machine import Machine, Op, WarpSet, each_thread

_DIM = "{d:1d|2d|3d|4d|5d}"
_HINT = "{h:|.L2::cache_hint}"
_GROUP = "{g:|.cta_group::1|.cta_group::2}"
_DST = "{s:shared::cta|shared::cluster}"
_TX = ".mbarrier::complete_tx::bytes"


def _box(
    operand: Operand, dimensions: int, d: PtxDecoder
) -> Callable[[list[Array], int, int], tuple[int, tuple[int, ...]]]:
    """Reads [tensor map, {coordinates}] in one lane: the map's address, the box's first element."""
    at = d.pointer(operand)
    extra = operand.extra if isinstance(operand, Address) else ()
    vector = extra[0] if extra else Vector(())
    items = vector.items if isinstance(vector, Vector) else (vector,)
    if len(items) != dimensions:
        raise d.refuse("has another number of coordinates than dimensions")
    slots = [d.source(item, "s32") for item in items]

    def read(R: list[Array], row: int, lane: int) -> tuple[int, tuple[int, ...]]:
        values = (int(R[slot][row, lane]) for slot in slots)
        return at.value(R, row, lane), tuple(value - (value >> 31 << 32) for value in values)

    return read


@builder(
    f"cp.async.bulk.tensor.{_DIM}{_GROUP}.{_DST}.global{{t:|.tile}}{_TX}{{g2:|.cta_group::1|.cta_group::2}}{{m:|.multicast::cluster}}{{g3:|.cta_group::1|.cta_group::2}}{_HINT}"
)
def tensor_load(d: PtxDecoder) -> Op:
    """Boxes of 1 to 5 dimensions, swizzles, out-of-bounds fill with zeros, multicast, a barrier in
    the pair's other CTA; complete_tx counts the whole box. im2col is rejected."""
    parts = d.parts
    to, bar = d.pointer(d.operands[0]), d.pointer(d.operands[2])
    box = _box(d.operands[1], int(parts[4][0]), d)
    multicast = "multicast::cluster" in parts
    ranks = d.source(d.operands[3], "u16") if multicast else None
    pair = "cta_group::2" in parts

    def act(machine: Machine, issuer: Issuer, R: list[Array], row: int, lane: int) -> None:
        mask = None if ranks is None else int(R[ranks][row, lane])
        destination = CopyDestination(to.value(R, row, lane), bar.value(R, row, lane), mask, pair)
        tensor_copies.load(machine, issuer, destination, *box(R, row, lane))

    return each_thread(d.site, act)


# Stores


@builder(f"cp.async.bulk.tensor.{_DIM}.global.shared::cta{{t:|.tile}}.bulk_group{_HINT}")
def tensor_store(d: PtxDecoder) -> Op:
    """Boxes and swizzles; anything outside the array is dropped. Lanes of a warp that ask for one
    store get one, that of the first, as it is one UTMASTG: CUTLASS has whole warps ask."""
    return _tensor_out(d, None)


@builder(
    f"cp.reduce.async.bulk.tensor.{_DIM}.global.shared::cta.{{o:add|min|max|and|or|xor|inc|dec}}{{t:|.tile}}.bulk_group{_HINT}"
)
def tensor_reduce(d: PtxDecoder) -> Op:
    """Reductions of integers, f16, bf16, f32 and f64, element after element."""
    return _tensor_out(d, d.parts[8])


def _tensor_out(d: PtxDecoder, operation: str | None) -> Op:
    dimensions = int(d.parts[4 if operation is None else 5][0])
    box, source, site = _box(d.operands[0], dimensions, d), d.pointer(d.operands[1]), d.site

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        copies: set[tuple[object, ...]] = set()
        for row, place, lane in warps.each_lane(m):
            store = (*box(R, row, lane), source.value(R, row, lane))
            if operation is None and (place, store) in copies:
                continue
            copies.add((place, store))
            issuer = Issuer(warps.machine.clocks, place, lane, site)
            tensor_copies.store(warps.machine, issuer, *store, operation)

    return op


# Tensor maps that a kernel changes

_FIELDS = "{f:global_address|global_dim|global_stride|box_dim}"


@builder(f"tensormap.replace.tile.{_FIELDS}{{s:|.global|.shared::cta}}.b1024.{{t:b32|b64}}")
def replace(d: PtxDecoder) -> Op:
    """Address, sizes, strides in bytes, and box. Other fields are rejected."""
    field, t = d.parts[3], d.parts[-1]
    space = "shared" if "shared::cta" in d.parts else "global"
    at = d.pointer(d.operands[0])
    index = d.constant(d.operands[1]) if len(d.operands) > 2 else 0
    value = d.source(d.operands[-1], t)

    def act(machine: Machine, issuer: Issuer, R: list[Array], row: int, lane: int) -> None:
        new = int(R[value][row, lane])
        tensor_maps.replace(machine, issuer, at.value(R, row, lane), space, field, index, new)

    return each_thread(d.site, act)


@builder(
    "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release"
    ".{c:cta|cluster|gpu|sys}.sync.aligned",
    sync=True,
)
def publish(d: PtxDecoder) -> Op:
    """Copies a tensor map from shared to global memory."""
    to, source = (d.pointer(operand) for operand in d.operands[:2])
    site = d.site

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        for row, place in enumerate(warps.warps.tolist()):
            issuer = warps.machine.issuer(place, 0, site)
            addresses = to.value(R, row, 0), source.value(R, row, 0)
            tensor_maps.publish(warps.machine, issuer, *addresses)

    return op
