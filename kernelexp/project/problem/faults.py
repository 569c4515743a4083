"""Faults in the values that a problem.py returns, as sentences without their place."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Any

from kernelexp.model.errors import UsageError
from kernelexp.model.problem import Array, Chunk
from warpsim.dtypes import INTEGERS
from warpsim.launch import (
    TENSOR_MAP_BYTES,
    Launch,
    Scalar,
    StructValue,
    scalar_to_bytes,
    to_bytes,
    values,
)


def describe(value: object) -> str:
    """Names the kind of a value."""
    return "nothing" if value is None else f"a {type(value).__name__}"


def launch_faults(launch: Launch) -> Iterator[str]:
    """Yields what no GPU could launch, as sentences."""
    for extent in ("grid", "block", "cluster"):
        if min(getattr(launch, extent)) < 1:
            yield f"{extent} is {getattr(launch, extent)}: each dimension is at least 1."
    if launch.dynamic_smem_bytes < 0:
        yield f"dynamic_smem_bytes is {launch.dynamic_smem_bytes}."
    for value in values(launch.arguments):
        if isinstance(value, Scalar) and not _fits(value):
            yield f"the scalar {value.value} is no {value.type}."
            return
    for argument in launch.arguments:
        if isinstance(argument, StructValue):
            try:
                to_bytes(
                    argument, lambda _: 0, lambda m: bytes(8 if m.in_memory else TENSOR_MAP_BYTES)
                )
            except UsageError as fault:
                yield str(fault)


def _fits(scalar: Scalar) -> bool:
    """Whether its type has the value."""
    if scalar.type == "bool":
        return scalar.value in (0, 1)
    whole = isinstance(scalar.value, int) and not isinstance(scalar.value, bool)
    if scalar.type in INTEGERS and not whole:
        return False
    try:
        return bool(scalar_to_bytes(scalar))
    except (OverflowError, struct.error):
        return False


def tensor_fault(value: Any) -> str:
    """Names what a value is instead of a torch tensor with values in memory; empty where it is
    one."""
    if not hasattr(value, "is_contiguous"):
        return f"{describe(value)} instead of a tensor"
    if value.is_meta or str(value.layout) != "torch.strided":
        kind = "meta" if value.is_meta else str(value.layout).removeprefix("torch.")
        return f"a {kind} tensor instead of one with all its values in memory"
    if value.element_size() > 16:
        return f"of {value.dtype}; elements of at most 16 bytes are supported"
    return ""


def chunk_fault(chunk: Any, outputs: Mapping[str, Array]) -> str:
    """Says why a piece of the reference does not fit the outputs; empty where it does."""
    if not isinstance(chunk, Chunk):
        return f"it yields {describe(chunk)} instead of a Chunk."
    if chunk.array not in outputs:
        return f"it yields a chunk of {chunk.array!r}; outputs() has {', '.join(outputs)}."
    if fault := tensor_fault(chunk.values):
        return f"the values for {chunk.array} are {fault}."
    array = outputs[chunk.array]
    if chunk.values.is_complex() and array.dtype not in ("c64", "c128"):
        return f"the values for {chunk.array}, of {array.dtype}, are complex."
    wanted, got = array.shape, tuple(chunk.values.shape)
    if len(got) != len(wanted) or got[1:] != wanted[1:]:
        shape = ", ".join(["rows", *map(str, wanted[1:])])
        return f"a chunk of {chunk.array} should have the shape [{shape}], not {list(got)}."
    if chunk.first < 0 or chunk.first + got[0] > wanted[0]:
        last = chunk.first + got[0] - 1
        return (
            f"a chunk gives rows {chunk.first} to {last} of {chunk.array}, which has {wanted[0]}."
        )
    return ""


def coverage_fault(array: str, given: list[tuple[int, int]], rows: int) -> str:
    """Names the rows [begin, end) that are missing or doubled; empty where each was given once."""
    end = 0
    for first, last in [*sorted(given), (rows, rows)]:
        if first > end:
            return f"it leaves out {_rows(end, first)} of {array}: every element is checked."
        if first < end and first < last:
            return f"it gives {_rows(first, min(end, last))} of {array} more than once."
        end = max(end, last)
    return ""


def _rows(begin: int, end: int) -> str:
    return f"row {begin}" if end - begin == 1 else f"rows {begin} to {end - 1}"
