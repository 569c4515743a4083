"""The folder of pages: nothing of a project is run, and nothing of other people is written over."""

from __future__ import annotations

import fcntl
import json
import os
import runpy
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from site_project import Reader
from support import ROOT, Kx, edit

from kernelexp.cli import completion
from kernelexp.logs import records
from kernelexp.model import errors
from kernelexp.report.site import folder, site


@pytest.fixture
def trap(tmp_path: Path) -> Path:
    """A project whose problem.py leaves a file where it is imported."""
    root = tmp_path / "scale"
    shutil.copytree(ROOT / "tests/projects/scale", root)
    problem = root / "variants/scale/problem.py"
    problem.write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\n{problem.read_text()}")
    runpy.run_path(str(problem))
    (tmp_path / "ran").unlink()  # it works
    return root


@pytest.mark.parametrize(
    "arguments",
    [
        ("list",),
        ("show", "S1"),
        ("log",),
        ("log", "--json"),
        ("report",),
        ("plot", "history"),
    ],
)
def test_what_only_reads_never_runs_a_projects_python(
    kx: Kx, trap: Path, arguments: tuple[str, ...]
) -> None:
    kx(*arguments, cwd=trap)
    assert not (trap.parent / "ran").exists()


def test_completion_never_runs_a_projects_python(trap: Path) -> None:
    ctx = SimpleNamespace(params={"project": trap}, args=[])
    words = completion.answer(completion.variant_names, ctx, "S")
    assert [name for name, _ in words] == ["S1", "S2"]
    assert not (trap.parent / "ran").exists()


def test_a_folder_with_other_files_is_left_as_it_is(kx: Kx, trap: Path) -> None:
    (trap / "report").mkdir()
    (trap / "report" / "thesis.tex").write_text("mine")
    result = kx("report", cwd=trap)
    assert (result.exit_code, "holds files" in result.stderr) == (errors.USAGE, True)
    assert [path.name for path in (trap / "report").iterdir()] == ["thesis.tex"]


def test_a_report_is_written_over_its_former_self(kx: Kx, trap: Path) -> None:
    assert kx("report", cwd=trap).exit_code == errors.OK
    edit(trap, "title: ", "title: Anew, ")
    assert kx("report", cwd=trap).exit_code == errors.OK


def test_every_folder_of_pages_is_known_to_be_a_report_s(kx: Kx, scale: Path) -> None:
    """Those of sources were said to be others' when a report was written again."""
    kx("run", "S1", "--no-emulate", cwd=scale)
    assert kx("report", cwd=scale).exit_code == errors.OK
    files = {path.relative_to(scale / "report") for path in (scale / "report").rglob("*.html")}
    assert {path.parts[0] for path in files if len(path.parts) > 1} <= site.FOLDERS
    assert "code" in {path.parts[0] for path in files}
    assert kx("report", cwd=scale).exit_code == errors.OK


def test_reports_at_the_same_time_are_written_one_after_the_other(kx: Kx, trap: Path) -> None:
    program = [sys.executable, "-m", "kernelexp", "report", "--out", "new/pages"]
    several = [subprocess.Popen(program, cwd=trap, stdout=subprocess.DEVNULL) for _ in range(3)]
    assert [item.wait() for item in several] == [errors.OK] * 3
    assert kx("report", "--out", "new/pages", cwd=trap).exit_code == errors.OK
    listed = json.loads((trap / "new/pages/kernelexp-report.json").read_text())["files"]
    result = (path for path in (trap / "new/pages").rglob("*") if path.is_file())
    names = {path.relative_to(trap / "new/pages").as_posix() for path in result}
    assert names == {*listed, "kernelexp-report.json"}


def test_a_report_that_is_being_written_is_no_folder_of_others(tmp_path: Path) -> None:
    handle = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    (tmp_path / "index.html").touch()  # its list of files is still to come
    answers: list[set[str]] = []
    asking = threading.Thread(target=lambda: answers.append(folder.former(tmp_path, False)))
    asking.start()
    asking.join(0.3)
    (tmp_path / folder.MANIFEST).write_text('{"files": ["index.html"]}')
    os.close(handle)
    asking.join(60)
    assert answers == [{"index.html"}]


def test_a_folder_with_a_log_of_its_own_is_no_report(kx: Kx, trap: Path) -> None:
    (trap / "report").mkdir()
    for name in ("log.json", "index.html"):
        (trap / "report" / name).write_text("mine")
    assert kx("report", cwd=trap).exit_code == errors.USAGE
    assert (trap / "report/index.html").read_text() == "mine"


def test_pages_of_what_is_no_more_are_removed_and_files_of_others_kept(kx: Kx, trap: Path) -> None:
    text = (trap / "experiments.yaml").read_text()
    edit(trap, "  S1:", "  S0:")
    kx("report", cwd=trap)
    (trap / "report/experiments/notes.html").write_text("mine")
    assert (trap / "report/experiments/S0.html").is_file()
    (trap / "experiments.yaml").write_text(text)
    assert kx("report", cwd=trap).exit_code == errors.OK
    left = {path.name for path in (trap / "report/experiments").iterdir()}
    assert left == {"S1.html", "S2.html", "aaaaaaa.html", "notes.html"}


def test_a_file_in_the_place_of_a_new_page_is_kept_unless_forced(kx: Kx, trap: Path) -> None:
    kx("report", cwd=trap)
    edit(trap, "  S1:", "  S0:")
    own = trap / "report/experiments/S0.html"
    own.write_text("mine")
    result = kx("report", cwd=trap)
    assert (result.exit_code, "was not written by kernelexp" in result.stderr) == (
        errors.USAGE,
        True,
    )
    assert own.read_text() == "mine"
    assert kx("report", "--force", cwd=trap).exit_code == errors.OK
    assert own.read_text() != "mine"


def test_nothing_is_written_or_removed_through_a_link_out_of_the_folder(kx: Kx, trap: Path) -> None:
    kx("report", cwd=trap)
    elsewhere = trap / "elsewhere"
    (trap / "report/experiments").rename(elsewhere)
    (trap / "report/experiments").symlink_to(elsewhere)
    before = (elsewhere / "S1.html").stat().st_mtime_ns
    result = kx("report", cwd=trap)
    assert (result.exit_code, "is a link out of" in result.stderr) == (errors.USAGE, True)
    assert (elsewhere / "S1.html").stat().st_mtime_ns == before


def test_a_folder_that_cannot_be_made_is_said(kx: Kx, trap: Path) -> None:
    result = kx("report", "--out", "experiments.yaml/pages", cwd=trap)
    assert result.exit_code in (errors.USAGE, errors.ENVIRONMENT)
    assert result.stderr.startswith("error: experiments.yaml/pages")
    assert result.stderr.count("\n") == 1


def test_a_broken_record_is_named_and_the_others_shown(kx: Kx, trap: Path) -> None:
    folder = trap / records.FOLDER / "S1"
    folder.mkdir(parents=True)
    (folder / "20260101T000000Z-00000000.build.json").write_text("{")
    result = kx("report", "--out", "pages", cwd=trap / "variants")
    assert result.exit_code == errors.OK
    assert "warning: skipped logs/runs/S1/20260101T000000Z-00000000.build.json" in result.stderr
    page = Reader((trap / "variants/pages/experiments/S1.html").read_text())
    assert "No records yet" in page.text


def test_serving_writes_no_folder(kx: Kx, trap: Path) -> None:
    result = kx("report", "--serve", "--out", "x", cwd=trap)
    assert (result.exit_code, "leave out --out" in result.stderr) == (errors.USAGE, True)
