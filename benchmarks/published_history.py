"""Models the published steps and experiments of the B200 kernel, and prints them beside each other.

    python benchmarks/published_history.py [ID ...]

No B200 is needed, and none was: its parameters are published figures (warpsim/timing/chips), the
times are those that the author of the kernel published. A step's time follows from its rate where
only that was published. Without IDs: the 13 steps of the history and F1 to F9.
"""

from __future__ import annotations

import itertools
import statistics
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from kernelexp.cli import common
from kernelexp.dossier.session import Session
from kernelexp.logs import records
from kernelexp.model.arm import PublishedResult
from kernelexp.model.errors import KernelexpError
from kernelexp.model.experiment import Variant
from kernelexp.model.modelled import ModelledTime
from kernelexp.model.record import Record
from kernelexp.project import Project, load
from kernelexp.services import modelling

ROOT = Path(__file__).parents[1]
SIZE = "full"
FLOPS = 2 * 928_256 * 768 * 768
APART = 0.03
"""Published differences from which on the sign is to be right."""


class PublishedStep(msgspec.Struct, frozen=True, kw_only=True):
    """A candidate of a published experiment beside its baseline."""

    name: str
    variants: tuple[Variant, Variant]
    published: tuple[float | None, float | None]
    """Milliseconds; None where nothing was published, or no time of it."""


def steps(project: Project, chosen: Sequence[str]) -> Iterator[PublishedStep]:
    for name in chosen:
        record = _record(name)
        baseline, candidates = project.variants(project.experiments[name])
        before = milliseconds(record.baseline.published)
        for number, (variant, candidate) in enumerate(
            zip(candidates, record.candidates, strict=True)
        ):
            label = name if len(candidates) == 1 else f"{name}, {number + 1}"
            after = milliseconds(candidate.arm.published)
            yield PublishedStep(name=label, variants=(baseline, variant), published=(before, after))


def names(project: Project, given: Sequence[str] = ()) -> Sequence[str]:
    """These experiments, or the steps of the history and F1 to F9."""
    return given or [
        *(name for name in project.history if project.experiments[name].arch == "sm_100a"),
        *(f"F{number}" for number in range(1, 10)),
    ]


def _record(name: str) -> Record:
    return records.read_file(ROOT / "logs" / "runs" / name / "published.json")


def published(name: str) -> float | None:
    """The time of a step, or of the first candidate of an experiment."""
    return milliseconds(_record(name).candidates[0].arm.published)


def milliseconds(result: PublishedResult | None) -> float | None:
    """The middle of a range; of a rate, the time that it takes."""
    if result is None or (result.time_ms is None and result.tflops is None):
        return None
    if result.time_ms is None:
        return FLOPS / (result.tflops or 1) / 1e9
    return statistics.mean((result.time_ms, result.time_ms_to or result.time_ms))


def model(
    project: Project, wanted: Sequence[Variant], session: Session
) -> dict[str, ModelledTime | KernelexpError]:
    named = {project.label(variant): variant for variant in wanted}
    times = modelling.each(project, list(named.values()), session, SIZE)
    return dict(zip(named, times, strict=True))


class ComparedStep(NamedTuple):
    """A step beside the one before it: milliseconds of both, published and modelled."""

    name: str
    published: tuple[float | None, float | None]
    modelled: tuple[float | str, float | str]
    """Or why there is none."""


def row(step: ComparedStep) -> tuple[str, bool | None, list[float]]:
    """A line; whether the sign is right, where it should be; relative errors of both times."""
    refused = next((x for x in step.modelled if isinstance(x, str)), None)
    if refused is not None:
        return f"{step.name:10} {refused}", None, []
    modelled = [x for x in step.modelled if isinstance(x, float)]
    change = modelled[1] / modelled[0] - 1
    before, after = step.published
    errors = [own / known - 1 for own, known in zip(modelled, step.published, strict=True) if known]
    spelled = [f"{x:.3f}" if x else "-" for x in (*step.published, *modelled)]
    line = f"{step.name:10} {spelled[0]:>6} {spelled[1]:>6} {spelled[2]:>6} {spelled[3]:>6}"
    off = " ".join(f"{error:+7.1%}" for error in errors)
    if before is None or after is None:
        return f"{line} {'':>8} {change:+8.1%} {'':9} {off}", None, errors
    stated = after / before - 1
    if abs(stated) < APART:
        return f"{line} {stated:+8.1%} {change:+8.1%} {'near':9} {off}", None, errors
    right = stated * change > 0
    word = "right" if right else "wrong"
    return f"{line} {stated:+8.1%} {change:+8.1%} {word:9} {off}", right, errors


def compare(chosen: Iterable[ComparedStep]) -> None:
    """Prints the steps, and how far off their modelled times are."""
    print(f"{'step':10} {'published ms':>13} {'modelled ms':>13} {'published':>8} {'modelled':>8}")
    signs, errors = [], []
    for step in chosen:
        line, right, off = row(step)
        print(line)
        signs += [] if right is None else [right]
        errors += off[-1:]
    print(f"signs right where {APART:.0%} apart: {sum(signs)} of {len(signs)}")
    if errors:
        mean = statistics.mean(map(abs, errors))
        print(
            f"times of candidates: {mean:.1%} off on average, bias {statistics.mean(errors):+.1%}"
        )


def report(
    chosen: Sequence[PublishedStep], times: Mapping[str, ModelledTime | KernelexpError]
) -> None:
    """Compares steps whose variants were modelled, by label."""
    project = load(ROOT)

    def spelled(variant: Variant) -> float | str:
        result = times[project.label(variant)]
        return result.microseconds / 1e3 if isinstance(result, ModelledTime) else str(result)

    compare(
        ComparedStep(step.name, step.published, (spelled(first), spelled(second)))
        for step in chosen
        for first, second in [step.variants]
    )


def main() -> None:
    project = load(ROOT)
    chosen = list(steps(project, names(project, sys.argv[1:])))
    wanted = list(itertools.chain.from_iterable(step.variants for step in chosen))
    with common.session(project, None, ["problem=10m", "emulation=10m"]) as session:
        times = model(project, wanted, session)
    report(chosen, times)


if __name__ == "__main__":
    main()
