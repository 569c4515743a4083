"""Costs of a piece of code, by kind of evidence, and the figures that tables show of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

import msgspec

from kernelexp.facts import counters
from kernelexp.facts.counters import PTX
from kernelexp.model.arm import Isa
from kernelexp.model.errors import UsageError, suggest

Kind: TypeAlias = Literal["built", "emulated", "profiled"]

EXECUTED = tuple(counters.EXECUTED.values())
"""Warp instructions that an emulation executed; it has one of these."""
SAMPLES = "Warp Stall Sampling (All Samples)"
STALL = "stall_"
_NOT_ISSUED = "(Not Issued)"


class Costs(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Sums over a piece of code; what the evidence has not counted is absent."""

    sass: int = 0
    """SASS instructions, each once, without padding: kind `built`."""
    emulated: dict[str, int] = {}
    """Counters of a launch in the emulator, all of PTX or all of SASS."""
    profiled: dict[str, float] = {}
    """Columns of ncu's source page."""

    @property
    def stalls(self) -> dict[str, float]:
        """Samples by ncu's stall reason, such as long_sb, most first; `selected` is none."""
        reasons = {
            name.removeprefix(STALL): value
            for name, value in self.profiled.items()
            if name.startswith(STALL) and not name.endswith(_NOT_ISSUED) and value
        }
        return dict(sorted(reasons.items(), key=lambda item: -item[1]))


def add(costs: Iterable[Costs]) -> Costs:
    """The sum."""
    sass = 0
    emulated: dict[str, int] = {}
    profiled: dict[str, float] = {}
    for cost in costs:
        sass += cost.sass
        for name, count in cost.emulated.items():
            emulated[name] = emulated.get(name, 0) + count
        for name, value in cost.profiled.items():
            profiled[name] = profiled.get(name, 0.0) + value
    return Costs(sass=sass, emulated=emulated, profiled=profiled)


class CostFigure(msgspec.Struct, frozen=True, kw_only=True):
    """A figure of a piece of code: the sum of `plus` less that of `minus`."""

    name: str
    kind: Kind
    plus: tuple[str, ...]
    minus: tuple[str, ...] = ()
    about: str = ""

    def source(self, isa: Isa) -> str:
        """Returns what counted it, as a heading above the name; `isa` is what was emulated."""
        return {"emulated": isa.upper(), "profiled": "ncu", "built": ""}[self.kind]

    def label(self, isa: Isa) -> str:
        """The name, which says so where PTX was counted."""
        is_ptx = self.kind == "emulated" and isa == "ptx" and not self.name.startswith(PTX)
        return f"{self.name} (PTX)" if is_ptx else self.name

    def how(self, isa: Isa) -> str:
        """The kind, in words."""
        return f"emulated on {isa.upper()}" if self.kind == "emulated" else self.kind

    def read(self, costs: Costs) -> float:
        """0 where nothing was counted."""
        if self.kind == "built":
            return costs.sass
        values: Mapping[str, float] = costs.emulated if self.kind == "emulated" else costs.profiled
        return sum(values.get(name, 0) for name in self.plus) - sum(
            values.get(name, 0) for name in self.minus
        )


def _either(*names: str) -> tuple[str, ...]:
    """Counters of ncu's, of SASS or of PTX: whichever was counted."""
    return (*names, *(f"{PTX}{name}" for name in names))


_FIGURES = (
    CostFigure(
        name="stalls", kind="profiled", plus=(SAMPLES,), about="samples of ncu's source page"
    ),
    CostFigure(name="instructions", kind="emulated", plus=EXECUTED, about="by warps"),
    CostFigure(
        name="wavefronts",
        kind="emulated",
        plus=_either("memory_l1_wavefronts_shared"),
        about="of shared memory",
    ),
    CostFigure(
        name="conflicts",
        kind="emulated",
        plus=_either("memory_l1_wavefronts_shared"),
        minus=_either("memory_l1_wavefronts_shared_ideal"),
        about="wavefronts beyond the fewest that move as many bytes",
    ),
    CostFigure(
        name="sectors",
        kind="emulated",
        plus=_either("memory_l2_theoretical_sectors_global"),
        about="of global memory, by loads, stores and atomics",
    ),
    CostFigure(
        name="tma_sectors",
        kind="emulated",
        plus=_either(
            "l1tex__m_xbar2l1tex_read_sectors_mem_global_op_tma_ld",
            "l1tex__m_l1tex2xbar_write_sectors_mem_global_op_tma_st",
            "l1tex__m_l1tex2xbar_write_sectors_mem_global_op_tma_red",
        ),
        about="of global memory, by bulk copies",
    ),
    CostFigure(
        name="barriers",
        kind="emulated",
        plus=tuple(
            f"{listing}__inst_executed_{kind}"
            for listing in ("ptx", "sass")
            for kind in ("barrier", "mbarrier", "mbarrier_wait")
        ),
        about="instructions on CTA barriers and mbarriers",
    ),
    CostFigure(name="sass", kind="built", plus=(), about="SASS instructions, each once"),
)
FIGURES: dict[str, CostFigure] = {figure.name: figure for figure in _FIGURES}
"""By name, in the order in which tables show them."""
CYCLES = {"wavefronts": 1.0, "sectors": 0.25, "tma_sectors": 0.25, "instructions": 0.25}
"""Of an SM that one takes at least: without stalls, lines are ranked by what takes longest."""


def figure(name: str, total: Costs) -> CostFigure:
    """A figure of FIGURES, or a counter or column that `total` has, under its own name.

    UsageError for any other name.
    """
    if name in FIGURES:
        return FIGURES[name]
    if name in total.emulated:
        return CostFigure(name=name, kind="emulated", plus=(name,))
    if name in total.profiled:
        return CostFigure(name=name, kind="profiled", plus=(name,))
    counters = [*total.emulated, *total.profiled]
    known = [*FIGURES] if name.isidentifier() and "__" not in name else counters
    raise UsageError(f"--by {name}: no line has such a figure{suggest(name, known)}.")


def preferred(total: Costs) -> CostFigure:
    """Returns the figure to rank by where nobody says."""
    if FIGURES["stalls"].read(total):
        return FIGURES["stalls"]
    name = max(CYCLES, key=lambda name: CYCLES[name] * FIGURES[name].read(total))
    return FIGURES[name if FIGURES[name].read(total) else "sass"]
