"""The page of one run: evidence side by side, what differs, what came before, the verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich import box
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from kernelexp.evidence.instructions import PIPES
from kernelexp.model import Arm, BuildEvidence, Record, arm_names, spell, spell_point
from kernelexp.report import emulated, figures, measured
from kernelexp.report.tables import STYLES

_OPCODES_SHOWN = 5
_LOG_LINES_SHOWN = 20


def render(
    record: Record, earlier: Sequence[Record], path: Path | None
) -> Iterator[RenderableType]:
    """Everything about a run, for a console of 80 columns or more."""
    title = Text(f"{record.experiment}  {record.title}", style="bold")
    yield title.append(f"   {record.kernel}, {record.arch}", style="dim")
    yield Padding(Text(record.hypothesis.strip()), (0, 0, 1, 2), expand=False)
    arms = [record.baseline, *(candidate.arm for candidate in record.candidates)]
    yield _variants(arms)
    if any(arm.build for arm in arms):
        yield _evidence(arms, record.compiler)
        yield from _opcodes(arms)
        for name, arm in zip(arm_names(len(arms) - 1), arms, strict=True):
            yield from warnings(name, arm)
    yield from emulated.render(arm_names(len(arms) - 1), [arm.emulated for arm in arms])
    for arm in arms:
        if arm.build_log:
            yield Text("The compiler's words:", style="bold red")
            yield Text(shorten(arm.build_log))
    yield from measured.render(record)
    yield from _earlier(earlier)
    yield from _verdicts(record)
    if path:
        yield Text(f"Record: {path}", style="dim")


def _variants(arms: Sequence[Arm]) -> Table:
    """The axes in which an arm differs from another one; the rest is in the record."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1))
    differing = [axis for axis in arms[0].axes if len({spell(arm.axes[axis]) for arm in arms}) > 1]
    for name, arm in zip(arm_names(len(arms) - 1), arms, strict=True):
        own = spell_point({axis: arm.axes[axis] for axis in differing})
        table.add_row(Text(name, style="bold"), Text(own))
    shared = spell_point({k: v for k, v in arms[0].axes.items() if k not in differing})
    table.add_row(Text("both" if len(arms) == 2 else "all", style="bold"), Text(shared, "dim"))
    return table


def _evidence(arms: Sequence[Arm], compiler: str) -> Table:
    title = f"built, nvcc {compiler}"
    table = Table(
        title, *arm_names(len(arms) - 1), box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1)
    )
    for column in table.columns[1:]:
        column.justify = "right"
    base = arms[0].build
    for label, values in _rows(arms):
        cells = []
        for index, value in enumerate(values):
            if isinstance(value, int) and index and base and isinstance(values[0], int):
                cells.append(_with_change(values[0], value))
            else:
                cells.append(Text(figures.count(value) if isinstance(value, int) else value))
        table.add_row(Text(label, style="bold" if label in _HEADLINES else ""), *cells)
    return table


_HEADLINES = ("SASS instructions",)


def _rows(arms: Sequence[Arm]) -> Iterator[tuple[str, list[int | str]]]:
    builds = [arm.build for arm in arms]

    def row(label: str, name: str) -> tuple[str, list[int | str]]:
        return label, [getattr(b.resources, name) if b else figures.NONE for b in builds]

    yield row("registers a thread", "registers")
    yield row("spill stores, B", "spill_store_bytes")
    yield row("spill loads, B", "spill_load_bytes")
    yield row("stack, B", "stack_bytes")
    yield row("static shared, B", "static_smem_bytes")
    yield row("dynamic shared, B", "dynamic_smem_bytes")
    yield row("threads a CTA", "threads")
    yield "CTAs an SM", [_occupancy(b) if b else figures.NONE for b in builds]
    yield "  limited by", [_limits(b) if b else figures.NONE for b in builds]
    yield row("SASS, B", "sass_bytes")
    yield (
        "SASS instructions",
        [sum(b.opcodes.values()) if b else figures.NONE for b in builds],
    )
    for pipe in PIPES:
        if any(b and pipe in b.pipes for b in builds):
            yield f"  {pipe}", [b.pipes.get(pipe, 0) if b else figures.NONE for b in builds]


def _occupancy(build: BuildEvidence) -> str:
    occupancy = build.occupancy
    return f"{occupancy.ctas_per_sm} ({occupancy.warps_per_sm}/{occupancy.warps_limit} warps)"


def _limits(build: BuildEvidence) -> str:
    return ", ".join(build.occupancy.limited_by)


def _with_change(baseline: int, value: int) -> Text:
    text = Text(figures.count(value))
    changed = figures.change(baseline, value)
    if changed:
        text.append(f" ({changed})", style="yellow")
    return text


def _opcodes(arms: Sequence[Arm]) -> Iterator[RenderableType]:
    """The opcodes whose static count differs most from the baseline's."""
    base = arms[0].build
    for name, arm in list(zip(arm_names(len(arms) - 1), arms, strict=True))[1:]:
        if base is None or arm.build is None:
            continue
        if arm.identity == arms[0].identity or arm.build.opcodes == base.opcodes:
            yield Text(f"{name}: the same instructions as the baseline", style="yellow")
            continue
        counts = {
            opcode: (base.opcodes.get(opcode, 0), arm.build.opcodes.get(opcode, 0))
            for opcode in {*base.opcodes, *arm.build.opcodes}
        }
        changed = sorted(counts.items(), key=lambda item: (-abs(item[1][1] - item[1][0]), item[0]))
        words = (
            f"{opcode} {figures.count(was)} → {figures.count(now)}"
            for opcode, (was, now) in changed[:_OPCODES_SHOWN]
            if was != now
        )
        yield Text(f"{name}, most changed: " + ", ".join(words))


def warnings(name: str, arm: Arm) -> Iterator[Text]:
    """What ptxas warned of, a line each."""
    for warning in arm.build.warnings if arm.build else ():
        yield Text(f"{name}: ptxas: {warning}", style="yellow")


def _earlier(earlier: Sequence[Record]) -> Iterator[RenderableType]:
    """What was published about the experiment, and the last time that it was measured."""
    for record in earlier:
        if record.provenance == "published":
            base = record.baseline.published
            words = [f"baseline {figures.published_line(base)}"] if base else []
            for candidate in record.candidates:
                own = _own_axes(record.baseline, candidate.arm)
                result = candidate.arm.published
                line = figures.published_line(result) if result else "no figures"
                words.append(f"{own}: {line}, {candidate.verdict.status}")
            yield from _paragraph(f"Published ({record.source}):", words)
    last = next((record for record in reversed(earlier) if record.estimate), None)
    if last and last.estimate:
        names = arm_names(len(last.candidates))[1:]
        effects = {effect.arm: effect for effect in last.estimate.effects}
        words = [
            f"{_own_axes(last.baseline, candidate.arm)}: "
            f"{measured.spell_effect(effects[name])}, {candidate.verdict.status}"
            for name, candidate in zip(names, last.candidates, strict=True)
            if name in effects
        ]
        yield from _paragraph(f"Measured before ({last.device}, {last.created[:10]}):", words)


def _paragraph(title: str, lines: Sequence[str]) -> Iterator[RenderableType]:
    yield Text(title, style="dim")
    yield Padding(Text("\n".join(lines)), (0, 0, 0, 2), expand=False)


def _own_axes(baseline: Arm, arm: Arm) -> str:
    return spell_point({k: v for k, v in arm.axes.items() if baseline.axes.get(k) != v})


def _verdicts(record: Record) -> Iterator[RenderableType]:
    several = len(record.candidates) > 1
    for candidate in record.candidates:
        verdict = candidate.verdict
        text = Text("Verdict: ", style="bold")
        if several:
            text.append(f"{_own_axes(record.baseline, candidate.arm)}: ", style="")
        text.append(verdict.status.value, style=STYLES[verdict.status])
        text.append(f" ({verdict.reason}). {verdict.sentence}", style="not bold")
        yield text
        if candidate.reproduction:
            yield Padding(Text(candidate.reproduction), (0, 0, 0, 2), expand=False)


def shorten(log: str) -> str:
    """The first lines of a compiler's output, and how many there are more."""
    lines = log.splitlines()
    rest = len(lines) - _LOG_LINES_SHOWN
    kept = lines[:_LOG_LINES_SHOWN]
    return "\n".join([*kept, f"... {rest} more lines in the record"] if rest > 0 else kept)
