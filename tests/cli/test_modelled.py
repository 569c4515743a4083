"""inspect --modelled: a time that nobody measured."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from schemas import validate
from support import ROOT, Kx

from kernelexp import project
from kernelexp.dossier.session import Session
from kernelexp.evidence import build
from kernelexp.logs import records
from kernelexp.report.site import site
from kernelexp.services import modelling, validating
from kernelexp.system import toolchain
from kernelexp.system.live import Step
from kernelexp.system.process import isolated

pytestmark = pytest.mark.xdist_group("transpose")
CONFLICTS, WITHOUT = "transpose@sm_90a:layout=plain", "transpose@sm_90a:layout=padded"


def test_the_interval_of_a_modelled_ratio_holds_the_one_that_was_measured(kx: Kx) -> None:
    result = kx("inspect", CONFLICTS, WITHOUT, "--modelled", "--json")
    assert result.exit_code == 0
    (first, second) = json.loads(result.stdout)
    assert first["change"] is None
    change = second["change"]
    assert change["decided"]
    assert change["low"] < 0.4489 < change["high"]  # T1, on an H200


def test_what_the_model_cannot_tell_apart_it_does_not_rank(kx: Kx) -> None:
    result = kx("inspect", WITHOUT, "transpose@sm_90a:layout=swizzled", "--modelled")
    rows = [line for line in result.stdout.splitlines() if line.startswith(" transpose")]
    assert "too close" in rows[1]
    assert "faster" not in result.stdout


def test_a_modelled_time_says_that_it_is_none_that_was_measured(kx: Kx) -> None:
    result = kx("inspect", CONFLICTS, "--modelled", "--top", "2")
    words = " ".join(result.stdout.split())
    assert "not measured" in words
    assert "was off by" in words
    assert "Extrapolated from size" in words
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_the_lines_that_cost_most_are_named_with_what_warps_wait_for(kx: Kx) -> None:
    result = kx("inspect", CONFLICTS, "--modelled", "--json", "--top", "1")
    (one,) = json.loads(result.stdout)
    (line,) = one["modelled"]["lines"]
    assert line["source"]["file"].endswith("transpose.cu")
    assert line["reason"] == "mio_throttle"
    units = one["modelled"]["units"]
    assert max(units, key=units.__getitem__) == "l1_data"


def test_each_part_of_the_critical_path_is_of_a_line_and_of_a_role(kx: Kx) -> None:
    result = kx("inspect", CONFLICTS, "--modelled", "--json", "--top", "0")
    (one,) = json.loads(result.stdout)
    assert sum(line["of_path"] for line in one["modelled"]["lines"]) == pytest.approx(1)
    assert sum(one["modelled"]["roles"].values()) == pytest.approx(1)


def test_an_architecture_without_parameters_is_refused(kx: Kx) -> None:
    result = kx("inspect", "flash_attention@sm_89", "--modelled")
    assert result.exit_code == 2
    assert "no time is modelled for sm_89, only for sm_90a, sm_100a." in result.stderr


def test_a_size_that_the_problem_does_not_have_is_refused(kx: Kx) -> None:
    result = kx("inspect", CONFLICTS, "--modelled", "--size", "huge")
    assert result.exit_code != 0
    assert "huge" in result.stderr
    assert "Traceback" not in result.stderr


def test_modes_do_not_go_together(kx: Kx) -> None:
    result = kx("inspect", CONFLICTS, "--modelled", "--lines")
    assert result.exit_code == 2
    assert "--lines and --modelled do not go together" in result.stderr


def test_a_sweep_in_modelled_order_begins_with_the_modelled_best(kx: Kx) -> None:
    words = ("sweep", "transpose@sm_90a", "layout=*", "--order", "modelled")
    result = kx(*words, "--no-gpu", "--no-record", "--json")
    assert result.exit_code == 0
    candidates = json.loads(result.stdout)["record"]["candidates"]
    assert [candidate["arm"]["axes"]["layout"] for candidate in candidates] == ["swizzled", "plain"]
    assert "which were off by" in " ".join(result.stderr.split())


def test_a_budget_is_not_spent_on_what_is_modelled_far_behind(kx: Kx) -> None:
    words = ("sweep", "transpose@sm_90a", "layout=*", "--order", "modelled", "--budget", "1m")
    result = kx(*words, "--no-gpu", "--no-record", "--json")
    record = json.loads(result.stdout)["record"]
    assert len(record["candidates"]) == 1
    assert "1 more was not timed" in record["hypothesis"]
    assert "10% or more behind the best: layout=plain." in " ".join(result.stderr.split())


def test_a_search_has_an_order_of_its_own(kx: Kx) -> None:
    words = ("sweep", "transpose@sm_90a", "layout=*", "--order", "modelled")
    result = kx(*words, "--strategy", "random")
    assert result.exit_code == 2
    assert "--order goes without --strategy" in " ".join(result.stderr.split())


def test_an_explanation_says_what_the_model_makes_of_the_two(kx: Kx) -> None:
    result = kx("explain", "T1", "--modelled", "--no-emulate")
    words = " ".join(result.stdout.split())
    assert "Modelled, not measured: " in words
    assert "so far apart ranked right." in words


def test_records_say_how_far_off_the_model_is(kx: Kx) -> None:
    words = ("calibrate", "--model", "--validate", "--experiment", "T1")
    result = kx(*words, "--json")
    assert result.exit_code == 0, result.stderr
    validate("model-validation", result.stdout)
    (transpose, every) = json.loads(result.stdout)["families"]
    assert transpose["times"] == every["times"] == 4
    assert 0 < transpose["mean"] < 0.2
    assert transpose["apart"]["10%"][0] == transpose["apart"]["10%"][1] == 2


def test_a_validation_says_how_far_it_is() -> None:
    loaded, steps = project.load(ROOT), list[Step]()
    tools = toolchain.find(None, ROOT / build.CACHE)
    session = Session(tools=tools, on_progress=steps.append)
    validating.validate(loaded, session, ["T1"])
    modelled = [(step.done, step.total) for step in steps if step.phase == "modelling"]
    assert modelled[0] == (0, 2)
    assert modelled[-1] == (2, 2)


def test_only_records_validate_the_model(kx: Kx) -> None:
    result = kx("calibrate", "--model", "--validate", "--experiment", "no such one")
    assert result.exit_code == 2
    assert "no such record of this project was measured" in " ".join(result.stderr.split())
    assert kx("calibrate", "--validate").exit_code == 2


def test_a_search_can_go_by_modelled_times(kx: Kx) -> None:
    words = ("sweep", "transpose@sm_90a", "layout=*", "--strategy", "random", "--trials", "2")
    result = kx(*words, "--objective", "modelled", "--no-record", "--json")
    assert result.exit_code == 0, result.stderr
    record = json.loads(result.stdout)["record"]
    cycles = {"padded": record["tuning"]["baseline"]} | {
        trial["axes"]["layout"]: trial["value"] for trial in record["tuning"]["trials"]
    }
    assert cycles["plain"] > 1.5 * cycles["padded"]
    assert not any("measured" in candidate["arm"] for candidate in record["candidates"])


def test_a_profile_stands_beside_what_is_modelled(kx: Kx) -> None:
    result = kx("inspect", CONFLICTS, "--modelled", "--json")
    (plain,) = json.loads(result.stdout)
    assert 0.9 < sum(line["part"] for line in plain["sampled"]) <= 1
    shown = kx("inspect", CONFLICTS, "--modelled", "--top", "3").stdout
    assert "ncu's samples" in shown
    without = kx("inspect", "transpose@sm_90a:layout=swizzled", "--modelled", "--top", "3").stdout
    assert "ncu's samples" not in without


def test_an_architecture_without_parameters_has_no_modelled_order(kx: Kx) -> None:
    words = ("sweep", "flash_attention@sm_89", "num_warps=*", "--order", "modelled")
    result = kx(*words, "--no-gpu", "--no-record")
    assert result.exit_code == 2
    assert "no time is modelled for sm_89" in " ".join(result.stderr.split())


def test_a_trace_has_a_track_per_warp_whose_blocks_follow_one_another(
    kx: Kx, tmp_path: Path
) -> None:
    file = tmp_path / "trace.json"
    result = kx("inspect", CONFLICTS, "--modelled", "--trace", str(file))
    assert result.exit_code == 0, result.stderr
    trace = json.loads(file.read_text())
    assert trace["otherData"]["evidence"] == "modelled, not measured"
    names = [
        traceevent["args"]["name"]
        for traceevent in trace["traceEvents"]
        if traceevent["name"] == "thread_name"
    ]
    assert names == [f"warp {warp}" for warp in range(8)]
    for warp in range(8):
        own = [
            traceevent
            for traceevent in trace["traceEvents"]
            if traceevent["ph"] == "X" and traceevent["tid"] == warp + 1
        ]
        lines = [item for item in own if item["cat"] == "line"]
        ends = [line["ts"] + line["dur"] for line in lines]
        assert ends[:-1] == pytest.approx([line["ts"] for line in lines[1:]])
        waits = [item for item in own if item["cat"] == "wait"]
        assert {"mio_throttle", "barrier"} <= {wait["name"] for wait in waits}
        assert sum(line["args"]["instructions"] for line in lines) > 70


def test_perfetto_drops_no_block_of_a_trace(kx: Kx, tmp_path: Path) -> None:
    """It rounds to nanoseconds, then drops what ends after the block that it began in."""
    file = tmp_path / "trace.json"
    assert kx("inspect", CONFLICTS, "--modelled", "--trace", str(file)).exit_code == 0
    blocks = [event for event in json.loads(file.read_text())["traceEvents"] if event["ph"] == "X"]
    for track in {block["tid"] for block in blocks}:
        ends: list[int] = []
        for block in (block for block in blocks if block["tid"] == track):
            begin, length = round(1000 * block["ts"]), round(1000 * block["dur"])
            ends = [end for end in ends if end > begin]
            assert length > 0
            assert not ends or begin + length <= ends[-1]
            ends.append(begin + length)


def test_a_time_line_names_the_roles_of_warps(kx: Kx, tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    hopper = "flash_attention_hopper@sm_90a"
    result = kx("inspect", hopper, "--modelled", "--size", "emulated", "--trace", str(file))
    assert result.exit_code == 0, result.stderr
    events = json.loads(file.read_text())["traceEvents"]
    names = [event["args"]["name"] for event in events if event["name"] == "thread_name"]
    attending = [f"warp {warp}, attend" for warp in range(8)]
    assert names == [*attending, "warp 8, load", "warp 9", "warp 10", "warp 11"]


def test_a_trace_is_of_one_variant(kx: Kx, tmp_path: Path) -> None:
    result = kx("inspect", "T1", "--modelled", "--trace", str(tmp_path / "trace.json"))
    assert result.exit_code == 2
    assert "--trace is of one variant" in result.stderr


def test_a_run_says_what_the_model_makes_of_its_candidates(kx: Kx) -> None:
    result = kx("run", "T1", "--no-gpu", "--no-emulate", "--no-record", "--modelled")
    *_, last = result.stdout.splitlines()
    assert last.startswith("T1, candidate 1: Modelled, not measured: ")
    assert "times measured on an NVIDIA H200, the model was off by" in last


def test_the_path_names_the_role_and_what_it_waits_for(kx: Kx) -> None:
    result = kx("inspect", CONFLICTS, "--modelled", "--json")
    (one,) = json.loads(result.stdout)
    path = one["modelled"]["path"]
    assert 0.8 < sum(step["part"] for step in path) <= 1.0001
    assert {step["role"] for step in path} == {"warps 0-7"}
    assert any(step["waits_for"].startswith("LDS") for step in path)
    assert "Critical path" in kx("inspect", CONFLICTS, "--modelled").stdout


FIGURES = Path(__file__).parents[1] / "data" / "microbenchmarks-h200.jsonl"


def test_parameters_are_refitted_from_what_microbenchmarks_printed(kx: Kx, tmp_path: Path) -> None:
    target = tmp_path / "h200.toml"
    result = kx("calibrate", "--model", "--figures", str(FIGURES), "--write", str(target), "--json")
    validate("model-refit", result.stdout)
    refitted = {item["name"]: item for item in json.loads(result.stdout)["parameters"]}
    assert refitted["l2_latency"]["refitted"] == pytest.approx(140.5, abs=0.1)
    written = tomllib.loads(target.read_text())
    assert written["l2_latency"]["origin"] == "measured"
    assert written["launch"]["origin"] == "published"


def test_a_variant_is_executed_again_only_where_its_problem_has_changed(
    kx: Kx, scale: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    executed: list[str] = []
    call = isolated.call

    def counted(worker: str, *rest: Any) -> Any:
        executed.append(worker)
        return call(worker, *rest)

    monkeypatch.setattr(isolated, "call", counted)

    def look() -> str:
        return kx("inspect", "scale@sm_90a", "--modelled", "--json", cwd=scale).stdout

    once = look()
    assert json.loads(once)[0]["modelled"]["cycles"] > 0
    assert look() == once
    assert executed.count(modelling.WORKER) == 1
    problem = scale / "variants/scale/problem.py"
    problem.write_text(problem.read_text() + "\nCHANGED = True\n")
    look()
    assert executed.count(modelling.WORKER) == 2


def test_a_file_without_figures_is_refused(kx: Kx, tmp_path: Path) -> None:
    (tmp_path / "none.jsonl").write_text("nothing\n")
    result = kx("calibrate", "--model", "--figures", str(tmp_path / "none.jsonl"))
    assert result.exit_code == 2
    assert "has none of the figures of microbenchmarks.cu" in " ".join(result.stderr.split())


def test_a_page_shows_what_was_modelled_with_its_error_and_a_time_line(kx: Kx) -> None:
    assert kx("inspect", "T1", "--modelled").exit_code == 0
    pages = site.ProjectSite(project.load(ROOT, sources=False))
    experiment = (pages.render("experiments/T1.html") or b"").decode()
    section = experiment.split("Modelled, not measured", 1)[1].split("</details>")[0]
    assert "the model was off by" in section
    assert "modelled cycles" in section
    (page, *_) = re.findall(r'href="../(timelines/[\w-]+\.html)"', section)
    assert page in list(pages.paths())
    shown = (pages.render(page) or b"").decode()
    assert "not measured" in shown
    assert shown.count('<text x="2"') == 8  # warps
    assert "waits for memory" in shown


def test_blocks_of_a_time_line_follow_one_another_and_fill_it(kx: Kx) -> None:
    assert kx("inspect", CONFLICTS, "--modelled").exit_code == 0
    (run,) = [
        kept.run
        for kept in modelling.kept(ROOT, records.read_file(records.find(ROOT, "T1", measured=True)))
        if kept.name == "baseline"
    ]
    assert run.timeline is not None
    for blocks in run.timeline.warps:
        ends = [block.start + block.cycles for block in blocks]
        assert all(one <= other.start + 1e-6 for one, other in zip(ends, blocks[1:], strict=False))
        assert ends[-1] <= run.timeline.cycles * 1.002
        assert sum(block.cycles for block in blocks) > 0.9 * (ends[-1] - blocks[0].start)
