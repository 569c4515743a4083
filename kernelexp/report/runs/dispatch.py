"""A dispatch table: the best variant at each size of a run, as C++ or JSON."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from kernelexp.judge import oversizes
from kernelexp.model import experiment
from kernelexp.model.errors import UsageError
from kernelexp.model.experiment import Point, spell, spell_point
from kernelexp.model.record import Record, SizeResult

_TYPES: dict[type, str] = {bool: "bool", int: "long long", str: "const char*"}
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
    """The variant to launch at each size."""

    kernel: str
    arch: str
    device: str
    parameters: tuple[str, ...]
    """Those in which the sizes differ."""
    choices: tuple[SizeChoice, ...]


def of_record(record: Record) -> Dispatch:
    """Builds the table from the record of the last size of a run."""
    arms = record.by_name
    choices = []
    for result in oversizes.ordered(record.sizes):
        name = oversizes.best(result)
        if name is None:
            why = next(iter(result.verdicts.values())).sentence
            raise UsageError(f"no table: size {result.size} has no time. {why}")
        effect = result.effect(name)
        choices.append(
            SizeChoice(
                size=result.size,
                parameters=result.parameters,
                axes=arms[name].axes,
                change=effect.ratio - 1.0 if effect else 0.0,
                run=result.run,
            )
        )
    return Dispatch(
        kernel=record.kernel,
        arch=record.arch,
        device=record.device,
        parameters=_varied(record.sizes),
        choices=tuple(choices),
    )


def require(path: Path, size: str) -> None:
    """UsageError before anything is timed: of a format, or of sizes that make no table."""
    if path.suffix not in (*_CPP, ".json"):
        raise UsageError(f"--dispatch {path}: name a file that ends in .hpp, .cuh, .h or .json.")
    names = experiment.split_sizes(size)
    if len(names) < 2:
        raise UsageError("--dispatch needs several sizes: name them with --size.")
    settings = [own for name in names if (own := experiment.settings_of_size(name))]
    if path.suffix in _CPP and len(settings) == len(names):
        _require_grid(settings)


def write(record: Record, path: Path) -> None:
    """Writes the table in the format that the file's ending names."""
    if not record.sizes:
        raise UsageError(f"nothing was timed, so {path} was not written.")
    table = of_record(record)
    if path.suffix == ".json":
        text = msgspec.json.format(msgspec.json.encode(table), indent=2).decode() + "\n"
    else:
        _require_grid([one.parameters for one in record.sizes])
        text = "\n".join(_lines(table, record)) + "\n"
    path.write_text(text)


def _varied(settings: Sequence[SizeResult]) -> tuple[str, ...]:
    """The parameters that not all sizes have the same value of."""
    names = settings[0].parameters if settings else {}
    return tuple(name for name in names if len({one.parameters[name] for one in settings}) > 1)


def _require_grid(settings: Sequence[Mapping[str, int]]) -> None:
    """UsageError unless the sizes are all combinations of their parameters' values."""
    names = dict.fromkeys(name for own in settings for name in own)
    values = [{own.get(name) for own in settings} for name in names]
    if any(None in own for own in values) or math.prod(map(len, values)) != len(settings):
        raise UsageError(
            "a table in C++ takes sizes that are all combinations of their parameters' values, as "
            "'M=64 N=64,M=64 N=512,M=512 N=64,M=512 N=512' are: write .json, or name the others."
        )


def _lines(table: Dispatch, record: Record) -> Iterator[str]:
    first, *_, last = table.choices
    namespace = "".join(c if c.isalnum() else "_" for c in f"{table.kernel}_{table.arch}")
    yield f"// The best variant of {table.kernel} by size, timed on {table.device}"
    yield f"// (kernelexp runs {first.run} to {last.run})."
    yield "#pragma once"
    yield ""
    yield f"namespace {namespace} {{"
    yield ""
    yield "struct Variant {"
    yield from (f"  {_TYPES[type(value)]} {axis};" for axis, value in first.axes.items())
    yield "};"
    yield ""
    # Where one variant is the best at every size, the table looks at none.
    parameters = ", ".join(f"[[maybe_unused]] long long {name}" for name in table.parameters)
    yield f"constexpr Variant choose({parameters}) {{"
    choices = {choice.run: choice.axes for choice in table.choices}
    yield from _chosen(choices, record.sizes, table.parameters, "  ")
    yield "}"
    yield ""
    yield f"}}  // namespace {namespace}"


def _chosen(
    choices: Mapping[str, Point],
    results: Sequence[SizeResult],
    parameters: Sequence[str],
    indent: str,
) -> Iterator[str]:
    """Yields code that branches on one parameter after another; sizes of the same variant
    together."""
    if len({spell_point(choices[one.run]) for one in results}) == 1:
        own = choices[results[0].run].values()
        values = ", ".join(f'"{one}"' if isinstance(one, str) else spell(one) for one in own)
        yield f"{indent}return {{{values}}};  // timed at {', '.join(one.size for one in results)}"
        return
    name, *inner = parameters
    ordered = sorted(results, key=lambda one: one.parameters[name])
    alike = [list(own) for _, own in itertools.groupby(ordered, lambda one: one.parameters[name])]
    groups = [
        list(itertools.chain.from_iterable(own))
        for _, own in itertools.groupby(
            alike, lambda group: [spell_point(choices[one.run]) for one in group]
        )
    ]
    for group, other in itertools.pairwise(groups):
        yield f"{indent}if ({name} <= {_bound(group, other, name)}) {{"
        yield from _chosen(choices, group, inner, f"{indent}  ")
        yield f"{indent}}}"
    yield from _chosen(choices, groups[-1], inner, indent)


def _bound(group: Sequence[SizeResult], other: Sequence[SizeResult], name: str) -> int:
    """The largest value for which a group is chosen: the crossover where the groups differ in this
    parameter alone, else the geometric mean of both."""
    one, two = group[-1], other[0]
    met = [own.at for own in oversizes.crossovers([one, two]) if own.at]
    middle = math.sqrt(one.parameters[name] * two.parameters[name])
    return math.floor(met[0] if met else middle)
