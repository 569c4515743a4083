"""What the first page answers, of this repository's own log."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from site_project import Reader
from support import ROOT, Kx

from kernelexp import project
from kernelexp.logs import records
from kernelexp.model.record import Record
from kernelexp.report.document.document import text_of
from kernelexp.report.log import pending
from kernelexp.report.site.front import overview
from kernelexp.report.site.front.overview import Overview
from kernelexp.report.site.site import ProjectSite
from kernelexp.report.variants import edited
from kernelexp.services import kernel_logs
from kernelexp.services.kernel_logs import KernelLog

pytestmark = pytest.mark.usefixtures("shared_builds")


@pytest.fixture(scope="module")
def logs() -> tuple[KernelLog, ...]:
    return kernel_logs.assemble(project.load(ROOT))


def timed_records(name: str) -> list[Record]:
    return records.last_timed(ROOT, name, 10, {})


@pytest.fixture(scope="module")
def answers(logs: tuple[KernelLog, ...]) -> Overview:
    return overview.overview(logs, lambda variant: None, timed_records)


@pytest.fixture(scope="module")
def repository() -> ProjectSite:
    return ProjectSite(project.load(ROOT), listings=False)


def test_the_best_of_a_kernel_is_what_its_log_says(
    logs: tuple[KernelLog, ...], answers: Overview
) -> None:
    named = {f"{item.kernel}@{item.arch}": item.best for item in logs if item.best}
    assert {
        outlook.kernel: outlook.best for outlook in answers.outlooks if outlook.kernel in named
    } == named
    assert named


def test_a_published_time_is_not_called_measured(answers: Overview) -> None:
    b200 = next(
        outlook for outlook in answers.outlooks if outlook.kernel == "patch_embed_gemm@sm_100a"
    )
    assert (b200.time, b200.whose) == ("0.579 ms / 1892 TFLOPS", "published")


def test_a_kernel_without_history_shows_its_lowest_time_and_whose_that_is(
    answers: Overview,
) -> None:
    transpose = next(
        outlook for outlook in answers.outlooks if outlook.kernel == "transpose@sm_90a"
    )
    assert (transpose.best, transpose.is_sweep) == ("20261122T062056Z-23b96a7f", True)
    assert transpose.point == "layout=swizzled, rows=4"
    assert transpose.whose == "the lowest time measured, NVIDIA H200, a sweep"
    attention = next(item for item in answers.outlooks if item.kernel == "fa_4x4@sm_90a")
    assert (attention.best, attention.is_sweep) == ("A11", False)
    assert attention.whose == "the lowest time measured, NVIDIA H200"


def test_cards_that_disagree_about_what_the_best_has_are_named_with_it(
    logs: tuple[KernelLog, ...],
) -> None:
    found = overview.overview(logs, lambda _: None, lambda name: records.read(ROOT, name)[0])
    (transpose,) = (item for item in found.outlooks if item.kernel == "transpose@sm_90a")
    (words,) = transpose.contested
    assert words.startswith("T3, with layout=padded: rows=4: REJECTED on NVIDIA H100")
    assert "IMPROVED on NVIDIA H200" in words


def test_a_step_is_no_regression_for_the_card_of_its_own_run(answers: Overview) -> None:
    """S3 took 1.065 ms, S2 1.051 ms in another run; beside S2 it is 0.92% faster."""
    assert "S3" not in {item.id for item in answers.regressed}


def test_what_is_wrong_as_its_hypothesis_predicted_is_no_regression(answers: Overview) -> None:
    assert "A4" not in {item.id for item in answers.regressed}
    (note,) = (item for item in answers.settled if item.id == "A4")
    assert note.text == "No barrier per tile of keys; as predicted"


def test_the_first_page_names_what_is_wrong_as_predicted_and_where_it_was(
    answers: Overview, repository: ProjectSite
) -> None:
    page = " ".join(Reader((repository.render("index.html") or b"").decode()).text.split())
    assert "Nothing but what is wrong as its hypothesis says: A4." in page
    assert "Nothing known." not in page
    (note,) = (item for item in answers.unmeasured if item.id == "A4")
    assert [text_of(state) for state in note.states] == ["wrong on a GPU"]


def test_what_is_wrong_against_its_hypothesis_is_named(logs: tuple[KernelLog, ...]) -> None:
    (attention,) = (item for item in logs if "A4" in item.experiments)
    entry = attention.experiments["A4"]
    written = msgspec.structs.replace(entry.experiment, hypothesis="It is 5% faster.")
    other = {"A4": msgspec.structs.replace(entry, experiment=written)}
    found = overview.overview(
        [msgspec.structs.replace(attention, experiments=other)], lambda _: None
    )
    assert [item.id for item in found.regressed] == ["A4"]


def test_an_improvement_that_nobody_decided_on_waits(
    logs: tuple[KernelLog, ...], answers: Overview
) -> None:
    decided = {
        name
        for item in logs
        for name, entry in item.experiments.items()
        if any(candidate.decision for candidate in entry.candidates)
    }
    assert not decided & {item.id for item in answers.waiting}
    assert answers.waiting


def test_the_latest_runs_come_first(answers: Overview) -> None:
    dates = [item.date for item in answers.latest]
    assert dates == sorted(dates, reverse=True)
    assert len(dates) == overview.LATEST


def test_the_page_counts_experiments_and_has_those_to_decide_on_open(answers: Overview) -> None:
    page = (ProjectSite(project.load(ROOT)).render("index.html") or b"").decode()
    waiting = page[page.index('id="waiting"') : page.index('id="unclear"')]
    count = len({item.id for item in answers.waiting})
    assert count < len(answers.waiting)
    assert "<details open>" in waiting
    assert "Clear, but not written down: " in waiting
    assert f"{count} experiments, {len(answers.waiting)} candidates" in waiting
    assert f"To decide ({count})" in page
    assert "<code>layout=swizzled, rows=4</code>" in page


def test_of_what_waits_the_surest_gain_comes_first(answers: Overview) -> None:
    """By the end of the interval that is nearer to nothing: A14's block_m=192 gains 10%, or 1%."""
    ids = list(dict.fromkeys(item.id for item in answers.waiting))
    assert ids == ["A11", "A14", "A16", "A17", "T3"]
    own = [item.text.partition(":")[0] for item in answers.waiting if item.id == "A14"]
    assert own == ["block_m=64", "block_m=192"]


def test_what_waits_says_at_which_size_it_was_timed_where_that_is_not_the_usual(
    answers: Overview,
) -> None:
    texts = {item.id: item.text for item in (*answers.waiting, *answers.settled)}
    assert ", size long128" in texts["A16"]
    assert "size" not in texts["A14"]


def test_what_later_experiments_build_on_waits_for_no_choice(answers: Overview) -> None:
    settled = {item.id: item.text for item in answers.settled}
    assert settled["A8"].endswith("; A9 builds on it")
    assert settled["A10"].endswith("; it is the default already")
    assert settled["A3"].endswith("; its baseline gave way to A8, on which A9 builds")


def test_an_experiment_s_page_and_the_first_page_say_alike_what_waits(
    logs: tuple[KernelLog, ...], answers: Overview
) -> None:
    listed = {item.id for item in (*answers.waiting, *answers.settled)}
    unclear = {item.id for item in answers.unclear}
    for item in logs:
        waits = pending.of_log(item, timed_records)
        for name, entry in item.experiments.items():
            words = " ".join(pending.sentences(name, entry, waits[name]))
            asks = "decide" in words or "Nothing to choose" in words
            assert asks == (name in listed), (name, words)
            assert ("--budget" in words or "--margin" in words) <= (name in unclear), (name, words)


def test_pages_name_the_command_for_each_candidate_that_waits(repository: ProjectSite) -> None:
    def next_steps(name: str) -> str:
        return (repository.render(f"experiments/{name}.html") or b"").decode()

    both = next_steps("A17")
    assert "Next: <code>kernelexp decide accept A17:2</code>" in both
    assert "<code>kernelexp run A17 --margin PERCENT</code>" in both
    assert "decides on ctas=persistent; a longer run hardly will" in both
    assert "decide for the card that it is for" in next_steps("T3")
    predicted = next_steps("A4")
    assert "As predicted, so there is nothing to mend" in predicted
    assert "(PTX)" not in predicted


def test_the_page_of_an_experiment_at_another_size_names_it(repository: ProjectSite) -> None:
    page = (repository.render("experiments/A16.html") or b"").decode()
    assert "Timed at size long128." in page
    assert "[4096, 64]" not in page


def test_a_page_names_no_option_of_a_command(repository: ProjectSite) -> None:
    page = (repository.render("experiments/T1.html") or b"").decode()
    assert "equal in all arms" in page
    assert "--verbose shows" not in page


def test_the_page_of_a_source_says_where_its_lines_have_costs(repository: ProjectSite) -> None:
    repository.render("experiments/T1.html")
    source = next(path for path in repository.paths() if path.startswith("sources/"))
    page = (repository.render(source) or b"").decode()
    assert "No SASS of this run is here, so no line has a cost." in page
    assert '<a href="../experiments/' in page


def test_a_drafted_tolerance_is_told_with_its_line_and_one_with_a_reason_is_not(
    logs: tuple[KernelLog, ...],
) -> None:
    def file_of(path: str) -> str:
        words = "a guess: roundings of f32" if "transpose" in path else "it only copies"
        return f'\n\n        why="{words}",\n'

    told = overview.overview(logs, lambda _: None, file_of=file_of).cautions
    assert [words for words in told if "guess" in words] == [
        "The drafted tolerance of transpose is a guess: variants/transpose/problem.py:3."
    ]


def first_page(root: Path) -> str:
    page = ProjectSite(project.load(root, sources=False)).render("index.html")
    assert page is not None
    return page.decode()


def test_a_kernel_without_an_experiment_is_shown_with_what_its_emulation_found(
    scale: Path, kx: Kx
) -> None:
    path = scale / "experiments.yaml"
    path.write_text(
        path.read_text().partition("\nhistory:")[0].partition("\nexperiments:")[0] + "\n"
    )
    assert "not emulated, not timed" in first_page(scale)
    kx("emulate", "scale", cwd=scale)
    page = first_page(scale)
    assert "Emulated: right" in page
    assert "kernelexp explain scale@" in page
    source = scale / "variants/scale/scale.cu"
    text = source.read_text()
    source.write_text(f"// another\n{text}")
    assert "changed since it was emulated" in first_page(scale)
    source.write_text(text.replace("each *= factor", "each += factor"))
    kx("emulate", "scale", cwd=scale)
    assert "INCORRECT" in first_page(scale)
    source.write_text(text)
    assert "Emulated: right" in first_page(scale)


def ask(project_root: Path, order: str, before: str, after: str, kx: Kx) -> str:
    """Edits the kernel and runs an experiment on it; what that printed."""
    path = project_root / "experiments.yaml"
    path.write_text(
        path.read_text().partition("\nexperiments:")[0]
        + f"""
experiments:
  P1:
    kernel: scale
    arch: sm_90a
    title: The other order
    baseline: {{}}
    candidate: {{order: {order}}}
    hypothesis: It is faster.
  P2:
    kernel: scale
    arch: sm_90a
    title: Not run
    baseline: {{}}
    candidate: {{width: 2}}
    hypothesis: It is faster.
"""
    )
    source = project_root / "variants/scale/scale.cu"
    assert before in source.read_text()
    source.write_text(source.read_text().replace(before, after))
    return kx("run", "P1", "--no-gpu", cwd=project_root).stdout


def test_a_placebo_is_called_one_and_nobody_is_sent_to_a_gpu_for_it(scale: Path, kx: Kx) -> None:
    ask(scale, "backward", "if constexpr (ORDER == Order::backward)", "if constexpr (false)", kx)
    site = ProjectSite(project.load(scale, sources=False))
    page = (site.render("experiments/P1.html") or b"").decode()
    assert "Nothing to time: " in page
    assert "<code>kernelexp decide reject P1</code>" in page
    card = first_page(scale)
    assert "a placebo: the same instructions as the baseline" in card
    assert "1 placebo, 1 not run" in card
    explained = kx("explain", "P1", cwd=scale).stdout
    assert "The candidate is a placebo" in explained
    for words in (page, card, explained):
        assert "on a GPU of" not in words
        assert "What would decide" not in words
    kx("decide", "reject", "P1", cwd=scale)
    assert "kernelexp decide reject P1" not in first_page(scale)


def test_a_wrong_baseline_is_told_and_to_be_mended_first(scale: Path, kx: Kx) -> None:
    printed = ask(scale, "backward", "each *= factor", "each += factor", kx)
    assert "Baseline: INCORRECT (emulated_reference)." in printed
    card = first_page(scale)
    assert "What regressed or is wrong" in card
    assert "</a> baseline: Emulated: " in card
    assert "Next: mend the baseline, which <code>kernelexp emulate P1</code> finds wrong" in card
    doubtful = card[card.index('id="doubtful"') : card.index('id="unmeasured"')]
    assert doubtful.count("its baseline is wrong") == 2
    assert "counts of a wrong candidate are not shown" in card
    assert "instructions executed" not in card
    assert 'id="untimed"' in card
    assert 'id="best"' not in card


def test_what_changed_most_is_shown_for_better_or_worse(scale: Path, kx: Kx) -> None:
    path = scale / "experiments.yaml"
    path.write_text(path.read_text().partition("\nhistory:")[0] + "\n")
    kx("run", "S1", "S2", "--no-gpu", cwd=scale)
    assert "<code>kernelexp run S1 S2</code>" in first_page(scale)
    (standing,) = next(
        entry.candidates
        for item in kernel_logs.assemble(project.load(scale))
        for name, entry in item.standings.items()
        if name == "S1"
    )
    assert standing.record
    assert standing.arm
    there = list(edited.changes(standing.record.baseline, standing.arm))
    back = list(edited.changes(standing.arm, standing.record.baseline))
    counted = next(words for words in there if words.startswith("instructions executed"))
    assert not counted.endswith("(worse)")
    assert any(w.startswith("instructions executed") and w.endswith("(worse)") for w in back)


def test_bars_of_a_limit_are_as_long_as_their_percentages(repository: ProjectSite) -> None:
    page = (repository.render("experiments/S3.html") or b"").decode()
    _, _, bars = page.partition('<table class="bars">')
    figures, widths = (
        [float(found) for found in re.findall(pattern, bars.partition("</table>")[0])]
        for pattern in (r'<td class="n">([\d.]+)</td>', r'class="s\d" width="([\d.]+)"')
    )
    assert figures
    assert widths == [pytest.approx(figure, abs=0.06) for figure in figures]
