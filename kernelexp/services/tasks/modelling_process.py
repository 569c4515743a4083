"""The modelled time of launches that a solution would make: a list of them on standard input."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from kernelexp.facts.chips import find_arch
from kernelexp.services.tasks.assessment import ModelledKernel
from kernelexp.system.disk import decode
from warpsim.launch import Pointer, StructValue, full_name
from warpsim.runtime.capturing import CapturedLaunch

LIMIT = 100_000_000
"""Warp instructions that are executed of a launch."""
_WORD = 8


class LaunchModelling(msgspec.Struct, frozen=True, kw_only=True):
    """The launches to model."""

    launches: str
    """A file with CapturedLaunches, as msgpack."""
    cubins: list[tuple[str, str]]
    """Of each: the code, and a file with what cuobjdump prints of it."""
    arch: str
    chip: str
    native: str
    """The compiled part of the emulator."""


class LaunchesModelled(msgspec.Struct, frozen=True, kw_only=True):
    """One of the two."""

    kernels: tuple[ModelledKernel, ...] = ()
    refused: str = ""


def main() -> None:
    """Writes a LaunchesModelled as JSON to standard output."""
    import warpsim as emulator
    from warpsim.timing.errors import NotModelled

    order = decode(sys.stdin.read(), LaunchModelling)
    try:
        emulator.load_compiled(Path(order.native))
        content = Path(order.launches).read_bytes()
        launches = msgspec.msgpack.decode(content, type=list[CapturedLaunch])
        kernels = [
            _model(launch, Path(cubin), Path(listing).read_text("utf-8", "replace"), order)
            for launch, (cubin, listing) in zip(launches, order.cubins, strict=True)
        ]
        result = LaunchesModelled(kernels=tuple(kernels))
    except (NotModelled, *emulator.REFUSALS) as fault:
        result = LaunchesModelled(refused=str(fault))
    sys.stdout.write(msgspec.json.encode(result).decode())
    sys.stdout.flush()
    os._exit(0)


def _model(
    captured: CapturedLaunch, cubin: Path, listing: str, order: LaunchModelling
) -> ModelledKernel:
    from kernelexp.evidence.code import built
    from kernelexp.evidence.code.built import Footprint
    from warpsim.launch import Launch
    from warpsim.timing import chips, model
    from warpsim.timing.recording import record

    chip = chips.find(order.chip)
    arrays: dict[str, Any] = {}
    launch = Launch(
        entry=captured.symbol,
        grid=captured.grid,
        block=captured.block,
        cluster=captured.cluster,
        dynamic_smem_bytes=captured.dynamic_smem_bytes,
        arguments=tuple(_arguments(captured, arrays)),
    )
    cluster = math.prod(captured.cluster)
    footprint = Footprint(
        threads=math.prod(captured.block),
        dynamic_smem_bytes=captured.dynamic_smem_bytes,
        cluster=cluster,
    )
    used = built.read(cubin, listing, "", captured.symbol, footprint)
    resident = built.occupancy(find_arch(order.arch), used).ctas_per_sm
    placement = model.place(launch, resident, chip)
    recording = record(cubin.read_bytes(), listing, launch, arrays, placement.followed, limit=LIMIT)
    sizes: Mapping[str, int] = {name: content.nbytes for name, content in arrays.items()}
    whole = model.WholeLaunch(placement=placement, array_bytes=sizes)
    sample = model.Sample(recording=recording, placement=placement)
    modelled = model.model([sample], whole, chip)
    return ModelledKernel(
        name=full_name(captured.symbol), launch=captured.launch, time_us=1e6 * modelled.seconds
    )


def _arguments(captured: CapturedLaunch, arrays: dict[str, Any]) -> Iterator[Pointer | StructValue]:
    """Pointers as arrays of what lies behind them; other values by their bytes."""
    import numpy as np

    from warpsim.timing.errors import NotModelled

    for content in captured.arguments:
        words = [
            int.from_bytes(content[at : at + _WORD], "little")
            for at in range(0, len(content) - _WORD + 1, _WORD)
        ]
        regions = [r for r in captured.regions for w in words if r.address <= w < r.end]
        if not regions:
            yield StructValue(size=len(content), data=content)
        elif len(content) != _WORD:
            raise NotModelled(f"{full_name(captured.symbol)} is given a structure with pointers.")
        else:
            name, offset = f"a{words[0]:x}", words[0] - regions[0].address
            arrays[name] = np.frombuffer(regions[0].before, np.uint8)[offset:].copy()
            yield Pointer(array=name)
