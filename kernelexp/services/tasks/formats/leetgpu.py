"""LeetGPU: `challenge.py` with a class Challenge; the solution is a .cu file whose `solve` takes
device pointers and sizes, or a .py file whose `solve` takes tensors."""

from __future__ import annotations

import ctypes
import re
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kernelexp.model.errors import ConfigurationError, UsageError
from kernelexp.services.tasks import extensions
from kernelexp.services.tasks.formats import compare, importing
from kernelexp.services.tasks.task import Call, Solution, Task, TaskCase, TaskProblem, Values

_POINTER = "pointer"
_TO_DEVICE, _TO_HOST = 1, 2

Parameter = list[str]
"""Name, C type, and whether it is `in`, `out` or `inout`."""


def spell(name: str, kind: Any, direction: str) -> Parameter:
    """A parameter that a signature describes with types of ctypes."""
    pointer = issubclass(kind, ctypes._Pointer | ctypes.c_void_p)
    return [name, _POINTER if pointer else kind.__name__, direction]


def of_source(source: Path, entry: str, signature: list[Parameter]) -> Callable[..., None]:
    """Compiles a file; the function is called with tensors and values by name, and leaves in the
    tensors what it wrote."""
    library = ctypes.CDLL(str(extensions.compile_shared(source)))
    if not hasattr(library, entry):
        raise UsageError(f'{source.name} does not define extern "C" {entry}().')
    function, runtime = getattr(library, entry), extensions.runtime()
    function.restype = None

    def call(**given: Any) -> None:
        arguments = [(given[name], kind) for name, kind, _ in signature]
        if extensions.on_gpu():  # where tensors lie already
            function(*(_passed(value, kind) for value, kind in arguments))
        else:
            _call(function, runtime, arguments)

    return call


def _call(function: Any, runtime: Any, arguments: list[tuple[Any, str]]) -> None:
    copies: list[tuple[Any, ctypes.c_void_p]] = []
    passed: list[Any] = []
    for value, kind in arguments:
        if kind == _POINTER:
            copies.append((value, _upload(runtime, value)))
            passed.append(copies[-1][1])
        else:
            passed.append(_passed(value, kind))
    function(*passed)
    _require(runtime, runtime.cudaDeviceSynchronize())
    for tensor, address in copies:
        _download(runtime, tensor, address)
        runtime.cudaFree(address)


def _passed(value: Any, kind: str) -> Any:
    if kind == _POINTER:
        return ctypes.c_void_p(value.data_ptr())
    return getattr(ctypes, kind, ctypes.c_size_t)(value)


def _upload(runtime: Any, tensor: Any) -> ctypes.c_void_p:
    address = ctypes.c_void_p()
    plain = tensor.contiguous()
    size = max(1, plain.numel() * plain.element_size())
    _require(runtime, runtime.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(size)))
    if plain.numel():
        _copy(runtime, address, ctypes.c_void_p(plain.data_ptr()), size, _TO_DEVICE)
    return address


def _download(runtime: Any, tensor: Any, address: ctypes.c_void_p) -> None:
    import torch

    if tensor.numel() == 0:
        return
    plain = torch.empty(tensor.shape, dtype=tensor.dtype)
    size = plain.numel() * plain.element_size()
    _copy(runtime, ctypes.c_void_p(plain.data_ptr()), address, size, _TO_HOST)
    tensor.copy_(plain)


def _copy(runtime: Any, to: Any, source: Any, size: int, kind: int) -> None:
    _require(runtime, runtime.cudaMemcpy(to, source, ctypes.c_size_t(size), kind))


def _require(runtime: Any, error: int) -> None:
    if error:
        runtime.cudaGetErrorString.restype = ctypes.c_char_p
        raise RuntimeError(f"CUDA: {runtime.cudaGetErrorString(error).decode()}")


NAME = "leetgpu"
FILE, ENTRY = "challenge.py", "solve"
ELEMENTS = 1 << 14
"""Of the largest tensor: a test with more of them is left to a GPU."""
_KINDS = {"example": "generate_example_test", "functional": "generate_functional_test"}
_TIMED = {"performance": "generate_performance_test"}


def recognises(path: Path) -> bool:
    file = path / FILE if path.is_dir() else path
    return (
        file.suffix == ".py"
        and file.is_file()
        and bool(re.search(r"^class Challenge\b", file.read_text(errors="replace"), re.M))
    )


def read(path: Path, solution: Path, largest: int) -> Task:
    file = path / FILE if path.is_dir() else path
    if solution.suffix not in (".cu", ".py"):
        raise ConfigurationError(f"{solution} should be a .cu or a .py file with solve().")
    cases, timed = (
        tuple(TaskCase(name=kind, parameters={"kind": kind}) for kind in kinds)
        for kinds in (_KINDS, _TIMED)
    )
    return Task(
        format=NAME,
        name=file.resolve().parent.name,
        files={FILE: file.read_text()},
        cases=cases,
        timed=timed,
        solution=Solution(
            name=solution.stem,
            files={solution.name: solution.read_text()},
            main=solution.name,
            entry=ENTRY,
            language="cuda" if solution.suffix == ".cu" else "python",
        ),
        options={"elements": ELEMENTS if largest else 0},
        not_checked=(
            f"Tests with a tensor of more than {ELEMENTS:,} elements, and the performance test.",
        )
        if largest
        else (),
    )


class _Base:
    """The interface of `core.challenge_base`, in both of its forms: attributes of the class, or
    given to the constructor."""

    atol, rtol = 1e-5, 1e-5

    def __init__(self, *_: Any, **given: Any) -> None:
        self.device = "cuda"
        self.__dict__.update(given)


class _Lazy:
    """A tensor that is described: by its shape, and how it is filled."""

    def __init__(self, shape: Any, *args: Any, **given: Any) -> None:
        self.shape = (shape,) if isinstance(shape, int) else tuple(shape)
        self.args, self.given = args, given

    def option(self, place: int, name: str, default: Any) -> Any:
        return self.args[place] if len(self.args) > place else self.given.get(name, default)


def _provide_base() -> None:
    """Makes `from core.challenge_base import ChallengeBase` work."""
    core, base = types.ModuleType("core"), types.ModuleType("core.challenge_base")
    names = ("RandTensor", "RandnTensor", "RandIntTensor", "FullTensor", "OutTensor")
    members = {name: type(name, (_Lazy,), {}) for name in names}
    vars(base).update({"ChallengeBase": _Base, **members})
    vars(core)["challenge_base"] = base
    sys.modules.update({"core": core, "core.challenge_base": base})


def _materialise(value: Any) -> Any:
    import torch

    if not isinstance(value, _Lazy):
        return value
    kind = type(value).__name__
    if kind == "RandTensor":
        low, high = value.option(0, "low", 0.0), value.option(1, "high", 1.0)
        return torch.empty(value.shape, dtype=_dtype(value, 2)).uniform_(low, high)
    if kind == "RandnTensor":
        mean, std = value.option(0, "mean", 0.0), value.option(1, "std", 1.0)
        return torch.empty(value.shape, dtype=_dtype(value, 2)).normal_(mean, std)
    if kind == "RandIntTensor":
        low, high = value.option(0, "low", 0), value.option(1, "high", 2)
        return torch.randint(low, high, value.shape, dtype=_dtype(value, 2, "int32"))
    if kind == "FullTensor":
        return torch.full(value.shape, value.option(0, "value", 0.0), dtype=_dtype(value, 1))
    return torch.empty(value.shape, dtype=_dtype(value, 0))


def _dtype(value: _Lazy, place: int, default: str = "float32") -> Any:
    import torch

    result = value.option(place, "dtype", default)
    return getattr(torch, result) if isinstance(result, str) else result


class _LeetGpuProblem:
    def __init__(self, challenge: Any, elements: int) -> None:
        self._challenge = challenge
        self._elements = elements
        self._signature = dict(challenge.get_solve_signature())
        self.errors = compare.Errors()

    def preparation(self) -> Values:
        return {"signature": [spell(n, *item) for n, item in self._signature.items()]}

    def arguments(self, case: TaskCase, seed: int) -> Values:
        import torch

        torch.manual_seed(seed)
        tests = getattr(self._challenge, {**_KINDS, **_TIMED}[case.parameters["kind"]])()
        tests = tests if isinstance(tests, list) else [tests]
        result = [{name: _materialise(value) for name, value in test.items()} for test in tests]
        small = [test for test in result if not self._elements or _largest(test) <= self._elements]
        return {"tests": small or result[:1]}

    def expected(self, case: TaskCase, arguments: Values) -> Any:
        for test in arguments["tests"]:
            self._challenge.reference_impl(**test)
        return [self._outputs(test) for test in arguments["tests"]]

    def _outputs(self, test: Values) -> Values:
        return {n: test[n] for n, item in self._signature.items() if item[1] in ("out", "inout")}

    def compare(self, case: TaskCase, arguments: Values, expected: Any, actual: Any) -> str:
        rtol, atol = float(self._challenge.rtol), float(self._challenge.atol)
        given = [self._outputs(test) for test in actual]
        return compare.disagreement(expected, given, rtol, atol, self.errors)


def _largest(test: Values) -> int:
    return max([0, *(int(value.numel()) for value in test.values() if hasattr(value, "numel"))])


def open_problem(task: Task, folder: Path) -> TaskProblem:
    _provide_base()
    challenge = importing.module(folder / FILE, ("Challenge",)).Challenge()
    return _LeetGpuProblem(challenge, int(task.options["elements"]))


def open_solution(task: Task, folder: Path, prepared: Values) -> Call:
    if task.solution.language == "python":
        solve = getattr(importing.module(folder / task.solution.main, (ENTRY,)), ENTRY)
    else:
        solve = of_source(folder / task.solution.main, ENTRY, prepared["signature"])

    def call(arguments: Values) -> Any:
        for test in arguments["tests"]:
            solve(**test)
        return arguments["tests"]

    return call


def open_reference(task: Task, folder: Path, prepared: Values) -> Call:
    _provide_base()
    challenge = importing.module(folder / FILE, ("Challenge",)).Challenge()

    def call(arguments: Values) -> Any:
        for test in arguments["tests"]:
            challenge.reference_impl(**test)
        return arguments["tests"]

    return call
