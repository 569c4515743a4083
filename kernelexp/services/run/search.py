"""An optimiser that proposes points of a space of variants and is told what they came to: Optuna.

Optuna, because it can be asked and told: building, verifying and measuring stay where they are.
Kernel Tuner's strategies call a function of theirs, which compiles and times one kernel at a time.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from kernelexp.model.errors import EnvironmentFault
from kernelexp.model.experiment import AxisValue, Point, spell_point

if TYPE_CHECKING:
    import optuna

Better: TypeAlias = Literal["less", "more"]
STARTUP = 10
"""Proposals of the model-based strategy that are random, as it knows nothing yet."""
POPULATION = 16
PATIENCE = 300
"""Proposals in a row that were all known: the strategy has nothing new to say."""


class Strategy(StrEnum):
    """A strategy for proposing points."""

    tpe = "tpe"
    """A model of good and of bad points: tree-structured Parzen estimators."""
    genetic = "genetic"
    """Crossover and mutation of the best points: NSGA-II with one objective."""
    random = "random"


class Search:
    """A search in the product of some axes' values; the same seed and answers repeat it."""

    def __init__(
        self,
        space: Mapping[str, Sequence[AxisValue]],
        strategy: Strategy,
        seed: int,
        better: Better,
    ) -> None:
        module = _load()
        self._space = {
            # By position, as Optuna takes 1 and true for the same choice.
            axis: module.distributions.CategoricalDistribution(range(len(values)))
            for axis, values in space.items()
        }
        self._values = space
        samplers = {
            Strategy.tpe: lambda: module.samplers.TPESampler(
                seed=seed, n_startup_trials=STARTUP, multivariate=True
            ),
            Strategy.genetic: lambda: module.samplers.NSGAIISampler(
                seed=seed, population_size=POPULATION
            ),
            Strategy.random: lambda: module.samplers.RandomSampler(seed=seed),
        }
        direction = "minimize" if better == "less" else "maximize"
        self._study = module.create_study(direction=direction, sampler=samplers[strategy]())
        self._worst = float("inf") if better == "less" else float("-inf")
        self._known: dict[str, float | None] = {}
        self._proposed: dict[str, list[optuna.Trial]] = {}
        self.optimizer = f"optuna {module.__version__}"

    def ask(self, count: int) -> list[Point]:
        """Up to so many points that were not asked for before; fewer, or none, where the strategy
        proposes only known ones."""
        fresh: list[Point] = []
        repeated = 0
        while len(fresh) < count and repeated < PATIENCE and not self.is_exhausted():
            trial = self._study.ask(self._space)
            point = {axis: self._values[axis][place] for axis, place in trial.params.items()}
            name = spell_point(point)
            if name in self._known:
                self._tell(trial, self._known[name])
                repeated += 1
            elif name in self._proposed:
                self._proposed[name].append(trial)
                repeated += 1
            else:
                self._proposed[name] = [trial]
                fresh.append(point)
                repeated = 0
        return fresh

    def is_exhausted(self) -> bool:
        """Whether every point of the space was asked for or is known."""
        size = 1
        for values in self._values.values():
            size *= len(values)
        return len(self._known) + len(self._proposed) >= size

    def tell(self, point: Point, value: float | None) -> None:
        """Records the value of a point, even of one that was not asked for; None where it is
        infeasible."""
        name = spell_point(point)
        self._known[name] = value
        for trial in self._proposed.pop(name, []):
            self._tell(trial, value)

    def _tell(self, trial: optuna.Trial, value: float | None) -> None:
        trial.set_constraint("refused", 1.0 if value is None else 0.0)
        self._study.tell(trial, self._worst if value is None else value)


def _load() -> Any:
    try:
        import optuna
    except ImportError:
        raise EnvironmentFault(
            "--strategy needs Optuna: pip install 'kernelexp[tune]' into the environment of "
            f"{sys.executable}."
        ) from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna
