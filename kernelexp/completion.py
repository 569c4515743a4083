"""What the shell completes: experiments, variants, axes with their values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelexp.errors import KernelexpError

if TYPE_CHECKING:
    from kernelexp.project import Project


def complete(candidates: Callable[[Project], Iterable[tuple[str, str]]]) -> Any:
    def answer(incomplete: str) -> list[tuple[str, str]]:
        from kernelexp import project

        try:
            loaded = project.load(Path())
        except KernelexpError:
            return []
        return [(name, help_) for name, help_ in candidates(loaded) if name.startswith(incomplete)]

    return answer


def experiment_names(project: Project) -> Iterator[tuple[str, str]]:
    for name, experiment in project.experiments.items():
        yield name, experiment.title


def assignments(project: Project) -> Iterator[tuple[str, str]]:
    from kernelexp.model import spell

    for kernel in project.kernels.values():
        for target in kernel.targets.values():
            for name, axis in target.axes.items():
                yield from ((f"{name}={spell(value)}", axis.about) for value in axis.values)


def variant_names(project: Project) -> Iterator[tuple[str, str]]:
    yield from experiment_names(project)
    for name, kernel in project.kernels.items():
        yield from ((f"{name}@{arch}", kernel.title) for arch in kernel.targets)
