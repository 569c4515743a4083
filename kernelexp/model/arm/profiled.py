"""Evidence of kind `profiled`: hardware counters of one launch, as ncu reports them."""

from __future__ import annotations

import msgspec


class ProfiledInstruction(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One SASS instruction of a profile's source page."""

    offset: int
    """Bytes from the entry's first instruction."""
    sass: str
    file: str = ""
    line: int = 0
    """The source line that it was compiled from; 0 where the page does not say."""
    figures: dict[str, float] = {}
    """ncu's columns, those that are not 0: samples by stall, instructions, wavefronts, sectors."""


class Advice(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Advice of one of ncu's own rules on a launch."""

    section: str
    rule: str
    kind: str
    """ncu's word: OPT, WRN, INF."""
    sentence: str
    speedup_percent: float | None = None
    """ncu's estimate; None where the rule makes none."""
    scope: str = ""
    """`global`: of the launch; `local`: of the part that the rule is about."""


class ProfiledEvidence(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Hardware counters of one launch, as ncu reports them: kind `profiled`."""

    entry: str
    """The kernel's name as ncu prints it."""
    figures: dict[str, float | str]
    """By ncu's metric name, in base units: bytes, ns, Hz, percent."""
    units: dict[str, str] = {}
    """Of the figures that have one."""
    size: str = ""
    """The problem's named size; empty where an imported profile does not tell."""
    device: str = ""
    capability: str = ""
    """Compute capability, such as 9.0."""
    driver: str = ""
    tool: str = ""
    """ncu with its version."""
    clock_control: str = ""
    """ncu's --clock-control; empty where it is not known."""
    cache_control: str = ""
    replay: str = ""
    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    missing: tuple[str, ...] = ()
    """Metrics that were asked for and that this chip, driver or ncu does not have."""
    advice: tuple[Advice, ...] = ()
    instructions: tuple[ProfiledInstruction, ...] = ()
    """In the order of their addresses; empty without a source page."""
