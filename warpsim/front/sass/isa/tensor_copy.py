"""Tensor copies (TMA): boxes of an array, to and from shared memory"""

from __future__ import annotations

from warpsim.front.sass.decoder import SassDecoder, once_per_warp
from warpsim.front.sass.registry import covers
from warpsim.machine.copies import tensor_copies
from warpsim.machine.copies.copying import CopyDestination
from warpsim.machine.core.arrays import Array
from warpsim.machine.core.asynchronous import Issuer
from warpsim.machine.wave.machine import Machine, Op

_DIMENSIONS = "{:1D|2D|3D|4D|5D}"


def _start(R: list[Array], slots: list[int], row: int) -> tuple[int, ...]:
    """Signed coordinates, the innermost first."""
    values = (int(R[slot][row, 0]) for slot in slots)
    return tuple(value - (value >> 31 << 32) for value in values)


@covers(f"UTMALDG.{_DIMENSIONS}{{:|.MULTICAST}}{{:|.2CTA}}")
def load(d: SassDecoder) -> Op:
    """Consecutive registers of the warp hold the place, the mbarrier and the coordinates, a pair
    the address of the tensor map, and the upper half of another the mask of CTAs for `.MULTICAST`.
    With `.2CTA` the mbarrier may lie in the other CTA of the pair."""
    dimensions = int(d.instruction.modifiers[0][0])
    multicast, pair = "MULTICAST" in d.modifiers, "2CTA" in d.modifiers
    box, descriptor, *mask = d.take(d.without_hint(), 3 if multicast else 2)
    place, barrier, *start = d.uniform(box, 2 + dimensions)
    map_ = d.uniform(descriptor, 2)
    ranks = d.words(d.unsigned(mask[0]), 1)[0] if multicast else None

    def act(machine: Machine, issuer: Issuer, R: list[Array], row: int) -> None:
        named = None if ranks is None else int(R[ranks][row, 0]) >> 16
        destination = CopyDestination(int(R[place][row, 0]), int(R[barrier][row, 0]), named, pair)
        at = d.joined(R, map_, row)
        tensor_copies.load(machine, issuer, destination, at, _start(R, start, row))

    return once_per_warp(d, act)


@covers(f"UTMASTG.{_DIMENSIONS}")
@covers(f"UTMAREDG.{_DIMENSIONS}.{{:ADD|MIN|MAX|INC|DEC|AND|OR|XOR}}")
def store(d: SassDecoder) -> Op:
    """The same without an mbarrier; belongs to the warp's open group."""
    dimensions, *operation = d.instruction.modifiers
    box, descriptor = d.take(d.without_hint(), 2)
    place, *start = d.uniform(box, 1 + int(dimensions[0]))
    map_, name = d.uniform(descriptor, 2), operation[0].lower() if operation else None

    def act(machine: Machine, issuer: Issuer, R: list[Array], row: int) -> None:
        at, source = d.joined(R, map_, row), int(R[place][row, 0])
        tensor_copies.store(machine, issuer, at, _start(R, start, row), source, name)

    return once_per_warp(d, act)
