"""Which record speaks for a candidate: by its axes, and only for what it was made of."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import early_records
import pytest
from early_records import rows
from support import ROOT, Kx, edit

from kernelexp.system.toolchain import HEADERS

T3_ROWS_4, T3_ROWS_16 = "rows=4: 0.288 ms, -2.36%", "rows=16: 0.356 ms, +20.90%"


@pytest.fixture
def early(tmp_path: Path) -> Path:
    return early_records.copy(tmp_path)


def candidate(root: Path, kx: Kx, name: str, variant: str) -> dict[str, str]:
    (row,) = [
        arm
        for log in json.loads(kx("log", "--json", cwd=root).stdout)
        for entry in log["experiments"]
        for arm in entry["arms"]
        if arm["id"] == name and arm["arm"] == "candidate" and arm["variant"] == variant
    ]
    return row


def test_candidates_that_change_places_keep_their_own_figures(early: Path, kx: Kx) -> None:
    before = rows(early, kx, "T3")
    assert [row[3:] for row in before] == [[T3_ROWS_4, "IMPROVED"], [T3_ROWS_16, "REJECTED"]]
    edit(
        early, "      - {rows: 4}\n      - {rows: 16}\n", "      - {rows: 16}\n      - {rows: 4}\n"
    )
    after = rows(early, kx, "T3")
    assert [row[3:] for row in after] == [[T3_ROWS_16, "REJECTED"], [T3_ROWS_4, "IMPROVED"]]


def test_a_candidate_that_was_never_measured_has_no_figure(early: Path, kx: Kx) -> None:
    edit(early, "    candidate: {layout: padded}\n", "    candidate: {layout: swizzled}\n")
    (row,) = rows(early, kx, "T1")
    assert row[2:] == ["—", "—", "not run"]


def test_an_experiment_whose_runs_are_all_of_other_variants_is_listed_as_changed(
    early: Path, kx: Kx
) -> None:
    edit(early, "    candidate: {layout: padded}\n", "    candidate: {layout: swizzled}\n")
    shown = kx("show", "transpose@sm_90a", cwd=early).stdout
    (line,) = (x for x in shown.splitlines() if x.startswith(" T1 "))
    assert line.endswith("changed since")


def test_an_added_candidate_leaves_the_others_as_they_are(early: Path, kx: Kx) -> None:
    edit(early, "      - {rows: 16}\n", "      - {rows: 16}\n      - {layout: swizzled}\n")
    result = rows(early, kx, "T3")
    assert [row[3:] for row in result] == [
        [T3_ROWS_4, "IMPROVED"],
        [T3_ROWS_16, "REJECTED"],
        ["layout=swizzled: —", "not run"],
    ]


def test_a_removed_candidate_leaves_the_other_with_its_figures(early: Path, kx: Kx) -> None:
    edit(early, "      - {rows: 4}\n", "")
    assert [row[3:] for row in rows(early, kx, "T3")] == [["0.356 ms, +20.90%", "REJECTED"]]
    assert kx("log", "--write", cwd=early).exit_code == 0


def test_a_changed_baseline_is_said_and_the_verdict_is_not_current(early: Path, kx: Kx) -> None:
    edit(early, "    baseline: {layout: plain}\n", "    baseline: {layout: swizzled}\n")
    (row,) = rows(early, kx, "T1")
    assert row[2:] == ["—", "—", "changed since"]
    assert (
        "T1: measured before this changed: baseline layout=swizzled (was plain)."
        in kx("log", cwd=early).stdout
    )


@pytest.mark.parametrize("name", ["variants/transpose/transpose.cu", "variants/include/export.cuh"])
def test_an_edited_file_makes_the_measurement_one_of_before(early: Path, kx: Kx, name: str) -> None:
    path = early / name
    path.write_text(path.read_text() + "// changed\n")
    assert [row[3:] for row in rows(early, kx, "T3")] == [
        ["rows=4: —", "changed since"],
        ["rows=16: —", "changed since"],
    ]
    assert f"measured before this changed: {name}" in kx("log", cwd=early).stdout
    assert f"measured before this changed: {name}" in " ".join(
        kx("show", "T3", cwd=early).stdout.split()
    )
    assert "changed since" in kx("show", "transpose@sm_90a", cwd=early).stdout
    kx("log", "--write", cwd=early)
    written = (early / "logs/EXPERIMENTS.md").read_text()
    section = written.split("#### T3")[1]
    assert "-2.36%" not in section
    assert "The verdict then: IMPROVED." in section


def test_a_change_that_is_undone_makes_the_measurement_current_again(early: Path, kx: Kx) -> None:
    path = early / "variants/transpose/transpose.cu"
    text = path.read_text()
    path.write_text(text + "// changed\n")
    assert rows(early, kx, "T2")[0][4] == "changed since"
    path.write_text(text)
    assert rows(early, kx, "T2")[0][4] == "NEUTRAL"


def test_other_flags_are_another_build(early: Path, kx: Kx) -> None:
    edit(
        early,
        "        source: transpose.cu\n",
        "        source: transpose.cu\n        flags: [-DX]\n",
    )
    assert "measured before this changed: the compiler's flags" in kx("log", cwd=early).stdout


def test_an_axis_value_of_another_type_is_another_variant(early: Path, kx: Kx) -> None:
    edit(early, "            values: [4, 8, 16]\n", '            values: ["4", 8, 16]\n')
    edit(early, "      - {rows: 4}\n", '      - {rows: "4"}\n')
    assert rows(early, kx, "T3")[0][3:] == ["rows=4: —", "not run"]


def test_published_figures_belong_to_their_variant_too(early: Path, kx: Kx) -> None:
    edit(early, "    candidate: {epilogue_warps: 6}\n", "    candidate: {epilogue_warps: 4}\n")
    assert rows(early, kx, "F3")[0][3:] == ["—", "not run"]


def test_json_and_csv_have_the_measured_figures(early: Path, kx: Kx) -> None:
    row = candidate(early, kx, "T3", "rows=4")
    assert row["provenance"] == "run"
    assert round(float(row["time_ms"]), 3) == 0.288
    assert round(float(row["change_percent"]), 2) == -2.36
    (line,) = [
        line
        for line in kx("log", "--csv", cwd=early).stdout.splitlines()
        if ",T3," in line and "rows=4" in line
    ]
    assert ",0.287676," in line


def test_show_has_times_changes_and_intervals_of_each_candidate(early: Path, kx: Kx) -> None:
    output = " ".join(kx("show", "T3", cwd=early).stdout.split())
    assert "rows=4 0.288 -2.36% (-2.41% to -2.30%) IMPROVED" in output
    assert "rows=4 0.288 -2.36% 32 4,224 right IMPROVED" in output


def other_conditions(root: Path, name: str) -> None:
    """A later run of an experiment, at a size of its own with a warm L2."""
    path = sorted((root / "logs/runs" / name).glob("*.measured.json"))[-1]
    run = "20261122T235959Z-00000000"
    values = {**json.loads(path.read_text()), "run": run, "size": "tiny"}
    values["measurement"]["options"]["l2"] = "hot"
    path.with_name(f"{run}.measured.json").write_text(json.dumps(values))


def test_figures_under_other_conditions_say_which(early: Path, kx: Kx) -> None:
    other_conditions(early, "T1")
    assert rows(early, kx, "T1")[0][2:4] == [
        "0.656 ms, size tiny, L2 warm",
        "0.294 ms, -55.11%, size tiny, L2 warm",
    ]
    result = candidate(early, kx, "T1", "layout=padded")
    assert (result["size"], result["l2"]) == ("tiny", "hot")
    assert (
        "from 20261122T235959Z-00000000, size tiny, L2 warm" in kx("show", "T1", cwd=early).stdout
    )


def test_a_step_of_the_history_is_never_under_other_conditions(early: Path, kx: Kx) -> None:
    before = rows(early, kx, "S7")
    other_conditions(early, "S7")
    assert rows(early, kx, "S7") == before


@pytest.mark.parametrize("what", ["kernel", "arch"])
def test_a_record_of_another_kernel_is_never_current(early: Path, kx: Kx, what: str) -> None:
    path = early / "logs/runs/F3/published.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), what: "sm_90a"}))
    assert rows(early, kx, "F3")[0][3:] == ["—", "changed since"]
    assert "(was sm_90a)" in kx("log", cwd=early).stdout


def test_a_header_that_would_be_read_instead_makes_the_measurement_one_of_before(
    early: Path, kx: Kx
) -> None:
    (early / "variants/transpose/export.cuh").write_text("// mine\n")
    assert [row[4] for row in rows(early, kx, "T3")] == ["changed since", "changed since"]
    result = "measured before this changed: variants/transpose/export.cuh is read for export.cuh"
    assert result in kx("log", cwd=early).stdout


def of_a_project_without_headers(root: Path, **instead: object) -> None:
    """T3's records as of a project that takes its headers from the package."""
    for path in (root / "logs/runs/T3").glob("*.measured.json"):
        values = json.loads(path.read_text())
        for arm in (values["baseline"], *(one["arm"] for one in values["candidates"])):
            arm["files"].pop("variants/include/export.cuh")
            arm.update(instead)
        path.write_text(json.dumps(values))


def test_a_header_that_would_be_read_instead_of_the_package_s_makes_it_one_of_before(
    early: Path, kx: Kx
) -> None:
    of_a_project_without_headers(early)
    assert rows(early, kx, "T3")[0][4] == "IMPROVED"  # the project's is the same
    header = early / "variants/include/export.cuh"
    header.write_text(f"{header.read_text()}// mine\n")
    assert [row[4] for row in rows(early, kx, "T3")] == ["changed since", "changed since"]
    words = "before this changed: variants/include/export.cuh is read for export.cuh"
    assert words in " ".join(kx("show", "T3", cwd=early).stdout.split())


def test_a_header_of_the_package_that_has_changed_makes_the_measurement_one_of_before(
    early: Path, kx: Kx
) -> None:
    text = (HEADERS / "export.cuh").read_bytes()
    shutil.rmtree(early / "variants/include")
    of_a_project_without_headers(early, headers={"export.cuh": hashlib.sha256(text).hexdigest()})
    assert rows(early, kx, "T3")[0][4] == "IMPROVED"
    of_another = hashlib.sha256(text + b"//").hexdigest()
    for path in (early / "logs/runs/T3").glob("*.measured.json"):
        path.write_text(path.read_text().replace(hashlib.sha256(text).hexdigest(), of_another))
    assert [row[4] for row in rows(early, kx, "T3")] == ["changed since", "changed since"]
    words = "measured before this changed: export.cuh, which comes with kernelexp"
    assert words in kx("log", cwd=early).stdout


def test_a_run_that_did_not_record_headers_of_the_package_says_so(early: Path, kx: Kx) -> None:
    words = "did not record kernelexp's headers"
    assert words not in kx("log", cwd=early).stdout
    of_a_project_without_headers(early)
    assert f"Runs that {words}: T3." in kx("log", cwd=early).stdout
    for name in ("T3", max((early / "logs/runs/T3").iterdir()).name.partition(".")[0]):
        assert f"{words}: a change since" in " ".join(kx("show", name, cwd=early).stdout.split())


@pytest.mark.parametrize("name", ["torch.py", "torch/__init__.py", "kernels.py", "__main__.py"])
def test_a_module_that_python_would_read_instead_makes_the_measurement_one_of_before(
    early: Path, kx: Kx, name: str
) -> None:
    folder = early / "variants/transpose"
    digest = hashlib.sha256((folder / "problem.py").read_bytes()).hexdigest()
    files = {"host_files": {"variants/transpose/problem.py": digest}}
    for path in (early / "logs/runs/T3").glob("*.measured.json"):
        path.write_text(json.dumps(json.loads(path.read_text()) | files))
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text("raise SystemExit\n")
    result = f"variants/transpose/{name} is read for torch"
    if name in ("kernels.py", "__main__.py"):  # nothing is called that
        assert rows(early, kx, "T3")[0][4] == "IMPROVED"
    else:
        assert [row[4] for row in rows(early, kx, "T3")] == ["changed since", "changed since"]
        assert result in " ".join(kx("show", "T3", cwd=early).stdout.split())


def test_an_earlier_record_is_no_more_current_for_what_it_does_not_know(
    early: Path, kx: Kx
) -> None:
    earlier, *_, last = sorted((early / "logs/runs/T3").glob("*.measured.json"))
    problem = early / "variants/transpose/problem.py"
    for path, files in (
        (last, {"variants/transpose/problem.py": hashlib.sha256(problem.read_bytes()).hexdigest()}),
        (earlier, {}),
    ):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"host_files": files}))
    assert rows(early, kx, "T3")[0][4] == "IMPROVED"
    problem.write_text(f"{problem.read_text()}# changed\n")
    assert [row[4] for row in rows(early, kx, "T3")] == ["changed since", "changed since"]
    words = "rows=4: measured before this changed: variants/transpose/problem.py."
    assert words in kx("show", "T3", cwd=early).stdout


def test_a_sweep_of_sources_that_changed_since_says_so(early: Path, kx: Kx) -> None:
    run = "20261122T062056Z-23b96a7f"

    def row() -> str:
        lines = kx("log", cwd=early).stdout.splitlines()
        return next(line for line in lines if line.startswith(f"| {run}"))

    assert "changed since" not in row()
    source = early / "variants/transpose/transpose.cu"
    source.write_text(source.read_text() + "// other\n")
    assert row().endswith("| —           | changed since |")
    words = " ".join(kx("log", cwd=early).stdout.split())
    assert f"Sweep {run}: run before this changed: variants/transpose/transpose.cu." in words


def test_runs_that_did_not_record_their_problem_say_so(early: Path, kx: Kx) -> None:
    assert "Runs that did not record problem.py: T1, T2, T3." in kx("log", cwd=early).stdout
    path = max((early / "logs/runs/T3").glob("*.measured.json"))
    output = " ".join(kx("show", str(path), cwd=early).stdout.split())
    assert "This run did not record problem.py" in output


@pytest.mark.slow
def test_a_wrong_result_of_what_is_there_now_overrules_an_older_measurement(
    early: Path, kx: Kx
) -> None:
    problem = early / "variants/transpose/problem.py"
    right = "columns.T.double()"
    assert right in problem.read_text()
    problem.write_text(problem.read_text().replace(right, f"{right} + 1"))
    assert kx("run", "T2", cwd=early).exit_code == 4
    assert rows(early, kx, "T2")[0][4] in ("INCORRECT", "INVALID")


def test_a_measurement_that_decides_nothing_speaks_before_a_verdict_on_former_sources(
    early: Path, kx: Kx
) -> None:
    shutil.copytree(ROOT / "experiments", early / "experiments")
    (persistent, _) = rows(early, kx, "A17")
    assert persistent[3:] == ["ctas=persistent: 0.629 ms, -1.06%", "INCONCLUSIVE"]


def test_figures_of_what_has_changed_are_in_no_export(early: Path, kx: Kx) -> None:
    path = early / "variants/transpose/transpose.cu"
    path.write_text(path.read_text() + "// changed\n")
    row = candidate(early, kx, "T3", "rows=4")
    assert "time_ms" not in row
    assert row["verdict"] == ""
    assert row["changed_since"] == ["variants/transpose/transpose.cu"]
    assert ",0.287712," not in kx("log", "--csv", cwd=early).stdout


def test_records_are_read_though_a_kernel_s_source_is_gone(early: Path, kx: Kx) -> None:
    (early / "variants/transpose/transpose.cu").unlink()
    for words in (["log"], ["list"], ["show", "T1"], ["diff", "T1", "T1"], ["verdict", "T1"]):
        result = kx(*words, cwd=early)
        assert result.exit_code == 0, result.stderr
    assert "variants/transpose/transpose.cu (is gone)" in kx("log", cwd=early).stdout
