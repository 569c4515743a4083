"""What a kernel's `problem.py` implements: sizes, inputs, reference, limits, launch, peers.

`problem.py` is the only host code of a kernel and runs nowhere but here, so its functions take
plain values. It imports torch inside the functions that need it: a list of experiments must not
load it.

    SIZES: Mapping[str, Size]
        "full", and "emulated": as small as can be while every branch is still taken.
    def outputs(size) -> Mapping[str, Array]
        What the kernel writes. The tool allocates these, poisons them, and checks every element.
    def inputs(size, seed, device) -> Mapping[str, torch.Tensor]
        Random inputs; the same seed gives the same values on the same device.
    def arrange(inputs, axes) -> Mapping[str, torch.Tensor]
        The arrays as a variant wants them (a re-laid table, say); not timed. Optional.
    def reference(inputs, size) -> Iterator[Chunk]
        The right output in higher precision, in pieces that fit, from the unarranged inputs.
    def tolerance(size, arch) -> Tolerance
        Tensor cores of one architecture are less exact than those of another.
    def constraints(axes, arch) -> Iterator[str]
        A sentence for each reason why this combination of values does not exist. Optional.
    def budget(axes, arch) -> Budget
        What a CTA will ask of its SM, known before the build and held against the build afterwards.
    def launch(axes, size, exports) -> Launch
        `exports` are the figures that the source computed once (KX_EXPORT of export.cuh in
        variants/include), read from the cubin: threads, cluster, dynamic_smem_bytes and what else
        the kernel exports.
    def tiles(axes, size) -> int
        Output tiles of a launch: what its counters grow with. Optional.
    def work(size) -> Work
        Useful FLOPs and the bytes that must move. Optional.
    PEERS: Sequence[str]
    def peers(inputs, size) -> Mapping[str, Callable[[], object]]
        Others' kernels to time in the same run, ready to call on the GPU; their names. Optional.
"""

from __future__ import annotations

import contextlib
import importlib.util
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

import msgspec

from kernelexp.errors import ConfigurationError, KernelexpError
from kernelexp.launch import Launch

if TYPE_CHECKING:
    import torch

AxisValue: TypeAlias = int | str | bool
Axes: TypeAlias = Mapping[str, AxisValue]
Size: TypeAlias = Mapping[str, int]
DType: TypeAlias = Literal["u8", "e4m3", "e5m2", "f16", "bf16", "f32", "s32"]


class Array(msgspec.Struct, frozen=True, kw_only=True):
    """Shape and type of an array that the tool allocates."""

    shape: tuple[int, ...]
    dtype: DType


class Chunk(msgspec.Struct, frozen=True, kw_only=True):
    """The right values of rows [first, first + len(values)) of one output, in float64."""

    array: str
    first: int
    values: Any  # a torch.Tensor; msgspec can't name it without importing torch


class Tolerance(msgspec.Struct, frozen=True, kw_only=True):
    """An element is right if |got - want| <= atol + rtol * |want|, and why these are the bounds."""

    rtol: float
    atol: float
    why: str


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """What one CTA of a variant asks of its SM."""

    threads: int
    dynamic_smem_bytes: int
    tmem_columns: int = 0
    cluster: int = 1
    registers_per_thread: int = 0
    """The least that the variant needs to hold live, where that is known; 0 where it isn't."""
    terms: Mapping[str, str] = {}
    """How a figure comes about, by its field name: {"tmem_columns": "256 columns x 2 buffers"}."""


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """Useful work of one launch, whatever the kernel does on top of it."""

    flops: int
    bytes: int


class Problem(Protocol):
    """The functions that a kernel's problem.py must have; see the module's text for the others."""

    SIZES: Mapping[str, Size]
    outputs: Callable[[Size], Mapping[str, Array]]
    inputs: Callable[[Size, int, str], Mapping[str, torch.Tensor]]
    reference: Callable[[Mapping[str, torch.Tensor], Size], Iterator[Chunk]]
    tolerance: Callable[[Size, str], Tolerance]
    budget: Callable[[Axes, str], Budget]
    launch: Callable[[Axes, Size, Mapping[str, int]], Launch]


REQUIRED = ("SIZES", "outputs", "inputs", "reference", "tolerance", "budget", "launch")


def load(root: Path, kernel: str) -> Problem:
    """`variants/<kernel>/problem.py` as a module; ConfigurationError if it can't serve as one."""
    path = root / "variants" / kernel / "problem.py"
    name = path.relative_to(root).as_posix()
    spec = importlib.util.spec_from_file_location(f"kernelexp_problem_{kernel}", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise ConfigurationError(f"{name} can't be read.")
    module = importlib.util.module_from_spec(spec)
    with blame(root, name):
        spec.loader.exec_module(module)
    missing = [each for each in REQUIRED if not hasattr(module, each)]
    if missing:
        raise ConfigurationError(f"{name} lacks {', '.join(missing)} (see kernelexp.problem).")
    return module


@contextlib.contextmanager
def blame(root: Path, name: str) -> Iterator[None]:
    """Turns an exception of a problem.py into the sentence that says where it came from."""
    try:
        yield
    except (KernelexpError, KeyboardInterrupt):
        raise
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == str(root / name)]
        place = f"{name}:{lines[-1]}" if lines else name
        raise ConfigurationError(f"{place}: {type(error).__name__}: {error}") from error


def reasons_against(
    root: Path, problem: Problem, kernel: str, axes: Axes, arch: str
) -> tuple[list[str], Budget]:
    """Why the kernel's own rules refuse a combination of values, if they do, and its budget."""
    constraints = getattr(problem, "constraints", None)
    with blame(root, f"variants/{kernel}/problem.py"):
        reasons = list(constraints(axes, arch)) if constraints else []
        return reasons, problem.budget(axes, arch)
