"""A sweep's variants in the order of their modelled times, without those far behind."""

from __future__ import annotations

import math

import msgspec

from kernelexp.dossier import prepare
from kernelexp.dossier.session import Session
from kernelexp.facts.modelled_errors import ERRORS
from kernelexp.judge import modelled_pairs
from kernelexp.model.errors import UsageError
from kernelexp.model.experiment import Variant, spell_point
from kernelexp.model.modelled import ModelledTime
from kernelexp.project import Project
from kernelexp.services import modelling
from kernelexp.services.run.sweep import Grid

BEHIND = 1.1
"""Where the interval of a ratio to the modelled best begins, a variant is far behind."""


class OrderedGrid(msgspec.Struct, frozen=True, kw_only=True):
    """A grid whose race begins with the promising ones."""

    grid: Grid
    pruned: tuple[Variant, ...]
    """Far behind the modelled best, which a budget does not reach."""
    unmodelled: dict[str, str]
    """Those that have no modelled time, by their swept axes, and why: they come last."""

    @property
    def sentences(self) -> tuple[str, ...]:
        """The ordering and pruning of the grid, in sentences."""
        first = next(iter(self.grid.candidates), None)
        lines = [
            "Ordered by modelled times, which were off by "
            f"{ERRORS.mean:.0%} on {ERRORS.times} measured ones"
            + (f"; the first is {self._spell(first)}." if first else ".")
        ]
        if self.pruned:
            names = "; ".join(map(self._spell, self.pruned))
            lines.append(
                f"{len(self.pruned)} not timed, as they are modelled {BEHIND - 1:.0%} or more "
                f"behind the best: {names}."
            )
        lines += [f"{name} has no modelled time: {why}" for name, why in self.unmodelled.items()]
        return tuple(lines)

    def _spell(self, variant: Variant) -> str:
        return spell_point({axis: variant.axes[axis] for axis in self.grid.swept})


def order(project: Project, grid: Grid, session: Session, size: str, *, prune: bool) -> OrderedGrid:
    """The candidates, the modelled fastest first; with `prune`, without those far behind.

    UsageError where none has a modelled time.
    """
    variants = (grid.baseline, *grid.candidates)
    results = modelling.each(project, variants, session, size)
    known = [
        (variant, item)
        for variant, item in zip(variants, results, strict=True)
        if isinstance(item, ModelledTime)
    ]
    times = {prepare.key(variant): item for variant, item in known}
    if not times:
        raise UsageError(f"--order modelled: {results[0]}")
    first, best = min(known, key=lambda item: item[1].cycles)

    def is_behind(variant: Variant) -> bool:
        own = times.get(prepare.key(variant))
        apart = modelled_pairs.apart(first, variant)
        return bool(own and modelled_pairs.change(best, own, apart).low > BEHIND)

    def cycles(variant: Variant) -> float:
        own = times.get(prepare.key(variant))
        return own.cycles if own else math.inf

    behind = [variant for variant in grid.candidates if prune and is_behind(variant)]
    kept = sorted(
        (candidate for candidate in grid.candidates if candidate not in behind), key=cycles
    )
    return OrderedGrid(
        grid=msgspec.structs.replace(grid, candidates=tuple(kept), note=_note(len(behind))),
        pruned=tuple(behind),
        unmodelled={
            spell_point({axis: variant.axes[axis] for axis in grid.swept}): str(item)
            for variant, item in zip(variants, results, strict=True)
            if not isinstance(item, ModelledTime)
        },
    )


def _note(behind: int) -> str:
    if not behind:
        return ""
    what = "1 more was" if behind == 1 else f"{behind} more were"
    return f" {what} not timed, modelled {BEHIND - 1:.0%} or more behind."
