"""A table of any shape, of a markdown file or CSV, as experiments: a row is tried against the last
row that was kept."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias, get_args

from kernelexp.model.arm import Status, Verdict
from kernelexp.model.errors import UsageError, join, suggest
from kernelexp.model.experiment import is_name
from kernelexp.services.handlog import figures
from kernelexp.services.handlog.figures import NOTHING
from kernelexp.services.handlog.reading import BEFORE, LoggedVariant, Read
from kernelexp.services.handlog.sections import LogSection, LogTable, Role

ROLES: tuple[Role, ...] = get_args(Role)
Asking: TypeAlias = Callable[[Role, Sequence[str]], str | None]
"""Which of the columns has this role; None: none has."""
_HEADINGS: dict[Role, str] = {
    "id": r"#|no\.?|nr\.?|id|run|step|trial|exp(eriment)?|v|version",
    "title": r"change.*|what.*|title|descr.*|optimi.*|idea|tried|variant|name|kernel",
    "time": r"(time|latency|duration|runtime|median|mean)?[\s_]*[\[(]?(ms|[uμµ]s|ns|s)?[\])]?",
    "tflops": r"(perf\w*|rate|speed|throughput)?[\s_]*[\[(]?[mgtp]flop.*",
    "registers": r"reg.*",
    "verdict": r"verdict|status|result|outcome|decision|kept\??|accepted\??",
    "date": r"date|day|when",
    "commit": r"commit|hash|revision|sha",
}
_DROPPED = re.compile(
    r"\b(reject|revert|slower|worse|regress|drop|discard|abandon|fail|no\b|neutral|wrong)|[❌✗✘👎]",
    re.I,
)


def from_csv(text: str) -> list[LogSection]:
    """A file with a header line; its separator is what that line has most of."""
    first = text.partition("\n")[0]
    separator = max(",;\t|", key=first.count)
    rows = [row for row in csv.reader(io.StringIO(text), delimiter=separator) if any(row)]
    if len(rows) < 2:
        return []
    header = tuple(cell.strip() for cell in rows[0])
    body = tuple(
        tuple(cell.strip() for cell in [*row, *[""] * len(header)][: len(header)])
        for row in rows[1:]
    )
    table = LogTable(header=header, rows=body)
    return [LogSection(title="", level=0, line=1, texts=(), tables=(table,), other=())]


def parse_columns(texts: Sequence[str]) -> dict[Role, str]:
    """time=HEADING of the command line."""
    result: dict[Role, str] = {}
    for text in texts:
        role, equals, heading = text.partition("=")
        if role not in ROLES or not equals:
            raise UsageError(
                f"--column {text!r} should be ROLE=HEADING, as in time=ms{suggest(role, ROLES)}."
            )
        result[role] = heading
    return result


def read(
    sections: Sequence[LogSection], named: Mapping[Role, str], ask: Asking | None
) -> tuple[list[Read], list[str]]:
    """The rows of the first table that has times or rates, and doubts about single rows; UsageError
    with the headings where it is not known which column has them."""
    tables = [(table, section) for section in sections for table in section.tables]
    every = [head for table, _ in tables for head in table.header]
    for role, heading in named.items():
        if not _has(every, heading):
            raise UsageError(
                f"--column {role}={heading}: there is no such column{suggest(heading, every)}."
            )
    tables = [item for item in tables if all(_has(item[0].header, x) for x in named.values())]
    known = [(table, section, _columns(table, named)) for table, section in tables]
    for table, section, columns in known:
        if "time" in columns or "tflops" in columns:
            return _read(table, section, columns, named)
    for table, section in tables:
        if chosen := ask and ask("time", table.header):
            columns = _columns(table, {**named, "time": chosen})
            return _read(table, section, columns, named)
    if tables:
        headings = join([head for head in tables[0][0].header if head])
        raise UsageError(
            "it is not clear which column of its table has the time: say it with --column "
            f"time=HEADING, or with tflops=HEADING where it has rates; there are {headings}."
        )
    return [], []


def _read(
    table: LogTable, section: LogSection, columns: Mapping[Role, int], named: Mapping[Role, str]
) -> tuple[list[Read], list[str]]:
    doubts = _without_unit(table, columns, named, section.line)
    return list(_rows(table, columns, section.line, doubts)), doubts


def _without_unit(
    table: LogTable, columns: Mapping[Role, int], named: Mapping[Role, str], line: int
) -> list[str]:
    """Says that times were taken for milliseconds, or rates that --column names for TFLOPS, where
    neither heading nor cells say so; UsageError for other rates without a unit of theirs."""
    doubts = []
    if (place := columns.get("tflops")) is not None:
        cells = [table.header[place], *(row[place] for row in table.rows if row[place])]
        known = [figures.rate_scale(cell) for cell in cells]
        if not (known[0] or all(known[1:])):
            again = f"write it into the heading, as in '{cells[0]} (GFLOP/s)', and import again"
            if "tflops" not in named or re.search(r"[/(\[]|per", cells[0], re.IGNORECASE):
                raise UsageError(
                    f"line {line}: {cells[0]!r} does not say in which unit its rates are: {again}."
                )
            doubts.append(
                f"line {line}: {cells[0]!r} has no unit and was read as TFLOPS; if it is another, "
                f"{again}"
            )
    place = columns.get("time")
    if place is None or figures.time_unit(heading := table.header[place]):
        return doubts
    if any(figures.has_unit(row[place]) for row in table.rows):
        return doubts
    words = f"line {line}: {heading!r} has no unit and was read as ms; if it is another, write it"
    return [*doubts, f"{words} into the heading, as in '{heading} (us)', and import again"]


def _has(headings: Sequence[str], heading: str) -> bool:
    return heading.strip().lower() in (item.strip().lower() for item in headings)


def _columns(table: LogTable, named: Mapping[Role, str]) -> dict[Role, int]:
    """Assigns columns by what is said, then by headings; a heading has one role."""
    heads = [head.strip().lower() for head in table.header]
    result: dict[Role, int] = {}
    for role, heading in named.items():
        result[role] = heads.index(heading.strip().lower())
    for role, pattern in _HEADINGS.items():
        for place, head in enumerate(heads):
            if role not in result and place not in result.values() and head:
                if re.fullmatch(pattern, head, re.IGNORECASE):
                    result[role] = place
    others = [place for place in range(len(heads)) if place not in result.values()]
    titles = [x for x in others if re.fullmatch(_HEADINGS["title"], heads[x], re.IGNORECASE)]
    if titles and "id" not in result and "title" not in named:  # | kernel | what |
        result["id"], result["title"] = result["title"], titles[0]
    return result


def _rows(
    table: LogTable, columns: Mapping[Role, int], line: int, doubts: list[str]
) -> Iterator[Read]:
    before = LoggedVariant(state=BEFORE, figures=NOTHING)
    taken: set[str] = set()
    for number, row in enumerate(table.rows, 1):
        cells = {role: row[place] for role, place in columns.items()}
        result = figures.of_row(table.header, row, columns)
        if result == NOTHING:
            doubts.append(
                f"row {number} of the table below line {line} has no figure: {' | '.join(row)}"
            )
        name = _name(cells.get("id", ""), number, taken)
        taken.add(name)
        word = cells.get("verdict", "")
        words = " ".join((cells.get("time", ""), cells.get("tflops", ""), word)).strip()
        verdict = _failed(words) if result == NOTHING else None
        tried = LoggedVariant(
            state=name,
            figures=result,
            verdict=verdict or figures.judge(before.figures, result),
        )
        yield Read(
            id=name,
            title=cells.get("title") or name,
            baseline=before,
            candidates=(tried,),
            decision=word,
            notes="; ".join(_others(table, row, columns)),
            date=date if re.fullmatch(r"\d{4}-\d\d-\d\d", date := cells.get("date", "")) else "",
            commit=cells.get("commit", ""),
            line=line,
        )
        if not _DROPPED.search(word) and result != NOTHING:
            before = LoggedVariant(state=name, figures=result)


def _failed(word: str) -> Verdict | None:
    """Returns the verdict on a row without a figure whose word says why it has none."""
    for status, words in _FAILURES.items():
        if words.search(word):
            sentence = f"Published without a figure: {word}."
            return Verdict(status=status, reason="published_words", sentence=sentence)
    return None


_FAILURES = {
    Status.CRASHED: re.compile(r"\b(crash|segfault|illegal|fault)", re.I),
    Status.INCORRECT: re.compile(r"\b(wrong|incorrect|mismatch)", re.I),
    Status.TIMED_OUT: re.compile(r"\b(hang|hung|hangs|timed out|timeout|deadlock)", re.I),
    Status.BUILD_FAILED: re.compile(r"\b(did not|does not|didn't|doesn't) (build|compile)", re.I),
}


def _name(text: str, number: int, taken: set[str]) -> str:
    """An id that is an axis's value too; `row3` for what can't be one."""
    plain = re.sub(r"\W+", "_", text.strip("`# "), flags=re.ASCII).strip("_")
    name = f"row{plain}" if plain[:1].isdigit() else plain or f"row{number}"
    return name if is_name(name) and name not in taken else f"{name or 'row'}_{number}"


def _others(table: LogTable, row: Sequence[str], columns: Mapping[Role, int]) -> Iterator[str]:
    """Yields cells without a field of their own, by heading; a date or commit that is none, as
    written."""
    fields = {place for role, place in columns.items() if role not in ("date", "id")}
    for place, cell in enumerate(row):
        is_number = place == columns.get("id") and cell.strip("# ").isdigit()  # row3 says it
        if place not in fields and cell and not is_number:
            yield f"{table.header[place] or 'column ' + str(place + 1)}: {cell}"
