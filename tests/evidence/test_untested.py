"""What an emulation says that its size does not test."""

from __future__ import annotations

import msgspec

from kernelexp.evidence.emulate.emulation_worker import untested
from warpsim import Result, Schedule
from warpsim.machine.counts.counters import Counters

ENDED = Result(
    schedule=Schedule(),
    findings=(),
    warnings=(),
    hang=(),
    contended=False,
    printed=(),
    counters=Counters(listing="PTX", instructions=()),
    warp_instructions=0,
    thread_instructions=0,
    seconds=0.0,
)


def sentences(ways: dict[str, int]) -> list[str]:
    return [*untested(msgspec.structs.replace(ENDED, ways=ways))]


def test_guards_that_decide_alike_are_one_sentence_with_three_places_at_most() -> None:
    ways = {"a.cu:1": 1, "a.cu:2": 3, "a.cu:3": 2, "a.cu:4": 1, "a.cu:5": 1, "a.cu:6": 2}
    (sentence,) = sentences(ways)
    assert sentence.startswith("the guards at a.cu:1, a.cu:3, a.cu:4 and 2 more decide the same ")


def test_one_guard_is_named_alone_and_one_that_goes_both_ways_not_at_all() -> None:
    (sentence,) = sentences({"a.cu:1": 1, "a.cu:2": 3})
    assert sentence.startswith("the guard at a.cu:1 decides the same for every thread")
    assert sentences({"a.cu:2": 3}) == []
