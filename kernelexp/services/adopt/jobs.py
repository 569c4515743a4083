"""Several entries that are launched in order, on arrays that they share by name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from kernelexp.model.errors import UsageError
from kernelexp.services.adopt.answers import Answers
from kernelexp.services.adopt.entry import KernelEntry, KernelParameter, demangle
from warpsim.launch import full_name, plain_name


def values(entries: Sequence[KernelEntry]) -> tuple[KernelParameter, ...]:
    """The arrays and scalars of all entries, each once: an array is read where the first entry
    that uses it reads it, and written where any does."""
    every: dict[str, KernelParameter] = {}
    for entry in entries:
        for value in entry.values:
            before = every.get(value.name)
            every[value.name] = _merged(before, value) if before else value
    return tuple(every.values())


def _merged(before: KernelParameter, value: KernelParameter) -> KernelParameter:
    is_used = before.read or before.written
    typed = before if before.dtype or not value.dtype else value
    return msgspec.structs.replace(
        typed,
        read=before.read if is_used else value.read,
        written=before.written or value.written,
        packed=before.packed or value.packed,
        may_index=before.may_index or value.may_index,
        halves=before.halves or value.halves,
        element=before.element or value.element,
    )


def passed(entries: Sequence[KernelEntry]) -> list[str]:
    """The expressions that launches pass for scalars."""
    every = (value for entry in entries for value in flat(entry.parameters))
    return [value.passed for value in every if value.passed]


def flat(parameters: Sequence[KernelParameter]) -> Iterator[KernelParameter]:
    """Parameters, those that are structures as their members."""
    for parameter in parameters:
        yield from parameter.members or (parameter,)


def between(entries: Sequence[KernelEntry], answers: Answers, kept: Sequence[str]) -> list[str]:
    """Arrays that a launch writes before any has read them, and that the last one that uses them
    only reads: what the launches pass to each other. Those that a person calls results are not."""
    results = {*answers.references, *answers.workspaces, *answers.zeros, *kept}
    return [
        value.name
        for value in values(entries)
        if value.is_array and value.written and not value.read and value.name not in results
        and _last(entries, value.name).read and not _last(entries, value.name).written
    ]  # fmt: skip


def zeroed(entries: Sequence[KernelEntry], answers: Answers, kept: Sequence[str]) -> list[str]:
    """Those of the arrays that start as zero which are no results: the last launch that uses them
    only reads, as a division reads the counts of one before."""
    known = {value.name for value in values(entries)} - {*answers.references, *kept}
    last = {name: _last(entries, name) for name in answers.zeros if name in known}
    return [name for name, use in last.items() if use.read and not use.written]


def _last(entries: Sequence[KernelEntry], name: str) -> KernelParameter:
    uses = [value for entry in entries for value in entry.values if value.name == name]
    return next(
        (parameter for parameter in reversed(uses) if parameter.read or parameter.written), uses[-1]
    )


def called(entry: KernelEntry, arguments: Sequence[str]) -> KernelEntry:
    """The entry with its parameters under the names that a launch passes; UsageError for what
    can't be passed."""
    if not arguments:
        return entry
    if len(arguments) != len(entry.parameters):
        parameters = ", ".join(parameter.name for parameter in entry.parameters)
        raise UsageError(
            f"--entry: {entry.name} has {len(entry.parameters)} parameters ({parameters}), and "
            f"{len(arguments)} arguments are passed."
        )
    pairs = zip(entry.parameters, arguments, strict=True)
    return msgspec.structs.replace(
        entry,
        parameters=tuple(_called(entry, parameter, text) for parameter, text in pairs),
    )


def _called(entry: KernelEntry, parameter: KernelParameter, text: str) -> KernelParameter:
    if not text or text == parameter.name:
        return parameter
    if text.isidentifier():
        return msgspec.structs.replace(parameter, name=text)
    if parameter.scalar:
        return msgspec.structs.replace(parameter, passed=text)
    if text == "0" and parameter.is_pointer:
        return msgspec.structs.replace(parameter, ignored=True)
    what = "an array" if parameter.is_array else "a structure"
    raise UsageError(
        f"--entry: {entry.name}: {parameter.name} is {what}: pass it by a name, not {text!r}."
    )


def symbol(ptx: str, plain: str, template: str) -> str:
    """Returns the symbol of the entry that a source calls so; UsageError, with the entries there
    are, where none is or several are."""
    every = [item for item in symbols(ptx) if plain_name(item) == plain]
    named = every
    for spelling in (_squeezed, _loose):
        if len(every) > 1 and template:
            wanted = spelling(template)
            named = [item for item in every if spelling(full_name(item)) == wanted]
        if len(named) == 1:
            return named[0]
    fits = [item for item in every if template and _fits(_loose(full_name(item)), _loose(template))]
    if len(fits) == 1:
        return fits[0]
    # Whole: instances of a template differ far behind what a line has room for.
    known = "".join(f"\n  {full_name(item) if template else demangle(item)}" for item in every)
    raise UsageError(f"--entry {template or plain!r}: write it as the compiler does:{known}")


def symbols(ptx: str) -> list[str]:
    """The entries of a PTX file."""
    return re.findall(r"\.entry\s+([\w$.]+)", ptx)


def unset_constants(ptx: str) -> tuple[str, ...]:
    """The names of constant memory that a PTX file reads and gives no value: host code sets it."""
    declared = re.findall(r"^[ \t]*(?:\.\w+[ \t]+)*?\.const\b[^={;]*;", ptx, re.M)
    names = [re.findall(r"([\w$]+)[ \t]*(?:\[\d*\])?[ \t]*;", item)[-1] for item in declared]
    uses = (re.findall(rf"(?<![\w$]){re.escape(name)}(?![\w$])", ptx) for name in names)
    return tuple(plain_name(x) for x, places in zip(names, uses, strict=True) if len(places) > 1)


def _squeezed(text: str) -> str:
    return re.sub(r"\s", "", text)


def _fits(known: str, wanted: str) -> bool:
    """Whether they differ in enumerators only, which the compiler writes as `(Mode)1`."""
    parts = re.split(r"\(\w+\)-?[0-9]+", known)
    return re.fullmatch(r"[\w()-]+".join(map(re.escape, parts)), wanted) is not None


def _loose(text: str) -> str:
    """Strips what a source may leave out: namespaces, and the suffixes of numbers."""
    return re.sub(r"\b([0-9]+)[uUlL]+\b", r"\1", re.sub(r"\w+::", "", _squeezed(text)))
