"""cp.async: copies of 4, 8 or 16 bytes a lane from global to shared memory (LDGSTS)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kernelexp.emulator.decode import Decoder
from kernelexp.emulator.isa.gate import Gate
from kernelexp.emulator.isa.mbarrier import per_lane
from kernelexp.emulator.isa.memory import address, note_unit
from kernelexp.emulator.isa.registry import Op, builder, modifiers
from kernelexp.emulator.machine.asynchronous import Issuer, Pending
from kernelexp.emulator.machine.spaces import Site
from kernelexp.emulator.ptx.syntax import Immediate, Instruction
from kernelexp.emulator.slots import Array

if TYPE_CHECKING:
    from kernelexp.emulator.machine.machine import Machine
    from kernelexp.emulator.machine.warps import Fragment

_HINT = "{h:|.L2::cache_hint}{p:|.L2::64B|.L2::128B|.L2::256B}"


@builder(f"cp.async.{{c:ca|cg}}{{s:.shared|.shared::cta}}.global{_HINT}")
def cp_async(ins: Instruction, d: Decoder) -> Op:
    """Bytes beyond src-size are zeros; lands late like every asynchronous effect."""
    size = d.constant(ins.operands[2], ins)
    note_unit(d, "shared", 4)
    element, elements = (4, 1) if size == 4 else (8, size // 8)
    read = Site(ins, d.number, "global", element, elements, store=False)
    write = Site(ins, d.number, "shared", element, elements, store=True)
    to, source = (address(ins, operand, d) for operand in ins.operands[:2])
    hint = "L2::cache_hint" in modifiers(ins)
    sizes = ins.operands[3:-1] if hint else ins.operands[3:]
    given = d.source(sizes[0] if sizes else Immediate(size), "u32", ins)

    def op(R: list[Array], m: Any, warps: Any) -> None:
        machine = warps.machine
        kept = R[given].copy()
        wanted = (kept > 0) if m is True else (kept > 0) & m
        mask = True if wanted.all() else wanted
        where, target = source(R).copy(), to(R).copy()
        offsets = machine.spaces["shared"].offsets(warps, target, write, m)
        machine.spaces["shared"].count(offsets, write, m)
        if wanted.any():
            machine.spaces["global"].offsets(warps, where, read, mask)

        def land() -> None:
            values = _loaded(machine, warps, where, read, mask, kept, size)
            machine.clocks.tick()
            machine.races.write(warps, offsets, values, write, m)
            at, data = (offsets, values) if m is True else (offsets[m], values[m])
            machine.shared.scatter(at, data, element, elements)

        operation = machine.engines.issue(
            Pending(f"a cp.async of {size} bytes a lane ({ins.where()})", land, ins)
        )
        for place in warps.warps.tolist():
            machine.groups.setdefault(("cp open", place), []).append(operation)

    return op


def _loaded(
    machine: Machine, warps: Any, where: Array, site: Site, mask: Any, kept: Array, size: int
) -> Array:
    """What the copy brings: zeros where the lane asks for fewer bytes."""
    shape = (*where.shape, size // site.element)
    values = np.zeros(shape, f"u{site.element}")
    if mask is True or mask.any():
        found = machine.spaces["global"].load(warps, where, site, mask)
        values[...] = found.reshape(shape)
    octets = values.view(np.uint8)
    octets[np.arange(size) >= kept[..., None]] = 0
    return values[..., 0] if shape[-1] == 1 else values


@builder("cp.async.commit_group")
def commit(ins: Instruction, d: Decoder) -> Op:
    """Closes the warp's group; groups are kept by warp, not by thread."""

    def op(R: list[Array], m: Any, warps: Any) -> None:
        groups = warps.machine.groups
        for place in warps.warps.tolist():
            groups.setdefault(("cp", place), []).append(groups.pop(("cp open", place), []))

    return op


class CopyWait(Gate):
    """cp.async.wait_group N and wait_all."""

    def __init__(self, ins: Instruction, d: Decoder) -> None:
        super().__init__(ins)
        self.every = modifiers(ins)[2] == "wait_all"
        self.allowed = 0 if self.every else d.constant(ins.operands[0], ins)

    def _waited(self, machine: Machine, fragment: Fragment) -> list[Pending]:
        groups = machine.groups.get(("cp", fragment.warp), [])
        chosen = groups[: max(0, len(groups) - self.allowed)]
        opened = machine.groups.get(("cp open", fragment.warp), []) if self.every else []
        return [operation for group in [*chosen, opened] for operation in group]

    def ready(self, machine: Machine, fragment: Fragment) -> bool:
        return all(operation.done for operation in self._waited(machine, fragment))

    def leave(self, machine: Machine, fragment: Fragment) -> None:
        groups = machine.groups.get(("cp", fragment.warp), [])
        machine.groups["cp", fragment.warp] = groups[max(0, len(groups) - self.allowed) :]

    def describe(self, machine: Machine, fragment: Fragment) -> str:
        pending = sum(not operation.done for operation in self._waited(machine, fragment))
        return f"{pending} cp.async copies"


@builder("cp.async.wait_group", gate=True)
@builder("cp.async.wait_all", gate=True)
def wait(ins: Instruction, d: Decoder) -> CopyWait:
    """The warp's own copies have landed; others see them after a barrier."""
    return CopyWait(ins, d)


@builder("cp.async.mbarrier.arrive{n:|.noinc}{s:|.shared|.shared::cta}.b64")
def mbarrier_arrive(ins: Instruction, d: Decoder) -> Op:
    """Arrives for each lane when the warp's copies so far have landed."""
    where = address(ins, ins.operands[0], d)
    adds = "noinc" not in modifiers(ins)

    def op(R: list[Array], m: Any, warps: Any) -> None:
        machine = warps.machine
        for place, at, lanes in per_lane(warps, m, where(R), ins):
            barrier = machine.mbarrier(place, at, ins)
            if barrier is None:
                continue
            if adds:
                barrier.pending += len(lanes)
            groups = [
                *machine.groups.get(("cp", place), []),
                machine.groups.get(("cp open", place), []),
            ]
            before = [operation for group in groups for operation in group]
            issuer = Issuer(machine, place, lanes[0])

            def land(
                barrier: Any = barrier,
                lanes: Any = lanes,
                before: Any = before,
                place: int = place,
                issuer: Issuer = issuer,
            ) -> None:
                machine.engines.land_until(before)
                machine.mbarriers.arrive(barrier, len(lanes), machine.clocks.release(place), ins)

            machine.engines.issue(Pending(f"an arrival ({ins.where()})", land, ins))

    return op
