"""FlashInfer Trace: a Definition and its Workloads as JSON; the solution is a Solution, and an
assessment becomes Traces, which its own programs read."""

from __future__ import annotations

import datetime
import importlib.util
import inspect
import json
import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from kernelexp.model.arm import Status
from kernelexp.model.errors import ConfigurationError, UsageError
from kernelexp.services.tasks import extensions, wire
from kernelexp.services.tasks.assessment import Assessment, CaseAnswer, CaseTime
from kernelexp.services.tasks.formats import compare, importing
from kernelexp.services.tasks.task import (
    Call,
    Solution,
    Task,
    TaskCase,
    TaskProblem,
    Values,
    shrink,
)
from kernelexp.system import disk

NAME = "flashinfer"
FILE, DEFINITION, WORKLOADS = "reference.py", "definition.json", "workloads.jsonl"
TOLERANCE = 1e-2
"""Relative and absolute, as their benchmark has it unless it is told otherwise."""
FFI = "tvm-ffi"
_PYTHON = ("python", "triton")
_IN_FILES = (
    "New contents of inputs that lie in files: they are the same in each call, and results kept by "
    "content pass."
)
_COMPILED = (".cpp", ".cc", ".cu")


def recognises(path: Path) -> bool:
    if path.is_dir():
        return (path / DEFINITION).is_file()
    return (
        path.suffix == ".json" and {"axes", "inputs", "outputs", "reference"} <= _json(path).keys()
    )


def _json(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text())
    except ValueError as error:
        raise ConfigurationError(f"{path} is not JSON: {error}.") from None
    if not isinstance(data, dict):
        raise ConfigurationError(f"{path} should be an object.")
    return data


def read(path: Path, solution: Path, largest: int) -> Task:
    file = path / DEFINITION if path.is_dir() else path
    definition = _json(file)
    workloads = file.parent / WORKLOADS
    if not workloads.is_file():
        raise ConfigurationError(f"{workloads} is missing: a Workload in each of its lines.")
    cases = [
        _case(json.loads(line), definition, largest)
        for line in workloads.read_text().splitlines()
        if line.strip()
    ]
    content = _json(solution)
    return Task(
        format=NAME,
        name=str(definition["name"]),
        files={FILE: str(definition["reference"])},
        cases=tuple(cases),
        solution=_solution(content),
        options={
            "definition": definition,
            "root": str(file.parent.resolve()),
            "binding": _binding(content["spec"]),
            "into": content["spec"].get("destination_passing_style", True),
        },
        not_checked=(_IN_FILES,) if any(map(_is_held, cases)) else (),
    )


def _is_held(case: TaskCase) -> bool:
    return any(how.get("type") == "safetensors" for how in case.parameters["inputs"].values())


def _binding(spec: dict[str, Any]) -> str:
    """Returns the binding of a compiled solution: torch, or theirs."""
    python = str(spec["language"]).lower() in _PYTHON
    return "" if python else str(spec.get("binding") or FFI)


def _case(line: dict[str, Any], definition: dict[str, Any], largest: int) -> TaskCase:
    """Returns the case of a Workload, or of a Trace that has one; sizes that the definition fixes
    stay."""
    workload = line.get("workload", line)
    kept = {n: a["value"] for n, a in definition["axes"].items() if a["type"] == "const"}
    own = {name: int(value) for name, value in workload["axes"].items()}
    # What a file holds has the size that it has.
    held = any(item.get("type") == "safetensors" for item in workload["inputs"].values())
    smaller = {name: value if held else shrink(value, largest) for name, value in own.items()}
    reduced = {name: (own[name], smaller[name]) for name in own if own[name] != smaller[name]}
    return TaskCase(
        name=str(workload["uuid"]),
        parameters={"axes": {**kept, **smaller}, "inputs": workload["inputs"], "own": workload},
        reduced=reduced,
    )


def _solution(content: dict[str, Any]) -> Solution:
    spec = content["spec"]
    file, _, entry = str(spec["entry_point"]).partition("::")
    refused = ""
    if _binding(spec) == FFI and importlib.util.find_spec("tvm_ffi") is None:
        refused = (
            f"a solution in {spec['language']} is bound by tvm-ffi, which is not installed: "
            "pip install 'kernelexp[flashinfer]'."
        )
    files = {str(source["path"]): str(source["content"]) for source in content["sources"]}
    if file not in files:
        raise ConfigurationError(f"the solution's entry point {file} is none of its sources.")
    return Solution(
        name=str(content["name"]), files=files, main=file, entry=entry or "run", refused=refused
    )


class _FlashInferProblem:
    def __init__(self, run: Any, definition: dict[str, Any], root: Path) -> None:
        self._run, self._definition, self._root = run, definition, root
        self.errors = compare.Errors()

    def preparation(self) -> Values:
        return {}

    def arguments(self, case: TaskCase, seed: int) -> Values:
        import torch

        torch.manual_seed(seed)
        result: Values = {}
        for name, item in self._definition["inputs"].items():
            how = case.parameters["inputs"].get(name, {"type": "random"})
            result[name] = self._input(item, how, case.parameters["axes"])
        return result

    def _input(self, content: dict[str, Any], how: dict[str, Any], axes: dict[str, int]) -> Any:
        if how["type"] == "scalar":
            return how["value"]
        if how["type"] == "safetensors":
            return self._kept(how, [axes[axis] for axis in content["shape"]], content["dtype"])
        return _random([axes[axis] for axis in content["shape"]], content["dtype"])

    def _kept(self, how: dict[str, Any], shape: list[int], dtype: str) -> Any:
        """Reads a file's tensor; the path goes from the data set's root: some folder above the
        definition."""
        import torch

        try:
            from safetensors import safe_open
        except ImportError:
            raise ConfigurationError(
                "inputs lie in a safetensors file: pip install 'kernelexp[flashinfer]'."
            ) from None
        name, key = str(how["path"]), str(how["tensor_key"])
        places = [folder / name for folder in (self._root, *self._root.parents)]
        path = next((place for place in places if place.is_file()), None)
        if path is None:
            raise ConfigurationError(f"{name} lies in no folder above {self._root}.")
        with safe_open(path, "pt") as file:
            if key not in file.keys():
                raise ConfigurationError(f"{path} has no tensor {key}.")
            tensor = file.get_tensor(key)
        if list(tensor.shape) != shape or tensor.dtype != getattr(torch, dtype):
            found = f"{tensor.dtype} {list(tensor.shape)}".removeprefix("torch.")
            raise ConfigurationError(f"{key} in {path} is {found}, not {dtype} {shape}.")
        return tensor.to(torch.get_default_device())

    def expected(self, case: TaskCase, arguments: Values) -> Any:
        import torch

        with torch.no_grad():
            return self._outputs(self._run(**arguments))

    def _outputs(self, answer: Any) -> Values:
        """Returns outputs by name, from a mapping or in the definition's order."""
        names = list(self._definition["outputs"])
        if isinstance(answer, dict):
            return {name: answer.get(name) for name in names}
        values = answer if isinstance(answer, tuple | list) else (answer,)
        return dict(zip(names, values, strict=False))

    def compare(self, case: TaskCase, arguments: Values, expected: Any, actual: Any) -> str:
        given = self._outputs(actual)
        return compare.disagreement(expected, given, TOLERANCE, TOLERANCE, self.errors)


def _random(shape: list[int], dtype: str) -> Any:
    import torch

    kind = getattr(torch, dtype)
    if kind == torch.bool:
        return torch.rand(shape) < 0.5
    if not kind.is_floating_point:
        return torch.randint(0, 8, shape, dtype=kind)
    return torch.randn(shape).to(kind)


def open_problem(task: Task, folder: Path) -> TaskProblem:
    run = importing.module(folder / FILE, ("run",)).run
    return _FlashInferProblem(run, task.options["definition"], Path(task.options["root"]))


def open_solution(task: Task, folder: Path, prepared: Values) -> Call:
    import torch

    definition = task.options["definition"]
    if task.options["binding"] == FFI:
        return _bound_by_ffi(task, folder)
    run = _run_of(task.solution, folder)
    into = [name for name in definition["outputs"] if name in _parameters(run)]

    def call(arguments: Values) -> Any:
        with torch.no_grad():
            if not into:
                return run(**arguments)
            outputs = _empty(definition, arguments)
            run(**arguments, **outputs)
            return outputs

    return call


def _bound_by_ffi(task: Task, folder: Path) -> Call:
    """Arguments go by place: inputs, then outputs where it writes to what it is given."""
    import torch
    import tvm_ffi

    solution, definition = task.solution, task.options["definition"]
    library = extensions.compile_ffi("solution", _sources(solution, folder))
    run = getattr(tvm_ffi.load_module(str(library)), solution.entry)

    def call(arguments: Values) -> Any:
        if task.options["into"]:
            outputs = _empty(definition, arguments)
            run(*arguments.values(), *outputs.values())
            return outputs
        answer = run(*arguments.values())
        several = isinstance(answer, tuple | list | tvm_ffi.Array)
        return tuple(map(torch.from_dlpack, answer if several else [answer]))

    return call


def _sources(solution: Solution, folder: Path) -> list[str]:
    return sorted(str(folder / name) for name in solution.files if name.endswith(_COMPILED))


def _run_of(solution: Solution, folder: Path) -> Any:
    if not solution.main.endswith(_COMPILED):
        return getattr(importing.module(folder / solution.main, (solution.entry,)), solution.entry)
    from torch.utils import cpp_extension

    name, sources = f"solution_{Path(solution.main).stem}", _sources(solution, folder)
    return getattr(cpp_extension.load(name=name, sources=sources), solution.entry)


def _parameters(run: Any) -> Sequence[str]:
    """Returns parameters; none of a compiled one, which returns its outputs."""
    try:
        return list(inspect.signature(run).parameters)
    except ValueError:
        return ()


def _empty(definition: dict[str, Any], arguments: Values) -> Values:
    """Outputs for a solution that writes to what it is given; sizes are those of the inputs."""
    import torch

    axes = {n: a["value"] for n, a in definition["axes"].items() if a["type"] == "const"}
    for name, item in definition["inputs"].items():
        axes.update(zip(item["shape"] or (), getattr(arguments[name], "shape", ()), strict=False))
    return {
        name: torch.empty(
            [axes[axis] for axis in entry["shape"]],
            dtype=getattr(torch, entry["dtype"]),
            device=wire.tensors(arguments)[0].device,
        )
        for name, entry in definition["outputs"].items()
    }


def open_reference(task: Task, folder: Path, prepared: Values) -> Call:
    run = importing.module(folder / FILE, ("run",)).run
    return lambda arguments: run(**arguments)


_STATUS = {
    Status.BUILD_FAILED: "COMPILE_ERROR",
    Status.CRASHED: "RUNTIME_ERROR",
    Status.TIMED_OUT: "TIMEOUT",
    Status.INVALID: "RUNTIME_ERROR",
}


def write_traces(path: Path, problem: Path, solution: Path, assessed: Assessment) -> None:
    """A Trace in each line; UsageError for a problem of another format."""
    if assessed.format != NAME:
        raise UsageError(f"--trace is for problems of FlashInfer; this one is {assessed.format}'s.")
    task = read(problem, solution, 0)
    answers = {case.name: case for case in assessed.cases}
    lines = []
    for case in task.cases:
        trace: dict[str, Any] = {
            "definition": task.name,
            "workload": case.parameters["own"],
            "solution": assessed.solution,
        }
        timed = next((time for time in assessed.times if time.name == case.name), None)
        evaluation = (
            _passed(assessed, timed) if timed else _evaluation(assessed, answers.get(case.name))
        )
        lines.append(json.dumps({**trace, **({"evaluation": evaluation} if evaluation else {})}))
    disk.write(path.resolve(), ("\n".join(lines) + "\n").encode(), durable=False)


def _passed(assessed: Assessment, time: CaseTime) -> dict[str, Any]:
    return {
        **_described(assessed, "PASSED", assessed.device),
        "correctness": _errors(assessed),
        "performance": {
            "latency_ms": time.time_us / 1000,
            "reference_latency_ms": time.reference_us / 1000,
            "speedup_factor": 1 / time.ratio,
        },
    }


def _errors(assessed: Assessment) -> dict[str, float]:
    return {
        "max_relative_error": assessed.largest_relative_error or 0.0,
        "max_absolute_error": assessed.largest_absolute_error or 0.0,
    }


def _evaluation(assessed: Assessment, answer: CaseAnswer | None) -> dict[str, Any] | None:
    """Describes a failure; None if right: a Trace that says PASSED has a time; nothing was
    timed."""
    status = _STATUS.get(assessed.status)
    result: dict[str, Any] = {}
    if answer is not None and not answer.right:
        status = _of_sentence(answer.sentence)
        if status == "INCORRECT_NUMERICAL":
            result["correctness"] = _errors(assessed)
    elif answer is not None:
        return None
    if status is None:
        return None
    return {**_described(assessed, status, f"emulated on {platform.machine()}"), **result}


def _described(assessed: Assessment, status: str, hardware: str) -> dict[str, Any]:
    libraries = {"torch": version("torch"), "kernelexp": version("kernelexp")}
    return {
        "status": status,
        "environment": {"hardware": hardware, "libs": libraries},
        "timestamp": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "log": assessed.sentence,
    }


def _of_sentence(sentence: str) -> str:
    if " has shape " in sentence:
        return "INCORRECT_SHAPE"
    return "INCORRECT_DTYPE" if " has type " in sentence else "INCORRECT_NUMERICAL"
