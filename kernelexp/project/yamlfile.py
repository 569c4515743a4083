"""YAML text to plain values with the place of each.

Scalars are text, whole numbers, true, false or nothing: a date is text, and so is a number where
text is wanted. Aliases and merge keys are expanded, and what that makes counts. Refused before they
cost much are control characters, tags, directives, cycles, a second document, keys that are not
text, depth beyond MAX_DEPTH and more than MAX_VALUES values.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn, TypeAlias

import msgspec
import yaml

from kernelexp.model.text import CONTROL, printable, shorten
from kernelexp.project.faults import Fault, KeyPath, Place, spell_path

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


class SequenceNode(msgspec.Struct, frozen=True):
    place: Place
    items: list[tuple[Place, Node]]


class MappingNode(msgspec.Struct, frozen=True):
    place: Place
    pairs: list[tuple[ScalarNode, Node]]


Node: TypeAlias = ScalarNode | SequenceNode | MappingNode


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
            node = SequenceNode(place, list(self._items(depth + 1)))
        else:
            node = MappingNode(place, list(self._pairs(depth + 1)))
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


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """The values that a JSON Schema allows at a place, so far as reading its scalars needs them."""

    text: bool = False
    """Text and nothing else: `6319928` and `2.50` are what is written, not numbers."""
    keys: Mapping[str, Wanted] = {}
    others: Wanted | None = None
    items: Wanted | None = None

    def at(self, key: str) -> Wanted:
        return self.keys.get(key) or self.others or ANYTHING


ANYTHING = Wanted()


def wanted(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Wanted:
    """Returns what a schema without recursion allows; its `$defs` are given apart."""
    options = [_follow(option, definitions) for option in schema.get("anyOf", [schema])]
    keys: dict[str, Wanted] = {}
    others = items = None
    for option in options:
        for key, property_schema in option.get("properties", {}).items():
            keys[key] = wanted(property_schema, definitions)
        if isinstance(option.get("additionalProperties"), dict):
            others = wanted(option["additionalProperties"], definitions)
        if "items" in option:
            items = wanted(option["items"], definitions)
    text = all(option.get("type") == "string" for option in options)
    return Wanted(text=text, keys=keys, others=others, items=items)


def _follow(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    name = schema.get("$ref", "").removeprefix("#/$defs/")
    return definitions[name] if name else schema


class Document:
    """A parsed file: its values, the place of each key and item, and the faults of its form."""

    def __init__(
        self, text: str, file: str, shape: Wanted = ANYTHING, most: int = MAX_VALUES
    ) -> None:
        """`most` is how many values the file may have. Raises nothing: see `readable`."""
        self.file = file
        self.places: dict[KeyPath, Place] = {(): (1, 1)}
        self.faults: list[Fault] = []
        self.value: Any = {}
        self.readable = True
        """Whether `value` is all that the file says, but for `faults`."""
        self.values = 0
        """How many there are, aliases expanded."""
        self._most = most
        self._merged: dict[int, dict[str, tuple[Place, Node]]] = {}
        try:
            root = compose(text, file, most)
            if root is not None:
                self.value = self._build(root, (), shape)
        except UnreadableYaml as error:
            self.faults += error.faults
            self.readable = False
        self._merged.clear()

    def fault(self, path: Sequence[str | int], message: str) -> Fault:
        """A fault at `path`, placed at the nearest key that the file really has."""
        key = tuple(path)
        while key not in self.places:
            key = key[:-1]
        line = " ".join(message.splitlines())  # a value that is quoted may span lines
        return Fault(self.file, self.places[key], spell_path(path), shorten(line, 1000))

    def _build(self, node: Node, path: KeyPath, shape: Wanted) -> Any:
        self._count(1)
        if len(path) > MAX_DEPTH:
            raise too_deep(self.file, node.place)
        if isinstance(node, MappingNode):
            self.faults += self._find_duplicates(node, path)
            mapping = {}
            for key, (place, value) in self._merge(node).items():
                self.places[(*path, key)] = place
                mapping[key] = self._build(value, (*path, key), shape.at(key))
            return mapping
        if isinstance(node, SequenceNode):
            values = []
            for index, (place, item) in enumerate(node.items):
                self.places[(*path, index)] = place
                values.append(self._build(item, (*path, index), shape.items or ANYTHING))
            return values
        scalar, complaint = _read_scalar(node, shape.text)
        if complaint:
            self.faults.append(Fault(self.file, node.place, spell_path(path), complaint))
        return scalar

    def _merge(self, node: MappingNode, depth: int = 0) -> Mapping[str, tuple[Place, Node]]:
        """Key to place and value; what `<<` names comes first, and own keys win."""
        if id(node) in self._merged:
            return self._merged[id(node)]
        if depth > MAX_DEPTH:
            raise too_deep(self.file, node.place)
        merged: dict[str, tuple[Place, Node]] = {}
        for key, value in node.pairs:
            for source in reversed(_merge_sources(key, value)):
                if isinstance(source, MappingNode):
                    merged |= self._merge(source, depth + 1)
                    self._count(len(merged))
                else:
                    message = "<< takes a mapping, or a list of mappings."
                    self.faults.append(Fault(self.file, key.place, "", message))
        for key, value in node.pairs:
            if not _is_merge(key):
                merged[key.text] = key.place, value
        self._merged[id(node)] = merged
        return merged

    def _find_duplicates(self, node: MappingNode, path: KeyPath) -> Iterator[Fault]:
        first: dict[str, int] = {}
        for key, _ in node.pairs:
            if key.text in first:
                message = f"this key is already on line {first[key.text]}; keep one of the two."
                yield Fault(self.file, key.place, spell_path((*path, key.text)), message)
            first.setdefault(key.text, key.place[0])

    def _count(self, values: int) -> None:
        self.values += values
        if self.values > self._most:
            raise too_many(self.file, (1, 1))


def _is_merge(key: ScalarNode) -> bool:
    return key.plain and key.text == "<<"


def _merge_sources(key: ScalarNode, value: Node) -> Sequence[Node]:
    if not _is_merge(key):
        return ()
    return [node for _, node in value.items] if isinstance(value, SequenceNode) else [value]


# ---- scalars -------------------------------------------------------------------------------------

_BOOLEANS = {"true": True, "True": True, "TRUE": True}
_BOOLEANS |= {"false": False, "False": False, "FALSE": False}
_NOTHING = {"", "~", "null", "Null", "NULL"}
_INTEGER = re.compile(r"0|-?[1-9][0-9]*")
_FRACTION = re.compile(
    r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)"
    r"|\.(nan|NaN|NAN)"
)


def _read_scalar(node: ScalarNode, text_wanted: bool) -> tuple[bool | int | str | None, str]:
    """A scalar's value, and what is wrong with it."""
    text = node.text
    hidden = None if text.isprintable() else CONTROL.search(text)
    if hidden:
        complaint = f"this has {name_character(hidden)} in it; remove it."
        return printable(text), complaint
    if not node.plain:
        return text, ""
    if text in _NOTHING:
        return None, ""
    if text_wanted:
        return text, ""
    if text in _BOOLEANS:
        return _BOOLEANS[text], ""
    written = shorten(text, 30)
    if _INTEGER.fullmatch(text):
        if len(text) <= 18:
            return int(text), ""
        return text, f"{written} has {len(text)} digits; at most 18 are allowed."
    if _FRACTION.fullmatch(text):
        return text, f"{written} is not a whole number; in quotes, '{written}', it would be text."
    return text, ""
