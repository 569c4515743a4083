"""The JSON Schema of experiments.yaml as tables of its keys."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from kernelexp.project import shape
from kxdocs.markdown import code, escape, table

NAMES = {"ProjectFile": "The file"}
_TYPES = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "null": "nothing",
}


def tables() -> str:
    """A section for each type of experiments.yaml, beginning with the file itself."""
    schema = shape.schema()
    definitions = schema["$defs"]
    first = _name_of(schema["$ref"])
    names = [first, *(name for name in definitions if name != first)]
    return "\n".join(_section(name, definitions[name]) for name in names)


def _section(name: str, definition: Mapping[str, Any]) -> str:
    required = definition.get("required", ())
    rows = (
        (
            code(key),
            escape(type_of(value)),
            "required" if key in required else _default(value),
            escape(value.get("description", "")),
        )
        for key, value in definition["properties"].items()
    )
    about = escape(" ".join(definition.get("description", "").split()))
    header = ("key", "value", "default", "meaning")
    return f"## {NAMES.get(name, name)}\n\n{about}\n\n{table(header, rows)}"


def _default(value: Mapping[str, Any]) -> str:
    default = value.get("default")
    return code(json.dumps(default)) if default not in ("", None, [], {}) else "empty"


def type_of(value: Mapping[str, Any]) -> str:
    """What a value may be, in words: `mapping of text`, `list of text or whole number`."""
    return " or ".join(dict.fromkeys(filter(None, _types(value))))


def _types(value: Mapping[str, Any]) -> Iterator[str]:
    if "$ref" in value:
        yield _name_of(value["$ref"])
    elif "enum" in value:
        yield from (json.dumps(item) for item in value["enum"] if item != "")
    elif "anyOf" in value:
        for option in value["anyOf"]:
            yield from _types(option)
    elif value.get("type") == "array":
        yield f"list of {_inside(value.get('items', {}))}"
    elif value.get("type") == "object":
        inner = value.get("additionalProperties", {})
        yield f"mapping of names to {_inside(inner if isinstance(inner, dict) else {})}"
    else:
        yield _TYPES[value["type"]] if "type" in value else "any value"


def _inside(value: Mapping[str, Any]) -> str:
    options = list(dict.fromkeys(_types(value)))
    text = " or ".join(options)
    return f"({text})" if len(options) > 1 else text


def _name_of(reference: str) -> str:
    return reference.rpartition("/")[2]
