"""Lists that the replay has in Python and in C++: the same names, in the same order."""

from __future__ import annotations

import re
from pathlib import Path

import warpsim
from warpsim.timing.opcodes import KINDS
from warpsim.timing.replay import PARAMETERS, REASONS

HEADER = re.sub(
    r"//.*", "", (Path(warpsim.__file__).parent / "compiled/timing.hpp").read_text("utf-8")
)


def body(head: str) -> str:
    return HEADER[HEADER.index(head) :].partition("{")[2].partition("}")[0]


def enumerators(head: str) -> list[str]:
    return re.findall(r"\bk(\w+)", body(head))


def test_parameters_have_one_order() -> None:
    assert re.findall(r"(\w+)\s*[,;]", body("struct Parameters ")) == PARAMETERS


def test_reasons_have_one_order() -> None:
    """Each is a word of ncu's name for it."""
    *names, count = enumerators("enum Reason ")
    assert count == "Reasons"
    words = [re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower() for name in names]
    words = ["branch" if word == "branching" else word for word in words]
    assert [word in name for word, name in zip(words, REASONS, strict=True)] == [True] * len(names)


def test_kinds_have_one_order() -> None:
    names = [
        re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower() for name in enumerators("enum class Kind ")
    ]
    assert tuple(names) == tuple(KINDS)
