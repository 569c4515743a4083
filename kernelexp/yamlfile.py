"""YAML text to plain values, with the place of every key: duplicates and bad syntax are faults."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import msgspec
import yaml

try:
    from yaml import CSafeLoader as _Loader
except ImportError:  # PyYAML without libyaml: slower, the same result
    from yaml import SafeLoader as _Loader  # type: ignore[assignment]

Path: TypeAlias = tuple[str | int, ...]


class Fault(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """A mistake in the file; lines and columns count from 1."""

    line: int
    column: int
    key: str
    """The key's path, such as experiments.F3.candidate; empty for the whole file."""
    message: str

    def sentence(self, file: str) -> str:
        place = f"{file}:{self.line}:{self.column}: "
        return place + (f"{self.key}: {self.message}" if self.key else self.message)


class Document:
    """A parsed file: its values, and for each path of keys and indices the place of the key."""

    def __init__(self, text: str) -> None:
        """Raises yaml.MarkedYAMLError where the text is not YAML."""
        self.places: dict[Path, tuple[int, int]] = {(): (1, 1)}
        self.duplicates: list[Fault] = []
        loader = _Loader(text)
        try:
            root = loader.get_single_node()
            self.value: Any = {} if root is None else self._build(loader, root, ())
        finally:
            loader.dispose()

    def fault(self, path: Sequence[str | int], message: str) -> Fault:
        """A fault at `path`, placed at the nearest key that the file really has."""
        key = tuple(path)
        while key not in self.places:
            key = key[:-1]
        line, column = self.places[key]
        return Fault(line=line, column=column, key=_spell(path), message=message)

    def _build(self, loader: Any, node: yaml.Node, path: Path) -> Any:
        if isinstance(node, yaml.MappingNode):
            return self._build_mapping(loader, node, path)
        if isinstance(node, yaml.SequenceNode):
            items = []
            for index, item in enumerate(node.value):
                self._mark((*path, index), item)
                items.append(self._build(loader, item, (*path, index)))
            return items
        return loader.construct_object(node)

    def _build_mapping(self, loader: Any, node: yaml.MappingNode, path: Path) -> dict[str, Any]:
        self.duplicates.extend(_find_duplicates(node, path))
        loader.flatten_mapping(node)  # merge keys: `<<: *baseline`
        mapping = {}
        for key_node, value_node in node.value:
            # The key's own text: a commit such as 6319928 or 42e1234 is a name, not a number.
            key = str(key_node.value)
            self._mark((*path, key), key_node)
            mapping[key] = self._build(loader, value_node, (*path, key))
        return mapping

    def _mark(self, path: Path, node: yaml.Node) -> None:
        self.places[path] = (node.start_mark.line + 1, node.start_mark.column + 1)


def _find_duplicates(node: yaml.MappingNode, path: Path) -> Iterator[Fault]:
    first: dict[str, int] = {}
    for key_node, _ in node.value:
        key, mark = str(key_node.value), key_node.start_mark
        if key in first:
            yield Fault(
                line=mark.line + 1,
                column=mark.column + 1,
                key=_spell((*path, key)),
                message=f"this key is already on line {first[key]}; keep one of the two.",
            )
        first.setdefault(key, mark.line + 1)


def syntax_fault(error: yaml.MarkedYAMLError) -> Fault:
    """The parser's complaint as a fault."""
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    words = " ".join(part for part in (error.context, error.problem) if part)
    return Fault(line=line, column=column, key="", message=f"this is not YAML: {words}.")


def _spell(path: Sequence[str | int]) -> str:
    spelled = ""
    for part in path:
        spelled += f"[{part}]" if isinstance(part, int) else f".{part}" if spelled else part
    return spelled
