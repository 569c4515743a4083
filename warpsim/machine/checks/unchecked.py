"""Races that nobody looks for."""

from __future__ import annotations

from warpsim.machine.checks.race_reports import Conflict
from warpsim.machine.checks.races import Races
from warpsim.machine.core.arrays import Array, Mask
from warpsim.machine.core.site import Site
from warpsim.machine.core.warps import Warps
from warpsim.machine.counts.access import AccessKind


class Unchecked(Races):
    """Of a program whose accesses have been reordered, so that nothing can be said of races, or of
    a launch that is not judged.

    Atomics and other accesses that meet in any order are still noted as such.
    """

    checks = False

    def read(self, warps: Warps, offsets: Array, access: AccessKind, m: Mask) -> None:
        """Not a finding."""

    def observe(self, warps: Warps, offsets: Array, access: AccessKind, m: Mask) -> None:
        self.residents.execution.contended = True

    def write(
        self, warps: Warps, offsets: Array, values: Array, access: AccessKind, m: Mask
    ) -> None:
        self.residents.execution.contended |= access.relaxed

    def stale(self, warps: Warps, offsets: Array, access: AccessKind, m: Mask) -> None:
        """Not a finding."""

    def uses(self, warps: Warps, offsets: Array, access: AccessKind, m: Mask) -> list[Conflict]:
        return []

    def source(self, warps: Warps, offsets: Array, access: AccessKind, m: Mask) -> None:
        """Not a finding."""

    def matrix_read(self, warps: Warps, offsets: Array, site: Site, *, transposed: bool) -> None:
        """Not a finding."""

    def matrix_write(self, warps: Warps, offsets: Array, site: Site, *, transposed: bool) -> None:
        """Not a finding."""
