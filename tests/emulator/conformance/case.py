"""A program of the suite: one launch with its arrays, and the module that its entry is of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt
from ptx_bounds import Bound

from warpsim.launch import Argument, Dim3, Launch, Pointer, Scalar

from .values import random_bits

Array = npt.NDArray[np.unsignedinteger]

POISON = 0xCD
"""What every byte of an output holds before the launch."""


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One launch: `arrays` in the order they were made, `outputs` the names of those compared."""

    name: str
    launch: Launch
    arrays: dict[str, Array]
    outputs: tuple[str, ...]
    bound: Bound | None = None
    """How far an f32 output may lie from the GPU's; None: equal bit for bit."""


class Area(msgspec.Struct, frozen=True, kw_only=True):
    """One module of PTX and the cases that launch its entries."""

    name: str
    cases: Callable[[], Iterator[Case]]
    source: Path | None = None
    """The CUDA source; None: `text` writes the PTX itself."""
    text: Callable[[], str] | None = None

    def origin(self) -> str:
        """What the module is made from; the golden data names its hash."""
        if self.source is not None:
            return self.source.read_text()
        assert self.text is not None
        return self.text()


def output(count: int, dtype: type[np.unsignedinteger] = np.uint32) -> Array:
    size = count * np.dtype(dtype).itemsize
    return np.full(size, POISON, np.uint8).view(dtype)


def words(seed: str, count: int) -> npt.NDArray[np.uint32]:
    return (random_bits(seed, count) & np.uint64(0xFFFFFFFF)).astype(np.uint32)


def case(
    name: str,
    entry: str,
    grid: int | Dim3,
    block: int | Dim3,
    arrays: dict[str, Array],
    outputs: str,
    *extra: Argument,
    cluster: int = 1,
    smem: int = 0,
    first: tuple[Argument, ...] = (),
    hidden: tuple[str, ...] = (),
    bound: Bound | None = None,
) -> Case:
    """A case whose arguments are `first`, a pointer to each array not `hidden`, then `extra`."""
    pointers = tuple(Pointer(array=key) for key in arrays if key not in hidden)
    launch = Launch(
        entry=entry,
        grid=(grid, 1, 1) if isinstance(grid, int) else grid,
        block=(block, 1, 1) if isinstance(block, int) else block,
        cluster=(cluster, 1, 1),
        dynamic_smem_bytes=smem,
        arguments=(*first, *pointers, *extra),
    )
    return Case(
        name=name, launch=launch, arrays=arrays, outputs=tuple(outputs.split()), bound=bound
    )


def u32(value: int) -> Scalar:
    return Scalar(type="u32", value=value)
