"""Interface of a kernel's `problem.py`: sizes, inputs, reference, limits, launch, peers.

`problem.py` is the only host code of a kernel. It runs in processes of its own (`consult`, and the
workers that emulate and measure), with its folder on sys.path, so that it may import modules next
to it. Data that it reads belong there too: evidence and records are of the content of the folder.
Its functions take plain values. It imports torch inside the functions that need it: what the
command line asks must not load it.

    SIZES: Mapping[str, Size]
        "full", and "emulated": as small as can be while every branch is still taken.
    def outputs(size) -> Mapping[str, Array]
        What the kernel writes. The tool allocates these, poisons them, and checks every element.
        One that inputs() has too is read and written, as C in C = A B + beta C: it holds the
        input before every launch, and reference() gets the input as it was.
    def inputs(size, seed, device) -> Mapping[str, torch.Tensor]
        Random inputs, contiguous; the same seed gives the same values on the same device.
    def reference(inputs, size) -> Iterator[Chunk]
        The right output in higher precision, from the unarranged inputs, in pieces that fit: each
        row of each output once.
    def tolerance(size, arch) -> Tolerance, or tolerance(size, arch, axes)
        Tensor cores of one architecture are less exact than those of another, and a BF16 epilogue
        less than an FP32 one.
    def launch(axes, size) -> Launch, or launch(axes, size, exports)
        How a variant is launched: its entry by name, grid, block, arguments. `exports` are the
        figures that the source computed once (KX_EXPORT of export.cuh, which every build finds),
        read from the cubin: threads, cluster, dynamic_smem_bytes and what else the kernel exports.
        Block, cluster and dynamic shared memory are compared with those of these that it exports,
        at every size; what it does not export is as launched at size "full".
        Several launches in sequence, of one or of several entries, are one job: a list, in their
        order. They share all arrays, are timed as one, and what they leave is verified at the end.
        The first of them, or the one with main=True, is the one whose SASS is shown and compared,
        and that ncu profiles.

The rest is optional:

    def workspaces(axes, size, exports) -> Mapping[str, Array]
        Memory that a variant needs between its CTAs: partial sums, tickets. It is poisoned, or all
        zero where Array has zero=True, before every launch, and compared with nothing.
    def arrange(inputs, axes) -> Mapping[str, torch.Tensor]
        The arrays that a variant wants otherwise (a re-laid table, say); not timed.
    def constraints(axes, arch) -> Iterator[str]
        A sentence for each reason why this combination of values does not exist. What the sources
        assert need not be said again: see `config` of a target in experiments.yaml.
    def budget(axes, arch) -> Budget, or None where nothing is known
        What a CTA will ask of its SM, known before the build and compared with the build
        afterwards. A target with a `config` needs none: its exports are the budget.
    TERMS: Mapping[str, str], or Mapping[str, Mapping[str, str]] by architecture
        For a target with a `config`: how an exported figure comes about, for the sentences on
        limits. What is in braces is C++ and evaluated in the header:
        {"tmem_columns": "{Config::TILE_N} columns x {Config::ACCUMULATORS} accumulators"}.
    def tiles(axes, size) -> int, or tiles(axes, size, exports)
        Output tiles of a launch: what its counters grow with.
    def work(size) -> Work
        Useful FLOPs and the bytes that must move.
    BENIGN_RACES: Mapping[str, str]
        Races that do no harm, such as a stale value that is as good: a piece of the source line and
        why, {"parent[x] = parent[parent[x]];": "any ancestor will do"}. What two such lines race
        for is a warning, which records keep, and no mistake; `--pedantic` makes it one again.
    PEERS: Sequence[str]
    def peers(inputs, size) -> Mapping[str, Callable[[], object]]
        Others' kernels to time in the same run, ready to call on the GPU; their names.

A file counts.py next to it may have what only counts are scaled by; no verdict depends on it.

    SIZES: Mapping[str, Size]
        Further small sizes, to solve counts from.
    def loads(axes, size) -> int or None, or loads(axes, size, exports)
        Of a variant that keeps what it loads from global memory for the tiles after: tiles that
        load it. What its global loads grow with, instead of tiles().
    def blocks(axes, size) -> int or None, or blocks(axes, size, exports)
        Of a variant whose CTAs have several blocks in turn, each of several tiles: how many. Its
        counts are then solved from three sizes; without such small sizes, its instructions are
        about so many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import msgspec

from kernelexp.model.experiment import AxisValue
from warpsim.dtypes import DType
from warpsim.launch import Launch

if TYPE_CHECKING:
    import torch

Axes: TypeAlias = Mapping[str, AxisValue]
Size: TypeAlias = Mapping[str, int]
Tensors: TypeAlias = "Mapping[str, torch.Tensor]"


class Blank(Exception):
    """Something that a person has yet to write."""


def blank(what: str) -> NoReturn:
    """Stands in a drafted problem.py where a person has to say `what`."""
    raise Blank(f"this is blank: {what}")


class Array(msgspec.Struct, frozen=True, kw_only=True):
    """Shape and type of an array that the tool allocates."""

    shape: tuple[int, ...]
    dtype: DType
    """The names of PyTorch and NumPy do too in problem.py: "float32", torch.float32."""
    zero: bool = False
    """Whether it is all zero before a launch, for a kernel that adds to it or counts in it."""


class Chunk(msgspec.Struct, frozen=True, kw_only=True):
    """The right values of rows [first, first + len(values)) of one output, in float64.

    What is to be exact of 64-bit integers is given as such; the pairs of complex numbers are
    compared one by one.
    """

    array: str
    first: int
    values: Any  # a torch.Tensor; msgspec can't name it without importing torch


class Tolerance(msgspec.Struct, frozen=True, kw_only=True):
    """An element is right if |got - want| <= atol + rtol * |want| + of_rms * RMS.

    RMS is the root mean square of the wanted values of the chunk that the element is in.
    """

    rtol: float
    atol: float = 0.0
    of_rms: float = 0.0
    """For sums whose terms nearly cancel: their error is relative to the terms, not to the sum."""
    why: str
    """What bounds the error."""


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """The resources that one CTA of a variant needs of its SM."""

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


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """A problem.py that was loaded: what is optional has its default here.

    A function that raises, or that returns what it may not, ends in a ConfigurationError with the
    file and the line.
    """

    name: str
    """Its path from the project's root, for sentences."""
    folder: Path
    sizes: Mapping[str, Size]
    outputs: Callable[[Size], Mapping[str, Array]]
    workspaces: Callable[[Axes, Size, Mapping[str, int]], Mapping[str, Array]]
    inputs: Callable[[Size, int, str], Tensors]
    reference: Callable[[Tensors, Size], Iterator[Chunk]]
    """Once it is exhausted, each row of each output was there once."""
    tolerance: Callable[[Size, str, Axes], Tolerance]
    launches: Callable[[Axes, Size, Mapping[str, int]], tuple[Launch, ...]]
    """In their order; one at least."""
    arrange: Callable[[Tensors, Axes], Tensors]
    """All arrays, those that stay as they are too."""
    constraints: Callable[[Axes, str], Iterable[str]]
    budget: Callable[[Axes, str], Budget | None]
    tiles: Callable[[Axes, Size, Mapping[str, int]], int | None]
    loads: Callable[[Axes, Size, Mapping[str, int]], int | None]
    blocks: Callable[[Axes, Size, Mapping[str, int]], int | None]
    work: Callable[[Size], Work | None]
    terms: Mapping[str, Any] = {}
    benign_races: Mapping[str, str] = {}
    peer_names: tuple[str, ...] = ()
    peers: Callable[[Tensors, Size], Mapping[str, Callable[[], object]]]
