"""Clusters of CTAs: which kernels speak to others of one, and what a source launches them with."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping

import msgspec

from kernelexp.model.errors import UsageError
from kernelexp.services.adopt.adopted import Compiled
from kernelexp.services.adopt.answers import Answers, LaunchShape
from kernelexp.services.adopt.entry import KernelEntry
from kernelexp.services.adopt.expressions import names_in, parse_expressions

_MEMBER = re.compile(r"\bclusterDim\s*\.\s*([xyz])\s*=([^;]+);")
_WHOLE = re.compile(
    r"\bclusterDim\s*=\s*(?:dim3)?\s*[({]([^;]*)[)}]\s*;"
    r"|\bdim3\s+\w*[cC]luster\w*\s*(?:=\s*dim3\s*)?[({]([^;]*)[)}]\s*;"
)
"""cudaLaunchAttributeClusterDimension, and a dim3 that is named for it."""


def launched(texts: Iterable[str]) -> tuple[str, ...]:
    """The cluster that host code of these sources launches with, in the notation of a grid; nothing
    where it says none, or several."""
    found = {item for text in texts for item in _stated(text)}
    return next(iter(found)) if len(found) == 1 else ()


def _stated(text: str) -> Iterator[tuple[str, ...]]:
    extents = {match[1]: match[2] for match in _MEMBER.finditer(text)}
    whole = [match[1] or match[2] for match in _WHOLE.finditer(text)]
    if extents:
        whole.append(",".join(extents.get(axis, "1") for axis in "xyz"))
    for inside in whole:
        try:
            x, y, z = [*parse_expressions(re.sub(r"(?<=\d)[uU]\b", "", inside)), "1", "1"][:3]
        except UsageError:
            continue  # such as size<0>(ClusterShape{})
        yield x, y, z


def assumed(
    compiled: Compiled, answers: Answers, numbers: Mapping[str, int], axes: Collection[str]
) -> Answers:
    """The answers with the source's cluster for kernels that speak of one and have none said, if
    its names are constants of the source or axes."""
    if not compiled.cluster or names_in(compiled.cluster) - {*numbers, *axes}:
        return answers
    shapes = tuple(
        msgspec.structs.replace(shape, cluster=compiled.cluster) if is_open(entry, shape) else shape
        for entry, shape in zip(compiled.entries, answers.launches, strict=True)
    )
    return msgspec.structs.replace(answers, launches=shapes)


def is_open(entry: KernelEntry, shape: LaunchShape) -> bool:
    """Whether a kernel speaks of its cluster and nobody has said how large that is."""
    return entry.in_cluster and not shape.cluster and entry.cluster == (1, 1, 1)
