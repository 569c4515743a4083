"""The form of a project's files: keys and types, by the JSON Schema of what they become."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypeVar

import msgspec

from kernelexp.model import spelling
from kernelexp.model.errors import join, suggest
from kernelexp.model.experiment import Experiment, ProjectFile
from kernelexp.model.text import quote
from kernelexp.project.faults import Fault
from kernelexp.project.yamlfile import Document, Wanted, wanted

File: TypeAlias = Literal["project", "experiment"]
T = TypeVar("T")


KINDS: dict[File, type[msgspec.Struct]] = {"project": ProjectFile, "experiment": Experiment}


@functools.cache
def schema(of: File = "project") -> Mapping[str, Any]:
    """The JSON Schema of experiments.yaml, or of a file with one experiment; for editors."""
    return schema_of(KINDS[of])


@functools.cache
def schema_of(kind: type[msgspec.Struct]) -> Mapping[str, Any]:
    """The JSON Schema of a file that becomes a `kind`."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **msgspec.json.schema(kind),
    }


@functools.cache
def scalars(kind: type[msgspec.Struct]) -> Wanted:
    """Returns where a file that becomes a `kind` has text, and where numbers."""
    definitions = schema_of(kind)["$defs"]
    return wanted(definitions[kind.__name__], definitions)


def check(document: Document, kind: type[msgspec.Struct]) -> Iterator[Fault]:
    """Yields the faults that keep the document from becoming a `kind`."""
    try:
        msgspec.convert(document.value, kind)
        return
    except msgspec.ValidationError as error:
        first = str(error)  # it stops at the first fault; jsonschema, slower to import, finds all
    import jsonschema

    faults = False
    for mismatch in jsonschema.Draft202012Validator(schema_of(kind)).iter_errors(document.value):
        for fault in _spell_out(document, mismatch):
            yield fault
            faults = True
    if not faults:
        yield document.fault((), f"{first}.")


def convert(value: Any, kind: type[T]) -> T | None:
    """The value as `kind`; None where it does not fit, which `check` has a fault for."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return None


def _spell_out(document: Document, error: Any) -> Iterator[Fault]:
    path = list(error.absolute_path)
    value = error.instance
    if error.validator == "additionalProperties":
        allowed = error.schema["properties"]
        for key in value:
            if key not in allowed:
                yield document.fault([*path, key], f"unknown key{suggest(key, allowed)}.")
    elif error.validator == "required":
        for key in error.validator_value:
            if key not in value:
                yield document.fault(path, f"{key!r} is missing.")
    elif error.validator == "anyOf" and _nearest(error):
        for nearest_error in _nearest(error):
            yield from _spell_out(document, nearest_error)
    elif error.validator in ("pattern", "maxLength"):
        # The schema of a mapping's keys has the key as its value, and the mapping's path.
        place = [*path, value] if error.relative_schema_path[-2] == "propertyNames" else path
        yield document.fault(place, _refuse_text(error))
    elif error.validator == "maxItems":
        message = f"this has {len(value)} items; at most {error.validator_value} are allowed."
        yield document.fault(path, message)
    elif error.validator == "enum" and not isinstance(value, dict | list):
        spelled = [spelling.spell(item) for item in error.validator_value]
        shown = quote(value) if isinstance(value, str) else value
        yield document.fault(path, f"{shown} is not allowed; allowed: {join(spelled)}.")
    else:
        message = f"this should be {_describe(error.schema)}, not {_name(value)}."
        yield document.fault(path, message)


def _nearest(error: Any) -> Sequence[Any]:
    """The faults of the first option that is of the value's own type."""
    options: dict[int, list[Any]] = {}
    for suberror in error.context:
        options.setdefault(suberror.relative_schema_path[0], []).append(suberror)
    for faults in options.values():
        if not any(fault.validator == "type" and not fault.relative_path for fault in faults):
            return faults
    return []


def _refuse_text(error: Any) -> str:
    if error.validator == "maxLength":
        most = error.validator_value
        return f"this has {len(error.instance)} characters; at most {most} are allowed."
    return f"{quote(error.instance)} is not allowed: {spelling.SENTENCES[error.validator_value]}."


_TYPES = {
    "string": "text",
    "integer": "a whole number",
    "boolean": "true or false",
    "array": "a list",
    "object": "a mapping",
}


def _describe(schema: Mapping[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_describe(option) for option in schema["anyOf"]))
    if "enum" in schema:
        return join(spelling.spell(value) for value in schema["enum"])
    return _TYPES.get(schema.get("type", ""), "a mapping")


def _name(value: object) -> str:
    kinds: dict[type, str] = {
        bool: "true or false",
        int: "a whole number",
        str: "text",
        list: "a list",
        dict: "a mapping",
    }
    return kinds.get(type(value), "nothing")
