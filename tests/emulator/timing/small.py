"""Small kernels, and the cycles that the model gives them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from harness import assemble_all, ptx

from warpsim.launch import Launch, Pointer
from warpsim.timing import chips, model
from warpsim.timing.chips import TimedChip
from warpsim.timing.model import ModelledLaunch, Sample, WholeLaunch

H100, H200, B200 = map(chips.find, ("H100", "H200", "B200"))


_assembled: dict[tuple[str, str], tuple[bytes, str]] = {}


def _assemble(texts: Sequence[str], target: str) -> list[tuple[bytes, str]]:
    """Cubins and listings of PTX, each made once."""
    new = [text for text in dict.fromkeys(texts) if (text, target) not in _assembled]
    for text, made in zip(new, assemble_all(new, target), strict=True):
        _assembled[text, target] = made
    return [_assembled[text, target] for text in texts]


def modelled(
    body: str, arrays: Mapping[str, np.ndarray] | None = None, **how: Any
) -> ModelledLaunch:
    """The modelled launch of a body; each array's address is in %<name>, the thread in %t."""
    return modelled_each([body], arrays, **how)[0]


def modelled_each(
    bodies: Sequence[str],
    arrays: Mapping[str, np.ndarray] | None = None,
    *,
    threads: int = 32,
    grid: int = 1,
    resident: int = 1,
    shared: str = "",
    extra: str = "",
    chip: TimedChip = H200,
) -> list[ModelledLaunch]:
    """The modelled launches of bodies that differ in nothing else: they are assembled together."""
    names = ("out", *(arrays or {}))
    texts = [ptx(body, names, target=chip.arch, shared=shared, extra=extra) for body in bodies]
    launch = Launch(
        entry="k",
        grid=(grid, 1, 1),
        block=(threads, 1, 1),
        arguments=tuple(Pointer(array=name) for name in names),
    )
    placement = model.place(launch, resident, chip)
    launches = []
    for cubin, listing in _assemble(texts, chip.arch):
        given = {"out": np.zeros(1024, np.uint32), **(arrays or {})}
        whole = WholeLaunch(
            placement=placement, array_bytes={name: array.nbytes for name, array in given.items()}
        )
        recording = model.follow(cubin, listing, launch, given, placement)
        sample = Sample(recording=recording, placement=placement)
        launches.append(model.model([sample], whole, chip))
    return launches


def cycles_per(instruction: str, before: str, after: str, count: int = 64, **how: Any) -> float:
    """What one more of an instruction takes, after `count` of them."""
    bodies = [before + turns * instruction + after for turns in (count, 2 * count)]
    few, many = modelled_each(bodies, **how)
    return (many.cycles - few.cycles) / count
