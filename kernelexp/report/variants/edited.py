"""The figures of a run that matter: a fixed set, then the largest other changes; the rest are
counted."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from kernelexp.facts import counters, metrics
from kernelexp.facts.counters import EXECUTED, PIPE, PTX
from kernelexp.facts.metrics import Value
from kernelexp.judge import ranking
from kernelexp.model.arm import Arm
from kernelexp.model.text import one_line
from kernelexp.report.document import arms as documents
from kernelexp.report.document import figures
from kernelexp.report.document.document import Block, Cell, Span, paragraph, table
from warpsim.launch import plain_name

Read: TypeAlias = Callable[[Arm], Value | None]

_MORE = 5
"""Further figures that have a row."""
_PIPES = 3
_LARGE = 100
_SECTOR = 32
_TMA = (
    "l1tex__m_xbar2l1tex_read_sectors_mem_global_op_tma_ld",
    "l1tex__m_l1tex2xbar_write_sectors_mem_global_op_tma_st",
)
_GLOBAL = ("memory_l2_theoretical_sectors_global",)
"""Of loads, stores and atomics: l1tex__t_sectors_... has no figure of atomics."""
_CONFLICTS = tuple(f"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{op}" for op in ("ld", "st"))
_WAVEFRONTS = "memory_l1_wavefronts_shared"
# Of the build: label, and the metrics that it is the sum of.
_BUILT: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("registers per thread", ("launch__registers_per_thread",)),
    ("spills, B", ("spill_store_bytes", "spill_load_bytes")),
    (
        "shared memory per CTA, B",
        ("launch__shared_mem_per_block_static", "launch__shared_mem_per_block_dynamic"),
    ),
    ("warps per SM", ("warps_per_sm",)),
    ("SASS instructions", ("sass_instructions",)),
)
_MORE_IS_BETTER = ("warps per SM",)
_NEITHER = ("registers per thread", "shared memory per CTA, B")
"""What more of these costs is the warps per SM."""
_LABELS = frozenset(label for label, _ in _BUILT)
_DETAILS = ("global bytes", "SASS instructions")
_ON_PTX = " (PTX)"
_PHRASES = {
    "registers per thread": "{} registers per thread",
    "spills, B": "{} B of spills",
    "shared memory per CTA, B": "{} B shared memory per CTA",
    "warps per SM": "{} warps per SM",
    "instructions executed": "{} instructions",
    "shared wavefronts": "{} shared wavefronts",
    "bank conflicts, shared ld": "{} bank conflicts of loads",
    "bank conflicts, shared st": "{} bank conflicts of stores",
    "global sectors": "{} global sectors",
}
# Counted: label, counters that are summed, what one counts.
_COUNTED: tuple[tuple[str, tuple[str, ...], int], ...] = (
    ("instructions executed", ("inst_executed",), 1),
    ("shared wavefronts", (_WAVEFRONTS,), 1),
    ("bank conflicts, shared ld", _CONFLICTS[:1], 1),
    ("bank conflicts, shared st", _CONFLICTS[1:], 1),
    ("global sectors", (*_GLOBAL, *_TMA), 1),
    ("global bytes", (*_GLOBAL, *_TMA), _SECTOR),
)
# What the rows above say, and the same under a second name.
_TOLD = (
    "spill_", "launch__registers", "launch__shared_mem", "warps_per_sm", "sass_", "thread_inst",
    "inst_executed", "smsp__inst_executed", "smsp__thread_inst", _WAVEFRONTS, "l1tex__t_",
    "l1tex__data_bank_conflicts", "memory_l2_theoretical", "occupancy_limit", *_TMA,
)  # fmt: skip
_STILL_TOLD = ("inst_executed_",)
"""Of what begins as above, what no row says."""


def render(
    base: Arm, candidates: Mapping[str, Arm], timed: str, option: str = ""
) -> Iterator[Block]:
    """The baseline beside up to two candidates. `timed` is the size that was asked about: counts of
    a smaller one may differ there. `option` says how to see what is left out."""
    every = [base, *candidates.values()]
    rows = [_row(label, read, base, candidates) for label, read in _fixed(every)]
    more, large, small = _others(base, candidates)
    rows += [_row(metric.label.strip(), metric.read, base, candidates) for metric in more]
    if rows:
        header = ("figure", "baseline", *candidates)
        yield table(header, rows, numbers=range(1, len(header)))
    if sizes := {arm.executed.size for arm in every if arm.executed}:
        words = " and ".join(f"'{size}'" for size in sorted(sizes))
        other = "" if sizes == {timed} else f"; at size '{timed}' changes may differ, even in sign"
        job = max(len(arm.executed.launches) for arm in every if arm.executed)
        what = f"the {job} launches of a job" if job > 1 else "one launch"
        yield paragraph(f"Executed counts are of {what} at size {words}{other}.", style="dim")
    entries = dict.fromkeys(arm.build.entry for arm in every if arm.build and arm.build.others)
    if entries:
        yield paragraph(
            f"Registers, shared memory, warps and SASS instructions are those of "
            f"{' and '.join(plain_name(one_line(entry)) for entry in entries)}.",
            style="dim",
        )
    for name, arm in candidates.items():
        if words := _pipes(base, arm):
            yield paragraph(f"{name}: {words}")
    rest = [f"{large} more moved by 5% or more"] * (large > 0)
    rest += [f"{small} {'' if large else 'more moved '}by less than 5%"] * (small > 0)
    if rest:
        yield paragraph(f"{', '.join(rest)}{option}.", style="dim")


def changes(base: Arm, arm: Arm) -> Iterator[str]:
    """The figures with a row of their own that both have and that differ, each with its change:
    those first that changed by the largest factor, for the better or the worse."""
    changed: list[tuple[float, str]] = []
    for label, read in _fixed([base, arm]):
        was, now = read(base), read(arm)
        if not isinstance(was, int | float) or not isinstance(now, int | float):
            continue
        if was != now and not label.startswith(_DETAILS):
            small, large = sorted((was, now))
            is_worse = label not in _NEITHER and (now > was) != (label in _MORE_IS_BETTER)
            worse = " (worse)" * is_worse
            words = f"{label} {figures.value(was)} → {figures.value(now)}{worse}"
            changed.append((large / small if small else math.inf, words))
    yield from (words for _, words in sorted(changed, key=lambda item: -item[0]))


def of_variants(arms: Mapping[str, Arm], counted: bool) -> Iterator[Block]:
    """Up to three variants without a baseline: every figure that is not zero in all of them,
    without counts if a launch did not run to its end."""
    rows = [
        (label, *(figures.value(value, "") for value in values))
        for label, read in _plain([*arms.values()], counted)
        if any(values := [read(arm) for arm in arms.values()])
    ]
    if rows:
        yield table(("figure", *arms), rows, numbers=range(1, len(arms) + 1))


def of_one(arm: Arm, counted: bool) -> Iterator[Block]:
    """The figures of one variant, as two sentences."""
    known = [(label, read(arm)) for label, read in _plain([arm], counted)]
    of_ptx = " on PTX" if any(label.endswith(_ON_PTX) for label, _ in known) else ""
    ran = arm.executed or arm.emulated_sass
    size = f"{ran.size}{of_ptx}" if ran else ""
    build = arm.build
    built = f"Built {plain_name(one_line(build.entry))}" if build and build.others else "Built"
    for heading, is_built in ((built, True), (f"Counted at size {size}", False)):
        phrases = [
            _PHRASES[label.removesuffix(_ON_PTX)].format(figures.value(value))
            for label, value in known
            if value and (label in _LABELS) == is_built
        ]
        if phrases:
            yield paragraph(f"{heading}: {', '.join(phrases)}.")


def _plain(arms: Sequence[Arm], counted: bool) -> Iterator[tuple[str, Read]]:
    """Each figure once: global bytes are 32 times the sectors, and `inspect` counts SASS."""
    for label, read in _fixed(arms):
        if (counted or label in _LABELS) and not label.startswith(_DETAILS):
            yield label, read


def _fixed(every: Sequence[Arm]) -> Iterator[tuple[str, Read]]:
    """Those that any arm has; counted on PTX where the SASS of an arm with counts was not
    executed."""
    sass = all(arm.counted for arm in every if any(_read(name, arm) for name in _INSTRUCTIONS))
    for label, names in _BUILT:
        yield from _known(label, _sum(names), every)
    for label, names, unit in _COUNTED:
        own = tuple(counter for name in names for counter in _counters(name, sass))
        yield from _known(label if sass else label + _ON_PTX, _sum(own, unit), every)


def _known(label: str, read: Read, every: Sequence[Arm]) -> Iterator[tuple[str, Read]]:
    if any(read(arm) is not None for arm in every):
        yield label, read


def _counters(name: str, sass: bool) -> tuple[str, ...]:
    if name == "inst_executed":  # the second is its name in early records
        return (EXECUTED["sass"],) if sass else (EXECUTED["ptx"], PTX + EXECUTED["sass"])
    return (name if sass else PTX + name,)


def _sum(names: Sequence[str], unit: int = 1) -> Read:
    def read(arm: Arm) -> Value | None:
        values = [_read(name, arm) for name in names]
        known = [value for value in values if isinstance(value, int | float)]
        # A counter that nothing counted is left out; of a launch with a fault all may be.
        is_counted = any(_read(name, arm) is not None for name in _INSTRUCTIONS)
        are_counters = not any(name in metrics.METRICS for name in names)
        if not known and arm.is_built and is_counted and are_counters:
            return 0
        return unit * sum(known) if known else None

    return read


_INSTRUCTIONS = (*EXECUTED.values(), PTX + EXECUTED["sass"])


def _read(name: str, arm: Arm) -> Value | None:
    """Reads a figure of the build or the emulation: a profile is of another size."""
    metric = metrics.METRICS.get(name)
    for kind in documents.KINDS:
        if metric is None:
            value = metrics.read(name, arm, kind)
        else:
            value = metric.read(arm) if metric.kind == kind else None
        if value is not None:
            return value
    return None


def _row(label: str, read: Read, base: Arm, candidates: Mapping[str, Arm]) -> list[Cell]:
    was = read(base)
    alone = len(candidates) == 1
    cells = (_cell(was, read(arm), alone) for arm in candidates.values())
    return [label, figures.value(was), *cells]


def _cell(was: Value | None, now: Value | None, alone: bool) -> Cell:
    """Spells a value with what changed, highlighted; of large figures the share, if both fit."""
    changed = figures.change(was, now)
    if not changed:
        return figures.value(now)
    if isinstance(was, int | float) and isinstance(now, int | float) and abs(was) >= _LARGE:
        share = f"{100 * (now - was) / abs(was):+.1f}%"
        changed = f"{changed}, {share}" if alone else share
    return Span(f"{figures.value(now)} ({changed})", "warn")


def _others(base: Arm, candidates: Mapping[str, Arm]) -> tuple[list[metrics.Metric], int, int]:
    """Figures that no row has and that changed most; how many others moved by 5%, and by less."""
    result: dict[str, ranking.Difference] = {}
    for arm in candidates.values():
        for difference in ranking.between(base, arm, *documents.KINDS):
            known = result.get(difference.metric.label)
            if _is_other(difference.metric.name) and (
                known is None or difference.factor > known.factor
            ):
                result[difference.metric.label] = difference
    large = [item for item in result.values() if ranking.is_large(item, ranking.FLOOR)]
    large.sort(key=lambda item: (item.metric.kind != "built", -item.factor))
    shown = large[:_MORE]
    return [item.metric for item in shown], len(large) - len(shown), len(result) - len(large)


def _is_other(name: str) -> bool:
    plain = name.removeprefix(PTX).removeprefix("sass__")
    if plain.startswith(PIPE):
        return False
    return plain.startswith(_STILL_TOLD) or not plain.startswith(_TOLD)


def _pipes(base: Arm, arm: Arm) -> str:
    """`+1.6% instructions executed, most in alu (+130) and fma (+212)`."""
    before, after = base.counted, arm.counted
    if not (before and after):
        return ""
    was, now = (one.counters.get(EXECUTED["sass"], 0) for one in (before, after))
    if not was or was == now:
        return ""
    moved = {
        name.removeprefix(PIPE): after.counters.get(name, 0) - before.counters.get(name, 0)
        for name in {**before.counters, **after.counters}
        if name.startswith(PIPE) and counters.describe(name).label and "_" not in name[len(PIPE) :]
    }
    most = sorted((pipe for pipe in moved if moved[pipe]), key=lambda pipe: -abs(moved[pipe]))
    listed = ", ".join(f"{_named(pipe, arm)} {moved[pipe]:+,}" for pipe in most[:_PIPES])
    return f"{100 * (now - was) / was:+.1f}% instructions executed" + (
        f", most in {listed}" if listed else ""
    )


def _named(pipe: str, arm: Arm) -> str:
    """Names what ncu counts in a pipe; half-precision FMAs in the tensor pipe have their own
    name."""
    executed = arm.counted.opcodes if arm.counted else {}
    is_fma = pipe == "tensor" and not any(opcode.endswith("MMA") for opcode in executed)
    return "HFMA2.MMA" if is_fma else pipe
