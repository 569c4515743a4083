"""YAML text to plain values with the place of each.

Scalars are text, whole numbers, true, false or nothing: a date is text, and so is a number where
text is wanted. Aliases and merge keys are expanded, and what that makes counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from kernelexp.model.text import CONTROL, printable, shorten
from kernelexp.project import yamlnodes
from kernelexp.project.faults import Fault, KeyPath, Place, spell_path
from kernelexp.project.yamlnodes import MAX_DEPTH, MAX_VALUES, Node, ScalarNode, UnreadableYaml


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
            root = yamlnodes.compose(text, file, most)
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
            raise yamlnodes.too_deep(self.file, node.place)
        if isinstance(node, yamlnodes.Mapping):
            self.faults += self._find_duplicates(node, path)
            mapping = {}
            for key, (place, value) in self._merge(node).items():
                self.places[(*path, key)] = place
                mapping[key] = self._build(value, (*path, key), shape.at(key))
            return mapping
        if isinstance(node, yamlnodes.Sequence):
            values = []
            for index, (place, item) in enumerate(node.items):
                self.places[(*path, index)] = place
                values.append(self._build(item, (*path, index), shape.items or ANYTHING))
            return values
        scalar, complaint = _read_scalar(node, shape.text)
        if complaint:
            self.faults.append(Fault(self.file, node.place, spell_path(path), complaint))
        return scalar

    def _merge(self, node: yamlnodes.Mapping, depth: int = 0) -> Mapping[str, tuple[Place, Node]]:
        """Key to place and value; what `<<` names comes first, and own keys win."""
        if id(node) in self._merged:
            return self._merged[id(node)]
        if depth > MAX_DEPTH:
            raise yamlnodes.too_deep(self.file, node.place)
        merged: dict[str, tuple[Place, Node]] = {}
        for key, value in node.pairs:
            for source in reversed(_merge_sources(key, value)):
                if isinstance(source, yamlnodes.Mapping):
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

    def _find_duplicates(self, node: yamlnodes.Mapping, path: KeyPath) -> Iterator[Fault]:
        first: dict[str, int] = {}
        for key, _ in node.pairs:
            if key.text in first:
                message = f"this key is already on line {first[key.text]}; keep one of the two."
                yield Fault(self.file, key.place, spell_path((*path, key.text)), message)
            first.setdefault(key.text, key.place[0])

    def _count(self, values: int) -> None:
        self.values += values
        if self.values > self._most:
            raise yamlnodes.too_many(self.file, (1, 1))


def _is_merge(key: ScalarNode) -> bool:
    return key.plain and key.text == "<<"


def _merge_sources(key: ScalarNode, value: Node) -> Sequence[Node]:
    if not _is_merge(key):
        return ()
    return [node for _, node in value.items] if isinstance(value, yamlnodes.Sequence) else [value]


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
        complaint = f"this has {yamlnodes.name_character(hidden)} in it; remove it."
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
