"""The log as markdown, as people keep it by hand; the same log gives the same bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tabulate import tabulate

from kernelexp.model import Verdict, spell_point
from kernelexp.report import figures
from kernelexp.report.log import Entry, Figures, KernelLog, Step
from kernelexp.report.measured import spell_effect

HISTORY_HEADER = ("Commit", "Change", "Time (ms)", "TFLOPS", "Regs", "Notes")
EXPERIMENT_HEADER = ("Id", "Experiment", "Baseline", "Candidate", "Verdict")


def render_file(logs: Sequence[KernelLog]) -> str:
    """logs/EXPERIMENTS.md: header, history and a section for each experiment of each kernel."""
    lines = [
        "# Experiment log",
        "",
        "Rendered by `kernelexp log --write` from experiments.yaml and",
    ]
    lines += ["logs/runs; edit those.", ""]
    for log in logs:
        lines += _header(log)
        lines += ["### Optimization history (committed)", "", history_table(log), ""]
        lines += ["### Experiments", ""]
        for entry in log.experiments:
            lines += _section(entry)
    return "\n".join(lines).rstrip() + "\n"


def render_tables(logs: Sequence[KernelLog]) -> str:
    """The two tables of each kernel, for a pipe."""
    parts = []
    for log in logs:
        parts.append(f"{log.kernel}, {log.arch}. {best_line(log)}")
        parts += [history_table(log)] if log.history else []
        parts += [experiment_table(log)] if log.experiments else []
        parts += [provenance_line(log)] if provenance_line(log) else []
    return "\n\n".join(parts) + "\n"


def history_table(log: KernelLog) -> str:
    return _table([history_row(step) for step in log.history], HISTORY_HEADER)


def experiment_table(log: KernelLog) -> str:
    rows = [cells for entry in log.experiments for cells in experiment_rows(entry)]
    return _table(rows, EXPERIMENT_HEADER)


def experiment_rows(entry: Entry) -> Iterator[tuple[str, ...]]:
    """A row for each candidate of an experiment."""
    for index, candidate in enumerate(entry.candidates):
        yield (
            entry.id if index == 0 else "",
            entry.experiment.title if index == 0 else "",
            _short(entry.baseline) if index == 0 else "",
            _short(candidate),
            entry.verdicts[index].status.value if entry.verdicts else "not run",
        )


def best_line(log: KernelLog) -> str:
    """The fastest step and where its time is from."""
    if log.best is None:
        return "No step of the history has a time."
    _, _, time, tflops, registers, _ = history_row(log.best)
    whose = "measured" if log.best.figures.time_us is not None else log.best.provenance
    rate = "" if tflops == figures.NONE else f" / {tflops} TFLOPS"
    used = "" if registers == figures.NONE else f", {registers} registers"
    return f"**Current best: {time} ms{rate}**{used} ({log.best.commit}, {whose})"


def provenance_line(log: KernelLog) -> str:
    """Where the times of the history are from, in a sentence."""
    sources = {entry.source for entry in log.experiments if entry.source}
    devices = {entry.device for entry in log.experiments if entry.provenance == "run"} - {""}
    if devices:
        named = ", ".join(sorted(devices))
        return f"Measured figures: {named}; random inputs, interleaved; medians and changes."
    if not sources:
        return ""
    return f"Published figures: {'; '.join(sorted(sources))}."


def _header(log: KernelLog) -> Iterator[str]:
    yield f"## `{log.kernel}`: {log.title}"
    yield ""
    yield f"Problem: {log.problem}."
    yield ""
    yield f"Target: {log.device} ({log.arch})"
    yield ""
    yield best_line(log)
    yield ""
    source = provenance_line(log)
    if source:
        yield source
        yield ""


def _section(entry: Entry) -> Iterator[str]:
    experiment = entry.experiment
    yield f"#### {entry.id}: {experiment.title}"
    yield ""
    if entry.date:
        yield f"**Date:** {entry.date}"
        yield ""
    yield f"**Baseline:** {_long(entry, entry.baseline)}"
    yield ""
    for candidate in entry.candidates:
        yield f"**Result:** {_long(entry, candidate)}"
        yield ""
    yield f"**Verdict:** {_verdicts(entry)}"
    yield ""
    if experiment.decision:
        yield f"**Decision:** {experiment.decision}"
        yield ""
    yield f"**Hypothesis:** {experiment.hypothesis}"
    yield ""
    if experiment.changes:
        yield "**Changes:**"
        yield ""
        yield from (f"{number}. {change}" for number, change in enumerate(experiment.changes, 1))
        yield ""
    if experiment.why:
        yield f"**Why:** {experiment.why}"
        yield ""
    if experiment.notes:
        yield f"**Notes:** {experiment.notes}"
        yield ""


def _long(entry: Entry, arm: Figures) -> str:
    if arm.time_us is not None:
        rate = f", {arm.tflops:.0f} TFLOPS" if arm.tflops else ""
        change = f", {spell_effect(arm.effect)}" if arm.effect else ""
        time = figures.time_ms(arm.time_ms)
        return f"{time} ms{rate}{change} (measured, {entry.device}); {arm.variant}"
    if entry.provenance == "published":
        return f"{figures.published_line(arm.published)} (published); {arm.variant}"
    if arm.registers_built is not None:
        return f"{arm.registers_built} registers (built); {arm.variant}"
    return arm.variant


def _short(arm: Figures) -> str:
    if arm.time_us is not None:
        change = f", {100 * (arm.effect.ratio - 1):+.2f}%" if arm.effect else ""
        return f"{figures.time_ms(arm.time_ms)} ms{change}"
    if arm.published.time_ms is not None:
        return f"{figures.published_time(arm.published)} ms"
    if arm.published.tflops is not None:
        return f"{figures.published_tflops(arm.published)} TFLOPS"
    return figures.NONE


def _verdicts(entry: Entry) -> str:
    if not entry.verdicts:
        return "not run"
    whose = f" ({entry.provenance})" if entry.provenance == "published" else ""
    if len(entry.verdicts) == 1:
        return _bold(entry.verdicts[0]) + whose
    named = zip(entry.experiment.candidates, entry.verdicts, strict=True)
    return "; ".join(f"{spell_point(point)} {_bold(verdict)}" for point, verdict in named) + whose


def _bold(verdict: Verdict) -> str:
    return f"**{verdict.status.value}**"


def history_row(step: Step) -> tuple[str, ...]:
    """A measured step's notes begin with its change: times of different runs do not compare."""
    found, published = step.figures, step.figures.published
    if found.time_us is not None:
        time, rate = figures.time_ms(found.time_ms), f"{found.tflops:.0f}" if found.tflops else ""
        registers = str(found.registers_built)
    else:
        time, rate = figures.published_time(published), figures.published_tflops(published)
        registers = figures.published_registers(published)
    change = f"{100 * (found.effect.ratio - 1):+.2f}%" if found.effect else ""
    notes = "; ".join(note for note in (change, step.notes) if note)
    return (step.commit, step.change, time, rate or figures.NONE, registers, notes)


def _table(rows: Sequence[Sequence[str]], header: Sequence[str]) -> str:
    escaped = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    return tabulate(escaped, headers=header, tablefmt="github", disable_numparse=True)
