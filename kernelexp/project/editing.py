"""Adds to a project's files, and removes from them: every other line stays as it is."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Literal

import yaml

from kernelexp.model.errors import ConfigurationError, UsageError
from kernelexp.model.experiment import is_name, is_sweep
from kernelexp.project import PROJECT_FILE, Project
from kernelexp.project.shape import Section
from kernelexp.system import disk

FIRST_ID = "E1"
_WIDTH = 98
_NUMBERED = re.compile(r"(.*?)([0-9]+)")


def next_id(project: Project, kernel: str, arch: str) -> str:
    """The id that goes on where the target's latest experiment is: F10 after F9."""
    own = [name for name in project.experiments if name not in project.history]
    series = [
        match[1]
        for name in own
        if (project.experiments[name].kernel, project.experiments[name].arch) == (kernel, arch)
        and (match := _NUMBERED.fullmatch(name))
    ]
    if not series and FIRST_ID not in project.experiments:
        return FIRST_ID
    prefix = series[-1] if series else FIRST_ID[0]
    numbers = [
        int(match[2])
        for name in project.experiments
        if (match := _NUMBERED.fullmatch(name)) and match[1] == prefix
    ]
    return f"{prefix}{max(numbers, default=0) + 1}"


def add(project: Project, name: str, experiment: Mapping[str, Any]) -> Path:
    """Writes experiment `name` next to its predecessors; the file that has it now.

    That is a file of its own where the project's latest experiment has one, else experiments.yaml.
    UsageError for an id that is taken or that is none.
    """
    if not is_name(name) or is_sweep(name):
        raise UsageError(f"{name!r} can't be an id: use letters, digits, '.', '_' and '-'.")
    if name in project.experiments:
        raise UsageError(f"{project.places[name]} defines {name} already: choose another id.")
    own = [item for item in project.experiments if item not in project.history]
    if own and project.places[own[-1]].startswith("experiments/"):
        path = project.root / "experiments" / f"{name}.yaml"
        return disk.write(path, to_yaml(experiment).encode())
    path = project.root / PROJECT_FILE
    text = insert(read(project.root), "experiments", {name: experiment})
    return disk.write(path.resolve(), text.encode())


def read(root: Path) -> str:
    """The text of experiments.yaml with the ends of lines that it has."""
    return (root / PROJECT_FILE).read_bytes().decode()


def to_yaml(values: Mapping[str, Any]) -> str:
    """YAML as people write it here: in the given order, points in braces."""
    return yaml.safe_dump(
        dict(values), sort_keys=False, allow_unicode=True, default_flow_style=None, width=_WIDTH
    )


def insert(text: str, section: Section | Literal["kernels"], entries: Mapping[str, Any]) -> str:
    """The text of experiments.yaml with entries at the end of a section.

    ConfigurationError where the section is not written with a line for each key.
    """
    before = yaml.safe_load(text)
    present = before.get(section) or {}
    lines = text.splitlines(keepends=True)
    newline = _newline(lines)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += newline
    own: Any = yaml.compose(text, Loader=yaml.SafeLoader)
    keys = [(key.value, key.start_mark.line, value) for key, value in own.value]
    place = next((i for i, (key, _, _) in enumerate(keys) if key == section), None)
    if place is None:
        at, indent, head = len(lines), 2, [f"{newline}{section}:{newline}"]
    else:
        _, first, value = keys[place]
        head = []
        if present:
            indent = value.value[0][0].start_mark.column
        else:  # `experiments:` or `experiments: {}`
            indent = 2
            lines[first] = f"{section}:{newline}"
        end = keys[place + 1][1] if place + 1 < len(keys) else len(lines)
        at = _end_of_content(lines, first, end, indent)
    added = [_indented(to_yaml({name: entry}), indent) for name, entry in entries.items()]
    body = "\n".join(added) if head or not present else "\n" + "\n".join(added)
    whole = "".join([*lines[:at], *head, body.replace("\n", newline), *lines[at:]])
    if not _is_extended(before, whole, section, {**present, **entries}):
        raise ConfigurationError(
            f"{PROJECT_FILE}:{first + 1 if place is not None else 1}: {section} is written so that "
            "no entry can be added at its end: give each of its entries a line of its own."
        )
    return whole


def remove(text: str, section: Section | Literal["kernels"], names: Collection[str]) -> str:
    """The text of experiments.yaml without entries of a section.

    ConfigurationError where the section is not written with a line for each key.
    """
    before = yaml.safe_load(text)
    left = {key: value for key, value in before[section].items() if key not in names}
    lines = text.splitlines(keepends=True)
    own: Any = yaml.compose(text, Loader=yaml.SafeLoader)
    starts = [key.start_mark.line for key, _ in own.value] + [len(lines)]
    place = [key.value for key, _ in own.value].index(section)
    keys = [(key.value, key.start_mark) for key, _ in own.value[place][1].value]
    ends = [mark.line for _, mark in keys[1:]] + [starts[place + 1]]
    for (name, mark), end in reversed([*zip(keys, ends, strict=True)]):
        if name in names:
            del lines[mark.line : _end_of_content(lines, mark.line, end, mark.column)]
    if not left:
        lines[starts[place]] = f"{section}: {{}}{_newline(lines)}"
    whole = "".join(lines)
    if not _is_extended(before, whole, section, left):
        raise ConfigurationError(
            f"{PROJECT_FILE}:{starts[place] + 1}: {section} is written so that no entry can be "
            "removed: give each of its entries lines of its own."
        )
    return whole


def _newline(lines: list[str]) -> str:
    """How a file's lines end, by its first."""
    return "\r\n" if lines and lines[0].endswith("\r\n") else "\n"


def _end_of_content(lines: list[str], first: int, end: int, indent: int) -> int:
    """Returns where a section's last entry ends, without the blank lines and comments behind it, up
    to the `indent` of entries."""

    def is_behind(line: str) -> bool:
        text = line.lstrip(" ")
        return not text.strip() or (text.startswith("#") and len(line) - len(text) <= indent)

    while end > first + 1 and is_behind(lines[end - 1]):
        end -= 1
    return end


def _indented(text: str, indent: int) -> str:
    margin = " " * indent
    return "".join(margin + line if line.strip() else line for line in text.splitlines(True))


def _is_extended(before: Any, text: str, section: str, wanted: Mapping[str, Any]) -> bool:
    """Whether the text says what it said before, and `wanted` in its section."""
    try:
        after = yaml.safe_load(text)
    except yaml.YAMLError:
        return False
    return bool(after == {**before, section: dict(wanted)})
