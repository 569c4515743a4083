"""The profiles of a project by variant and by experiment, and their rooflines."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterator, Mapping

from kernelexp.dossier import standing
from kernelexp.dossier.standing import StandingProfile, Standings
from kernelexp.dossier.tree import Tree
from kernelexp.model.arm import Arm
from kernelexp.model.experiment import Variant, spell_point
from kernelexp.model.record import Profile, is_of
from kernelexp.project import Project
from kernelexp.report.charts import ncu
from kernelexp.report.charts.chart import Plot


class KeptProfiles:
    """Every profile that is kept, beside the records that are shown."""

    def __init__(
        self,
        project: Project,
        kept: list[Profile],
        standings: Mapping[str, Standings],
        tree: Tree,
    ) -> None:
        """kept: oldest first. standings: by experiment."""
        self._project, self._standings, self._tree = project, standings, tree
        self.by_run = {profile.run: profile for profile in kept}
        self._of_kernel: dict[tuple[str, str], list[Profile]] = defaultdict(list)
        for profile in reversed(kept):
            self._of_kernel[profile.arm.kernel, profile.arm.arch].append(profile)

    def latest(self, variant: Variant) -> Profile | None:
        """The latest one of a variant."""
        own = self._of_kernel.get((variant.kernel, variant.arch), ())
        return next((profile for profile in own if is_of(dict(variant.axes), profile.arm)), None)

    def of_experiment(self, name: str) -> tuple[StandingProfile, ...]:
        """The profiles of an experiment's variants."""
        return standing.of_profiles(self._project, name, self._tree, self.latest)

    @functools.cached_property
    def experiments(self) -> dict[str, list[str]]:
        """The experiments whose pages show a profile, by profile."""
        result: dict[str, list[str]] = defaultdict(list)
        for name, standings in self._standings.items():
            kernel = standings.experiment.kernel
            if (kernel, standings.experiment.arch) in self._of_kernel:
                for one in self.of_experiment(name):
                    result[one.profile.run].append(name)
        return result

    def rooflines(self) -> Iterator[tuple[str, tuple[Plot, ...]]]:
        """Yields the rooflines of each kernel, whose profiles are named by their variants."""
        for (kernel, arch), own in self._of_kernel.items():
            named = [(spell_point(profile.arm.axes), profile) for profile in own]
            yield f"{kernel}@{arch}", ncu.rooflines(named, self._measured)[0]

    def roofline_of(self, profiled: tuple[StandingProfile, ...]) -> tuple[Plot, ...]:
        """The rooflines of an experiment's profiles, which are named by their arms."""
        return ncu.rooflines([(one.name, one.profile) for one in profiled], self._measured)[0]

    def _measured(self, wanted: Arm) -> Arm | None:
        """A variant as the latest of the records that are shown measured it, of the same sources;
        of any where those are not known."""
        return self._timed.get(_place(wanted, wanted.files))

    @functools.cached_property
    def _timed(self) -> dict[tuple[object, ...], Arm]:
        shown = {run: own for one in self._standings.values() for run, own in one.by_run.items()}
        every = [arm for run in sorted(shown) for arm in shown[run].arms if arm.measured]
        return {_place(arm, files): arm for arm in every for files in ({}, arm.files)}


def _place(arm: Arm, files: Mapping[str, str]) -> tuple[object, ...]:
    """Returns the key of an arm's variant, built from these files."""
    return arm.kernel, arm.arch, *sorted(arm.axes.items()), *sorted(files.items())
