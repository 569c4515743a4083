"""A problem.py as a Problem: one way to call its functions, with what they return checked.

The kernel's folder is on sys.path from then on and the module in sys.modules. A process loads the
problem of one kernel, so that modules next to two kernels may have the same name.
"""

from __future__ import annotations

import ctypes
import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import msgspec

from kernelexp.model.errors import ConfigurationError
from kernelexp.model.problem import (
    Array,
    Axes,
    Budget,
    Chunk,
    Problem,
    Size,
    Tensors,
    Tolerance,
    Work,
)
from kernelexp.project.problem.faults import (
    chunk_fault,
    coverage_fault,
    describe,
    launch_faults,
    tensor_fault,
)
from kernelexp.project.problem.files import COUNTS
from kernelexp.project.problem.source import ProblemFile
from warpsim.dtypes import SCALARS, TORCH_NAMES, own_name
from warpsim.launch import Launch, Scalar, StructValue, TensorMap

REQUIRED = ("SIZES", "outputs", "inputs", "reference", "tolerance", "launch")
T = TypeVar("T")


def load(root: Path, kernel: str) -> Problem:
    """`variants/<kernel>/problem.py`; ConfigurationError if it can't serve as one."""
    return load_file(root / "variants" / kernel / "problem.py", f"variants/{kernel}/problem.py")


def load_file(
    path: Path, name: str = "", around: Callable[[str], AbstractContextManager[None]] | None = None
) -> Problem:
    """The problem in a Python file, which sentences call `name`.

    Each call of one of its functions runs inside `around(function)`.
    """
    source = ProblemFile(path.resolve(), name or path.name, around or (lambda _: nullcontext()))
    module = source.execute()
    missing = [item for item in REQUIRED if not hasattr(module, item)]
    if missing:
        raise ConfigurationError(
            f"{source.name} lacks {', '.join(missing)} (see kernelexp.model.problem)."
        )
    if counts := source.execute_beside(COUNTS):
        _add(module, counts)
    return _Functions(source, module).problem()


def _add(module: ModuleType, counts: ModuleType) -> None:
    """Adds the contents of counts.py to the module, as if problem.py defined them."""
    for function in ("loads", "blocks"):
        if hasattr(counts, function):
            module.__dict__[function] = getattr(counts, function)
    module.__dict__["SIZES"] = {**getattr(counts, "SIZES", {}), **module.SIZES}


class _Functions:
    """The functions of a problem.py, each called under blame and its result checked."""

    def __init__(self, source: ProblemFile, module: ModuleType) -> None:
        self._source, self._module = source, module

    def problem(self) -> Problem:
        return Problem(
            name=self._source.name,
            folder=self._source.path.parent,
            sizes=self._sizes(),
            outputs=self.outputs,
            workspaces=self.workspaces,
            inputs=self.inputs,
            reference=self.reference,
            tolerance=self.tolerance,
            launches=self.launches,
            arrange=self.arrange,
            constraints=self.constraints,
            budget=self.budget,
            tiles=self._counted("tiles"),
            loads=self._counted("loads"),
            blocks=self._counted("blocks"),
            work=lambda size: self._optional("work", Work, size),
            terms=self._constant("TERMS", dict[str, str | dict[str, str]], {}),
            benign_races=self._constant("BENIGN_RACES", dict[str, str], {}),
            peer_names=self._constant("PEERS", tuple[str, ...], ()),
            peers=lambda inputs, size: self._call("peers", inputs, size),
        )

    def _sizes(self) -> Mapping[str, Size]:
        sizes = self._constant("SIZES", dict[str, dict[str, int]], {})
        if not sizes:
            raise ConfigurationError(
                f"{self._source.name}: SIZES is empty; it needs a size 'full'."
            )
        return sizes

    def outputs(self, size: Size) -> Mapping[str, Array]:
        arrays = self._call("outputs", size)
        if not arrays:
            raise self._fault("outputs", "it names no array: name what the kernel writes.")
        return self._arrays("outputs", arrays)

    def workspaces(self, axes: Axes, size: Size, exports: Mapping[str, int]) -> Mapping[str, Array]:
        if not hasattr(self._module, "workspaces"):
            return {}
        arrays = self._call("workspaces", *self._wanted("workspaces", axes, size, exports))
        return self._arrays("workspaces", arrays)

    def _arrays(self, function: str, answer: Any) -> Mapping[str, Array]:
        if not isinstance(answer, Mapping):
            raise self._fault(function, f"it returns {describe(answer)} instead of arrays by name.")
        named = {}
        for name, array in answer.items():
            if not isinstance(array, Array):
                raise self._fault(function, f"{name!r} is no kernelexp.Array.")
            dtype = own_name(array.dtype)
            if dtype not in TORCH_NAMES:
                known = ", ".join(TORCH_NAMES)
                raise self._fault(
                    function, f"{name!r} has the unknown dtype {dtype!r}; known: {known}."
                )
            named[name] = msgspec.structs.replace(array, dtype=dtype)
        arrays = self._convert(function, named, dict[str, Array])
        for name, array in arrays.items():
            if not array.shape or min(array.shape) < 1:
                shape = list(array.shape)
                raise self._fault(function, f"{name!r} has the shape {shape}, with no element.")
        return arrays

    def inputs(self, size: Size, seed: int, device: str) -> Tensors:
        return self._tensors("inputs", self._call("inputs", size, seed, device))

    def arrange(self, inputs: Tensors, axes: Axes) -> Tensors:
        if not hasattr(self._module, "arrange"):
            return inputs
        return {**inputs, **self._tensors("arrange", self._call("arrange", inputs, axes))}

    def _tensors(self, function: str, given: Any) -> Tensors:
        if not isinstance(given, Mapping):
            raise self._fault(function, f"it returns {describe(given)} instead of tensors by name.")
        for name, tensor in given.items():
            if fault := tensor_fault(tensor):
                raise self._fault(function, f"{name!r} is {fault}.")
            if not tensor.is_contiguous():
                raise self._fault(
                    function, f"{name!r} is not contiguous in memory: call .contiguous() on it."
                )
        return {name: tensor.detach() for name, tensor in given.items()}

    def reference(self, inputs: Tensors, size: Size) -> Iterator[Chunk]:
        outputs = self.outputs(size)
        given: dict[str, list[tuple[int, int]]] = {name: [] for name in outputs}
        chunks = self._call("reference", inputs, size)
        if not hasattr(chunks, "__iter__"):
            raise self._fault("reference", f"it returns {describe(chunks)} instead of chunks.")
        iterator = iter(chunks)
        while True:
            with self._source.blame("reference"):
                chunk = next(iterator, None)
            if chunk is None:
                break
            fault = chunk_fault(chunk, outputs)
            if fault:
                # A generator waits at the line that yielded the chunk.
                frame = getattr(iterator, "gi_frame", None)
                place = f"{self._source.name}:{frame.f_lineno}" if frame else ""
                raise self._fault("reference", fault, place)
            given[chunk.array].append((chunk.first, chunk.first + len(chunk.values)))
            yield Chunk(array=chunk.array, first=chunk.first, values=chunk.values.detach())
        for name, rows in given.items():
            fault = coverage_fault(name, rows, outputs[name].shape[0])
            if fault:
                raise self._fault("reference", fault)

    def tolerance(self, size: Size, arch: str, axes: Axes) -> Tolerance:
        limit = self._call("tolerance", *self._wanted("tolerance", size, arch, axes))
        bounds = self._convert("tolerance", limit, Tolerance)
        for name in ("rtol", "atol", "of_rms"):
            bound = getattr(bounds, name)
            if not (math.isfinite(bound) and bound >= 0):
                raise self._fault(
                    "tolerance", f"{name} is {bound:g}: it must be 0 or more, finite."
                )
        return bounds

    def launches(self, axes: Axes, size: Size, exports: Mapping[str, int]) -> tuple[Launch, ...]:
        with self._source.blame("launch"):
            job = self._module.launch(*self._wanted("launch", axes, size, exports))
            steps = list(job) if isinstance(job, Iterable) else [job]
        if not steps:
            raise self._fault("launch", "it returns no launch.")
        if sum(step.main for step in steps if isinstance(step, Launch)) > 1:
            raise self._fault("launch", "one launch of a job at most has main=True.")
        return tuple(map(self._launch, steps))

    def _launch(self, answer: Any) -> Launch:
        if isinstance(answer, Launch):
            arguments = tuple(map(self._argument, answer.arguments))
            answer = msgspec.structs.replace(answer, arguments=arguments)
        launch = self._convert("launch", answer, Launch)
        for fault in launch_faults(launch):
            raise self._fault("launch", fault)
        return launch

    def _argument(self, argument: Any) -> Any:
        """Returns an argument with types by their own names, and the size of a struct."""
        if isinstance(argument, StructValue):
            data = _convert(argument.data, bytes)
            fields = tuple(
                msgspec.structs.replace(field, value=self._argument(field.value))
                for field in argument.fields
            )
            size = argument.size or len(data)
            return msgspec.structs.replace(argument, size=size, data=data, fields=fields)
        if isinstance(argument, TensorMap):
            return msgspec.structs.replace(argument, element=own_name(argument.element))
        if not isinstance(argument, Scalar):
            return argument
        kind = own_name(argument.type)
        if kind not in SCALARS:
            known = ", ".join(SCALARS)
            raise self._fault("launch", f"a scalar has the unknown type {kind!r}; known: {known}.")
        return msgspec.structs.replace(argument, type=kind)

    def constraints(self, axes: Axes, arch: str) -> tuple[str, ...]:
        if not hasattr(self._module, "constraints"):
            return ()
        with self._source.blame("constraints"):
            reasons = list(self._module.constraints(axes, arch) or ())
        return self._convert("constraints", reasons, tuple[str, ...])

    def _counted(self, function: str) -> Callable[[Axes, Size, Mapping[str, int]], int | None]:
        return lambda *arguments: self._optional(function, int, *self._wanted(function, *arguments))

    def _wanted(self, function: str, *arguments: Any) -> tuple[Any, ...]:
        """All the arguments, or without the last where the function does not take it."""
        implemented = getattr(self._module, function, None)
        accepted = len(inspect.signature(implemented).parameters) if callable(implemented) else 0
        return arguments if accepted == len(arguments) else arguments[:-1]

    def budget(self, axes: Axes, arch: str) -> Budget | None:
        return self._optional("budget", Budget, axes, arch)

    def _call(self, function: str, *arguments: Any) -> Any:
        with self._source.blame(function):
            return getattr(self._module, function)(*arguments)

    def _optional(self, function: str, kind: type[T], *arguments: Any) -> T | None:
        if not hasattr(self._module, function):
            return None
        value = self._call(function, *arguments)
        return None if value is None else self._convert(function, value, kind)

    def _constant(self, name: str, kind: type[T], default: T) -> T:
        value = getattr(self._module, name, default)
        try:
            constant: T = _convert(value, kind)
            return constant
        except (msgspec.ValidationError, TypeError) as error:
            raise ConfigurationError(f"{self._source.name}: {name}: {error}.") from None

    def _convert(self, function: str, value: Any, kind: type[T]) -> T:
        try:
            converted: T = _convert(value, kind)
            return converted
        except (msgspec.ValidationError, TypeError) as error:
            raise self._fault(function, f"it returns {describe(value)}: {error}.") from None

    def _fault(self, function: str, words: str, place: str = "") -> ConfigurationError:
        place = place or self._source.at(getattr(self._module, function))
        return ConfigurationError(f"{place}: {function}(): {words}")


def _convert(value: Any, kind: Any) -> Any:
    """`value` as a `kind`, numbers of NumPy and torch and structures included."""
    return msgspec.convert(msgspec.to_builtins(value, enc_hook=_plain), kind)


def _plain(value: Any) -> Any:
    is_record = getattr(getattr(value, "dtype", None), "names", None)  # of NumPy
    if is_record or isinstance(value, ctypes.Structure | ctypes.Union):
        return bytes(value)
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{describe(value)} is among its values")
