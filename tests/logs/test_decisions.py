"""Decisions on disk, and which variant is the best after a series of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from kernelexp.logs import decisions
from kernelexp.logs.decisions import Decision, Word
from kernelexp.model.experiment import Variant

KERNEL, ARCH = "scale", "sm_90a"


def decision(second: int, word: Word, experiment: str, width: int | bool = 4) -> Decision:
    moment = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=second)
    return Decision(
        version=1,
        name=decisions.new_name(moment),
        word=word,
        experiment=experiment,
        kernel=KERNEL,
        arch=ARCH,
        axes={"width": width},
        baseline={"width": 1},
        created=moment.isoformat(timespec="microseconds"),
    )


def best(*decided: Decision) -> str | None:
    result = decisions.best(decided, KERNEL, ARCH)
    return result.experiment if result else None


def test_what_was_accepted_last_is_the_best() -> None:
    assert best(decision(1, "accepted", "S1"), decision(2, "accepted", "S2", 2)) == "S2"


def test_a_rejection_gives_the_place_back_to_what_was_accepted_before() -> None:
    one, two = decision(1, "accepted", "S1"), decision(2, "accepted", "S2", 2)
    assert best(one, two, decision(3, "rejected", "S2", 2)) == "S1"


def test_a_rejection_of_another_candidate_leaves_the_best() -> None:
    assert best(decision(1, "accepted", "S2"), decision(2, "rejected", "S2", 2)) == "S2"


def test_what_is_accepted_again_is_the_best_again() -> None:
    one, two = decision(1, "accepted", "S1"), decision(2, "accepted", "S2", 2)
    assert best(one, two, decision(3, "accepted", "S1")) == "S1"


def test_one_and_true_are_other_variants() -> None:
    one = decision(1, "accepted", "S1", width=1)
    assert best(one, decision(2, "rejected", "S1", width=True)) == "S1"


def test_an_experiment_keeps_the_baseline_that_it_was_decided_against() -> None:
    decided = [decision(1, "accepted", "S1", 2), decision(2, "accepted", "S9", 4)]
    assert decisions.baseline_of(decided, "S9", KERNEL, ARCH) == {"width": 1}
    assert decisions.baseline_of(decided, "new", KERNEL, ARCH) == {"width": 4}
    assert decisions.baseline_of([], "new", KERNEL, ARCH) is None


def test_a_decision_is_on_the_variant_with_its_axes() -> None:
    decided = [decision(1, "accepted", "S1", 4)]
    variant = Variant(kernel=KERNEL, arch=ARCH, source="", axes={"width": 4, "order": "forward"})
    other = Variant(kernel=KERNEL, arch=ARCH, source="", axes={"width": 2, "order": "forward"})
    assert decisions.on(decided, "S1", variant) == tuple(decided)
    assert decisions.on(decided, "S1", other) == ()
    assert decisions.on(decided, "S2", variant) == ()


def test_decisions_are_read_in_the_order_in_which_they_were_made(tmp_path: Path) -> None:
    late, early = decision(2, "rejected", "S1"), decision(1, "accepted", "S1")
    for item in (late, early):
        decisions.write(tmp_path, item)
    assert decisions.read_all(tmp_path) == ([early, late], [])


def test_a_clock_that_is_behind_does_not_undo_a_later_decision(tmp_path: Path) -> None:
    future = decision(10**9, "accepted", "S1")
    decisions.write(tmp_path, future)
    assert decisions.next_moment(tmp_path).isoformat(timespec="microseconds") > future.created


def test_a_file_that_is_no_decision_is_said_to_be_none(tmp_path: Path) -> None:
    folder = tmp_path / decisions.FOLDER
    decisions.write(tmp_path, decision(1, "accepted", "S1"))
    (folder / "a.json").write_text("{")
    (folder / "b.json").write_text('{"version": 9}')
    (only,) = folder.glob("2*.json")
    (folder / "c.json").write_text(only.read_text().replace("2026-01-01T", "once"))
    read, unreadable = decisions.read_all(tmp_path)
    assert len(read) == 1
    assert [(item.path.name, item.why.split(":")[0].split(",")[0]) for item in unreadable] == [
        ("a.json", "is truncated or invalid JSON"),
        ("b.json", "has version 9"),
        ("c.json", "is not a decision"),
    ]
