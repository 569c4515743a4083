"""All combinations of some axes' values as one experiment: planned, run, read from its record."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import msgspec

from kernelexp.dossier import prepare
from kernelexp.dossier.session import Session
from kernelexp.evidence import build
from kernelexp.judge import sweeps, verdict
from kernelexp.logs import records
from kernelexp.model import errors
from kernelexp.model.arm import Status, Verdict
from kernelexp.model.errors import UsageError, suggest
from kernelexp.model.experiment import (
    SWEEP,
    AxisValue,
    Experiment,
    Variant,
    is_sweep,
    spell,
    spell_point,
)
from kernelexp.model.limits import Limits
from kernelexp.model.record import Candidate, Record, own_axes
from kernelexp.project import Project, parse_point
from kernelexp.services.run import runner
from kernelexp.services.run.conclusion import Concluded, FailedRun, RunSettings

EVERY = "*"
VARIANTS_MAX = 512
JOURNALS = f"{build.CACHE}/sweeps"


class Grid(msgspec.Struct, frozen=True, kw_only=True):
    """The grid of a sweep: the baseline with every other combination of the swept values."""

    kernel: str
    arch: str
    baseline: Variant
    swept: dict[str, tuple[AxisValue, ...]]
    candidates: tuple[Variant, ...]
    note: str = ""
    """What the record says of variants that were left out."""

    @property
    def name(self) -> str:
        """The name that its records are kept under."""
        return f"{SWEEP}{self.kernel}"

    @property
    def title(self) -> str:
        axes = (f"{axis}={','.join(map(spell, own))}" for axis, own in self.swept.items())
        return f"Sweep of {' '.join(axes)}"

    @property
    def size(self) -> int:
        """Variants in the space, the baseline included."""
        return math.prod(map(len, self.swept.values()))


class TimingEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """The time that timing a sweep takes, going by the latest run of its kernel that timed
    anything."""

    seconds: float
    run: str
    run_seconds: float
    run_arms: int
    """What that run timed, its placebo and peers included."""


def plan(project: Project, name: str, choices: Sequence[str], baseline: Sequence[str] = ()) -> Grid:
    """The grid of KERNEL or KERNEL@ARCH and texts like `stages=4,5` and `store=*`.

    Axes that are not named stay as in the baseline, which departs from the defaults in what
    `baseline` says. UsageError names what does not exist, and a grid that is too large.
    """
    space = plan_space(project, name, choices, baseline)
    if not space.swept or space.size > VARIANTS_MAX:
        axes = project.kernels[space.kernel].targets[space.arch].axes
        raise UsageError(
            f"{space.size:,} variants are more than a sweep takes ({VARIANTS_MAX}): name fewer "
            "values, or search them with --strategy."
            if space.swept
            else f"name the axes to sweep, as in {next(iter(axes), 'stages')}=*."
        )
    start = space.baseline
    variants = [
        project.variant(
            start.kernel, start.arch, start.axes, dict(zip(space.swept, values, strict=True))
        )
        for values in product(*space.swept.values())
    ]
    candidates = tuple(variant for variant in variants if variant != start)
    if not candidates:
        raise UsageError("this sweep has the baseline only: name more values.")
    return msgspec.structs.replace(space, candidates=candidates)


def plan_space(
    project: Project,
    name: str,
    choices: Sequence[str],
    baseline: Sequence[str],
    every: bool = False,
) -> Grid:
    """The grid without its candidates, of any size; with `every`, no choices are all axes."""
    kernel, _, arch = name.partition("@")
    default = project.variant(kernel, arch or None)
    target = project.kernels[kernel].targets[default.arch]
    start = project.variant(kernel, default.arch, parse_point(target, baseline, "--baseline"))
    if every and not choices:
        choices = [f"{axis}={EVERY}" for axis, item in target.axes.items() if len(item.values) > 1]
    swept: dict[str, tuple[AxisValue, ...]] = {}
    for choice in choices:
        axis, equals, text = choice.partition("=")
        if not equals or not text:
            raise UsageError(f"{choice!r} should be AXIS=VALUE,VALUE or AXIS=*, as in stages=4,5.")
        if axis in swept:
            raise UsageError(f"axis {axis!r} is given twice.")
        if axis not in target.axes:
            raise UsageError(f"unknown axis {axis!r}{suggest(axis, target.axes)}.")
        words = [*map(spell, target.axes[axis].values)] if text == EVERY else text.split(",")
        points = (parse_point(target, [f"{axis}={word}"], choice) for word in words)
        swept[axis] = tuple({spell(point[axis]): point[axis] for point in points}.values())
    return Grid(kernel=kernel, arch=default.arch, baseline=start, swept=swept, candidates=())


def require_candidates(grid: Grid) -> Grid:
    """The grid, if anything is left to compare."""
    if not grid.candidates:
        raise UsageError("the model puts every candidate far behind: sweep without --order.")
    return grid


def refusals(project: Project, grid: Grid, limits: Limits) -> dict[str, Verdict]:
    """The variants that the kernel's rules or the architecture forbid, before any build, by their
    swept axes; raises the fault of a problem.py that can't be asked."""
    variants = (grid.baseline, *grid.candidates)
    refused = prepare.refused(project, variants, limits)
    return {
        spell_point({axis: variant.axes[axis] for axis in grid.swept}): refused[
            prepare.key(variant)
        ]
        for variant in variants
        if prepare.key(variant) in refused
    }


def estimate(
    project: Project, grid: Grid, refused: int, budget_s: float, sizes: int = 1
) -> TimingEstimate | None:
    """Estimates in proportion to the number of arms, up to the budget, for each of `sizes`; None
    where nothing was timed here."""
    of_kernel = (
        record
        for record in records.measured(project.root)
        if (record.kernel, record.arch) == (grid.kernel, grid.arch)
    )
    record = next(of_kernel, None)
    if record is None or record.measurement is None:
        return None
    measurement = record.measurement
    arms = len(measurement.arms)
    seconds = measurement.elapsed_s * (1 + len(grid.candidates) - refused) / arms
    return TimingEstimate(
        seconds=sizes * min(seconds, budget_s),
        run=record.run,
        run_seconds=measurement.elapsed_s,
        run_arms=arms,
    )


def run(
    project: Project,
    grid: Grid,
    session: Session,
    settings: RunSettings,
) -> Concluded:
    """Builds, verifies and times the grid as one experiment, raced for the fastest; its record is
    under the sweep's name, that of the last size where several are timed. Raises what kept all of
    it from being examined or timed."""
    measuring = settings.measuring
    if measuring is not None:
        measuring = msgspec.structs.replace(
            measuring, goal="fastest", journals=project.root / JOURNALS
        )
    settings = msgspec.structs.replace(settings, measuring=measuring, partial=True)
    base = grid.baseline.axes
    experiment = Experiment(
        kernel=grid.kernel,
        arch=grid.arch,
        title=grid.title,
        baseline=base,
        candidate=[
            {
                axis: value
                for axis, value in candidate.axes.items()
                if spell(base[axis]) != spell(value)
            }
            for candidate in grid.candidates
        ],
        hypothesis=f"Which of {len(grid.candidates) + 1} variants is the fastest?{grid.note}",
    )
    own = msgspec.structs.replace(
        project, experiments={grid.name: experiment}, places={grid.name: "the command line"}
    )
    *_, outcome = runner.run(own, [grid.name], session, settings=settings)
    if isinstance(outcome, FailedRun):
        raise outcome.error
    return outcome


class PlannedSweep(msgspec.Struct, frozen=True, kw_only=True):
    """The variants that a sweep would compare; a search's refusals are not known before."""

    sweep: Grid
    sizes: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    refused: dict[str, Verdict] | msgspec.UnsetType = msgspec.UNSET
    timing: TimingEstimate | msgspec.UnsetType | None = msgspec.UNSET
    """None where no run of this kernel was timed here."""


def parse_map(axes: Sequence[str], text: str) -> tuple[str, str]:
    """The two axes that `text` names, separated by a comma; UsageError where they are not swept."""
    names = text.split(",")
    for name in names:
        if name not in axes:
            raise UsageError(f"--by: {name!r} is not swept{suggest(name, axes)}.")
    if len(names) != 2 or len(set(names)) != 2:
        raise UsageError(f"--by {text!r} should be two of the axes {', '.join(axes)}.")
    return names[0], names[1]


def latest(project: Project, name: str) -> Record:
    """The latest record of a sweep of KERNEL or KERNEL@ARCH; UsageError where there is none."""
    kernel, _, arch = name.partition("@")
    result, _ = records.read(project.root, f"{SWEEP}{kernel}")
    if not arch and len({record.arch for record in result}) == 1:
        arch = result[0].arch
    variant = project.variant(kernel, arch or None)
    own = [record for record in result if record.arch == variant.arch]
    if not own:
        raise UsageError(f"there is no sweep of {kernel}@{variant.arch} yet: run one first.")
    return own[-1]


def exit_code(outcome: Concluded) -> int:
    """Returns the exit code of a fault in some variant, or of a race that the budget ended
    undecided.

    A variant that was outrun before its own verdict is an answer.
    """
    record = outcome.record
    if outcome.unkept:
        return errors.ENVIRONMENT
    if outcome.faults:
        return outcome.faults[0][1].exit_code
    verdicts = [candidate.verdict for candidate in record.candidates]
    statuses = {item.status for item in verdicts} - {Status.INCONCLUSIVE}
    if record.baseline.refused:
        statuses.add(record.baseline.refused.status)
    race = sweeps.examine(record).race
    undecided = record.measurement is not None and (race is None or not race.is_decided)
    return verdict.exit_code(statuses) or (errors.INCONCLUSIVE if undecided else errors.OK)


def _figures(candidate: Candidate) -> str:
    """Says what is known of a candidate's time, as the reason to try it alone."""
    if candidate.arm.measured and candidate.arm.measured.effect:
        return candidate.verdict.sentence
    return "not timed yet."


def experiment_of(project: Project, record: Record, row: int) -> dict[str, Any]:
    """A row of the sweep's table as an experiment, ready for YAML; UsageError where the record is
    of no sweep, or has no such candidate."""
    if not is_sweep(record.experiment):
        raise UsageError(f"run {record.run} is one of {record.experiment}, not of a sweep.")
    if not 1 <= row <= len(record.candidates):
        raise UsageError(
            f"row {row} is not a candidate of run {record.run}, which has rows 1 to "
            f"{len(record.candidates)}; the baseline, row 0, is what they are compared with."
        )
    candidate = record.candidates[row - 1]
    own = own_axes(record.baseline, candidate.arm)
    default = project.variant(record.kernel, record.arch).axes
    base = record.baseline.axes
    return {
        "kernel": record.kernel,
        "arch": record.arch,
        "title": spell_point(own),
        "baseline": {axis: item for axis, item in base.items() if item != default.get(axis)},
        "candidate": own,
        "hypothesis": f"Sweep {record.run}: {_figures(candidate)}",
    }
