"""What a command printed as JSON, checked against its schema."""

from __future__ import annotations

import json
from typing import Any

import jsonschema

from kernelexp.report import outputs


def validate(kind: str, text: str | bytes) -> Any:
    """The values, which are of the schema and say so themselves."""
    values = json.loads(text)
    schema = outputs.schema(kind)
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(values)
    items = values if isinstance(values, list) else [values]
    if kind == "build":
        items = list(values.values())
    assert items
    assert {item["schema"] for item in items} == {outputs.name(kind)}
    return values
