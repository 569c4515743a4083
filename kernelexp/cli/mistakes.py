"""Usage errors of typer, as sentences in the style of all other errors."""

from __future__ import annotations

import re
from typing import Any

# Of typer's own copy of click; typer exports only some of them.
from typer._click.exceptions import (
    BadParameter,
    ClickException,
    MissingParameter,
    NoArgsIsHelpError,
    NoSuchOption,
)

from kernelexp.model.errors import UsageError, nearest
from kernelexp.model.text import quote

Refusal = ClickException


def as_error(refusal: Refusal, command: str = "kernelexp") -> Exception:
    """The sentence, with the command whose help shows what is right: `command`, where typer does
    not know."""
    if isinstance(refusal, NoArgsIsHelpError):
        return refusal  # no mistake: it prints the help
    context = getattr(refusal, "ctx", None)
    command = context.command_path if context else command
    return UsageError(f"{_complaint(refusal, context)}; see {command} --help.")


def _complaint(refusal: Refusal, context: Any) -> str:
    if isinstance(refusal, NoSuchOption):
        known = [name for param in context.command.params for name in param.opts] if context else []
        return f"there is no option {quote(refusal.option_name)}{_hint(refusal.option_name, known)}"
    if isinstance(refusal, MissingParameter) and refusal.param:
        return f"{_name(refusal.param)} is missing"
    if isinstance(refusal, BadParameter) and refusal.param:
        return f"{_name(refusal.param)}: {_reason(refusal.message, refusal.param.type)}"
    message = _reworded(refusal.format_message())
    return message[:1].lower() + message[1:]


def _reworded(message: str) -> str:
    message = message.rstrip(".")
    for pattern, words in _REWORDED:
        message = re.sub(pattern, words, message)
    return message


_REWORDED = (
    (r"^Got unexpected extra arguments?(?:\(s\))? \((.*)\)$", r"one argument too many: \1"),
    (r"^Option '(.*)' requires an argument$", r"\1 needs a value"),
    (r"is not a valid float.*$", "should be a number"),
    (r"is not a valid (?:int|integer).*$", "should be a whole number"),
)


def no_command(name: str, known: list[str]) -> UsageError:
    """The sentence about a command that does not exist."""
    return UsageError(
        f"there is no command {quote(name)}{_hint(name, known)}; see kernelexp --help."
    )


def _hint(name: str, known: list[str]) -> str:
    close = nearest(name, known)
    return f", but there is {close}" if close else ""


def _name(parameter: Any) -> str:
    """--margin, or EXPERIMENT."""
    if parameter.param_type_name == "argument":
        return str(parameter.metavar or parameter.name.upper()).strip("[]{}.")
    return str(max(parameter.opts, key=len))


def _reason(message: str, kind: Any) -> str:
    """typer's reason; of a number out of bounds the bounds as people write them."""
    value, between, _ = message.partition(" is not in the range ")
    least, most = getattr(kind, "min", None), getattr(kind, "max", None)
    if not between or least is None:
        return _reworded(message)
    bounds = f"from {least:g} to {most:g}" if most is not None else f"{least:g} or more"
    return f"{value} should be {bounds}"
