"""Output of `doctor` and `calibrate`: this machine, the model of time, and the model's accuracy."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence

from kernelexp.facts.modelled_errors import HELD, NEVER, SURE, ErrorsApart
from kernelexp.judge.modelled_pairs import ModelledPair
from kernelexp.report.document.document import Block, Heading, Span, paragraph, table
from kernelexp.services.calibration import COMPARED, Calibrated, ModelRefit
from kernelexp.services.doctor import Fact
from kernelexp.services.validating import ModelledFamily, ModelValidation
from warpsim.timing.refit import Refitted

_RATES = ("extra work", "true", "estimate", "spread", "detected", "faster", "slower", "covered")
_FAMILIES = ("kernel", "times", "error", "bias", "pairs >= 5%", ">= 10%", "floor >= 5%")
_REGRET = 0.02


def rates(rated: Calibrated) -> Iterator[Block]:
    """A row for each amount of extra work."""
    yield paragraph(
        f"{rated.device}, driver {rated.driver}: comparisons of {COMPARED} processes drawn from "
        f"one recording, margin {100 * rated.margin:g}%"
    )
    rows = [
        (
            f"{percent}%",
            f"{100 * rates.truth:+.2f}%",
            f"{100 * (rates.truth + rates.bias):+.2f}%",
            f"{100 * rates.spread:.3f}%",
            f"{rates.detected}/{rates.comparisons}",
            str(rates.statuses.get("IMPROVED", 0)),
            str(rates.statuses.get("REJECTED", 0)),
            f"{rates.covered}/{rates.comparisons}",
        )
        for percent, rates in rated.rates.items()
    ]
    yield table(_RATES, rows, numbers=range(len(_RATES)))
    disjoint = sum(rates.disjoint for rates in rated.rates.values())
    yield paragraph(f"Draws share processes: {disjoint} of them are disjoint.", style="dim")


def refitted(result: ModelRefit) -> Iterator[Block]:
    """The parameters of the model, beside what a card's microbenchmarks make of them."""
    yield Heading(f"Parameters of an {result.chip} in the model of time")
    rows = [
        (item.name, f"{item.value:.4g}", f"{item.refitted:.4g}", _change(item), item.unit)
        for item in result.parameters
    ]
    yield table(("parameter", "is", "refitted", "change", "unit"), rows, numbers=(1, 2, 3))
    yield paragraph(
        f"As they are: {', '.join(result.kept)}, which are published, inferred, or fitted to "
        "several figures.",
        style="dim",
    )


def _change(item: Refitted) -> str:
    """Spells a parameter's change: in percent, or in its unit where it was 0."""
    return f"{100 * item.change:+.1f}%" if item.value else f"{item.change:+.3g}"


def validated(result: ModelValidation) -> Iterator[Block]:
    """Records against the model: by kernel, by distance, and where the model is wrong."""
    yield Heading(f"The model of time against records of an {result.chip}")
    rows = [_row(family) for family in result.families]
    yield table(_FAMILIES, rows, numbers=range(1, len(_FAMILIES)))
    yield paragraph(
        "Pairs of one run that were measured so far apart, and how many of them the model ranks "
        "right; the floor is the busiest unit alone, without a latency.",
        style="dim",
    )
    apart = result.errors.apart
    ranked = zip(*(errors.by_distance for errors in apart), strict=True)
    yield table(
        ("modelled apart by", *(errors.apart for errors in apart)),
        ((f"{own[0].distance:.0%}", *(_share(r.right, r.pairs) for r in own)) for own in ranked),
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
    decided = (
        (
            f"{row.distance:.0%} or more",
            str(row.pairs),
            _share(row.decided, row.pairs),
            _share(row.right, row.decided),
        )
        for row in result.decided
    )
    yield table(("measured apart by", "pairs", "decided", "of them right"), decided, (1, 2, 3))
    yield paragraph(_regrets(result))
    yield Heading("In the wrong order", level=2)
    wrong = map(_wrong, result.worst)
    yield table(("experiment", "measured", "modelled", "arms"), wrong, numbers=(1, 2))
    for name, why in result.missing.items():
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


def _regrets(result: ModelValidation) -> str:
    """Describes the regrets of choosing the modelled best of each run."""
    runs = result.regrets
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


def machine(facts: Sequence[Fact]) -> Iterator[Block]:
    rows = (
        (Span(fact.name, "strong"), fact.found or Span("missing", "warn"), fact.allows)
        for fact in facts
    )
    yield table(("", "found", "for"), rows)
