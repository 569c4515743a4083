"""The best variant at each size of a run, as a table for a program to choose by: C++ or JSON."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from pathlib import Path

import msgspec

from kernelexp.judge import oversizes
from kernelexp.model.axes import AxisValue, Point, spell
from kernelexp.model.errors import UsageError
from kernelexp.model.record import Record, SizeResult
from kernelexp.report.charts.sizes import ordered

_CPP = (".h", ".hpp", ".hh", ".cuh", ".inl")


class SizeChoice(msgspec.Struct, frozen=True, kw_only=True):
    """One size with the variant that is the best there."""

    size: str
    parameters: dict[str, int]
    axes: Point
    change: float
    """Of the time to the baseline's, as a fraction; 0 where the baseline is the best."""
    run: str


class Dispatch(msgspec.Struct, frozen=True, kw_only=True):
    """What to launch at which size."""

    kernel: str
    arch: str
    device: str
    parameter: str
    """The one in which the sizes differ; empty where it is not one."""
    choices: tuple[SizeChoice, ...]


def of_record(record: Record) -> Dispatch:
    """By the record of the last size of a run."""
    arms = dict(zip(record.names, record.arms, strict=True))
    choices = []
    for size_result in ordered(record):
        name = oversizes.best(size_result)
        effect = size_result.effect(name)
        choices.append(
            SizeChoice(
                size=size_result.size,
                parameters=size_result.parameters,
                axes=arms[name].axes,
                change=effect.ratio - 1.0 if effect else 0.0,
                run=size_result.run,
            )
        )
    return Dispatch(
        kernel=record.kernel,
        arch=record.arch,
        device=record.device,
        parameter=oversizes.varied(record.sizes) if record.sizes else "",
        choices=tuple(choices),
    )


def require_format(path: Path) -> None:
    """UsageError before anything is timed."""
    if path.suffix not in (*_CPP, ".json"):
        raise UsageError(f"--dispatch {path}: name a file that ends in .hpp, .cuh, .h or .json.")


def write(record: Record, path: Path) -> None:
    """As the file's ending says."""
    table = of_record(record)
    if len(table.choices) < 2:
        raise UsageError("--dispatch needs several sizes that were timed: name them with --size.")
    if path.suffix == ".json":
        text = msgspec.json.format(msgspec.json.encode(table), indent=2).decode() + "\n"
    else:
        text = to_cpp(table, _bounds(record, table.parameter))
    path.write_text(text)


def _bounds(record: Record, parameter: str) -> list[int]:
    """The largest value that each size but the last speaks for: up to the crossover, else half of
    the way by ratio."""
    if not parameter:
        raise UsageError("a table in C++ takes sizes that differ in one parameter: write .json.")
    results = ordered(record)
    crossed = {
        crossover.after: crossover.at
        for crossover in oversizes.crossovers(record.sizes)
        if crossover.at
    }
    return [
        math.floor(crossed.get(one.size) or _middle(one, other, parameter))
        for one, other in itertools.pairwise(results)
    ]


def _middle(one: SizeResult, other: SizeResult, parameter: str) -> float:
    return math.sqrt(one.parameters[parameter] * other.parameters[parameter])


def to_cpp(table: Dispatch, bounds: list[int]) -> str:
    """A constexpr function of the parameter."""
    return "\n".join(_lines(table, bounds)) + "\n"


def _lines(table: Dispatch, bounds: list[int]) -> Iterator[str]:
    first, *_, last = table.choices
    namespace = "".join(c if c.isalnum() else "_" for c in f"{table.kernel}_{table.arch}")
    yield f"// The best variant of {table.kernel} by size, timed on {table.device}"
    yield f"// (kernelexp runs {first.run} to {last.run})."
    yield "#pragma once"
    yield ""
    yield f"namespace {namespace} {{"
    yield ""
    yield "struct Variant {"
    yield from (f"  {_type(value)} {axis};" for axis, value in first.axes.items())
    yield "};"
    yield ""
    yield f"constexpr Variant choose(long long {table.parameter}) {{"
    for axes, bound, sizes in _runs(table, bounds):
        values = ", ".join(map(_value, axes.values()))
        when = f"if ({table.parameter} <= {bound}) " if bound is not None else ""
        yield f"  {when}return {{{values}}};  // timed at {', '.join(sizes)}"
    yield "}"
    yield ""
    yield f"}}  // namespace {namespace}"


def _runs(table: Dispatch, bounds: list[int]) -> Iterator[tuple[Point, int | None, list[str]]]:
    """Neighbouring sizes with the same variant together, with the largest value they speak for."""
    ends = [*bounds, None]
    pairs = zip(table.choices, ends, strict=True)
    for _, group in itertools.groupby(pairs, key=lambda pair: pair[0].axes):
        own = list(group)
        yield own[0][0].axes, own[-1][1], [choice.size for choice, _ in own]


def _type(value: AxisValue) -> str:
    return "bool" if isinstance(value, bool) else "long long" if isinstance(value, int) else _TEXT


_TEXT = "const char*"


def _value(value: AxisValue) -> str:
    return f'"{value}"' if isinstance(value, str) else spell(value)
