"""Published figures in the words and tables of a log, and what they say of two variants."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from kernelexp.model.arm import PublishedResult, Status, Verdict
from kernelexp.services.handlog.sections import Role

MARGIN = 0.01
# At most 15 digits, a float's: a cell of 400 is not a figure but a mistake, and would be infinite.
# 2,10 is none: whether it is 2.1 or 210 nobody has said.
_WHOLE = r"(?:\d{1,3}(?:,\d{3}){1,4}|\d{1,15})(?![\d,])"
_NUMBER = rf"(?<![\d,.])({_WHOLE}(?:\.\d+)?(?:[eE][+-]?\d{{1,2}}\b)?)"
_MS = {"ms": 1.0, "us": 1e-3, "μs": 1e-3, "µs": 1e-3, "ns": 1e-6, "s": 1e3}
_TIME = re.compile(rf"(~|≈)?\s*{_NUMBER}(?:\s*(?:-|\u2013|to)\s*{_NUMBER})?\s*(ms|us|μs|µs)\b")
_TFLOPS = re.compile(rf"(~|≈)?\s*{_NUMBER}\s*TFLOP/?S?s?\b", re.IGNORECASE)
_RATE = re.compile(r"(?<![^\W_])([mgtp])flop", re.IGNORECASE)
_PER_TERA = {"m": 1e-6, "g": 1e-3, "t": 1.0, "p": 1e3}
_REGISTERS = re.compile(r"(?<!\d)(\d{1,6})\s*reg(?:ister)?s?\b")
_CELL = re.compile(rf"^(~|≈)?\s*{_NUMBER}(?:\s*(?:-|\u2013)\s*{_NUMBER})?\s*([a-zμµ]*)")
_UNIT = re.compile(r"(?<![^\W_])(ms|[uμµ]s|ns|s)(?![^\W_])", re.IGNORECASE)
NOTHING = PublishedResult()


def parse(text: str) -> PublishedResult:
    """The first time, rate and number of registers in a text."""
    time, rate, registers = _TIME.search(text), _TFLOPS.search(text), _REGISTERS.search(text)
    scale = _MS[time[4]] if time else 1.0
    return PublishedResult(
        time_ms=_scaled(time[2], scale) if time else None,
        time_ms_to=_scaled(time[3], scale) if time and time[3] else None,
        tflops=_number(rate[2]) if rate else None,
        registers=int(registers[1]) if registers else None,
        approximate=bool((time and time[1]) or (rate and rate[1])),
    )


def of_row(
    header: Sequence[str], row: Sequence[str], columns: Mapping[Role, int]
) -> PublishedResult:
    """The figures of a row by its columns `time`, `tflops` and `registers`, as far as there are
    such; units are those of cells, else of headings, else ms and TFLOPS."""

    def of(role: Role) -> tuple[str, str]:
        return (row[columns[role]], header[columns[role]]) if role in columns else ("", "")

    time, rate, registers = of("time"), of("tflops"), of("registers")
    unit = time_unit(time[1])
    ms, upper, about = cell(time[0], unit or "ms")
    tflops, other = rate_cell(*rate)
    used, _, _ = cell(registers[0], "")
    return PublishedResult(
        time_ms=ms,
        time_ms_to=upper,
        tflops=tflops,
        registers=int(used) if used is not None else None,
        approximate=about or other,
    )


def time_unit(heading: str) -> str:
    """The unit of a heading such as `time (us)` or `time_us`; empty where it has none."""
    match = _UNIT.search(heading)
    return match[1].lower() if match else ""


def cell(text: str, unit: str) -> tuple[float | None, float | None, bool]:
    """A cell's number, the upper end of a range, and whether it is approximate; a time in ms."""
    match = _CELL.match(text)
    if match is None:
        return None, None, False
    scale = _MS.get(match[4] or unit, _MS.get(unit, 1.0))
    upper = _scaled(match[3], scale) if match[3] else None
    return _scaled(match[2], scale), upper, bool(match[1])


def rate_cell(text: str, heading: str) -> tuple[float | None, bool]:
    """A cell's rate in TFLOPS, and whether it is approximate; the unit is its own or the
    heading's."""
    match = _CELL.match(text)
    if match is None:
        return None, False
    scale = rate_scale(text) or rate_scale(heading) or 1.0
    return _scaled(match[2], scale), bool(match[1])


def rate_scale(text: str) -> float | None:
    """TFLOPS in the unit that a text has, such as `GFLOP/s`; None where it has none."""
    match = _RATE.search(text)
    return _PER_TERA[match[1].lower()] if match else None


def has_unit(text: str) -> bool:
    """Whether a cell says which unit its time has."""
    match = _CELL.match(text)
    return match is not None and match[4] in _MS


def judge(baseline: PublishedResult, candidate: PublishedResult) -> Verdict:
    """The verdict of the published figures alone, by times, else by rates."""
    if candidate == NOTHING or not _comparable(baseline, candidate):
        shown = spell(candidate, baseline)
        sentence = (
            f"Published: {shown}; no figure to compare it with."
            if shown
            else ("Published without a figure.")
        )
        return Verdict(status=Status.INCONCLUSIVE, reason="published_figures", sentence=sentence)
    ratio = _ratio(baseline, candidate)
    status = Status.NEUTRAL
    if ratio < 1 - MARGIN:
        status = Status.IMPROVED
    elif ratio > 1 + MARGIN:
        status = Status.REJECTED
    return Verdict(
        status=status,
        reason="published_figures",
        sentence=f"{_against(baseline, candidate)} Judged by these figures and a margin of 1%, "
        "since the log gives no verdict.",
    )


def published(status: Status, baseline: PublishedResult, candidate: PublishedResult) -> Verdict:
    """The log's own verdict."""
    sentence = (
        _against(baseline, candidate)
        if _comparable(baseline, candidate)
        else f"Published as {status.value}."
    )
    return Verdict(status=status, reason="published", sentence=sentence)


def _against(baseline: PublishedResult, candidate: PublishedResult) -> str:
    return f"Published: {spell(candidate, baseline)} against {spell(baseline, candidate)}."


def spell(one: PublishedResult, other: PublishedResult) -> str:
    """Its time or, where the other has none, its rate; empty where it has neither."""
    tilde = "~" if one.approximate else ""
    if one.time_ms is not None and (other.time_ms is not None or one.tflops is None):
        upper = f" to {one.time_ms_to:.3f}" if one.time_ms_to is not None else ""
        return f"{tilde}{one.time_ms:.3f}{upper} ms"
    return f"{tilde}{one.tflops:g} TFLOPS" if one.tflops is not None else ""


def _comparable(one: PublishedResult, other: PublishedResult) -> bool:
    return bool((one.time_ms and other.time_ms) or (one.tflops and other.tflops))


def _ratio(baseline: PublishedResult, candidate: PublishedResult) -> float:
    if baseline.time_ms and candidate.time_ms:
        return candidate.time_ms / baseline.time_ms
    assert baseline.tflops is not None
    assert candidate.tflops
    return baseline.tflops / candidate.tflops


def same(one: PublishedResult, other: PublishedResult) -> bool:
    """Whether both may be of one variant: by their times, else by their rates."""
    if one.time_ms is not None and other.time_ms is not None:
        return one.time_ms == other.time_ms
    return one.tflops is not None and one.tflops == other.tflops


def _number(text: str) -> float:
    return float(text.replace(",", ""))


def _scaled(text: str, scale: float) -> float:
    return round(_number(text) * scale, 9)
