"""Verdicts on what is not a question, or no work: equal instructions, times that no card allows."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from support import ROOT, Kx, all_records

from kernelexp.judge import consistency
from kernelexp.logs import records
from kernelexp.model.arm import Status
from kernelexp.model.record import Record

pytestmark = pytest.mark.usefixtures("shared_builds")


@pytest.fixture(scope="module")
def record() -> Record:
    return records.read_file(max((ROOT / "logs/runs/T3").glob("20261121T*.measured.json")))


def test_a_verdict_on_the_same_instructions_is_that_of_a_placebo(record: Record) -> None:
    candidate = msgspec.structs.replace(record.candidates[0], same_code=True)
    assert candidate.verdict.status is Status.IMPROVED
    result = consistency.qualified(record, record.names[1], candidate, candidate.verdict)
    assert (result.status, result.reason) == (Status.INCONCLUSIVE, "same_code")
    assert result.sentence.startswith(
        "The same instructions as the baseline, launched alike: 2.36%"
    )


@pytest.mark.parametrize("work", [{"flops": 10**14}, {"bytes": 10**11}])
def test_a_time_below_what_the_work_needs_is_invalid_with_its_arithmetic(
    record: Record, work: dict[str, int]
) -> None:
    candidate = record.candidates[0]
    forged = msgspec.structs.replace(record, **work)
    result = consistency.qualified(forged, record.names[1], candidate, candidate.verdict)
    assert (result.status, result.reason) == (Status.INVALID, "faster_than_possible")
    assert "and the H200 needs" in result.sentence


def test_a_time_below_what_the_checked_elements_need_is_invalid_without_work(
    record: Record,
) -> None:
    """A launch that wrote nothing while it was timed, and what was checked in another."""
    assert record.measurement
    worker = record.measurement.workers[0]
    many = [
        msgspec.structs.replace(
            check,
            arrays=tuple(msgspec.structs.replace(array, elements=10**10) for array in check.arrays),
        )
        for check in worker.checks
    ]
    workers = (msgspec.structs.replace(worker, checks=tuple(many)), *record.measurement.workers[1:])
    forged = msgspec.structs.replace(
        record,
        flops=0,
        bytes=0,
        measurement=msgspec.structs.replace(record.measurement, workers=workers),
    )
    result = consistency.qualified(
        forged, record.names[1], record.candidates[0], record.candidates[0].verdict
    )
    assert (result.status, result.reason) == (Status.INVALID, "faster_than_possible")
    assert "of the elements that were checked, a byte each" in result.sentence


def test_every_time_of_this_repository_is_possible() -> None:
    for path in (ROOT / "logs/runs").glob("*/*.measured.json"):
        read = records.read_file(path)
        for name, candidate in zip(read.names[1:], read.candidates, strict=True):
            assert consistency.qualified(read, name, candidate, candidate.verdict) == (
                candidate.verdict
            )


def rewrite(root: Path, file: str, text: str, instead: str) -> None:
    path = root / "variants/scale" / file
    assert text in path.read_text()
    path.write_text(path.read_text().replace(text, instead, 1))


DRAWN = 'torch.randn(size["count"], generator=generator, device=device)'


@pytest.mark.parametrize(
    ("file", "text", "instead", "words"),
    [
        ("problem.py", DRAWN, "torch.zeros(size['count'])", "an input is the same (x is 0)"),
        ("problem.py", DRAWN, "torch.ones(size['count'])", "a constant would be right too"),
        ("problem.py", "manual_seed(seed)", "manual_seed(0)", "the same values for every seed"),
        ("problem.py", "rtol=2**-24", "rtol=0.6", "half of each value would be right too"),
        ("problem.py", "rtol=2**-24", "rtol=0.01", "which the types of its arrays explain"),
    ],
)
def test_a_check_that_says_little_is_said_to_in_page_and_record(
    scale: Path, kx: Kx, file: str, text: str, instead: str, words: str
) -> None:
    rewrite(scale, file, text, instead)
    shown = " ".join(kx("run", "S1", cwd=scale).stdout.split())
    assert words in shown
    (result,) = all_records(scale)[0]
    assert words in msgspec.json.encode(result).decode()


def test_tolerances_that_differ_between_arms_are_said_to(scale: Path, kx: Kx) -> None:
    rewrite(scale, "problem.py", "def tolerance(size, arch):", "def tolerance(size, arch, axes):")
    rewrite(scale, "problem.py", "rtol=2**-24", "rtol=2**-24 * axes['width']")
    rewrite(scale, "problem.py", '{"count": 4096}', '{"count": 4000}')
    kx("run", "S1", cwd=scale)
    (result,) = all_records(scale)[0]
    (sentence,) = result.candidates[0].remarks
    assert sentence.startswith("The arms are held to different tolerances: rtol=5.96046e-08, and")


def test_arms_with_the_same_instructions_are_said_to_first(scale: Path, kx: Kx) -> None:
    rewrite(scale, "scale.cu", "KX_WIDTH", "(KX_WIDTH * 0 + 1)")
    rewrite(scale, "problem.py", 'size["count"] // axes["width"]', 'size["count"]')
    page = kx("run", "S1", cwd=scale).stdout
    assert "the same instructions as the baseline, launched alike" in page.partition("both: ")[0]
    (result,) = all_records(scale)[0]
    assert result.candidates[0].same_code
    assert result.candidates[0].verdict.sentence.startswith("The same instructions as the baseline")


@pytest.mark.parametrize("emulate", ["--emulate", "--no-emulate"])
def test_the_same_instructions_on_another_grid_are_a_question(
    scale: Path, kx: Kx, emulate: str
) -> None:
    rewrite(scale, "scale.cu", "KX_WIDTH", "(KX_WIDTH * 0 + 1)")
    count = 'size["count"] // axes["width"]'
    rewrite(scale, "problem.py", count, f'size["count"] + 0 * ({count})')
    rewrite(scale, "problem.py", "-(-count // THREADS)", "-(-count // THREADS) + axes['width'] - 1")
    kx("run", "S1", emulate, cwd=scale)
    (result,) = all_records(scale)[0]
    assert not result.candidates[0].same_code


def test_a_source_that_is_evaluated_is_no_question_where_nothing_changed(
    scale: Path, kx: Kx
) -> None:
    source = scale / "copy.cu"
    source.write_bytes((scale / "variants/scale/scale.cu").read_bytes() + b"// as it was\n")
    page = " ".join(kx("time", "scale", "--source", str(source), cwd=scale).stdout.split())
    assert "The same instructions as the baseline, launched alike" in page
