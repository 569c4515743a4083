"""Problems of other projects, read as text."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from support import ROOT

from kernelexp.model.errors import ConfigurationError, UsageError
from kernelexp.services.tasks import formats

TASKS = ROOT / "tests/projects/tasks"
EXAMPLE = "../../../docs/examples/tasks"
PROBLEMS = {
    "kernelbench": ("kernelbench/problem.py", "kernelbench/solution.py"),
    "gpumode": ("gpumode", "gpumode/submission.py"),
    "leetgpu": (EXAMPLE, "leetgpu/solve.cu"),
    "flashinfer": ("flashinfer", "flashinfer/solution.json"),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_problem_is_recognised_by_what_it_is(name: str) -> None:
    assert formats.recognise(TASKS / PROBLEMS[name][0]).NAME == name


def test_a_file_of_no_format_is_refused_with_the_formats_that_there_are() -> None:
    with pytest.raises(UsageError, match="gpumode, leetgpu, kernelbench, flashinfer"):
        formats.recognise(ROOT / "tests/support.py")


def test_sizes_of_kernelbench_are_reduced_in_the_problem_and_said() -> None:
    problem, solution = (TASKS / item for item in PROBLEMS["kernelbench"])
    (case,) = (task := formats.named("kernelbench").read(problem, solution, 64)).cases
    assert case.reduced == {"batch": (128, 64), "features": (4096, 64)}
    assert "features = 64\n" in task.files["problem.py"]


def test_a_tuple_of_sizes_is_reduced_too(tmp_path: Path) -> None:
    problem, solution = (TASKS / item for item in PROBLEMS["kernelbench"])
    path = tmp_path / "problem.py"
    path.write_text(problem.read_text() + "shape = (4096, 3)\nkernel = (3, 3)\n")
    task = formats.named("kernelbench").read(path, solution, 64)
    assert "shape = (64, 3)\nkernel = (3, 3)\n" in task.files["problem.py"]
    assert task.cases[0].reduced["shape[0]"] == (4096, 64)


def test_its_own_sizes_stay_where_nothing_is_to_be_reduced() -> None:
    problem, solution = (TASKS / item for item in PROBLEMS["kernelbench"])
    task = formats.named("kernelbench").read(problem, solution, 0)
    assert task.files["problem.py"] == problem.read_text()
    assert not task.cases[0].reduced


def test_odd_sizes_of_gpumode_stay_odd() -> None:
    folder, solution = (TASKS / item for item in PROBLEMS["gpumode"])
    task = formats.named("gpumode").read(folder, solution, 20)
    assert [case.parameters for case in task.cases] == [{"size": 19}, {"size": 20}]


def test_the_reference_is_no_file_of_the_solution() -> None:
    folder, submission = (TASKS / item for item in PROBLEMS["gpumode"])
    task = formats.named("gpumode").read(folder, submission, 64)
    assert set(task.solution.files) == {"task.py", "submission.py"}


def test_a_file_that_a_task_names_and_lacks_is_said(tmp_path: Path) -> None:
    shutil.copytree(TASKS / "gpumode", tmp_path / "task")
    (tmp_path / "task/task.py").unlink()
    with pytest.raises(ConfigurationError, match=r"names task\.py, which is not there"):
        formats.named("gpumode").read(tmp_path / "task", tmp_path / "task/submission.py", 64)


def test_axes_that_a_definition_fixes_are_not_reduced() -> None:
    folder, solution = (TASKS / item for item in PROBLEMS["flashinfer"])
    task = formats.named("flashinfer").read(folder, solution, 16)
    assert [case.parameters["axes"] for case in task.cases] == [
        {"N": 7, "W": 32},
        {"N": 16, "W": 32},
    ]


def test_a_solution_in_cuda_without_a_binding_is_bound_by_tvm_ffi(tmp_path: Path) -> None:
    data = json.loads((TASKS / "flashinfer/solution.json").read_text())
    data["spec"]["language"] = "cuda"
    path = tmp_path / "solution.json"
    path.write_text(json.dumps(data))
    task = formats.named("flashinfer").read(TASKS / "flashinfer", path, 64)
    assert (task.solution.refused, task.options["binding"]) == ("", "tvm-ffi")
