"""Small kernels, and the cycles that the model gives them."""

from __future__ import annotations

import functools
from collections.abc import Mapping

import numpy as np
from harness import assemble, ptx

from warpsim.launch import Launch, Pointer
from warpsim.timing import chips, model
from warpsim.timing.chips import TimedChip
from warpsim.timing.model import ModelledLaunch, Sample, WholeLaunch

H100, H200, B200 = map(chips.find, ("H100", "H200", "B200"))


@functools.cache
def assembled(
    body: str, names: tuple[str, ...], shared: str, target: str, extra: str
) -> tuple[bytes, str]:
    return assemble(ptx(body, names, target=target, shared=shared, extra=extra), target)


def modelled(
    body: str,
    arrays: Mapping[str, np.ndarray] | None = None,
    *,
    threads: int = 32,
    grid: int = 1,
    resident: int = 1,
    shared: str = "",
    extra: str = "",
    chip: TimedChip = H200,
) -> ModelledLaunch:
    """The modelled launch of a body; each array's address is in %<name>, the thread in %t."""
    given = {"out": np.zeros(1024, np.uint32), **(arrays or {})}
    cubin, listing = assembled(body, tuple(given), shared, chip.arch, extra)
    launch = Launch(
        entry="k",
        grid=(grid, 1, 1),
        block=(threads, 1, 1),
        arguments=tuple(Pointer(array=name) for name in given),
    )
    placement = model.place(launch, resident, chip)
    recording = model.follow(cubin, listing, launch, given, placement)
    sizes = {name: array.nbytes for name, array in given.items()}
    whole = WholeLaunch(placement=placement, array_bytes=sizes)
    return model.model([Sample(recording=recording, placement=placement)], whole, chip)


def cycles_per(instruction: str, before: str, after: str, count: int = 64, **how: object) -> float:
    """What one more of an instruction takes, after `count` of them."""
    few, many = (
        modelled(before + turns * instruction + after, **how).cycles  # type: ignore[arg-type]
        for turns in (count, 2 * count)
    )
    return (many - few) / count
