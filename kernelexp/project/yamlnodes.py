"""YAML text to nodes with their places; what a file must not hold ends it, before it costs much.

Refused are control characters, tags, directives, cycles, a second document, keys that are not
text, depth beyond MAX_DEPTH and more than MAX_VALUES values.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Any, NoReturn, TypeAlias

import msgspec
import yaml

from kernelexp.model.text import CONTROL
from kernelexp.project.faults import Fault, Place

try:
    from yaml import CSafeLoader as _Loader
except ImportError:  # PyYAML without libyaml: slower, the same result
    from yaml import SafeLoader as _Loader  # type: ignore[assignment]

MAX_VALUES = 200_000
MAX_DEPTH = 32


class ScalarNode(msgspec.Struct, frozen=True, gc=False):
    place: Place
    text: str
    plain: bool
    """Written without quotes, so that it may be a number."""


class Sequence(msgspec.Struct, frozen=True):
    place: Place
    items: list[tuple[Place, Node]]


class Mapping(msgspec.Struct, frozen=True):
    place: Place
    pairs: list[tuple[ScalarNode, Node]]


Node: TypeAlias = ScalarNode | Sequence | Mapping


class UnreadableYaml(Exception):
    """The file can't be read on."""

    def __init__(self, *faults: Fault) -> None:
        super().__init__()
        self.faults = faults


def compose(text: str, file: str, most: int) -> Node | None:
    """The root of the file's only document, of at most so many nodes; None where it is empty.

    An alias becomes the node that it names, so that expanding it costs nothing yet. Raises
    Unreadable.
    """
    _refuse_characters(text, file)
    composer = _Composer(file, yaml.parse(text, Loader=_Loader), most)
    try:
        return composer.compose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        if "maximum nesting depth" in (error.problem or ""):  # libyaml from 0.2.6 on: 1,000
            raise too_deep(file, place) from None
        words = " ".join(part for part in (error.context, error.problem) if part)
        tab = mark is not None and text[mark.index : mark.index + 1] == "\t"
        hint = "; indent with spaces, not with tabs" if tab else ""
        raise UnreadableYaml(Fault(file, place, "", f"this is not YAML: {words}{hint}.")) from None
    except yaml.YAMLError as error:
        raise UnreadableYaml(Fault(file, (1, 1), "", f"this is not YAML: {error}.")) from None


class _Composer:
    """Events to nodes. PyYAML's own recurses in C, however deep the text is."""

    def __init__(self, file: str, events: Iterator[Any], most: int) -> None:
        self._file = file
        self._events = events
        self._most = most
        self._nodes = 0
        self._anchors: dict[str | None, Node] = {}

    def compose(self) -> Node | None:
        next(self._events)  # the stream's beginning
        if isinstance(next(self._events), yaml.StreamEndEvent):
            return None
        root = self._compose(next(self._events), 0)
        next(self._events)  # the document's end
        more = next(self._events)
        if not isinstance(more, yaml.StreamEndEvent):
            self._stop(more, "a second document begins here; a file has only one.")
        return root

    def _compose(self, event: Any, depth: int) -> Node:
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in self._anchors:
                self._stop(event, f"no anchor &{event.anchor} ends before this alias.")
            return self._anchors[event.anchor]
        place = _place(event)
        if event.tag is not None:
            self._stop(event, f"tags such as {event.tag} are not allowed here.")
        if depth > MAX_DEPTH:
            raise too_deep(self._file, place)
        self._nodes += 1
        if self._nodes > self._most:
            raise too_many(self._file, place)
        node: Node
        if isinstance(event, yaml.ScalarEvent):
            node = ScalarNode(place, event.value, event.implicit[0])
        elif isinstance(event, yaml.SequenceStartEvent):
            node = Sequence(place, list(self._items(depth + 1)))
        else:
            node = Mapping(place, list(self._pairs(depth + 1)))
        if event.anchor is not None:
            self._anchors[event.anchor] = node  # only now: an alias inside it would be a cycle
        return node

    def _items(self, depth: int) -> Iterator[tuple[Place, Node]]:
        for event in self._events:
            if isinstance(event, yaml.SequenceEndEvent):
                return
            yield _place(event), self._compose(event, depth)

    def _pairs(self, depth: int) -> Iterator[tuple[ScalarNode, Node]]:
        for event in self._events:
            if isinstance(event, yaml.MappingEndEvent):
                return
            key = self._compose(event, depth)
            if not isinstance(key, ScalarNode):
                self._stop(event, "a key is text, not a list or a mapping.")
            hidden = CONTROL.search(key.text)
            if hidden:
                self._stop(event, f"this key has {name_character(hidden)} in it.")
            value = self._compose(next(self._events), depth)
            yield ScalarNode(_place(event), key.text, key.plain), value

    def _stop(self, event: Any, message: str) -> NoReturn:
        raise UnreadableYaml(Fault(self._file, _place(event), "", message))


def too_deep(file: str, place: Place) -> UnreadableYaml:
    return UnreadableYaml(Fault(file, place, "", f"this is nested more than {MAX_DEPTH} deep."))


def too_many(file: str, place: Place) -> UnreadableYaml:
    message = f"the project has more than {MAX_VALUES:,} values, with aliases expanded."
    return UnreadableYaml(Fault(file, place, "", message))


def name_character(match: re.Match[str]) -> str:
    return f"the control character U+{ord(match[0]):04X}"


def _place(event: Any) -> Place:
    mark = event.start_mark
    return mark.line + 1, mark.column + 1


def _refuse_characters(text: str, file: str) -> None:
    """Refuses characters that no YAML has, in one pass before the parser; and directives, which can
    make it slow."""
    hidden = (match for match in CONTROL.finditer(text) if match[0] != "\r")
    faults = [
        Fault(file, _locate(text, match.start()), "", f"{name_character(match)} is not allowed.")
        for match in itertools.islice(hidden, 100)
    ]
    directive = re.search("^%", text, re.MULTILINE)
    if directive:
        message = "a line that begins with % is a YAML directive; these are not allowed."
        faults.append(Fault(file, _locate(text, directive.start()), "", message))
    if faults:
        raise UnreadableYaml(*faults)


def _locate(text: str, index: int) -> Place:
    before = text[:index].replace("\r\n", "\n").replace("\r", "\n")
    return before.count("\n") + 1, len(before) - before.rfind("\n")
