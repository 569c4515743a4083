"""What a problem.py implements: the docstring of kernelexp.model.problem, and the types in it."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from types import GenericAlias, ModuleType
from typing import Any, get_args

import msgspec

from kernelexp.model import problem as package
from kxdocs.markdown import code, escape, paragraphs
from warpsim import launch

_TERM = re.compile(r" {4}(\S.*)")
_TEXT = re.compile(r" {8}(\S.*)")
_NOT_WRITTEN = ("Problem",)
"""Types of the module that no problem.py makes."""


def functions() -> str:
    """A section for each function and constant of the docstring; ValueError where it has none."""
    lines: list[str] = []
    optional, file = False, ""
    for terms, text in _entries(package.__doc__ or ""):
        if not terms:
            optional = optional or text.startswith("The rest is optional")
            if beside := re.match(r"A file (\w+\.py) ", text):
                optional, file = True, f", in {beside[1]}"
                lines += [escape(text), ""]
            continue
        name = _name(terms[-1])
        lines += [f"### {code(name)}{f' (optional{file})' if optional else ''}", ""]
        lines += ["```python", *terms, "```", "", escape(text), ""]
    if not lines:
        raise ValueError("the docstring of kernelexp.model.problem lists no function")
    return "\n".join(lines)


def types() -> str:
    """The types that problem.py returns, field by field."""
    return _structs(package)


def launch_types() -> str:
    """What a launch is made of, field by field."""
    return _structs(launch)


def _entries(docstring: str) -> Iterator[tuple[list[str], str]]:
    """Signatures with what is said of them; no signatures for a paragraph between them."""
    terms: list[str] = []
    result: list[str] = []
    for line in [*docstring.splitlines(), ""]:
        term, text = _TERM.fullmatch(line), _TEXT.fullmatch(line)
        if text:
            result.append(text[1])
            continue
        if result:
            yield terms, " ".join(result)
            terms, result = [], []
        if term:
            terms.append(term[1])
        elif line.strip():
            yield [], line.strip()


def _name(term: str) -> str:
    """launch of `def launch(...)`, SIZES of `SIZES: ...`."""
    match = re.match(r"(?:def )?(\w+)", term)
    if match is None:
        raise ValueError(f"{term!r} in the docstring of kernelexp.model.problem is no signature")
    return match[1]


def _structs(module: ModuleType) -> str:
    tree = ast.parse(inspect.getsource(module))
    result = [
        (node, getattr(module, node.name))
        for node in tree.body
        if isinstance(node, ast.ClassDef) and node.name not in _NOT_WRITTEN
    ]
    return "\n".join(
        _struct(node, kind, module)
        for node, kind in result
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct)
    )


def _struct(node: ast.ClassDef, kind: type[msgspec.Struct], module: ModuleType) -> str:
    lines = [f"### {code(node.name)}", ""]
    for paragraph in paragraphs(inspect.getdoc(kind) or ""):
        lines += [escape(paragraph), ""]
    docs = dict(_attribute_docs(node))
    types = {
        item.target.id: ast.unparse(item.annotation)
        for item in node.body
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
    }
    for field in msgspec.structs.fields(kind):
        typed = f"`{field.name}: {_spelled(types[field.name], module)}{_default(field)}`"
        lines.append(f"- {typed}{f': {docs[field.name]}' if field.name in docs else ''}")
    return "\n".join([*lines, ""])


def _spelled(annotation: str, module: ModuleType) -> str:
    """An annotation; where it is an alias, the values or the type that it stands for."""
    alias = vars(module).get(annotation)
    values = " | ".join(repr(literal) for literal in _literals(alias))
    return values or (repr(alias) if isinstance(alias, GenericAlias) else annotation)


def _literals(alias: object) -> Iterator[str]:
    """The strings of a Literal, or of a union of some."""
    for get_arg in get_args(alias):
        if isinstance(get_arg, str):
            yield get_arg
        else:
            yield from _literals(get_arg)


def _default(field: Any) -> str:
    if field.required:
        return ""
    return f" = {field.default!r}" if field.default is not msgspec.NODEFAULT else " = {}"


def _attribute_docs(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """The strings that stand below fields."""
    for field, below in zip(node.body, node.body[1:], strict=False):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(below, ast.Expr)
            and isinstance(below.value, ast.Constant)
            and isinstance(below.value.value, str)
        ):
            yield field.target.id, escape(" ".join(below.value.value.split()))
