"""Records that were edited, moved or contradict themselves: none of them decides anything."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import early_records
import pytest
from early_records import rows
from support import Kx

from kernelexp.dossier import speaking
from kernelexp.logs.documents import sealed
from kernelexp.project import load


@pytest.fixture
def early(tmp_path: Path) -> Path:
    return early_records.copy(tmp_path)


def test_a_record_moved_to_another_experiment_is_skipped(early: Path, kx: Kx) -> None:
    (path, *_) = (early / "logs/runs/T2").glob("*.measured.json")
    shutil.copy(path, early / "logs/runs/T1" / "20261121T235959Z-00000000.measured.json")
    result = kx("log", cwd=early)
    assert "is a record of T2" in result.stderr
    assert rows(early, kx, "T1")[0][4] == "IMPROVED"


def test_a_record_whose_samples_are_of_other_builds_is_skipped(early: Path, kx: Kx) -> None:
    for path in (early / "logs/runs/T3").glob("*.measured.json"):
        values = json.loads(path.read_text())
        values["candidates"].reverse()
        path.write_text(json.dumps(values))
    result = kx("log", cwd=early)
    assert "contradicts itself" in result.stderr
    assert [row[4] for row in rows(early, kx, "T3")] == ["not run", "not run"]


def forged(root: Path, **instead: object) -> None:
    """T3's record with other words about its first candidate than its samples give."""
    for path in (root / "logs/runs/T3").glob("*.measured.json"):
        values = json.loads(path.read_text())
        if "ratio" in instead:
            values["estimate"]["effects"][0] |= instead
        else:
            values["candidates"][0]["verdict"] |= instead
        path.write_text(json.dumps(values))


def test_an_estimate_that_the_samples_do_not_give_is_shown_as_such(early: Path, kx: Kx) -> None:
    kx("log", cwd=early)  # what was found right then is judged again when it is another
    forged(early, ratio=0.5, low=0.49, high=0.51)
    assert rows(early, kx, "T3")[0][3:] == ["rows=4: —", "changed since"]
    words = "its estimate (-50.00%, where its samples give -2.36%)"
    assert words in kx("log", cwd=early).stdout
    path = max((early / "logs/runs/T3").glob("*.measured.json"))
    for command in ("show", "verdict"):
        assert words in " ".join(kx(command, str(path), cwd=early).stdout.split())


def test_an_earlier_record_speaks_where_the_last_one_is_doubted_and_that_is_said(
    early: Path, kx: Kx
) -> None:
    last = max((early / "logs/runs/T3").glob("*.measured.json"))
    values = json.loads(last.read_text())
    values["estimate"]["effects"][0] |= {"ratio": 0.5}
    last.write_text(json.dumps(values))
    name = last.name.partition(".")[0]
    for command in ("log", "show T3"):
        result = kx(*command.split(), cwd=early)
        assert f"{last.name}: it can't be relied on for rows=4: its estimate" in result.stderr
        if command == "log":
            assert name not in result.stdout
        else:
            page = " ".join(result.stdout.partition(name)[2].split())
            assert "Can't be relied on for rows=4: its estimate (-50.00%, where" in page


def test_a_sweep_that_can_t_be_read_is_said_by_the_log(early: Path, kx: Kx) -> None:
    path = max((early / "logs/runs/sweep-transpose").glob("*.json"))
    path.write_text(path.read_text()[:5000])
    result = kx("log", cwd=early)
    assert f"{path.name}: it is truncated or invalid JSON" in result.stderr
    assert path.name.partition(".")[0] not in result.stdout


def test_a_sweep_that_was_edited_is_shown_as_such(early: Path, kx: Kx) -> None:
    path = max((early / "logs/runs/sweep-transpose").glob("*.json"))
    text = sealed(path.read_text().replace('"digest"', '"was"'))
    path.write_text(text.replace('"tool": "0.', '"tool": "9.'))
    page = kx("show", path.name.partition(".")[0], cwd=early).stdout
    assert "This record was edited after it was written" in page


def test_a_time_that_the_samples_do_not_give_is_shown_as_such(early: Path, kx: Kx) -> None:
    for path in (early / "logs/runs/T3").glob("*.measured.json"):
        values = json.loads(path.read_text())
        for times in values["estimate"]["times"]:
            times["median_us"] = 1.0
        path.write_text(json.dumps(values))
    assert rows(early, kx, "T3")[0][4] == "changed since"
    assert "the baseline's median (1 us, where its samples give 29" in kx("log", cwd=early).stdout


def test_a_record_that_was_renamed_is_not_the_latest(early: Path, kx: Kx) -> None:
    old, *_, last = sorted((early / "logs/runs/T3").glob("*.measured.json"))
    shown = kx("log", cwd=early).stdout
    name = f"{last.name[:8]}T235959Z-00000000.measured.json"
    old.rename(last.with_name(name))
    result = kx("log", cwd=early)
    run = old.name.partition(".")[0]
    assert f"{name}: it is a record of run {run}" in result.stderr
    assert result.stdout == shown


def test_a_verdict_that_the_samples_do_not_give_is_shown_as_such(early: Path, kx: Kx) -> None:
    forged(early, status="REJECTED")
    assert rows(early, kx, "T3")[0][4] == "changed since"
    assert "its verdict (REJECTED, where its samples give IMPROVED)" in kx("log", cwd=early).stdout


def test_words_of_a_verdict_with_other_figures_than_its_samples_give_are_shown_as_such(
    early: Path, kx: Kx
) -> None:
    forged(early, sentence="42.00% faster, surely.")
    assert rows(early, kx, "T3")[0][4] == "changed since"
    assert "its verdict's words (faster: '42.00% faster, surely.')" in kx("log", cwd=early).stdout


def test_a_record_that_was_edited_in_any_place_is_shown_as_such(early: Path, kx: Kx) -> None:
    paths = sorted((early / "logs/runs/T3").glob("*.measured.json"))
    for path in paths:
        path.write_text(sealed(path.read_text()))
    assert rows(early, kx, "T3")[0][4] == "IMPROVED"
    for path in paths:
        path.write_text(path.read_text().replace("NVIDIA H200", "NVIDIA H100"))
    assert rows(early, kx, "T3")[0][4] == "changed since"
    words = "edited after it was written"
    latest = str(paths[-1])
    for command in (("log",), ("show", "T3"), ("verdict", latest), ("show", "T3", "--json")):
        assert words in " ".join(kx(*command, cwd=early).stdout.split()), command


def test_axes_of_two_candidates_that_were_exchanged_are_a_contradiction(
    early: Path, kx: Kx
) -> None:
    for path in (early / "logs/runs/T3").glob("*.measured.json"):
        values = json.loads(path.read_text())
        one, other = (candidate["arm"] for candidate in values["candidates"])
        one["axes"], other["axes"] = other["axes"], one["axes"]
        path.write_text(json.dumps(values))
    assert [row[4] for row in rows(early, kx, "T3")] == ["not run", "not run"]
    assert "contradicts itself: its candidate 1 was not built with" in kx("log", cwd=early).stderr


def test_a_launch_that_was_wrong_when_it_was_checked_is_no_measured_verdict(
    early: Path, kx: Kx
) -> None:
    for path in (early / "logs/runs/T3").glob("*.measured.json"):
        values = json.loads(path.read_text())
        for check in values["measurement"]["workers"][1]["checks"]:
            if check["arm"] == "candidate 1":
                check["arrays"][0]["wrong"] = 5
        path.write_text(json.dumps(values))
    assert rows(early, kx, "T3")[0][4] == "changed since"
    assert "where a launch that was checked was wrong" in kx("log", cwd=early).stdout


def test_a_record_of_another_card_than_its_samples_is_skipped(early: Path, kx: Kx) -> None:
    for path in (early / "logs/runs/T3").glob("*.measured.json"):
        path.write_text(
            path.read_text().replace('"device": "NVIDIA H200"', '"device": "NVIDIA B200"')
        )
    result = kx("log", cwd=early)
    assert "its samples are of NVIDIA H200, it is of NVIDIA B200" in result.stderr
    assert "NVIDIA B200;" not in result.stdout


def test_a_record_dated_in_the_future_hides_no_other(early: Path, kx: Kx) -> None:
    runs = sorted((early / "logs/runs/T1").glob("*.measured.json"))
    ahead = json.loads(runs[0].read_text())
    ahead["run"] = "20990101T000000Z-00000000"
    ahead["candidates"][0]["verdict"]["status"] = "REJECTED"
    (runs[0].parent / "20990101T000000Z-00000000.measured.json").write_text(json.dumps(ahead))
    assert rows(early, kx, "T1")[0][4] == "IMPROVED"


def _edited(root: Path, experiment: str) -> None:
    """All records of an experiment say of another card what was found on theirs."""
    for path in (root / f"logs/runs/{experiment}").glob("*.measured.json"):
        path.write_text(sealed(path.read_text()).replace("NVIDIA H200", "NVIDIA H100"))


@pytest.mark.parametrize("command", ["log", "show T3", "show T3 --json", "show RUN"])
def test_an_edited_record_says_first_that_it_was_edited_and_shows_no_verdict(
    early: Path, kx: Kx, command: str
) -> None:
    _edited(early, "T3")
    run = max((early / "logs/runs/T3").glob("*.measured.json")).name.partition(".")[0]
    page = " ".join(kx(*command.replace("RUN", run).split(), cwd=early).stdout.split())
    assert "ecord was edited after it was written" in page
    assert "before this changed: the record" not in page
    if command == "show RUN":
        assert page.index("edited") < page.index("IMPROVED")
        assert "Verdict: IMPROVED" not in page
    if command == "show T3":
        assert "IMPROVED" not in page
    if command == "show T3 --json":
        standing = json.loads(page)["standing"]
        assert [one["verdict"] for one in standing["candidates"]] == [None, None]


def test_explain_has_neither_the_verdict_nor_the_times_of_an_edited_record(
    early: Path, kx: Kx
) -> None:
    _edited(early, "T3")
    page = " ".join(kx("explain", "T3", "--no-emulate", cwd=early).stdout.split())
    assert "Verdict: none: the record was edited after it was written" in page
    assert "IMPROVED" not in page
    assert "faster" not in page


def test_no_edited_record_speaks_for_a_variant(early: Path) -> None:
    project = load(early)
    variant = project.variant("transpose", "sm_90a", {"layout": "padded", "rows": 16})
    assert speaking.of_variant(project, variant)
    for folder in (early / "logs/runs").iterdir():
        _edited(early, folder.name)
    assert speaking.of_variant(project, variant) is None
