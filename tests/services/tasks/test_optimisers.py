"""The programs of docs/examples/optimisers."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from support import ROOT, Kx

from kernelexp.model import errors

pytestmark = pytest.mark.xdist_group("tasks")

EXAMPLES = ROOT / "docs/examples/optimisers"
LEETGPU = ROOT / "docs/examples/tasks"
RIGHT = (EXAMPLES / "scale.cu").read_text()
WRONG = RIGHT.replace("* factor", "+ factor")


def imported(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("text", "reward"), [(RIGHT, 0.4), (WRONG, 0.1), (RIGHT.replace("x[", "z["), 0.0)]
)
@pytest.mark.slow
def test_verl_gets_its_reward(
    text: str, reward: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = f"Here it is:\n```cuda\n{text}```\n"
    for _ in range(2):  # the second time the verdict is known
        score = imported("verl_reward").compute_score("leetgpu", answer, str(LEETGPU))
        assert score == pytest.approx(reward)


def test_verl_gives_nothing_for_an_answer_without_a_source() -> None:
    assert imported("verl_reward").compute_score("leetgpu", "I can't.", "nowhere") == 0.0


@pytest.mark.slow
def test_openevolve_goes_through_three_stages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluator = pytest.importorskip("openevolve.evaluator")
    config = importlib.import_module("openevolve.config")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KX_PROBLEM", str(LEETGPU))
    options = config.EvaluatorConfig(cascade_thresholds=[0.4, 0.4], timeout=600)
    judge = evaluator.Evaluator(options, str(EXAMPLES / "openevolve_evaluator.py"), suffix=".cu")
    right, wrong = (asyncio.run(judge.evaluate_program(text, text)) for text in (RIGHT, WRONG))
    assert right["combined_score"] == pytest.approx(0.4)
    assert wrong["combined_score"] == pytest.approx(0.1)
    assert judge.get_pending_artifacts(WRONG)["verdict"].startswith("INCORRECT")


@pytest.mark.slow
def test_verifiers_scores_a_reply(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("verifiers.v1")
    monkeypatch.chdir(tmp_path)
    problem = shutil.copytree(LEETGPU, tmp_path / "problems" / "scale")
    monkeypatch.setenv("KX_PROBLEMS", str(problem.parent))
    environment = imported("verifiers_environment")
    vf: Any = importlib.import_module("verifiers.v1")
    (task,) = environment.KernelTaskset(vf.TasksetConfig())
    assert "class Challenge" in task.data.prompt

    trace = Answered(f"Here:\n```cuda\n{RIGHT}```\n")
    asyncio.run(task.score(trace))
    assert trace.rewards == {"faster": pytest.approx(0.4)}


class Answered:
    """What a task of verifiers asks of a trace."""

    def __init__(self, last_reply: str) -> None:
        self.last_reply = last_reply
        self.metrics: dict[str, float] = {}
        self.rewards: dict[str, float] = {}

    def record_reward(self, name: str, value: float, weight: float) -> None:
        self.rewards[name] = weight * value


@pytest.mark.slow
def test_a_search_tries_what_its_stages_leave(tmp_path: Path) -> None:
    argv = [sys.executable, str(EXAMPLES / "search.py"), str(LEETGPU), str(EXAMPLES / "scale.cu")]
    done = subprocess.run(
        [*argv, "1", "3"], cwd=tmp_path, env=os.environ, capture_output=True, text=True, check=True
    )
    assert (
        len([line for line in done.stdout.splitlines() if line.startswith(("no,", "better,"))]) == 3
    )
    assert "emulate   ended " in done.stdout


@pytest.mark.slow
def test_exec_checks_each_size_of_a_benchmark_in_cpp(kx: Kx, tmp_path: Path) -> None:
    text = (EXAMPLES / "scale_bench.cu").read_text()
    bench = tmp_path / "bench.cu"
    bench.write_text(text)
    assert kx("exec", str(bench), cwd=tmp_path).exit_code == errors.OK
    bench.write_text(text.replace("if (i < n) ", ""))
    result = kx("exec", str(bench), cwd=tmp_path)
    assert result.exit_code == errors.WRONG_RESULT
    assert "out-of-bounds in scale, at bench.cu:9, launch 11" in result.stderr
