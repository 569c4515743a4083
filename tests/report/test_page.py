"""The page of a run with many candidates: read at a glance in 80 columns."""

from __future__ import annotations

import io
from pathlib import Path

import msgspec
import pytest
from rich.console import Console
from support import ROOT

from kernelexp.logs import records
from kernelexp.model.arm import Arm, EmulatedFinding
from kernelexp.model.record import Record
from kernelexp.report.document import arms, terminal
from kernelexp.report.document.document import Document, table
from kernelexp.report.runs import page
from kernelexp.report.variants import edited

(T3,) = sorted((ROOT / "logs/runs/T3").glob("*.json"))[-1:]
CANDIDATES = 12


def shown(document: Document) -> list[str]:
    console = Console(width=80, record=True, file=io.StringIO())
    for renderable in terminal.render(document):
        console.print(renderable)
    return console.export_text().splitlines()


def with_registers(arm: Arm, registers: int) -> Arm:
    assert arm.build
    resources = msgspec.structs.replace(arm.build.resources, registers=registers)
    return msgspec.structs.replace(
        arm,
        axes={**arm.axes, "rows": registers},
        build=msgspec.structs.replace(arm.build, resources=resources),
    )


@pytest.fixture
def many() -> Record:
    """A baseline with 24 registers, and candidates that differ from it in registers alone."""
    record = records.read_file(Path(T3))
    one = record.candidates[0]
    bare = msgspec.structs.replace(record.baseline, measured=None)
    return msgspec.structs.replace(
        record,
        baseline=bare,
        candidates=tuple(
            msgspec.structs.replace(one, arm=with_registers(bare, 30 + number))
            for number in range(CANDIDATES)
        ),
        measurement=None,
        estimate=None,
    )


def test_many_candidates_have_a_row_each_below_the_baseline(many: Record) -> None:
    (table,) = arms.matrix({f"rows={number}": arm for number, arm in enumerate(many.arms)})
    assert table.header == ("", "registers")
    assert len(table.rows) == 1 + CANDIDATES
    assert table.rows[0] == ("rows=0", "24")


def test_their_page_fits_80_columns_and_leaves_out_what_is_equal(many: Record) -> None:
    lines = shown(page.render(many))
    assert max(map(len, lines)) <= 80
    assert any(line.split() == ["rows=41", "41"] for line in lines)
    assert not any("threads" in line for line in lines)
    assert any("are equal in all arms" in line for line in lines)


def test_columns_that_do_not_fit_go_into_another_table(many: Record) -> None:
    base = many.baseline
    assert base.build
    used = base.build.resources
    other = msgspec.structs.replace(
        used,
        registers=255,
        spill_store_bytes=123456,
        static_smem_bytes=1,
        dynamic_smem_bytes=232448,
        threads=1024,
        cluster=16,
    )
    arm = msgspec.structs.replace(base, build=msgspec.structs.replace(base.build, resources=other))
    tables = list(arms.matrix({"baseline": base, "a label of some length, b=1": arm}))
    assert len(tables) == 2
    assert max(map(len, shown(tables))) <= 80


def test_no_word_of_a_table_is_broken_where_punctuation_can_be() -> None:
    rows = [
        ("candidate 1", "schedule=pingpong", "0.691", "+1.35% (+1.14% to +1.56%)", "REJECTED"),
        ("candidate 2", "overlap=pinned", "0.617", "-9.40% (-9.77% to -9.03%)", "IMPROVED"),
    ]
    header = ("", "variant", "milliseconds", "change", "verdict")
    lines = shown([table(header, rows, numbers=(2, 3), unwrapped=(0, 4))])
    assert max(map(len, lines)) <= 80
    words = {word for line in lines for word in line.split()}
    assert {"schedule=", "schedule=pingpong"} & words
    assert not {"schedule=pin", "schedule=pingpo", "ng"} & words


def run_of(name: str) -> Record:
    paths = sorted((ROOT / "logs/runs" / name).glob("*.measured.json"))
    return records.read_file(paths[-1])


def test_what_an_engineer_always_wants_has_a_fixed_order() -> None:
    lines = shown(page.render(run_of("T1")))
    begun = next(place for place, line in enumerate(lines) if line.startswith(" figure"))
    labels = [line.strip().split("  ")[0] for line in lines[begun + 2 :]]
    assert labels[:5] == [
        "registers per thread",
        "spills, B",
        "shared memory per CTA, B",
        "warps per SM",
        "SASS instructions",
    ]
    counted = [label.removesuffix(" (PTX)") for label in labels[5:10]]
    assert counted == [
        "instructions executed",
        "shared wavefronts",
        "bank conflicts, shared ld",
        "bank conflicts, shared st",
        "global sectors",
    ]


def test_many_small_changes_are_a_line() -> None:
    """Twenty counters of the run moved with the instructions, by little."""
    lines = shown(page.render(run_of("A12")))
    assert max(map(len, lines)) <= 80
    text = " ".join(" ".join(lines).split())
    assert "__" not in text.split("Emulated:")[0]


def test_of_a_launch_that_failed_no_count_is_said_to_be_0() -> None:
    """It has no counters: what was counted up to its fault is none of it."""
    base = run_of("T1").baseline
    assert base.emulated
    failed = msgspec.structs.replace(
        base, emulated=msgspec.structs.replace(base.emulated, counters={}), emulated_sass=None
    )
    document = tuple(edited.of_variants({"variant 1": failed}, counted=True))
    assert not any("instructions executed" in line for line in shown(document))
    assert any("registers per thread" in line for line in shown(document))


def test_a_candidate_with_a_fault_is_not_said_to_execute_nothing() -> None:
    base = run_of("T1").baseline
    assert base.emulated
    fault = EmulatedFinding(
        name="shuffle-source", sentence="lane 0 takes another's.", where="a.cu:3", count=1
    )
    emulated = msgspec.structs.replace(base.emulated, findings=(fault,))
    other = msgspec.structs.replace(base, emulated=emulated, emulated_sass=None)
    lines = shown(tuple(edited.render(base, {"candidate": other}, "full")))
    (row,) = (line.split() for line in lines if "instructions executed" in line)
    assert row[-1] == "—"
    assert not any("(PTX)" in line for line in lines)  # the baseline has counts of its SASS


def test_half_precision_fmas_of_the_tensor_pipe_are_no_tensor_work() -> None:
    base = run_of("T1").baseline
    assert base.emulated
    right = msgspec.structs.replace(base.emulated, isa="sass", opcodes={"HFMA2": 7})
    one, other = (
        msgspec.structs.replace(
            base,
            emulated_sass=msgspec.structs.replace(
                right,
                counters={"smsp__inst_executed": count, "sm__inst_executed_pipe_tensor": count},
            ),
        )
        for count in (31, 100)
    )
    lines = shown(tuple(edited.render(one, {"candidate": other}, "full")))
    assert any("HFMA2.MMA +69" in line for line in lines)
    assert not any("tensor +69" in line for line in lines)


def test_counts_of_a_small_size_are_not_promised_of_the_timed_one() -> None:
    record = run_of("T3")
    candidates = dict(zip(record.names[1:], record.arms[1:], strict=True))
    for timed, promised in (("full", False), ("emulated", True)):
        text = " ".join(
            " ".join(shown(tuple(edited.render(record.baseline, candidates, timed)))).split()
        )
        assert "Executed counts are of one launch at size 'emulated'" in text
        assert ("at size 'full' changes may differ, even in sign" not in text) == promised


def test_what_was_measured_before_is_listed_for_each_card() -> None:
    now = msgspec.structs.replace(run_of("T3"), size="")
    then = msgspec.structs.replace(now, device="NVIDIA H200", size="full")
    earlier = [then, msgspec.structs.replace(then, device="NVIDIA H100"), then]
    text = " ".join(" ".join(shown(tuple(page.render(now, earlier)))).split())
    assert text.count("(NVIDIA H200, size full") == 1
    assert text.count("(NVIDIA H100, size full") == 1


def test_what_ptxas_repeats_is_said_once_and_of_launched_kernels_only() -> None:
    record = run_of("T3")
    build = record.baseline.build
    assert build
    serialized = "wgmma instructions are serialized in function "
    warnings = (f"{serialized}'{build.entry}'", f"{serialized}'_Z5otherv'")
    arm = msgspec.structs.replace(
        record.baseline, build=msgspec.structs.replace(build, warnings=warnings)
    )
    text = " ".join(" ".join(shown(tuple(arms.warnings({"one": arm, "two": arm})))).split())
    assert text.startswith(f"one, two: ptxas: {serialized}'")
    assert "_Z" not in text
    assert "(2x) ptxas: 2 warnings of functions that are not launched." in text


def test_a_doubt_that_both_arms_share_is_said_once() -> None:
    record = run_of("T3")
    assert record.baseline.emulated
    doubtful = msgspec.structs.replace(record.baseline.emulated, doubts=("inputs are all equal",))
    arm = msgspec.structs.replace(record.baseline, emulated=doubtful)
    candidate = msgspec.structs.replace(
        record.candidates[0], arm=arm, remarks=("Inputs are all equal.",)
    )
    now = msgspec.structs.replace(
        record, baseline=arm, candidates=(candidate,), measurement=None, estimate=None
    )
    text = " ".join(" ".join(shown(tuple(page.render(now)))).split())
    assert text.count("nputs are all equal") == 1
    assert "warning: inputs are all equal." in text
