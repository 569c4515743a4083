"""Tensor copies (TMA): boxes of an array, to and from shared memory."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from kernelexp.emulator.decode import Decoder
from kernelexp.emulator.isa.bulk import add_to_group
from kernelexp.emulator.isa.issue import At, each_lane
from kernelexp.emulator.isa.mbarrier import WINDOW
from kernelexp.emulator.isa.registry import Op, builder, modifiers, refuse
from kernelexp.emulator.machine import tma
from kernelexp.emulator.machine.asynchronous import Issuer, Pending
from kernelexp.emulator.machine.copying import (
    check_start,
    complete,
    fetch_shared,
    find_map,
    land_in_shared,
    read_box,
    shared_range,
    signalled,
    write_box,
)
from kernelexp.emulator.ptx.syntax import Instruction
from kernelexp.emulator.slots import Array

if TYPE_CHECKING:
    from kernelexp.emulator.machine.machine import Machine
    from kernelexp.launch import TensorMap

_DIM = "{d:1d|2d|3d|4d|5d}"
_HINT = "{h:|.L2::cache_hint}"
_GROUP = "{g:|.cta_group::1|.cta_group::2}"
_DST = "{s:shared::cta|shared::cluster}"
_TX = ".mbarrier::complete_tx::bytes"
TENSOR_ALIGN, BULK_ALIGN = 128, 16


@builder(
    f"cp.async.bulk.tensor.{_DIM}{_GROUP}.{_DST}.global{{t:|.tile}}{_TX}{{m:|.multicast::cluster}}{{g2:|.cta_group::1|.cta_group::2}}{_HINT}"
)
def tensor_load(ins: Instruction, d: Decoder) -> Op:
    """Boxes of 1 to 5 dimensions, swizzles, out-of-bounds fill with zeros, multicast, a barrier in
    the pair's other CTA; complete_tx counts the whole box. im2col is refused."""
    parts = modifiers(ins)
    to, source, bar = (At(operand, d, ins) for operand in ins.operands[:3])
    multicast = "multicast::cluster" in parts
    mask_slot = d.source(ins.operands[3], "u16", ins) if multicast else None
    pair = "cta_group::2" in parts
    if len(source.coordinates) != int(parts[4][0]):
        raise refuse(ins, "has another number of coordinates than dimensions")
    number = d.number

    def op(R: list[Array], m: Any, warps: Any) -> None:
        machine = warps.machine
        for row, place, lane in each_lane(warps, m):
            tensor = find_map(machine, source.value(R, row, lane), ins, place)
            size = tma.box_bytes(tensor)
            footprint = tma.image(tensor).footprint(size)
            cta, low = shared_range(
                machine, place, to.value(R, row, lane), footprint, TENSOR_ALIGN, ins
            )
            _, bar_cta, bar_low = machine.shared_offset(
                place, bar.value(R, row, lane) & WINDOW, ins
            )
            own = machine.cta_of(place).place
            if not pair and not multicast and bar_cta != cta:
                machine.found(
                    "mbarrier-misuse",
                    "the barrier of a copy without cta_group::2 lies in another CTA than its data.",
                    ins,
                    place,
                )
            ctas = [cta]
            if mask_slot is not None:
                mask, first = int(R[mask_slot][row, lane]), own - machine.ctas[own].rank
                ctas = [first + rank for rank in range(machine.cluster_size) if mask >> rank & 1]
            start = source.start(R, row, lane)
            check_start(machine, tensor, start, ins, place)
            array = machine.global_layout.address(tensor.array)
            sectors = tma.sectors(tensor, array, start, load=True)
            machine.tally(number).load(sectors, len(ctas) if multicast else 0)
            _issue_load(
                machine,
                Issuer(machine, place, lane),
                ins,
                tensor,
                start,
                ctas,
                low,
                (bar_cta, bar_low),
                pair,
            )

    return op


def _issue_load(
    machine: Machine,
    issuer: Issuer,
    ins: Instruction,
    tensor: TensorMap,
    start: tuple[int, ...],
    ctas: list[int],
    low: int,
    barrier: tuple[int, int],
    pair: bool,
) -> None:
    size = tma.box_bytes(tensor)

    def land() -> None:
        data = read_box(machine, tensor, start, ins, issuer.place)
        for cta in ctas:
            land_in_shared(machine, issuer, cta, low, data, tma.image(tensor), ins)
            complete(machine, signalled(machine, cta, barrier, ctas, pair, ins), size, issuer, ins)

    base = [machine.arena_offset(cta, low) for cta in ctas]
    machine.engines.issue(
        Pending(
            what=f"the load of the box at {start} of {tensor.array} ({ins.where()})",
            land=land,
            instruction=ins,
            touches=tuple((b, b + tma.image(tensor).footprint(size)) for b in base),
        )
    )


# Stores


@builder(f"cp.async.bulk.tensor.{_DIM}.global.shared::cta{{t:|.tile}}.bulk_group{_HINT}")
def tensor_store(ins: Instruction, d: Decoder) -> Op:
    """Boxes and swizzles; what lies outside the array is dropped."""
    return _tensor_out(ins, d, None)


@builder(
    f"cp.reduce.async.bulk.tensor.{_DIM}.global.shared::cta.{{o:add|min|max|and|or|xor|inc|dec}}{{t:|.tile}}.bulk_group{_HINT}"
)
def tensor_reduce(ins: Instruction, d: Decoder) -> Op:
    """Reductions of integers, f16, bf16, f32 and f64, element after element."""
    return _tensor_out(ins, d, modifiers(ins)[8])


def _tensor_out(ins: Instruction, d: Decoder, operation: str | None) -> Op:
    target, source = At(ins.operands[0], d, ins), At(ins.operands[1], d, ins)
    number = d.number

    def op(R: list[Array], m: Any, warps: Any) -> None:
        machine = warps.machine
        for row, place, lane in each_lane(warps, m):
            tensor = find_map(machine, target.value(R, row, lane), ins, place)
            start, size = target.start(R, row, lane), tma.box_bytes(tensor)
            check_start(machine, tensor, start, ins, place)
            form = tma.image(tensor)
            footprint = form.footprint(size)
            cta, low = shared_range(
                machine, place, source.value(R, row, lane), footprint, TENSOR_ALIGN, ins
            )
            array = machine.global_layout.address(tensor.array)
            machine.tally(number).tma_sectors += tma.sectors(tensor, array, start, load=False)
            issuer = Issuer(machine, place, lane)

            agent = machine.clocks.store
            read = functools.partial(
                fetch_shared, machine, issuer, cta, low, size, form, ins, agent
            )
            write = functools.partial(write_box, machine, tensor, start, operation)
            base = machine.arena_offset(cta, low)
            add_to_group(machine, issuer, ins, read, write, base, footprint, tensor.array)

    return op
