"""A report that is written again: only pages whose inputs have changed are rendered."""

from __future__ import annotations

from pathlib import Path

import pytest
from site_project import copy
from support import Kx, edit

from kernelexp import project
from kernelexp.logs import records
from kernelexp.report.site import folder, site


def written(root: Path, out: Path, every: bool = False) -> folder.RenderedPages:
    return folder.write(site.ProjectSite(project.load(root, sources=False)), out, every=every)


def pages(out: Path) -> dict[str, bytes]:
    return {
        path.relative_to(out).as_posix(): path.read_bytes()
        for path in out.rglob("*")
        if path.is_file() and path.name != folder.MANIFEST
    }


@pytest.fixture
def reported(scale: Path, kx: Kx) -> Path:
    """Two experiments with a record each, and their pages in report/."""
    assert kx("run", "S1", "S2", "--no-emulate", cwd=scale).exit_code == 0
    assert "as they were" not in kx("report", cwd=scale).stdout
    return scale


def rendered(root: Path, before: dict[str, float]) -> set[str]:
    """The pages that are newer files than before."""
    return {name for name, age in ages(root).items() if age != before.get(name)}


def ages(root: Path) -> dict[str, float]:
    out = root / "report"
    return {name: (out / name).stat().st_ino for name in pages(out) if name.startswith("exp")}


def test_pages_without_a_change_are_left_and_all_renders_them(reported: Path, kx: Kx) -> None:
    before, content = ages(reported), pages(reported / "report")
    assert "as they were" in kx("report", cwd=reported).stdout
    assert rendered(reported, before) == set()
    assert pages(reported / "report") == content  # of sources and listings too
    assert "as they were" not in kx("report", "--all", cwd=reported).stdout
    assert rendered(reported, before) == set(before)
    assert pages(reported / "report") == content


def test_a_record_renders_its_own_page_and_the_site_is_as_made_anew(reported: Path, kx: Kx) -> None:
    before = ages(reported)
    kx("run", "S1", "--no-emulate", cwd=reported)
    kx("report", cwd=reported)
    assert rendered(reported, before) == {"experiments/S1.html"}
    kx("report", "--out", "anew", cwd=reported)
    assert pages(reported / "report") == pages(reported / "anew")


def test_an_edited_source_renders_every_page(reported: Path, kx: Kx) -> None:
    before = ages(reported)
    source = reported / "variants/scale/scale.cu"
    source.write_text(f"// another\n{source.read_text()}")
    kx("report", cwd=reported)
    assert rendered(reported, before) == set(before)


def test_whatever_a_page_shows_is_among_its_inputs(reported: Path, kx: Kx) -> None:
    for change in (
        lambda: edit(reported, "title: ", "title: Anew, "),
        lambda: kx("decide", "accept", "S1", cwd=reported),
        lambda: (reported / "report/experiments/S1.html").write_text("edited"),
        lambda: (reported / ".kernelexp/build").rename(reported / ".kernelexp/gone"),
    ):
        change()
        kx("report", cwd=reported)
        kx("report", "--all", "--out", "anew", cwd=reported)
        assert pages(reported / "report") == pages(reported / "anew")


def test_reports_of_this_repository_s_records_are_alike_again(tmp_path: Path) -> None:
    root = copy(tmp_path, "T1", "H12", "A4")
    first = written(root, tmp_path / "out")
    content = pages(tmp_path / "out")
    again = written(root, tmp_path / "out")
    assert (again.files, again.kept > first.files // 2) == (first.files, True)
    assert pages(tmp_path / "out") == content
    latest = records.find(root, "A4")
    latest.unlink()
    written(root, tmp_path / "out")
    written(root, tmp_path / "anew")
    assert pages(tmp_path / "out") == pages(tmp_path / "anew")
