"""Scale factors in tensor memory: where those of a block-scaled MMA lie.

Factors of row i of A, or of column i of B, are bytes of one word: lane i % 32, and column i // 32
from the address on. Each quarter of the lanes has them all again. With M = 128 of a pair of CTAs,
in which the upper half of N is computed in lanes 64 to 127, those lanes have the factors of that
half of B (PTX ISA, "Scale factor A ID"; CUTLASS, tmem_sf_frg).
"""

from __future__ import annotations

import numpy as np

from warpsim.machine.core.arrays import Array
from warpsim.machine.core.asynchronous import Issuer
from warpsim.machine.core.instruction_descriptor import DescriptorFields
from warpsim.machine.core.tmem_areas import GRANULE, LANES, Area
from warpsim.machine.wave.machine import Machine

_QUARTER = 32


class Factors:
    """The factors of one operand, as an instruction names them."""

    def __init__(self, shape: DescriptorFields, address: int, *, of_b: bool) -> None:
        self.name = "B" if of_b else "A"
        self.rows = shape.n if of_b else shape.m // shape.group
        self.halves = shape.parts if of_b else 1
        """Into how many parts the rows are split, each in its share of the lanes."""
        # Bits 31:30 hold the byte in the word as CUTLASS passes it, which the descriptor repeats.
        self.column = address & 0xFFFF
        self.bytes = (shape.b_scale_id if of_b else shape.a_scale_id) + np.arange(shape.scales)

    @property
    def columns(self) -> int:
        return -(-self.rows // self.halves // _QUARTER)

    def area(self, cta: int) -> Area:
        return Area(cta, (0, LANES // GRANULE, 1), self.column, self.column + self.columns)

    def read(self, machine: Machine, issuer: Issuer, cta: int) -> Array:
        """[rows, factors per row] codes."""
        machine.tmem.check(cta, self.column, self.columns, issuer.site, issuer.place)
        window = slice(self.column, self.column + self.columns)
        row = np.arange(self.rows // self.halves)
        copies = 4 // self.halves
        lane = (np.arange(4) * _QUARTER).reshape(self.halves, copies, 1) + row % _QUARTER
        at = lane, row // _QUARTER
        if not machine.tmem.written[cta, :, window][at].all():
            sentence = f"an MMA reads scale factors of {self.name} that nothing wrote."
            machine.report("tmem-uninitialised", sentence, issuer.site, issuer.place)
        words = np.ascontiguousarray(machine.tmem.data[cta, :, window][at])
        codes = words.view(np.uint8).reshape(*words.shape, 4)[..., self.bytes]
        if (codes != codes[:, :1]).any():
            sentence = (
                f"the scale factors of {self.name} are not the same in all quarters of the lanes."
            )
            machine.report("scale-factors", sentence, issuer.site, issuer.place)
        return codes[:, 0].reshape(self.rows, -1)
