"""Shell completion of experiments, variants, and axes with their values."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import typer

from kernelexp.model.errors import KernelexpError

if TYPE_CHECKING:
    from kernelexp.model.experiment import Target
    from kernelexp.project import Project

Candidates = Iterable[tuple[str, str]]
"""Values with a word about each."""
Completion: TypeAlias = "Callable[[Project, typer.Context, str], Candidates]"
"""Makes them of the project, the command line so far and the incomplete word."""

_WORD = "_KERNELEXP_COMPLETE_WORD"


def join_bash_words(environ: MutableMapping[str, str]) -> None:
    """Puts the words together again that bash takes apart at `=`, `:` and `@` (COMP_WORDBREAKS).

    bash replaces only the part after the last of these; it is kept for `answer`.
    """
    separator = "\n" if "\n" in environ["COMP_WORDS"] else " "
    words = environ["COMP_WORDS"].split(separator)[: int(environ["COMP_CWORD"]) + 1]
    joined: list[str] = []
    glue = False
    for word in words:
        breaks = re.fullmatch("[=:@]+", word) is not None
        if joined and (breaks or glue):
            joined[-1] += word
        else:
            joined.append(word)
        glue = breaks
    environ["COMP_WORDS"] = separator.join(joined)
    environ["COMP_CWORD"] = str(len(joined) - 1)
    environ[_WORD] = "" if glue else words[-1]


def answer(candidates: Completion, ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """An answer to the shell, from the project, the command line so far and the incomplete word."""
    from kernelexp import project

    try:
        loaded = project.load(ctx.params.get("project") or Path())
    except KernelexpError:
        return []
    answers = [
        (name, _plain(about))
        for name, about in candidates(loaded, ctx, incomplete)
        if name.startswith(incomplete)
    ]
    known = len(incomplete) - len(os.environ.get(_WORD, incomplete))
    if known:
        # bash wants the rest only. typer would drop it, as it does not begin like the word.
        typer.echo("\n".join(name[known:] for name, _ in answers))
        sys.exit()
    return answers


def _plain(about: str) -> str:
    """Removes what zsh, which evaluates the text, or rich, which renders it, would act upon."""
    return re.sub(r"""[\\$`"'\x00-\x1f]""", "", about.replace("[", "(").replace("]", ")"))


def experiment_names(project: Project, ctx: typer.Context, incomplete: str) -> Candidates:
    return [(name, experiment.title) for name, experiment in project.experiments.items()]


def assignments(project: Project, ctx: typer.Context, incomplete: str) -> Candidates:
    """axis=value for what all of the experiments or variants on the command line have."""
    # An option that lacks its value keeps typer from giving the arguments their names.
    named = [*(ctx.params.get("experiments") or ctx.params.get("variants") or ctx.args)]
    targets = [target for name in named for target in _targets(project, name)]
    if not targets:
        everything = (kernel.targets.values() for kernel in project.kernels.values())
        return dict(_pairs(target for targets in everything for target in targets)).items()
    common = [dict(_pairs([target])) for target in targets]
    return [(pair, about) for pair, about in common[0].items() if all(pair in c for c in common)]


def variant_names(project: Project, ctx: typer.Context, incomplete: str) -> Candidates:
    """Experiments and KERNEL@ARCH; after its colon also the next axis=value."""
    variant, colon, _ = incomplete.partition(":")
    if colon:
        start = incomplete[: max(incomplete.rfind(":"), incomplete.rfind(",")) + 1]
        pairs = _pairs(_targets(project, variant))
        return [(f"{start}{pair}", about) for pair, about in pairs]
    return [
        *experiment_names(project, ctx, incomplete),
        *(
            (f"{name}@{arch}", kernel.title)
            for name, kernel in project.kernels.items()
            for arch in kernel.targets
        ),
    ]


def sweep_words(project: Project, ctx: typer.Context, incomplete: str) -> Candidates:
    """KERNEL@ARCH, then axis=* and axis=value of it."""
    words = [*(ctx.params.get("words") or ctx.args)]
    if not words:
        pairs = ((name, kernel) for name, kernel in project.kernels.items())
        return [(f"{name}@{arch}", own.title) for name, own in pairs for arch in own.targets]
    targets = _targets(project, words[0])
    every = [(f"{name}=*", axis.about) for target in targets for name, axis in target.axes.items()]
    return [*every, *_pairs(targets)]


def _targets(project: Project, name: str) -> list[Target]:
    """The target of an experiment or of KERNEL@ARCH:..., all of a KERNEL's; none if unknown."""
    if name in project.experiments:
        experiment = project.experiments[name]
        return [project.kernels[experiment.kernel].targets[experiment.arch]]
    kernel, _, arch = name.partition(":")[0].partition("@")
    if kernel not in project.kernels:
        return []
    targets = project.kernels[kernel].targets
    return [target for item, target in targets.items() if arch in ("", item)]


def _pairs(targets: Iterable[Target]) -> Iterator[tuple[str, str]]:
    from kernelexp.model.experiment import spell

    for target in targets:
        for name, axis in target.axes.items():
            yield from ((f"{name}={spell(value)}", axis.about) for value in axis.values)
