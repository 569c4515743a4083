"""The web pages: whole, with the figures of the log, and harmless whatever people wrote."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from urllib.parse import unquote, urldefrag

import msgspec
import pytest
from site_project import Reader, build, copy, hostile
from support import ROOT, Kx, edit

from kernelexp import project
from kernelexp.judge import consistency
from kernelexp.logs import records
from kernelexp.model import errors
from kernelexp.model.record import SizeResult
from kernelexp.report.site import site
from kernelexp.report.site.diffs import Texts

pytestmark = pytest.mark.xdist_group("site")


@pytest.fixture(scope="module")
def read(pages: Path) -> dict[str, Reader]:
    """All of them by their paths."""
    return {
        path.relative_to(pages).as_posix(): Reader(path.read_text())
        for path in sorted(pages.rglob("*.html"))
    }


def test_elements_are_nested_and_closed(read: dict[str, Reader]) -> None:
    assert {name for name, page in read.items() if page.open} == set()
    assert len(read) > 70


def test_every_link_leads_to_a_page_and_every_fragment_to_a_place(
    pages: Path, read: dict[str, Reader]
) -> None:
    ids = {
        name: {attributes["id"] for _, attributes in page.tags if attributes.get("id")}
        for name, page in read.items()
    }
    kernels = read["index.html"].text
    broken = []
    for name, page in read.items():
        for link in page.all("a"):
            path, fragment = urldefrag(link["href"] or "")
            target = (pages / name).parent.joinpath(path).resolve() if path else pages / name
            where = target.relative_to(pages.resolve()).as_posix()
            if fragment.startswith("kernel="):  # of the first page's filters
                fragment = "experiments-heading" if unquote(fragment[7:]) in kernels else "?"
            if not target.is_file() or (fragment and fragment not in ids[where]):
                broken.append((name, link["href"]))
    assert broken == []


def test_nothing_is_loaded_from_elsewhere(read: dict[str, Reader]) -> None:
    loaded = {
        (name, tag)
        for name, page in read.items()
        for tag, attributes in page.tags
        if attributes.keys() & {"src", "srcset", "data", "action", "background"} or tag == "link"
    }
    assert loaded == set()


def test_every_page_has_a_policy_a_language_a_title_and_one_first_heading(
    read: dict[str, Reader],
) -> None:
    for name, page in read.items():
        policies = [m["content"] for m in page.all("meta") if m.get("http-equiv")]
        assert len(policies) == 1, name
        assert "default-src 'none'" in (policies[0] or "")
        assert "unsafe" not in (policies[0] or "")
        assert (len(page.all("h1")), page.all("html")[0]["lang"]) == (1, "en"), name


def test_tables_have_header_cells_with_a_scope(read: dict[str, Reader]) -> None:
    scopes = {item.get("scope") for page in read.values() for item in page.all("th")}
    assert scopes == {"col", "colgroup", "row"}


def test_no_element_has_a_style_or_a_handler_of_its_own(read: dict[str, Reader]) -> None:
    named = {key for page in read.values() for _, attributes in page.tags for key in attributes}
    assert [key for key in named if key.startswith("on") or key == "style"] == []


def test_the_figures_are_those_of_the_log(
    kx: Kx, part: Path, pages: Path, read: dict[str, Reader]
) -> None:
    logged = json.loads(kx("log", "--json", cwd=part).stdout)
    assert json.loads((pages / "log.json").read_text()) == logged
    expected = [
        arm[name]
        for log in logged
        for section in ("history", "experiments")
        for entry in log[section]
        for arm in entry["arms"]
        if arm["arm"] == "candidate"
        for name in site.index.NUMBERS
        if name in arm
    ]
    shown = [
        float(cell["data-value"] or "")
        for cell in read["index.html"].all("td")
        if "data-value" in cell
    ]
    assert shown == expected
    assert len(shown) > 10


def test_an_experiment_has_its_words_evidence_plot_reproduction_and_costs(
    read: dict[str, Reader],
) -> None:
    text = read["experiments/H3.html"].text
    for words in (
        "hypothesis",
        "Verdict:",
        "kernelexp run --record 20261121T014950Z-633bb845",
        "Lines that cost most",
        "99.75% interval",
    ):
        assert words in text


@pytest.fixture(scope="module")
def contested() -> str:
    """The text of an experiment about one of whose two candidates cards disagree."""
    rendered = site.ProjectSite(project.load(ROOT, sources=False)).render("experiments/T3.html")
    return " ".join(Reader((rendered or b"").decode()).text.split())


def test_candidates_stand_below_each_other_with_change_verdict_and_margin(contested: str) -> None:
    chart = contested.partition("CandidateChangeVerdictInterval")[2].partition("Why")[0]
    assert "rows=4+1.32% (+1.01% to +1.64%)REJECTED" in chart
    assert chart.index("rows=4") < chart.index("rows=16") < chart.index("the margin of ±1%")


def test_a_contested_candidate_is_named_in_the_command_that_decides(contested: str) -> None:
    assert "kernelexp decide accept T3:1" in contested


def test_a_profile_leads_back_to_the_experiments_that_show_it(read: dict[str, Reader]) -> None:
    profiles = [name for name in read if name.startswith("profiles/")]
    linked = {
        link.get("href") for name in profiles for link in read[name].all("a") if link.get("href")
    }
    assert any(link.startswith("../experiments/") for link in linked if link)


def test_an_answer_is_followed_by_what_it_rests_on_and_what_speaks_against_it(
    read: dict[str, Reader],
) -> None:
    answer = " ".join(read["experiments/H3.html"].text.split()).partition(" Why ")[0]
    assert "Measured on NVIDIA H200 on 2026-11-21, at size full." in answer
    assert "This run did not record problem.py" in answer
    title = "Measured with an unknown problem.py"
    doubts = " ".join(read["index.html"].text.split()).partition(title)[2]
    assert doubts.index("Their records are older") < doubts.index("H3 The table")


@pytest.mark.parametrize(("name", "candidate"), [("H3", ":1"), ("T1", "")])
def test_an_experiment_says_how_to_audit_it_and_to_see_other_commits(
    read: dict[str, Reader], name: str, candidate: str
) -> None:
    words = read[f"experiments/{name}.html"].text
    assert f"kernelexp compare {name}{candidate} --audit" in words
    assert f"kernelexp history {name} --revisions" in words


def test_a_measured_experiment_without_a_figure_of_its_own_says_what_changed(
    tmp_path: Path,
) -> None:
    root = copy(tmp_path, "T1")
    text = Reader((build(root, tmp_path / "out") / "experiments/T1.html").read_text()).text
    assert "changed since" in text  # its sources are not there


def test_sizes_are_named_in_the_order_in_which_they_were_timed(tmp_path: Path) -> None:
    root = copy(tmp_path, "T1")
    path = records.find(root, "T1", measured=True)
    record = records.read_file(path)
    timed = tuple(
        SizeResult(
            run=record.run,
            size=f"columns={count}",
            parameters={"columns": count},
            weight=1.0,
            baseline_us=None,
            effects=(),
            verdicts={"candidate": record.candidates[0].verdict},
        )
        for count in (33, 1001, 16001)
    )
    path.write_text(records.encode(msgspec.structs.replace(record, sizes=timed)))
    text = Reader((build(root, tmp_path / "out") / "experiments/T1.html").read_text()).text
    assert "Timed at sizes columns=33, columns=1001, columns=16001." in text


def sweep_of_two_sizes(root: Path) -> Path:
    """Rewrites a sweep's record as one of two sizes at which nothing was timed."""
    path = records.find(root, "sweep-transpose", measured=True)
    record = records.read_file(path)
    verdicts = dict.fromkeys(record.names[1:], record.candidates[0].verdict)
    size = SizeResult(
        run=record.run,
        size="full",
        parameters={},
        weight=1.0,
        baseline_us=None,
        effects=(),
        verdicts=verdicts,
    )
    path.write_text(records.encode(msgspec.structs.replace(record, sizes=(size, size))))
    return path


def test_a_sweep_of_several_sizes_says_that_its_record_was_edited(tmp_path: Path) -> None:
    root = copy(tmp_path, "T1", "sweep-transpose")
    path = sweep_of_two_sizes(root)
    record = records.read_file(path)
    path.write_text(path.read_text().replace(record.title, f"{record.title} "))
    page = build(root, tmp_path / "out") / f"sweeps/{record.run}.html"
    assert consistency.EDIT.rstrip(".") in Reader(page.read_text()).text


def test_a_sweep_of_sizes_that_were_not_timed_shows_why(tmp_path: Path) -> None:
    root = copy(tmp_path, "T1", "sweep-transpose")
    record = records.read_file(sweep_of_two_sizes(root))
    page = build(root, tmp_path / "out") / f"sweeps/{record.run}.html"
    assert f"Size full: {record.candidates[0].verdict.sentence}" in Reader(page.read_text()).text


def test_words_of_people_and_records_run_nothing(tmp_path: Path) -> None:
    out = build(hostile(tmp_path), tmp_path / "out")
    assert json.loads((out / "log.json").read_text())
    for path in out.rglob("*.html"):
        page = Reader(path.read_text())
        scripts = page.all("script")
        assert len(scripts) == (path.name == "index.html"), path
        assert page.all("img") == []
        assert not page.open
    text = Reader((out / "experiments/X1.html").read_text()).text
    assert "<script>document.title=1</script>" in text
    assert "{{ 7*7 }}" in text
    assert "{{ 7*7 }} \\x1b[2J\\u202e" in Reader((out / "experiments/T1.html").read_text()).text


def test_no_file_from_outside_of_the_project_is_shown(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("mine")
    (tmp_path / "project").mkdir()
    texts = Texts(tmp_path / "project")
    assert texts.now("../secret") == ""
    os.mkfifo(tmp_path / "project/pipe")
    assert texts.now("pipe") == ""
    (tmp_path / "project/near").write_text("ours")
    assert texts.now("near") == "ours"


@pytest.mark.parametrize("scheme", [0, 1])
def test_figures_can_be_read_on_every_shade(read: dict[str, Reader], scheme: int) -> None:
    style = read["index.html"].text
    value = {
        name: re.findall(rf"--{name}: (#[0-9a-f]{{6}})", style)[scheme]
        for name in ("fg", "h1", "h2", "h3", "h5", "h3-text", "h5-text")
    }
    for shade, words in (("h1", "fg"), ("h2", "fg"), ("h3", "h3-text"), ("h5", "h5-text")):
        assert contrast(value[shade], value[words]) >= 4.5, shade


def contrast(one: str, other: str) -> float:
    """Of two colours, as WCAG defines it."""
    low, high = sorted(map(luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_marks_of_the_history_lead_to_their_experiments(read: dict[str, Reader]) -> None:
    links = [item for item in read["index.html"].all("a") if item.get("aria-label")]
    assert {"experiments/S7.html", "experiments/abf04a5.html"} <= {e["href"] for e in links}


def test_defines_of_the_variants_stand_side_by_side(read: dict[str, Reader]) -> None:
    text = read["experiments/T1.html"].text
    assert "-DKX_LAYOUT=plain" in text
    assert "+-DKX_LAYOUT=padded" in text


def test_a_source_is_shown_as_each_variant_sees_it(read: dict[str, Reader]) -> None:
    text = read["experiments/T1.html"].text
    assert "variants/transpose/transpose.cu as baseline and candidate see it" in text
    assert "-    static constexpr Layout LAYOUT = Layout::plain;" in text
    assert "+    static constexpr Layout LAYOUT = Layout::padded;" in text


def test_profiled_and_measured_variants_stand_on_a_roofline(read: dict[str, Reader]) -> None:
    for page, name in (("index.html", "patch_embed_gemm@sm_90a"), ("experiments/H3.html", "H3")):
        assert "Roofline of H200" in read[page].text
        assert "fp8/int8 peak, 1,979 TFLOPS" in read[page].text, name


def test_words_between_backticks_are_code(read: dict[str, Reader]) -> None:
    page = read["experiments/H3.html"]
    assert page.all("code")
    assert "<code>" not in page.text
    assert "`" not in page.text


@pytest.mark.slow
def test_sass_differs_where_both_builds_are_kept_and_sources_since_the_run(
    kx: Kx, scale: Path, tmp_path: Path
) -> None:
    edit(scale, "candidate: {width: 4}", "candidate: {order: backward}")
    assert kx("run", "S1", "--no-gpu", cwd=scale).exit_code == errors.OK
    before = Reader((build(scale, tmp_path / "a") / "experiments/S1.html").read_text()).text
    assert "SASS of baseline and candidate" in before
    assert "+    if constexpr (ORDER == Order::backward) i = count - 1 - i;" in before
    assert " if (i >= count) return;" in before
    assert "@@" in before
    assert "since run" not in before
    source = next((scale / "variants/scale").glob("*.cu"))
    source.write_text(f"{source.read_text()}// a later thought\n")
    after = Reader((build(scale, tmp_path / "b") / "experiments/S1.html").read_text()).text
    assert f"{source.relative_to(scale)} since run" in after
    assert "+// a later thought" in after


def test_a_line_unfolds_its_sass_in_each_variant_and_what_it_conflicts_in(
    kx: Kx, scale: Path, tmp_path: Path
) -> None:
    assert kx("run", "S1", "--no-gpu", cwd=scale).exit_code == errors.OK
    kx("inspect", "S1", "--memory", cwd=scale)
    page = (build(scale, tmp_path / "a") / "experiments/S1.html").read_text()
    unfolding = re.findall(r"<details class=\"sass\">.*?</details>", page, re.DOTALL)
    stores = [item for item in unfolding if "STG" in item]
    assert stores
    assert all("baseline: " in store and "candidate: " in store for store in stores)
    assert all("SASS instructions" in item for item in unfolding)


def test_views_that_are_drawn_are_linked_above_all_details_and_the_others_named_with_their_commands(
    kx: Kx, scale: Path, tmp_path: Path
) -> None:
    assert kx("run", "S1", "--no-gpu", cwd=scale).exit_code == errors.OK
    page = (build(scale, tmp_path / "a") / "experiments/S1.html").read_text()
    top = page.partition("<h2>Why")[0]
    assert re.search(r'href="../code/[^"]*">Source beside SASS', top)
    words = Reader(top).text
    assert "Not made yet: time line of a CTA's warps, lanes that conflict in memory" in words
    assert "kernelexp inspect S1 --modelled" in top
    kx("inspect", "S1", "--modelled", cwd=scale)
    kx("inspect", "S1", "--memory", cwd=scale)
    page = (build(scale, tmp_path / "b") / "experiments/S1.html").read_text()
    top = page.partition("<h2>Why")[0]
    assert len(re.findall(r'href="../timelines/[^"]*">Time line of the', top)) == 2
    drawn = re.search(r'href="#(memory-[^"]*)">Conflicts in memory', top)
    assert drawn
    assert f'id="{drawn[1]}"' in page
    assert "Not made yet" not in page


def test_the_source_beside_sass_is_linked_even_where_another_machine_made_the_record(
    kx: Kx, scale: Path, tmp_path: Path
) -> None:
    assert kx("run", "S1", "--no-gpu", cwd=scale).exit_code == errors.OK
    path = records.find(scale, "S1")
    record = records.read_file(path)
    elsewhere = msgspec.structs.replace(record.baseline, identity="0123456789abcdef")
    path.write_text(records.encode(msgspec.structs.replace(record, baseline=elsewhere)))
    pages = build(scale, tmp_path / "a")
    assert f'href="../code/{record.run}.html"' in (pages / "experiments/S1.html").read_text()
    code = Reader((pages / f"code/{record.run}.html").read_text()).text
    assert "SASS of baseline" in code
    assert "SASS of candidate" in code
    assert "EXIT" in code
    assert "if (i >= count) return;" in code


def test_lines_of_code_are_hot_where_the_emulation_counted_most(
    read: dict[str, Reader],
) -> None:
    cells = read["experiments/T1.html"].all("td")
    shades = {word for cell in cells for word in (cell.get("class") or "").split()} & {"h1", "h5"}
    assert shades == {"h1", "h5"}


def test_a_source_is_served_to_those_who_come_by_its_link(
    part: Path, read: dict[str, Reader]
) -> None:
    path = next(name for name in read if name.startswith("sources/"))
    shown = Reader(
        (site.ProjectSite(project.load(part, sources=False)).render(path) or b"").decode()
    )
    assert shown.text == read[path].text


def test_an_edit_after_a_publication_is_not_said_to_be_after_a_run() -> None:
    pages = site.ProjectSite(project.load(ROOT, sources=False))
    published = pages.render("experiments/9bf658a.html").decode()
    assert "edited after this was recorded; as it was, it is under As published." in published
    assert "edited after the run" not in published
    assert "edited after the run" in pages.render("experiments/S7.html").decode()
