"""Recordings of an H200 (ncu 2025.3.1, excerpts) evaluate, and are shown in 80 columns."""

from __future__ import annotations

import io
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from kernelexp.evidence.profile import pages
from kernelexp.model.arm import ProfiledEvidence
from kernelexp.project import sections
from kernelexp.project.sections.evaluate import SectionReading, evaluate, gap
from kernelexp.project.sections.given import NOTHING, Run
from kernelexp.report.document import terminal
from kernelexp.report.document.document import as_markdown
from kernelexp.report.variants.sections import document

DATA = Path(__file__).parents[2] / "data/ncu"


def _recorded(index: int) -> ProfiledEvidence:
    """One launch, its figures with its source page."""
    raw, source = (
        pages.read((DATA / name).read_text(), name)
        for name in ("sections-raw.csv", "sections-source.csv")
    )
    return msgspec.structs.replace(raw[index], instructions=source[index].instructions)


@pytest.fixture(scope="module", params=[0, 1], ids=["patch_embed_gemm", "transpose"])
def recorded(request: pytest.FixtureRequest) -> ProfiledEvidence:
    return _recorded(request.param)


@pytest.fixture(scope="module")
def gemm() -> ProfiledEvidence:
    return _recorded(0)


@pytest.fixture(scope="module")
def transpose() -> ProfiledEvidence:
    return _recorded(1)


def _values(reading: SectionReading) -> dict[str, float]:
    return {value.name: value.value for value in reading.values if value.value is not None}


def _shown(reading: SectionReading) -> str:
    out = io.StringIO()
    console = Console(file=out, width=80)
    for item in terminal.render(document(reading, names=True)):
        console.print(item)
    return out.getvalue()


@pytest.mark.parametrize("name", sections.NAMES)
def test_every_section_evaluates_and_fits_80_columns(recorded: ProfiledEvidence, name: str) -> None:
    reading = evaluate(sections.builtin(name), recorded)
    shown = _shown(reading)

    assert reading.family == "gh100"
    assert shown.startswith(reading.title)
    assert max(map(len, shown.splitlines())) <= 80


def test_markdown_has_the_table_of_three_columns(gemm: ProfiledEvidence) -> None:
    reading = evaluate(sections.builtin("conflicts"), gemm)

    assert "| metric" in "".join(as_markdown(document(reading)))


def test_what_hopper_lacks_is_said(gemm: ProfiledEvidence) -> None:
    reading = evaluate(sections.builtin("tmem"), gemm)

    assert _values(reading) == {}
    assert "gh100 has no such counter: tensor memory reads" in " ".join(_shown(reading).split())


def test_what_was_not_collected_is_told_from_what_ncu_refused(gemm: ProfiledEvidence) -> None:
    refused = msgspec.structs.replace(gemm, missing=("sm__inst_executed_pipe_tensor.sum",))
    assert [_why_missing(item, "tensor_instructions") for item in (gemm, refused)] == [
        "not in this profile",
        "ncu could not collect it",
    ]


def _why_missing(evidence: ProfiledEvidence, name: str) -> str:
    values = evaluate(sections.builtin("tensor"), evidence).values
    return next(value.missing for value in values if value.name == name)


def test_conflicts_per_sm_use_the_profiles_own_count_of_sms(gemm: ProfiledEvidence) -> None:
    values = _values(evaluate(sections.builtin("conflicts"), gemm))

    assert values["store_cycles"] == 3_481_138 / 132
    assert "load_rate" not in values  # no load wavefronts: nothing to divide by


def test_conflicts_beyond_what_addresses_explain_are_seen(transpose: ProfiledEvidence) -> None:
    values = _values(evaluate(sections.builtin("conflicts"), transpose))

    assert values["address_excess"] == 0
    assert values["store_wavefronts"] - values["store_conflicts"] == values["store_minimum"]


def test_the_instructions_with_most_samples_are_listed_with_their_reasons(
    gemm: ProfiledEvidence,
) -> None:
    reading = evaluate(sections.builtin("source"), gemm)
    first = reading.instructions[0]

    assert len(reading.instructions) == 10
    assert first.sass.startswith("UCGABAR_WAIT")
    assert next(iter(first.reasons)) == "barrier"
    assert first.samples == max(instruction.samples for instruction in reading.instructions)
    assert "UCGABAR_WAIT" in _shown(reading)


def test_without_a_source_page_the_section_says_so(gemm: ProfiledEvidence) -> None:
    bare = msgspec.structs.replace(gemm, instructions=())

    assert "no source page" in _shown(evaluate(sections.builtin("source"), bare))


def test_a_formula_is_shown_with_its_figures_and_sources(gemm: ProfiledEvidence) -> None:
    shown = " ".join(_shown(gap(gemm, Run(flops=1.095e12, dtype="fp8"))).split())

    assert "time at the tensor peak = 1000 * flops / peak_flops" in shown
    assert "= 1000 * 1.095 TFLOP / 1.979 PFLOP/s" in shown
    assert "NVIDIA H200 datasheet" in shown


def test_without_a_measured_time_the_gap_names_the_profiles_clocks(gemm: ProfiledEvidence) -> None:
    locked = msgspec.structs.replace(gemm, clock_control="base")
    (gap_at_peak,) = (
        value
        for value in gap(locked, Run(flops=1e12, dtype="fp8")).values
        if value.name == "peak_gap"
    )

    assert gap_at_peak.inputs["time_ms"].source == "profiled, clock control: base"


def test_a_profile_of_an_unknown_device_evaluates(gemm: ProfiledEvidence) -> None:
    unknown = msgspec.structs.replace(gemm, device="NVIDIA X1", capability="")
    values = _values(evaluate(sections.builtin("tensor"), unknown, NOTHING))

    assert "tensor_active" in values
    assert "expected_flops" not in values


def test_a_kernel_without_tensor_cores_is_not_told_to_use_them(transpose: ProfiledEvidence) -> None:
    reading = evaluate(sections.builtin("tensor"), transpose)
    (idle,) = (value for value in reading.values if value.name == "tensor_idle")

    assert idle.text == "The tensor cores are not used."


@pytest.mark.parametrize("figure", [float("nan"), float("inf"), "n/a"])
def test_a_figure_that_is_no_number_is_missing(gemm: ProfiledEvidence, figure: float | str) -> None:
    metric = "smsp__cycles_active.avg"
    odd = msgspec.structs.replace(gemm, figures={**gemm.figures, metric: figure})
    values = {value.name: value for value in evaluate(sections.builtin("tensor"), odd).values}

    assert values["cycles_active"].missing == "no number in this profile"
    assert values["sm_active"].missing == "not known without cycles_active"
