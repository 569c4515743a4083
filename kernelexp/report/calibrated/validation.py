"""Records against the model of time: by kernel, by distance, and where the model is wrong."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator

from kernelexp.facts.modelled_errors import HELD, NEVER, SURE, ErrorsApart
from kernelexp.judge.modelled_pairs import ModelledPair
from kernelexp.report.document.document import Block, Heading, paragraph, table
from kernelexp.services.validating import ModelledFamily, ModelValidation

_HEADER = ("kernel", "times", "error", "bias", "pairs >= 5%", ">= 10%", "floor >= 5%")
_REGRET = 0.02


def render(model_validation: ModelValidation) -> Iterator[Block]:
    yield Heading(f"The model of time against records of an {model_validation.chip}")
    rows = [_row(family) for family in model_validation.families]
    yield table(_HEADER, rows, numbers=range(1, len(_HEADER)))
    yield paragraph(
        "Pairs of one run that were measured so far apart, and how many of them the model ranks "
        "right; the floor is the busiest unit alone, without a latency.",
        style="dim",
    )
    apart = model_validation.errors.apart
    yield table(
        ("modelled apart by", *(errors.apart for errors in apart)),
        [
            (f"{rows[0].distance:.0%}", *(_share(ranked.right, ranked.pairs) for ranked in rows))
            for rows in zip(*(errors.by_distance for errors in apart), strict=True)
        ],
        numbers=range(1, 1 + len(apart)),
    )
    yield table(
        ("pairs in", "pairs", "within", "inside", "resolution", "decided", "of them right"),
        [_worth(errors) for errors in apart],
        numbers=range(1, 7),
    )
    yield paragraph(
        "within: an interval is as wide as this says, and is to hold "
        f"{HELD:.0%} of the measured ratios in {HELD:.0%} of the experiments. resolution: from so "
        f"far apart on, {SURE:.0%} are ranked right. A pair is decided where its interval does not "
        "hold 1, or it is modelled farther apart than the resolution. inside, decided, right: with "
        "both figures taken from "
        "the other experiments only.",
        style="dim",
    )
    yield table(
        ("measured apart by", "pairs", "decided", "of them right"),
        [
            (
                f"{row.distance:.0%} or more",
                str(row.pairs),
                _share(row.decided, row.pairs),
                _share(row.right, row.decided),
            )
            for row in model_validation.decided
        ],
        numbers=range(1, 4),
    )
    yield paragraph(_regrets(model_validation))
    yield Heading("In the wrong order", level=2)
    yield table(
        ("experiment", "measured", "modelled", "arms"),
        [_wrong(pair) for pair in model_validation.worst],
        numbers=(1, 2),
    )
    for name, why in model_validation.missing.items():
        yield paragraph(f"{name}: {why}", style="dim")


def _row(family: ModelledFamily) -> tuple[str, ...]:
    near, far = family.apart["5%"], family.apart["10%"]
    return (
        family.kernel,
        str(family.times),
        f"{family.mean:.1%}",
        f"{family.bias:+.1%}",
        _share(near[1], near[0]),
        _share(far[1], far[0]),
        _share(near[2], near[0]),
    )


def _share(part: int, whole: int) -> str:
    return f"{part}/{whole} ({part / whole:.0%})" if whole else "0/0"


def _worth(errors: ErrorsApart) -> tuple[str, ...]:
    resolution = errors.worth.resolution
    return (
        errors.apart,
        str(errors.pairs),
        f"{errors.worth.within:.3f}",
        _share(errors.inside, errors.pairs),
        "never" if resolution == NEVER else f"{resolution:.0%}",
        _share(errors.decided, errors.pairs),
        _share(errors.right, errors.decided),
    )


def _regrets(model_validation: ModelValidation) -> str:
    """Describes the regrets of choosing the modelled best of each run."""
    runs = model_validation.regrets
    if not runs:
        return "No run has three arms."
    small = sum(run.regret <= _REGRET for run in runs)
    worst = runs[-1]
    return (
        f"Of {len(runs)} runs with three arms or more, the modelled best takes "
        f"{statistics.mean(run.regret for run in runs):.1%} more than the fastest on average, and "
        f"{_REGRET:.0%} or less in {small}; at worst {worst.regret:.1%} ({worst.experiment})."
    )


def _wrong(pair: ModelledPair) -> tuple[str, ...]:
    first, second = (set(arm.split()) for arm in pair.arms)
    return (
        pair.experiment,
        f"{math.expm1(pair.measured):+.1%}",
        f"{math.expm1(pair.modelled):+.1%}",
        f"{' '.join(sorted(first - second))} against {' '.join(sorted(second - first))}",
    )
