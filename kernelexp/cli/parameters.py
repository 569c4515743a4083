"""Values of a kernel's parameters, as the options of `adopt` spell them: NAME=VALUE."""

from __future__ import annotations

from collections.abc import Sequence

from kernelexp.model.errors import UsageError


def parse_pairs(texts: Sequence[str] | None, option: str) -> list[tuple[str, str]]:
    """Names, as Python spells them, and what stands after the equals sign."""
    from kernelexp.services.adopt.entry import python_name

    pairs = []
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not equals or not name or not value:
            raise UsageError(f"{option} {text!r} should be NAME=..., with a parameter's name.")
        pairs.append((python_name(name.strip()), value.strip()))
    return pairs


def parse_numbers(texts: Sequence[str] | None, option: str) -> list[tuple[str, str]]:
    """Pairs of a name and a number, several of which may stand in one text: M=512,N=256."""
    return parse_pairs([part for text in texts or () for part in text.split(",")], option)


def parse_number(text: str) -> int | float:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    raise UsageError(f"{text!r} should be a number, as the value of a parameter.")


def parse_whole(text: str) -> int:
    value = parse_number(text)
    if not isinstance(value, int):
        raise UsageError(f"{text!r} should be a whole number.")
    return value


def parse_ranges(text: str) -> tuple[tuple[int, int], ...]:
    """1-3,7,9- as pairs."""
    result = []
    for part in filter(None, text.split(",")):
        first, dash, last = part.partition("-")
        if not first.isdigit() or (last and not last.isdigit()):
            raise UsageError(f"--launches {text!r} should be like 3, 1-3 or 5-.")
        if last and int(last) < int(first):
            raise UsageError(f"--launches {text!r}: {part} ends before it begins.")
        result.append((int(first), int(last) if last else (1 << 62) if dash else int(first)))
    return tuple(result)
