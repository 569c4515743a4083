"""The programs of docs/examples/optimisers."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from support import ROOT

pytestmark = pytest.mark.xdist_group("tasks")

EXAMPLES = ROOT / "docs/examples/optimisers"
LEETGPU = ROOT / "docs/examples/tasks"


def imported(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("change", "reward"), [(("", ""), 0.4), (("x[i] *", "x[i] +"), 0.1), (("x[i] *", "z[i] *"), 0)]
)
@pytest.mark.slow
def test_verl_gets_its_reward(
    change: tuple[str, str], reward: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (
        (ROOT / "tests/projects/tasks/leetgpu/solve.cu").read_text().replace(*change)
        if change[0]
        else (ROOT / "tests/projects/tasks/leetgpu/solve.cu").read_text()
    )
    answer = f"Here it is:\n```cuda\n{text}```\n"
    score = imported("verl_reward").compute_score("leetgpu", answer, str(LEETGPU))
    assert score == pytest.approx(reward)


def test_verl_gives_nothing_for_an_answer_without_a_source() -> None:
    assert imported("verl_reward").compute_score("leetgpu", "I can't.", "nowhere") == 0.0
