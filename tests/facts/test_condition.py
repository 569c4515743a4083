"""The notation of conditions on instructions."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelexp.facts import condition
from warpsim.tables import opcodes

NAMES = st.sampled_from(opcodes.known())
MODIFIERS = st.lists(st.sampled_from(["E", "64", "128", "SYNC", "F32", "x32", "M88"]), max_size=4)


@pytest.mark.parametrize(
    ("text", "pattern", "in_loops"),
    [
        ("LDG.128 >= 1", "LDG.128", False),
        ("STL==0", "STL", False),
        ("BAR.SYNC in loops <= 2", "BAR.SYNC", True),
        ("SHFL -50%", "SHFL", False),
        (" FFMA unchanged ", "FFMA", False),
        ("HMMA.16816.F32 16..32", "HMMA.16816.F32", False),
        ("LDTM.x32 != 0", "LDTM.x32", False),
        ("*MMA in loops +4", "*MMA", True),
    ],
)
def test_a_pattern_then_perhaps_in_loops_then_an_expectation(
    text: str, pattern: str, in_loops: bool
) -> None:
    result = condition.parse(text)
    assert (result.pattern, result.in_loops) == (pattern, in_loops)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("LDG.128", "is not a condition on instructions: write a SASS instruction"),
        (">= 1", "is not a condition on instructions"),
        ("BAR in loop <= 1", "is not a condition on instructions"),
        ("LDG.128 5", "write '== 5' or '+5'"),
        ("STLL == 0", "no SASS instruction is called STLL; did you mean STL?"),
        ("QQQQ == 0", "no SASS instruction is called QQQQ; kernelexp inspect lists"),
        ("ld.global.v4 >= 1", "conditions are on SASS, whose opcodes are in capitals"),
        ("LDG >= 1%", "a change has a sign"),
    ],
)
def test_what_is_no_condition_is_refused_in_a_sentence(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        condition.parse(text)


@given(st.text(max_size=30))
def test_any_text_is_a_condition_or_refused(text: str) -> None:
    try:
        result = condition.parse(text)
    except ValueError:
        return
    assert result.pattern.split(".")[0] in text


@given(NAMES, MODIFIERS, st.sampled_from(["", " in loops"]), st.sampled_from([">= 1", "== 0"]))
def test_every_instruction_is_a_pattern_that_names_it(
    opcode: str, modifiers: list[str], loops: str, expectation: str
) -> None:
    mnemonic = ".".join([opcode, *modifiers])
    result = condition.parse(f"{mnemonic}{loops} {expectation}")
    assert condition.matches(result.pattern, mnemonic)


@given(NAMES, MODIFIERS, st.data())
def test_modifiers_that_are_left_out_of_a_pattern_may_be_any(
    opcode: str, modifiers: list[str], data: st.DataObject
) -> None:
    kept = [modifier for modifier in modifiers if data.draw(st.booleans())]
    assert condition.matches(".".join([opcode, *kept]), ".".join([opcode, *modifiers]))


def test_modifiers_are_matched_whole_and_in_their_order() -> None:
    assert condition.matches("LDG.128", "LDG.E.128.CONSTANT")
    assert condition.matches("BAR.SYNC", "BAR.SYNC.DEFER_BLOCKING")
    assert condition.matches("HGMMA.64x*x16", "HGMMA.64x128x16.F32")
    assert not condition.matches("LDG.12", "LDG.E.128")
    assert not condition.matches("LDG.CONSTANT.128", "LDG.E.128.CONSTANT")
    assert not condition.matches("LD", "LDG.E")


def test_32_is_the_width_that_sass_leaves_out() -> None:
    assert condition.matches("LDG.32", "LDG.E.CONSTANT")
    assert condition.matches("STS.32", "STS")
    assert not condition.matches("LDG.32", "LDG.E.64")
    assert not condition.matches("LDG.32", "LDG.E.U16")
    assert not condition.matches("LDSM.32", "LDSM.16.M88")
    assert not condition.matches("FFMA.32", "FFMA")


def test_the_instructions_of_a_pattern_are_added_up() -> None:
    counts = {"LDG.E.128": 3, "LDG.E.128.CONSTANT": 4, "LDG.E": 5}
    assert condition.count("LDG.128", counts) == 7
    assert condition.count("LDG", counts) == 12
    assert condition.count("STG", counts) == 0
