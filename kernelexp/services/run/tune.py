"""A sweep of a space that is too large to exhaust: an optimiser proposes the variants, in rounds.

Each proposal is built, verified and, where the objective is the time, timed in a heat with the
baseline on the same GPU. The best of all rounds meet in a final. An interrupted search that is
started again makes the same proposals, and finds builds, emulations and samples where it left them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from kernelexp.dossier import prepare
from kernelexp.dossier.session import Session
from kernelexp.evidence.measure import heats
from kernelexp.evidence.measure.measured import MeasurementTaken
from kernelexp.facts import metrics
from kernelexp.facts.metrics import Metric
from kernelexp.judge import verdict
from kernelexp.judge.statistics import racing
from kernelexp.judge.statistics.stats import ratios
from kernelexp.model.arm import Arm, sound
from kernelexp.model.errors import (
    BuildError,
    EnvironmentFault,
    KernelexpError,
    KernelFault,
    UsageError,
    suggest,
)
from kernelexp.model.experiment import FULL, Experiment, Point, Variant, spell, spell_point
from kernelexp.model.measurement import Gpus, Measuring
from kernelexp.model.modelled import ModelledTime
from kernelexp.model.record import Trial, Tuning
from kernelexp.project import Project
from kernelexp.services import modelling
from kernelexp.services.run import conclusion, runner
from kernelexp.services.run.conclusion import Concluded, Faults, RunContext, RunSettings
from kernelexp.services.run.search import Better, Search, Strategy
from kernelexp.services.run.sweep import JOURNALS, Grid

TIME = "time_ms"
ROUND = 8
"""Proposals of a round on each GPU: the optimiser learns from round to round."""


class SearchPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a search, as the command line gives them."""

    strategy: Strategy
    trials: int = 32
    seed: int = 0
    objective: str = TIME
    size: str = FULL
    """That times are modelled at."""


def metric_of(objective: str) -> Metric:
    """The figure to improve; UsageError where it is none that a search could go by."""
    if sentence := metrics.unknown(objective):
        raise UsageError(f"--objective: {sentence}")
    metric = metrics.searchable(objective)
    if metric is None or not (
        metric.kind in ("built", "emulated", "modelled") or objective == TIME
    ):
        raise UsageError(
            f"--objective {objective}: a search goes by {TIME} or by a built, emulated or "
            "modelled figure."
        )
    if not metric.better:
        raise UsageError(
            f"--objective {objective}: neither less nor more of it is better by itself."
        )
    return metric


def run(
    project: Project,
    grid: Grid,
    plan: SearchPlan,
    session: Session,
    settings: RunSettings,
) -> Concluded:
    """Searches the grid's space; the record has every variant that was examined.

    Raises UsageError for an objective that is none, EnvironmentFault where it can't be had here,
    and what keeps the baseline from being examined.
    """
    prepare.refuse_programs([grid.baseline], "a search")
    metric = metric_of(plan.objective)
    is_timed = plan.objective == TIME
    measuring = settings.measuring if is_timed else None
    if measuring is not None:
        journals = project.root / JOURNALS
        measuring = msgspec.structs.replace(measuring, goal="fastest", journals=journals)
    emulate = session.emulate or metric.kind == "emulated"
    session = msgspec.structs.replace(session, emulate=emulate)
    settings = msgspec.structs.replace(settings, measuring=measuring)
    shared = runner.share(project, project.root, session, settings=settings)
    gpus = shared.gpus.of(grid.arch) if is_timed else Gpus()
    if is_timed and not gpus.devices:
        raise EnvironmentFault(
            f"--strategy needs times, and {gpus.why_none} Without a GPU, name a built or emulated "
            "figure with --objective, as in launch__registers_per_thread, or modelled."
        )
    return _Tuning(shared, grid, plan, metric, len(gpus.devices)).run()


class _Tuning:
    """One search under way."""

    def __init__(
        self, shared: RunContext, grid: Grid, plan: SearchPlan, metric: Metric, cards: int
    ) -> None:
        self._shared, self._grid, self._plan = shared, grid, plan
        self._metric, self._cards = metric, cards
        better: Better = "more" if metric.better == "more" else "less"
        self._search = Search(grid.swept, plan.strategy, plan.seed, better)
        self._better = better
        self._arms: dict[str, Arm] = {}
        self._variants: dict[str, Variant] = {}
        self._faults: dict[str, tuple[Variant, KernelexpError]] = {}
        self._trials: list[Trial] = []
        self._heats: list[MeasurementTaken] = []
        self._modelled: dict[str, ModelledTime | KernelexpError] = {}

    def run(self) -> Concluded:
        self._begin()
        ended = ""
        while not ended:
            wanted = self._plan.trials - len(self._trials)
            batch = self._search.ask(min(wanted, ROUND * max(1, self._cards)))
            if batch:
                self._try(batch)
            ended = self._ending(batch)
        return self._conclude(ended)

    def _ending(self, batch: Sequence[Point]) -> str:
        """Says why the search is over, as a sentence; empty where it is not."""
        if len(self._trials) >= self._plan.trials:
            return f"All {self._plan.trials} trials were made."
        if self._search.is_exhausted():
            return "Every variant of the space was tried."
        if not batch:
            return "The strategy proposes only variants that were tried."
        spent = sum(heat.measurement.elapsed_s for heat in self._heats) / max(1, self._cards)
        budget = self._early.budget_s if self._cards else None
        if budget is not None and spent >= budget:
            return f"The budget was spent after {len(self._trials)} trials."
        return ""

    @property
    def _measuring(self) -> Measuring:
        measuring = self._shared.settings.measuring
        assert measuring is not None  # only asked where the objective is the time
        return measuring

    @property
    def _early(self) -> Measuring:
        return heats.shares(self._measuring)[0]

    def _begin(self) -> None:
        """The baseline, which every other is compared with."""
        variant = self._grid.baseline
        arm = sound(runner.examine(self._shared, [variant])[0])
        if refused := arm.refused:
            kind = KernelFault if refused.status in verdict.WRONG else BuildError
            raise kind(f"the baseline is {refused.status}: {refused.sentence}")
        self._arms["baseline"], self._variants["baseline"] = arm, variant
        known = metrics.figures(arm, self._metric.kind)
        self._model(["baseline"])
        value = 1.0 if self._cards else self._figure("baseline")
        if isinstance(fault := self._modelled.get("baseline"), KernelexpError):
            raise fault
        if value is None or not (self._modelled or self._cards or self._plan.objective in known):
            raise UsageError(
                f"--objective: the baseline has no {self._metric.kind} figure "
                f"{self._plan.objective!r}{suggest(self._plan.objective, known)}."
            )
        self._search.tell(self._own(variant), value)

    def _own(self, variant: Variant) -> Point:
        return {axis: variant.axes[axis] for axis in self._grid.swept}

    def _try(self, batch: Sequence[Point]) -> None:
        """A round: builds, verifies and times these points and tells what they came to."""
        project, base = self._shared.project, self._grid.baseline
        variants = [project.variant(base.kernel, base.arch, base.axes, point) for point in batch]
        arms = runner.examine(self._shared, variants)
        names: list[str] = []
        for variant, arm in zip(variants, arms, strict=True):
            name = ""
            if isinstance(arm, KernelexpError):
                self._faults[spell_point(self._own(variant))] = (variant, arm)
            else:
                name = f"candidate {len(self._arms)}"
                self._arms[name], self._variants[name] = arm, variant
            names.append(name)
        self._model([name for name in names if name and not self._arms[name].refused])
        timed = self._time([name for name in names if name and not self._arms[name].refused])
        for point, name in zip(batch, names, strict=True):
            trial = self._judge(point, name, timed)
            self._trials.append(trial)
            self._search.tell(point, trial.value)

    def _judge(self, point: Point, name: str, timed: Sequence[MeasurementTaken]) -> Trial:
        own = {axis: point[axis] for axis in self._grid.swept}
        if not name:
            return Trial(axes=own, why=str(self._faults[spell_point(own)][1]))
        arm = self._arms[name]
        if arm.refused:
            return Trial(axes=own, arm=name, why=arm.refused.sentence)
        if not self._cards:
            value = self._figure(name)
            why = "" if value is not None else f"it has no {self._plan.objective}."
            if isinstance(fault := self._modelled.get(name), KernelexpError):
                why = str(fault)
            return Trial(axes=own, arm=name, value=value, why=why)
        for taken in timed:
            effects = ratios(taken.measurement)[0]
            failed = {failure.arm for failure in taken.measurement.failures}
            value = next((effect.ratio for effect in effects if effect.arm == name), None)
            if value is not None and name not in failed:
                return Trial(axes=own, arm=name, value=value)
            if any(arm_.name == name for arm_ in taken.measurement.arms):
                result = verdict.measured(taken.measurement, name, self._measuring.margin)
                return Trial(axes=own, arm=name, why=result.sentence)
        return Trial(axes=own, arm=name, why="it was not timed.")

    def _model(self, names: Sequence[str]) -> None:
        """Modelled times, where the search goes by them."""
        if self._metric is metrics.MODELLED:
            variants = [self._variants[name] for name in names]
            shared = self._shared
            result = modelling.each(shared.project, variants, shared.session, self._plan.size)
            self._modelled.update(zip(names, result, strict=True))

    def _figure(self, name: str) -> float | None:
        time = self._modelled.get(name)
        if isinstance(time, ModelledTime):
            return time.cycles
        value = self._metric.read(self._arms[name])
        return float(value) if isinstance(value, int | float) else None

    def _time(self, names: Sequence[str]) -> list[MeasurementTaken]:
        """A heat on each GPU; nothing where nothing is to be timed."""
        if not self._cards or not names:
            return []
        dealt = racing.deal(names, racing.count(len(names), self._cards))
        groups = [{name: self._arms[name] for name in ("baseline", *own)} for own in dealt]
        shared = self._shared
        takens = heats.side_by_side(
            shared.project.root,
            groups,
            # Each round has the time that a run of so many candidates has.
            msgspec.structs.replace(self._measuring, budget_s=None),
            shared.session.limits,
            shared.session.executor.measure,
            on_progress=shared.session.on_progress,
        )
        self._heats += takens
        return takens

    def _conclude(self, ended: str) -> Concluded:
        faults: Faults = tuple(self._faults.values())
        if len(self._arms) < 3:  # a record of one candidate names it otherwise
            if faults:
                raise faults[0][1]
            raise UsageError(f"{ended} That is too little to search: leave out --strategy.")
        timed = conclusion.Timed(why_not="the search went by another figure.")
        if self._heats:
            taken = self._final()
            timed = conclusion.as_timed(taken, self._measuring)
        tuning = Tuning(
            strategy=self._plan.strategy.value,
            optimizer=self._search.optimizer,
            seed=self._plan.seed,
            objective=self._plan.objective,
            better=self._better,
            space=self._grid.size,
            trials=tuple(self._trials),
            baseline=self._figure("baseline") if self._modelled else None,
            ended=ended,
        )
        arms = list(self._arms.values())
        name = self._grid.name
        return conclusion.conclude(
            self._shared, name, self._experiment(), arms, timed, faults, tuning=tuning
        )

    def _final(self) -> MeasurementTaken:
        shared = self._shared
        root: Path = shared.project.root
        return heats.final(
            root,
            self._arms,
            self._heats,
            heats.shares(self._measuring)[1],
            shared.session.limits,
            shared.session.executor.measure,
            on_progress=shared.session.on_progress,
        )

    def _experiment(self) -> Experiment:
        base = self._grid.baseline.axes
        others = [variant for name, variant in self._variants.items() if name != "baseline"]
        figure = "fastest" if self._cards else f"best in {self._plan.objective}"
        return Experiment(
            kernel=self._grid.kernel,
            arch=self._grid.arch,
            title=self._grid.title,
            baseline=base,
            candidate=[
                {k: v for k, v in other.axes.items() if spell(base[k]) != spell(v)}
                for other in others
            ],
            hypothesis=f"Which of {self._grid.size:,} variants is the {figure}?",
        )
