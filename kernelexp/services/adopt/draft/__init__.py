"""Drafts the files of a kernel's folder for the entries of a foreign source; what is unknown is
left blank."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from kernelexp.project import scaffold
from kernelexp.services.adopt import answers as answering
from kernelexp.services.adopt import jobs
from kernelexp.services.adopt.answers import Answers, DraftAxis, is_size
from kernelexp.services.adopt.draft import arrays, launch, work
from kernelexp.services.adopt.entry import KernelEntry, KernelParameter
from warpsim.dtypes import SIZES


def wrapper(names: str, templates: Sequence[tuple[str, str]], include: str, origin: str) -> str:
    """The source that is compiled: the copy, and the instances of templates, each in its namespace,
    where its arguments may be from too."""
    instances = "".join(
        _instance(place, namespace, template)
        for place, (namespace, template) in enumerate(dict.fromkeys(templates))
    )
    return f'// {names} of {origin}, copied by kernelexp adopt.\n#include "{include}"\n{instances}'


def _instance(place: int, namespace: str, template: str) -> str:
    line = f"[[maybe_unused]] static auto* const kx_instance{place or ''} = &{template};"
    return f"\nnamespace {namespace} {{\n{line}\n}}\n" if namespace else f"\n{line}\n"


def problem(entries: Sequence[KernelEntry], origin: str, answers: Answers) -> str:
    """problem.py; UsageError for answers about parameters that there are not."""
    values = jobs.values(entries)
    own = answering.own_sizes(values, jobs.passed(entries), answers)
    signature = "; ".join(dict.fromkeys(entry.signature for entry in entries))
    answering.check(signature, values, own, answers)
    arithmetic = frozenset().union(*(entry.arithmetic for entry in entries))
    outputs = answering.outputs(values, answers)
    given = answering.inputs(values, answers)
    sizes = [value for value in values if is_size(value)]
    names = frozenset((*(size.name for size in sizes), *own))
    small = msgspec.structs.replace(answers, values=answers.values | answers.emulated)
    launches = launch.launches(entries, answers, names)
    texts = {
        "ABOUT": _AS_LAUNCHED if answers.before or answers.after else _ANY_SIZE,
        "FULL": _sizes(sizes, own, answers),
        "EMULATED": _sizes(sizes, own, small),
        "MORE": _more(sizes, own, small, _lengths(values, answers, names)),
        "OUTPUTS": "".join(
            arrays.array(output, answers, names, output.name in answers.zeros) for output in outputs
        ),
        "WORKSPACES": arrays.workspaces(values, answers, names),
        "INPUTS": arrays.inputs(given, answers, names),
        "REFERENCE": arrays.references(outputs, values, own, answers),
        "TOLERANCE": arrays.tolerance(outputs, given, answers, names, arithmetic),
        "TILES": launch.tiles(answers, names),
        "WORK": work.work(outputs, given, answers, names),
        "LAUNCH": textwrap.indent(launches, "    ").strip(),
    }
    body = scaffold.fill((scaffold.TEMPLATES / "kernel/problem.txt").read_text("utf-8"), texts)
    return f'"""{signature}, from {origin}."""\n\n{_imports(body)}\n{body}'


_ANY_SIZE = (
    '# "emulated" is executed on the CPU, "full" is timed on a GPU: make it as large as your '
    "problem."
)
_AS_LAUNCHED = "# As it was launched: the arrays are stored beside this file, and have these sizes."


def _sizes(sizes: Sequence[KernelParameter], own: Sequence[str], answers: Answers) -> str:
    pairs = {size.name: arrays.value(size, answers) for size in sizes}
    pairs |= {name: repr(answers.values[name]) for name in own}
    return ", ".join(f'"{name}": {value}' for name, value in pairs.items())


def _more(
    sizes: Sequence[KernelParameter],
    own: Sequence[str],
    small: Answers,
    lengths: Sequence[Mapping[str, int]],
) -> str:
    """Further small sizes, from which the counts of a tile and of a CTA are solved."""
    texts = []
    for key, values in zip(_NAMES, lengths, strict=False):
        longer = msgspec.structs.replace(small, values={**small.values, **values})
        texts.append(f'    "{key}": {{{_sizes(sizes, own, longer)}}},\n')
    return "".join(texts)


_NAMES = ("emulated_more", "emulated_most", "emulated_largest")


def _lengths(
    values: Sequence[KernelParameter], answers: Answers, names: frozenset[str]
) -> list[dict[str, int]]:
    """Returns the sizes to enlarge: the loop's; without one, the grid's.

    A short loop four and eight times as long: an unrolled one takes other instructions for its
    rest (4.4 times as many a row in a column sum), and rows that share a line of the cache are
    fewer tag lookups than the full problem has (448 a tile of an SGEMM for 320).
    """
    loop = launch.looped(answers, names)
    if loop is None:
        return launch.widened(answers, names)
    once = loop.once
    least = max(_of_line(values), 4 * once if once <= _SHORT else 0)
    longer = max(once * -(-least // once), 2 * once)
    lengths = [longer, 2 * longer] if least or not loop.is_whole else [2 * once]
    return [{loop.name: length} for length in lengths if loop.is_whole or length < loop.full]


def untold(entries: Sequence[KernelEntry], answers: Answers) -> str:
    """Why a draft has no tiles(), as a clause; empty where it has, or a blank is in its way."""
    values = jobs.values(entries)
    own = answering.own_sizes(values, jobs.passed(entries), answers)
    sizes = (value.name for value in values if is_size(value))
    return launch.untold(answers, frozenset((*sizes, *own)))


_SHORT = 512
"""A loop's length up to which small sizes with four and eight times as much are emulated soon."""


def _of_line(values: Sequence[KernelParameter]) -> int:
    """Elements of the narrowest array in a line of the cache, 128 bytes."""
    widths = [SIZES[value.dtype] for value in values if value.is_array and value.dtype]
    return int(128 // min(widths)) if widths else 0


def _imports(body: str) -> str:
    used = [name for name in _IMPORTED if f"{name}(" in body]
    return f"from kernelexp import {', '.join(used)}\n"


_IMPORTED = (
    *("Array", "Chunk", "Field", "Launch", "Pointer", "Scalar", "StructValue", "TensorMap"),
    *("Tolerance", "Work", "blank", "read_array"),
)


def blanks(text: str) -> Iterator[tuple[int, str]]:
    """Line and words of each blank of a drafted problem.py."""
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    for call in sorted(calls, key=lambda call: call.lineno):
        if getattr(call.func, "id", "") == "blank":
            yield call.lineno, ast.literal_eval(call.args[0])


def kernel(
    title: str,
    source: str,
    arch: str,
    card: str,
    flags: Sequence[str],
    own: Mapping[str, DraftAxis] = {},
) -> Mapping[str, object]:
    """The kernel's entry in experiments.yaml."""
    axes = {
        name: {"values": list(axis.values), "default": axis.default, "about": axis.about}
        for name, axis in own.items()
    }
    target: dict[str, object] = {"source": source, "device": card, "axes": axes}
    if flags:
        target["flags"] = list(flags)
    return {"title": title, "problem": title, "targets": {arch: target}}
