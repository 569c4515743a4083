"""An instruction on each thread's own registers: its PTX, and what computes it in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec


class Op(msgspec.Struct, frozen=True, kw_only=True):
    """One instruction, its operands' kinds (values.py), and what computes it in Python."""

    name: str
    body: str
    """PTX over {d}, {a}, {b}, {c}; {p} and {q} are predicates, {t} a scratch register."""
    inputs: tuple[str, ...]
    output: str
    reference: Callable[..., Any] | None = None
    bound: str | None = None
    """Key of ptx_bounds.BOUNDS where PTX promises a bound only."""


def simple(
    name: str,
    inputs: str,
    output: str,
    reference: Callable[..., Any] | None = None,
    bound: str | None = None,
) -> Op:
    kinds = tuple(inputs.split())
    operands = "".join(f", {{{letter}}}" for letter in "abc"[: len(kinds)])
    return Op(
        name=name,
        body=f"{name} {{d}}{operands};",
        inputs=kinds,
        output=output,
        reference=reference,
        bound=bound,
    )


def snippet(name: str, body: str, inputs: str, output: str) -> Op:
    return Op(name=name, body=body, inputs=tuple(inputs.split()), output=output)


def bind(function: Callable[..., Any], **modifiers: Any) -> Callable[..., Any]:
    return lambda *operands: function(*operands, **modifiers)
