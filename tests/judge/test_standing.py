"""Which record speaks for a candidate: by its axes, and only for what it was made of."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest
from support import ROOT, Kx, edit

from kernelexp.logs.documents import sealed
from kernelexp.system.toolchain import HEADERS

T3_ROWS_4, T3_ROWS_16 = "rows=4: 0.288 ms, -2.36%", "rows=16: 0.356 ms, +20.90%"


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A copy of this repository's own project, with its early records, and of few experiments: each
    of a hundred commands reads them all."""
    for name in ("experiments.yaml", "variants", "logs"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tmp_path / name)
    for folder in (tmp_path / "logs/runs").iterdir():
        if folder.name not in ("A17", "F3", "H1", "S7", "T1", "T2", "T3", "sweep-transpose"):
            shutil.rmtree(folder)
    for name in ("T1", "T2", "T3", "H1"):
        for path in (tmp_path / "logs/runs" / name).glob("2026112[67]*"):
            path.unlink()
    return tmp_path


def rows(root: Path, kx: Kx, name: str) -> list[list[str]]:
    """The experiment's rows of the log, cell by cell."""
    lines = kx("log", cwd=root).stdout.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(f"| {name} "))
    result = [lines[start]]
    for line in lines[start + 1 :]:
        if not line.startswith("|     "):
            break
        result.append(line)
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in result]


def candidate(root: Path, kx: Kx, name: str, variant: str) -> dict[str, str]:
    (row,) = [
        arm
        for log in json.loads(kx("log", "--json", cwd=root).stdout)
        for entry in log["experiments"]
        for arm in entry["arms"]
        if arm["id"] == name and arm["arm"] == "candidate" and arm["variant"] == variant
    ]
    return row


def test_candidates_that_change_places_keep_their_own_figures(house: Path, kx: Kx) -> None:
    before = rows(house, kx, "T3")
    assert [row[3:] for row in before] == [[T3_ROWS_4, "IMPROVED"], [T3_ROWS_16, "REJECTED"]]
    edit(
        house, "      - {rows: 4}\n      - {rows: 16}\n", "      - {rows: 16}\n      - {rows: 4}\n"
    )
    after = rows(house, kx, "T3")
    assert [row[3:] for row in after] == [[T3_ROWS_16, "REJECTED"], [T3_ROWS_4, "IMPROVED"]]


def test_a_candidate_that_was_never_measured_has_no_figure(house: Path, kx: Kx) -> None:
    edit(house, "    candidate: {layout: padded}\n", "    candidate: {layout: swizzled}\n")
    (row,) = rows(house, kx, "T1")
    assert row[2:] == ["—", "—", "not run"]


def test_an_experiment_whose_runs_are_all_of_other_variants_is_listed_as_changed(
    house: Path, kx: Kx
) -> None:
    edit(house, "    candidate: {layout: padded}\n", "    candidate: {layout: swizzled}\n")
    shown = kx("show", "transpose@sm_90a", cwd=house).stdout
    (line,) = (x for x in shown.splitlines() if x.startswith(" T1 "))
    assert line.endswith("changed since")


def test_an_added_candidate_leaves_the_others_as_they_are(house: Path, kx: Kx) -> None:
    edit(house, "      - {rows: 16}\n", "      - {rows: 16}\n      - {layout: swizzled}\n")
    result = rows(house, kx, "T3")
    assert [row[3:] for row in result] == [
        [T3_ROWS_4, "IMPROVED"],
        [T3_ROWS_16, "REJECTED"],
        ["layout=swizzled: —", "not run"],
    ]


def test_a_removed_candidate_leaves_the_other_with_its_figures(house: Path, kx: Kx) -> None:
    edit(house, "      - {rows: 4}\n", "")
    assert [row[3:] for row in rows(house, kx, "T3")] == [["0.356 ms, +20.90%", "REJECTED"]]
    assert kx("log", "--write", cwd=house).exit_code == 0


def test_a_changed_baseline_is_said_and_the_verdict_is_not_current(house: Path, kx: Kx) -> None:
    edit(house, "    baseline: {layout: plain}\n", "    baseline: {layout: swizzled}\n")
    (row,) = rows(house, kx, "T1")
    assert row[2:] == ["—", "—", "changed since"]
    assert (
        "T1: measured before this changed: baseline layout=swizzled (was plain)."
        in kx("log", cwd=house).stdout
    )


@pytest.mark.parametrize("name", ["variants/transpose/transpose.cu", "variants/include/export.cuh"])
def test_an_edited_file_makes_the_measurement_one_of_before(house: Path, kx: Kx, name: str) -> None:
    path = house / name
    path.write_text(path.read_text() + "// changed\n")
    assert [row[3:] for row in rows(house, kx, "T3")] == [
        ["rows=4: —", "changed since"],
        ["rows=16: —", "changed since"],
    ]
    assert f"measured before this changed: {name}" in kx("log", cwd=house).stdout
    assert f"measured before this changed: {name}" in " ".join(
        kx("show", "T3", cwd=house).stdout.split()
    )
    assert "changed since" in kx("show", "transpose@sm_90a", cwd=house).stdout
    kx("log", "--write", cwd=house)
    written = (house / "logs/EXPERIMENTS.md").read_text()
    section = written.split("#### T3")[1]
    assert "-2.36%" not in section
    assert "The verdict then: IMPROVED." in section


def test_a_change_that_is_undone_makes_the_measurement_current_again(house: Path, kx: Kx) -> None:
    path = house / "variants/transpose/transpose.cu"
    text = path.read_text()
    path.write_text(text + "// changed\n")
    assert rows(house, kx, "T2")[0][4] == "changed since"
    path.write_text(text)
    assert rows(house, kx, "T2")[0][4] == "NEUTRAL"


def test_other_flags_are_another_build(house: Path, kx: Kx) -> None:
    edit(
        house,
        "        source: transpose.cu\n",
        "        source: transpose.cu\n        flags: [-DX]\n",
    )
    assert "measured before this changed: the compiler's flags" in kx("log", cwd=house).stdout


def test_an_axis_value_of_another_type_is_another_variant(house: Path, kx: Kx) -> None:
    edit(house, "            values: [4, 8, 16]\n", '            values: ["4", 8, 16]\n')
    edit(house, "      - {rows: 4}\n", '      - {rows: "4"}\n')
    assert rows(house, kx, "T3")[0][3:] == ["rows=4: —", "not run"]


def test_published_figures_belong_to_their_variant_too(house: Path, kx: Kx) -> None:
    edit(house, "    candidate: {epilogue_warps: 6}\n", "    candidate: {epilogue_warps: 4}\n")
    assert rows(house, kx, "F3")[0][3:] == ["—", "not run"]


def test_json_and_csv_have_the_measured_figures(house: Path, kx: Kx) -> None:
    row = candidate(house, kx, "T3", "rows=4")
    assert row["provenance"] == "run"
    assert round(float(row["time_ms"]), 3) == 0.288
    assert round(float(row["change_percent"]), 2) == -2.36
    (line,) = [
        line
        for line in kx("log", "--csv", cwd=house).stdout.splitlines()
        if ",T3," in line and "rows=4" in line
    ]
    assert ",0.287676," in line


def test_show_has_times_changes_and_intervals_of_each_candidate(house: Path, kx: Kx) -> None:
    output = " ".join(kx("show", "T3", cwd=house).stdout.split())
    assert "rows=4 0.288 -2.36% (-2.41% to -2.30%) IMPROVED" in output
    assert "rows=4 0.288 -2.36% 32 4,224 right IMPROVED" in output


def other_conditions(root: Path, name: str) -> None:
    """A later run of an experiment, at a size of its own with a warm L2."""
    path = sorted((root / "logs/runs" / name).glob("*.measured.json"))[-1]
    run = "20261122T235959Z-00000000"
    values = {**json.loads(path.read_text()), "run": run, "size": "tiny"}
    values["measurement"]["options"]["l2"] = "hot"
    path.with_name(f"{run}.measured.json").write_text(json.dumps(values))


def test_figures_under_other_conditions_say_which(house: Path, kx: Kx) -> None:
    other_conditions(house, "T1")
    assert rows(house, kx, "T1")[0][2:4] == [
        "0.656 ms, size tiny, L2 warm",
        "0.294 ms, -55.11%, size tiny, L2 warm",
    ]
    result = candidate(house, kx, "T1", "layout=padded")
    assert (result["size"], result["l2"]) == ("tiny", "hot")
    assert (
        "from 20261122T235959Z-00000000, size tiny, L2 warm" in kx("show", "T1", cwd=house).stdout
    )


def test_a_step_of_the_history_is_never_under_other_conditions(house: Path, kx: Kx) -> None:
    before = rows(house, kx, "S7")
    other_conditions(house, "S7")
    assert rows(house, kx, "S7") == before


@pytest.mark.parametrize("what", ["kernel", "arch"])
def test_a_record_of_another_kernel_is_never_current(house: Path, kx: Kx, what: str) -> None:
    path = house / "logs/runs/F3/published.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), what: "sm_90a"}))
    assert rows(house, kx, "F3")[0][3:] == ["—", "changed since"]
    assert "(was sm_90a)" in kx("log", cwd=house).stdout


def test_a_record_moved_to_another_experiment_is_skipped(house: Path, kx: Kx) -> None:
    (path, *_) = (house / "logs/runs/T2").glob("*.measured.json")
    shutil.copy(path, house / "logs/runs/T1" / "20261121T235959Z-00000000.measured.json")
    result = kx("log", cwd=house)
    assert "is a record of T2" in result.stderr
    assert rows(house, kx, "T1")[0][4] == "IMPROVED"


def test_a_record_whose_samples_are_of_other_builds_is_skipped(house: Path, kx: Kx) -> None:
    for path in (house / "logs/runs/T3").glob("*.measured.json"):
        values = json.loads(path.read_text())
        values["candidates"].reverse()
        path.write_text(json.dumps(values))
    result = kx("log", cwd=house)
    assert "contradicts itself" in result.stderr
    assert [row[4] for row in rows(house, kx, "T3")] == ["not run", "not run"]


def test_a_header_that_would_be_read_instead_makes_the_measurement_one_of_before(
    house: Path, kx: Kx
) -> None:
    (house / "variants/transpose/export.cuh").write_text("// mine\n")
    assert [row[4] for row in rows(house, kx, "T3")] == ["changed since", "changed since"]
    result = "measured before this changed: variants/transpose/export.cuh is read for export.cuh"
    assert result in kx("log", cwd=house).stdout


def of_a_project_without_headers(root: Path, **instead: object) -> None:
    """T3's records as of a project that takes its headers from the package."""
    for path in (root / "logs/runs/T3").glob("*.measured.json"):
        values = json.loads(path.read_text())
        for arm in (values["baseline"], *(one["arm"] for one in values["candidates"])):
            arm["files"].pop("variants/include/export.cuh")
            arm.update(instead)
        path.write_text(json.dumps(values))


def test_a_header_that_would_be_read_instead_of_the_package_s_makes_it_one_of_before(
    house: Path, kx: Kx
) -> None:
    of_a_project_without_headers(house)
    assert rows(house, kx, "T3")[0][4] == "IMPROVED"  # the project's is the same
    header = house / "variants/include/export.cuh"
    header.write_text(f"{header.read_text()}// mine\n")
    assert [row[4] for row in rows(house, kx, "T3")] == ["changed since", "changed since"]
    words = "before this changed: variants/include/export.cuh is read for export.cuh"
    assert words in " ".join(kx("show", "T3", cwd=house).stdout.split())


def test_a_header_of_the_package_that_has_changed_makes_the_measurement_one_of_before(
    house: Path, kx: Kx
) -> None:
    text = (HEADERS / "export.cuh").read_bytes()
    shutil.rmtree(house / "variants/include")
    of_a_project_without_headers(house, headers={"export.cuh": hashlib.sha256(text).hexdigest()})
    assert rows(house, kx, "T3")[0][4] == "IMPROVED"
    of_another = hashlib.sha256(text + b"//").hexdigest()
    for path in (house / "logs/runs/T3").glob("*.measured.json"):
        path.write_text(path.read_text().replace(hashlib.sha256(text).hexdigest(), of_another))
    assert [row[4] for row in rows(house, kx, "T3")] == ["changed since", "changed since"]
    words = "measured before this changed: export.cuh, which comes with kernelexp"
    assert words in kx("log", cwd=house).stdout


def test_a_run_that_did_not_record_headers_of_the_package_says_so(house: Path, kx: Kx) -> None:
    words = "did not record kernelexp's headers"
    assert words not in kx("log", cwd=house).stdout
    of_a_project_without_headers(house)
    assert f"Runs that {words}: T3." in kx("log", cwd=house).stdout
    for name in ("T3", max((house / "logs/runs/T3").iterdir()).name.partition(".")[0]):
        assert f"{words}: a change since" in " ".join(kx("show", name, cwd=house).stdout.split())


@pytest.mark.parametrize("name", ["torch.py", "torch/__init__.py", "kernels.py", "__main__.py"])
def test_a_module_that_python_would_read_instead_makes_the_measurement_one_of_before(
    house: Path, kx: Kx, name: str
) -> None:
    folder = house / "variants/transpose"
    digest = hashlib.sha256((folder / "problem.py").read_bytes()).hexdigest()
    files = {"host_files": {"variants/transpose/problem.py": digest}}
    for path in (house / "logs/runs/T3").glob("*.measured.json"):
        path.write_text(json.dumps(json.loads(path.read_text()) | files))
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text("raise SystemExit\n")
    result = f"variants/transpose/{name} is read for torch"
    if name in ("kernels.py", "__main__.py"):  # nothing is called that
        assert rows(house, kx, "T3")[0][4] == "IMPROVED"
    else:
        assert [row[4] for row in rows(house, kx, "T3")] == ["changed since", "changed since"]
        assert result in " ".join(kx("show", "T3", cwd=house).stdout.split())


def forged(root: Path, **instead: object) -> None:
    """T3's record with other words about its first candidate than its samples give."""
    for path in (root / "logs/runs/T3").glob("*.measured.json"):
        values = json.loads(path.read_text())
        if "ratio" in instead:
            values["estimate"]["effects"][0] |= instead
        else:
            values["candidates"][0]["verdict"] |= instead
        path.write_text(json.dumps(values))


def test_an_estimate_that_the_samples_do_not_give_is_shown_as_such(house: Path, kx: Kx) -> None:
    kx("log", cwd=house)  # what was found right then is judged again when it is another
    forged(house, ratio=0.5, low=0.49, high=0.51)
    assert rows(house, kx, "T3")[0][3:] == ["rows=4: —", "changed since"]
    words = "its estimate (-50.00%, where its samples give -2.36%)"
    assert words in kx("log", cwd=house).stdout
    path = max((house / "logs/runs/T3").glob("*.measured.json"))
    for command in ("show", "verdict"):
        assert words in " ".join(kx(command, str(path), cwd=house).stdout.split())


def test_an_earlier_record_speaks_where_the_last_one_is_doubted_and_that_is_said(
    house: Path, kx: Kx
) -> None:
    last = max((house / "logs/runs/T3").glob("*.measured.json"))
    values = json.loads(last.read_text())
    values["estimate"]["effects"][0] |= {"ratio": 0.5}
    last.write_text(json.dumps(values))
    name = last.name.partition(".")[0]
    for command in ("log", "show T3"):
        result = kx(*command.split(), cwd=house)
        assert f"{last.name}: it can't be relied on for rows=4: its estimate" in result.stderr
        if command == "log":
            assert name not in result.stdout
        else:
            page = " ".join(result.stdout.partition(name)[2].split())
            assert "Can't be relied on for rows=4: its estimate (-50.00%, where" in page


def test_an_earlier_record_is_no_more_current_for_what_it_does_not_know(
    house: Path, kx: Kx
) -> None:
    earlier, *_, last = sorted((house / "logs/runs/T3").glob("*.measured.json"))
    problem = house / "variants/transpose/problem.py"
    for path, files in (
        (last, {"variants/transpose/problem.py": hashlib.sha256(problem.read_bytes()).hexdigest()}),
        (earlier, {}),
    ):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"host_files": files}))
    assert rows(house, kx, "T3")[0][4] == "IMPROVED"
    problem.write_text(f"{problem.read_text()}# changed\n")
    assert [row[4] for row in rows(house, kx, "T3")] == ["changed since", "changed since"]
    words = "rows=4: measured before this changed: variants/transpose/problem.py."
    assert words in kx("show", "T3", cwd=house).stdout


def test_a_sweep_that_can_t_be_read_is_said_by_the_log(house: Path, kx: Kx) -> None:
    path = max((house / "logs/runs/sweep-transpose").glob("*.json"))
    path.write_text(path.read_text()[:5000])
    result = kx("log", cwd=house)
    assert f"{path.name}: it is truncated or invalid JSON" in result.stderr
    assert path.name.partition(".")[0] not in result.stdout


def test_a_sweep_that_was_edited_is_shown_as_such(house: Path, kx: Kx) -> None:
    path = max((house / "logs/runs/sweep-transpose").glob("*.json"))
    text = sealed(path.read_text().replace('"digest"', '"was"'))
    path.write_text(text.replace('"tool": "0.', '"tool": "9.'))
    page = kx("show", path.name.partition(".")[0], cwd=house).stdout
    assert "This record is edited after it was written" in page


def test_a_time_that_the_samples_do_not_give_is_shown_as_such(house: Path, kx: Kx) -> None:
    for path in (house / "logs/runs/T3").glob("*.measured.json"):
        values = json.loads(path.read_text())
        for times in values["estimate"]["times"]:
            times["median_us"] = 1.0
        path.write_text(json.dumps(values))
    assert rows(house, kx, "T3")[0][4] == "changed since"
    assert "the baseline's median (1 us, where its samples give 29" in kx("log", cwd=house).stdout


def test_a_record_that_was_renamed_is_not_the_latest(house: Path, kx: Kx) -> None:
    old, *_, last = sorted((house / "logs/runs/T3").glob("*.measured.json"))
    shown = kx("log", cwd=house).stdout
    name = f"{last.name[:8]}T235959Z-00000000.measured.json"
    old.rename(last.with_name(name))
    result = kx("log", cwd=house)
    run = old.name.partition(".")[0]
    assert f"{name}: it is a record of run {run}" in result.stderr
    assert result.stdout == shown


def test_a_verdict_that_the_samples_do_not_give_is_shown_as_such(house: Path, kx: Kx) -> None:
    forged(house, status="REJECTED")
    assert rows(house, kx, "T3")[0][4] == "changed since"
    assert "its verdict (REJECTED, where its samples give IMPROVED)" in kx("log", cwd=house).stdout


def test_words_of_a_verdict_with_other_figures_than_its_samples_give_are_shown_as_such(
    house: Path, kx: Kx
) -> None:
    forged(house, sentence="42.00% faster, surely.")
    assert rows(house, kx, "T3")[0][4] == "changed since"
    assert "its verdict's words (faster: '42.00% faster, surely.')" in kx("log", cwd=house).stdout


def test_a_record_that_was_edited_in_any_place_is_shown_as_such(house: Path, kx: Kx) -> None:
    paths = sorted((house / "logs/runs/T3").glob("*.measured.json"))
    for path in paths:
        path.write_text(sealed(path.read_text()))
    assert rows(house, kx, "T3")[0][4] == "IMPROVED"
    for path in paths:
        path.write_text(path.read_text().replace("NVIDIA H200", "NVIDIA H100"))
    assert rows(house, kx, "T3")[0][4] == "changed since"
    words = "edited after it was written"
    latest = str(paths[-1])
    for command in (("log",), ("show", "T3"), ("verdict", latest), ("show", "T3", "--json")):
        assert words in " ".join(kx(*command, cwd=house).stdout.split()), command


def test_axes_of_two_candidates_that_were_exchanged_are_a_contradiction(
    house: Path, kx: Kx
) -> None:
    for path in (house / "logs/runs/T3").glob("*.measured.json"):
        values = json.loads(path.read_text())
        one, other = (candidate["arm"] for candidate in values["candidates"])
        one["axes"], other["axes"] = other["axes"], one["axes"]
        path.write_text(json.dumps(values))
    assert [row[4] for row in rows(house, kx, "T3")] == ["not run", "not run"]
    assert "contradicts itself: its candidate 1 was not built with" in kx("log", cwd=house).stderr


def test_a_launch_that_was_wrong_when_it_was_checked_is_no_measured_verdict(
    house: Path, kx: Kx
) -> None:
    for path in (house / "logs/runs/T3").glob("*.measured.json"):
        values = json.loads(path.read_text())
        for check in values["measurement"]["workers"][1]["checks"]:
            if check["arm"] == "candidate 1":
                check["arrays"][0]["wrong"] = 5
        path.write_text(json.dumps(values))
    assert rows(house, kx, "T3")[0][4] == "changed since"
    assert "where a launch that was checked was wrong" in kx("log", cwd=house).stdout


def test_a_record_of_another_card_than_its_samples_is_skipped(house: Path, kx: Kx) -> None:
    for path in (house / "logs/runs/T3").glob("*.measured.json"):
        path.write_text(
            path.read_text().replace('"device": "NVIDIA H200"', '"device": "NVIDIA B200"')
        )
    result = kx("log", cwd=house)
    assert "its samples are of NVIDIA H200, it is of NVIDIA B200" in result.stderr
    assert "NVIDIA B200;" not in result.stdout


def test_a_sweep_of_sources_that_changed_since_says_so(house: Path, kx: Kx) -> None:
    run = "20261122T062056Z-23b96a7f"

    def row() -> str:
        lines = kx("log", cwd=house).stdout.splitlines()
        return next(line for line in lines if line.startswith(f"| {run}"))

    assert "changed since" not in row()
    source = house / "variants/transpose/transpose.cu"
    source.write_text(source.read_text() + "// other\n")
    assert row().endswith("| —           | changed since |")
    words = " ".join(kx("log", cwd=house).stdout.split())
    assert f"Sweep {run}: run before this changed: variants/transpose/transpose.cu." in words


def test_runs_that_did_not_record_their_problem_say_so(house: Path, kx: Kx) -> None:
    assert "Runs that did not record problem.py: T1, T2, T3." in kx("log", cwd=house).stdout
    path = max((house / "logs/runs/T3").glob("*.measured.json"))
    output = " ".join(kx("show", str(path), cwd=house).stdout.split())
    assert "This run did not record problem.py" in output


@pytest.mark.slow
def test_a_wrong_result_of_what_is_there_now_overrules_an_older_measurement(
    house: Path, kx: Kx
) -> None:
    problem = house / "variants/transpose/problem.py"
    right = "columns.T.double()"
    assert right in problem.read_text()
    problem.write_text(problem.read_text().replace(right, f"{right} + 1"))
    assert kx("run", "T2", cwd=house).exit_code == 4
    assert rows(house, kx, "T2")[0][4] in ("INCORRECT", "INVALID")


def test_a_measurement_that_decides_nothing_speaks_before_a_verdict_on_former_sources(
    house: Path, kx: Kx
) -> None:
    shutil.copytree(ROOT / "experiments", house / "experiments")
    (persistent, _) = rows(house, kx, "A17")
    assert persistent[3:] == ["ctas=persistent: 0.629 ms, -1.06%", "INCONCLUSIVE"]


def test_figures_of_what_has_changed_are_in_no_export(house: Path, kx: Kx) -> None:
    path = house / "variants/transpose/transpose.cu"
    path.write_text(path.read_text() + "// changed\n")
    row = candidate(house, kx, "T3", "rows=4")
    assert "time_ms" not in row
    assert row["verdict"] == ""
    assert row["changed_since"] == ["variants/transpose/transpose.cu"]
    assert ",0.287712," not in kx("log", "--csv", cwd=house).stdout


def test_records_are_read_though_a_kernel_s_source_is_gone(house: Path, kx: Kx) -> None:
    (house / "variants/transpose/transpose.cu").unlink()
    for words in (["log"], ["list"], ["show", "T1"], ["diff", "T1", "T1"], ["verdict", "T1"]):
        result = kx(*words, cwd=house)
        assert result.exit_code == 0, result.stderr
    assert "variants/transpose/transpose.cu (is gone)" in kx("log", cwd=house).stdout


def test_a_record_dated_in_the_future_hides_no_other(house: Path, kx: Kx) -> None:
    runs = sorted((house / "logs/runs/T1").glob("*.measured.json"))
    ahead = json.loads(runs[0].read_text())
    ahead["run"] = "20990101T000000Z-00000000"
    ahead["candidates"][0]["verdict"]["status"] = "REJECTED"
    (runs[0].parent / "20990101T000000Z-00000000.measured.json").write_text(json.dumps(ahead))
    assert rows(house, kx, "T1")[0][4] == "IMPROVED"
