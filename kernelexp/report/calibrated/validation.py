"""What records say of the model of time: by kernel, by distance, and where it is wrong."""

from __future__ import annotations

import math
from collections.abc import Iterator

from kernelexp.facts.modelled_errors import HELD
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
    yield table(
        ("modelled apart by", "pairs", "ranked right"),
        [
            (f"{error.distance:.0%}", str(error.pairs), _share(error.right, error.pairs))
            for error in model_validation.errors.by_distance
        ],
        numbers=(1, 2),
    )
    yield paragraph(_intervals(model_validation))
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


def _intervals(model_validation: ModelValidation) -> str:
    left, small = (
        model_validation.left_out,
        sum(regret <= _REGRET for regret in model_validation.regrets),
    )
    return (
        "With intervals from the residuals of the other experiments only (as wide as "
        f"{HELD:.0%} of all need; within = {model_validation.errors.within:.3f}), "
        f"{_share(left.inside, left.pairs)} of the measured ratios are inside theirs. "
        f"{_share(left.decided, left.pairs)} pairs are "
        f"decided, {_share(left.right, left.decided)} of them right; of those measured 5% apart "
        f"or more, {_share(left.apart_undecided, left.apart)} are too close for the model. Where "
        f"a run has three arms or more, the modelled best is within {_REGRET:.0%} of the fastest "
        f"in {_share(small, len(model_validation.regrets))} runs."
    )


def _wrong(pair: ModelledPair) -> tuple[str, ...]:
    first, second = (set(arm.split()) for arm in pair.arms)
    return (
        pair.experiment,
        f"{math.expm1(pair.measured):+.1%}",
        f"{math.expm1(pair.modelled):+.1%}",
        f"{' '.join(sorted(first - second))} against {' '.join(sorted(second - first))}",
    )
