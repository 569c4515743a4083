"""Placement of the arms' code and data on the GPU, and how to lay them out anew."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from pathlib import Path

from kernelexp.evidence.measure.arrays import InputSet
from kernelexp.evidence.measure.gpu_timing import Launchable
from kernelexp.evidence.measure.job import ArmJob
from kernelexp.evidence.measure.launch import LoadedKernel
from kernelexp.model.problem import Problem, Size


class Placement:
    """Each arm's module, the sets of arrays, and each arm's launches on each set."""

    def __init__(self, problem: Problem, size: Size, arms: Mapping[int, ArmJob]) -> None:
        self._problem, self._size = problem, size
        self.arms = dict(arms)
        self.sets: list[InputSet] = []
        self._kernels: dict[int, LoadedKernel] = {}
        self._calls: dict[int, list[Launchable]] = {index: [] for index in arms}

    def judged(self) -> list[int]:
        """Arms with launches of their own: what they write is checked."""
        return [index for index, arm in self.arms.items() if arm.launches]

    def load(self, index: int) -> None:
        """Loads the arm's cubin; peers have none."""
        arm = self.arms[index]
        if arm.launches:
            self._kernels[index] = LoadedKernel(Path(arm.cubin), arm.launches)

    def add_set(self, seed: int) -> None:
        judged = {self.arms[index].arm.name: self.arms[index] for index in self.judged()}
        axes = {name: arm.axes for name, arm in judged.items()}
        workspaces = {
            name: self._problem.workspaces(arm.axes, self._size, arm.exports)
            for name, arm in judged.items()
        }
        added = InputSet(self._problem, self._size, axes, seed, workspaces)
        self.sets.append(added)
        for index in self.judged():
            self._calls[index].append(self._bind(index, added))

    def add_peers(self) -> list[tuple[int, int]]:
        """The peers on each set that they are not on yet; which peers, and on which sets."""
        peers = [index for index in self.arms if index not in self.judged()]
        done = len(self._calls[peers[0]]) if peers else len(self.sets)
        added = []
        for place, input_set in enumerate(self.sets[done:], done):
            calls = self._problem.peers(input_set.for_peers(), self._size)
            for index in peers:
                self._calls[index].append(_without_stream(calls[_peer_of(self.arms[index])]))
                added.append((index, place))
        return added

    def anew(self, rng: random.Random) -> None:
        """Loads every module again in a random order and moves what only some arms read.

        Where code and data lie is a draw; several draws in a process average it. Launches must
        have ended.
        """
        for index in rng.sample(sorted(self._kernels), len(self._kernels)):
            self._kernels[index].unload()
            self.load(index)
        for argument_set in self.sets:
            argument_set.move(rng)
        for index in self._kernels:
            self._calls[index] = [self._bind(index, argument_set) for argument_set in self.sets]

    def calls(self, count: int) -> list[list[Launchable]]:
        """Launches by the arms' positions among all `count` arms, and by set."""
        return [self._calls.get(index, []) for index in range(count)]

    def call(self, index: int, set_index: int, stream: int) -> None:
        self._calls[index][set_index](stream)

    def _bind(self, index: int, chosen: InputSet) -> Launchable:
        return self._kernels[index].bind(chosen.arrays(self.arms[index].arm.name))


def _peer_of(arm: ArmJob) -> str:
    """The problem's name of a peer; `identity` holds it where several arms are the same peer."""
    return arm.arm.identity or arm.arm.name


def _without_stream(call: Callable[[], object]) -> Launchable:
    """A peer as a launch: torch puts it on its current stream by itself."""

    def launch(_: int) -> None:
        call()

    return launch
