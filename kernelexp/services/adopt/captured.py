"""A launch that was captured on a GPU becomes a kernel: its machine code, and the memory that it
was given and left.

Nothing says which bytes it only writes: all that it was given is an input, and what it changed is
an output too. Types are those of a mangled name; what has none is compared byte by byte.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import cast

import msgspec

from kernelexp.evidence.programs import captures
from kernelexp.evidence.programs.captures import Capture
from kernelexp.model.errors import UsageError
from kernelexp.project import Project
from kernelexp.services.adopt import adopted, launched, precompiled
from kernelexp.services.adopt.answers import MapLayout
from kernelexp.services.adopt.entry import KernelEntry, KernelParameter
from kernelexp.services.adopt.launched import AdoptedLaunch
from kernelexp.services.adopt.notation import WantedLaunch
from kernelexp.system.toolchain import Toolchain
from warpsim.dtypes import DType
from warpsim.front.sass import cubin
from warpsim.launch import TENSOR_MAP_BYTES, TensorMap, full_name, plain_name
from warpsim.machine.memory import tensor_map_image
from warpsim.runtime.capturing import CapturedLaunch, Region

_MAP_TYPE = "CUtensorMap"
_WORD = 8


def adopt(
    project: Project, folder: Path, name: str, signature: str, tools: Toolchain
) -> AdoptedLaunch:
    """Writes the kernel's folder, without problem.py.

    signature: of a kernel whose name has no types in it, as C++ would declare it.
    Raises UsageError for what is not a capture, or one of a launch that changed nothing.
    """
    capture = captures.read(folder)
    if not any(region.changed and not region.variable for region in capture.regions):
        raise UsageError(
            f"{folder}: the launch changed nothing, so nothing could be verified: capture the "
            "first one of its kernel."
        )
    _require_own_values(folder, capture)
    file = precompiled.read(folder / captures.CUBIN)
    wanted = [WantedLaunch(entry=capture.symbol)]
    kernel = name or plain_name(capture.symbol)
    compiled = precompiled.adopt(project, file, wanted, kernel, "", signature, tools, option="--as")
    with adopted.whole(compiled.folder):
        launch = _launch(folder, capture)
        entry, maps = _described(compiled.entries[0], capture)
        if list(map(plain_name, file.symbols)).count(entry.name) > 1:  # other instances
            entry = msgspec.structs.replace(entry, name=capture.symbol)
        entry, arrays = launched.find_arrays(entry, launch)
        before = {item.name: item.before for item in arrays}
        after = {item.name: item.after for item in arrays if item.before != item.after}
        answers = launched.known(compiled.folder, entry, launch, arrays, before, after)
        answers = msgspec.structs.replace(answers, raw=dict(_raw(entry, capture)), maps=maps)
    title = f"{full_name(capture.symbol)}, launch {capture.launch}, captured on {capture.device}"
    compiled = msgspec.structs.replace(compiled, entries=(entry,), title=title)
    return AdoptedLaunch(compiled=compiled, answers=answers, flags=())


def _require_own_values(folder: Path, capture: Capture) -> None:
    """UsageError where the program has set a variable: an experiment does not."""
    entry = cubin.read((folder / captures.CUBIN).read_bytes(), capture.symbol)
    constants = {
        name: entry.banks[cubin.CONSTANTS][first : first + size]
        for name, (first, size) in entry.constants.items()
    }
    first = {variable.name: variable.data for variable in entry.variables} | constants
    for place, region in enumerate(capture.regions):
        before, _ = captures.contents(folder, capture, place)
        own = first.get(region.variable, b"").ljust(region.size, b"\0")
        if region.variable and before != own:
            raise UsageError(
                f"{folder}: the program has set {plain_name(region.variable)}, a variable of the "
                "kernel's module, which no experiment does; kernelexp capture --replay sets it too."
            )


def _launch(folder: Path, capture: Capture) -> CapturedLaunch:
    contents = [captures.contents(folder, capture, place) for place in range(len(capture.regions))]
    return CapturedLaunch(
        symbol=capture.symbol,
        launch=capture.launch,
        grid=capture.grid,
        block=capture.block,
        cluster=capture.cluster,
        dynamic_smem_bytes=capture.shared,
        arguments=tuple(parameter.content for parameter in capture.parameters),
        ptx="",
        regions=tuple(
            Region(address=region.address, before=before, after=after)
            for region, (before, after) in zip(capture.regions, contents, strict=True)
        ),
    )


def _described(entry: KernelEntry, capture: Capture) -> tuple[KernelEntry, dict[str, MapLayout]]:
    """The entry with the addresses and the tensor maps that its arguments have in them, and these
    maps by name."""
    maps: dict[str, MapLayout] = {}
    parameters = [
        _parameter(entry.parameters[place], place, capture, maps)
        for place in range(len(entry.parameters))
    ]
    return msgspec.structs.replace(entry, parameters=tuple(parameters)), maps


def _parameter(
    parameter: KernelParameter, place: int, capture: Capture, maps: dict[str, MapLayout]
) -> KernelParameter:
    data = capture.parameters[place].content
    if parameter.scalar:
        return parameter
    if parameter.is_pointer or (len(data) == _WORD and _is_address(data, capture)):
        kind = parameter.type if parameter.is_pointer else launched.NOWHERE
        return msgspec.structs.replace(
            parameter, type=kind, is_pointer=True, read=True, written=False
        )
    members = tuple(_members(parameter, data, capture, maps))
    kind = "" if parameter.is_tensor_map else parameter.type
    return msgspec.structs.replace(parameter, type=kind, members=members, ignored=False)


def _members(
    parameter: KernelParameter,
    data: bytes,
    capture: Capture,
    maps: dict[str, MapLayout],
) -> Iterator[KernelParameter]:
    """Yields the members of a structure that are addresses or tensor maps."""
    at = 0
    while at + _WORD <= len(data):
        size, tensor = _WORD, _map_at(data, at, capture)
        if tensor is not None or _is_address(data[at : at + _WORD], capture):
            name = f"{parameter.name}_{at}"
            if tensor is not None:
                maps[name], size = _layout(tensor), TENSOR_MAP_BYTES
            yield KernelParameter(
                name=name,
                type=_MAP_TYPE if tensor else launched.NOWHERE,
                size=size,
                align=_WORD,
                is_pointer=tensor is None,
                read=True,
                offset=at,
                element=cast(DType, tensor.element) if tensor else None,
            )
        at += size


def _is_address(word: bytes, capture: Capture) -> bool:
    value = int.from_bytes(word, "little")
    return any(region.address <= value < region.end for region in capture.regions)


def _map_at(data: bytes, at: int, capture: Capture) -> TensorMap | None:
    whole = data[at : at + TENSOR_MAP_BYTES]
    if at % captures.MAP_STEP or len(whole) < TENSOR_MAP_BYTES:
        return None
    _, tensor = tensor_map_image.decode(whole, "")
    return tensor if _is_address(whole[:_WORD], capture) else None


def _layout(tensor: TensorMap) -> MapLayout:
    return MapLayout(
        element=tensor.element,
        box=tuple(map(str, tensor.box)),
        swizzle=tensor.swizzle,
        extents=tuple(map(str, tensor.shape)),
        strides=tuple(map(str, tensor.strides_bytes)),
    )


def _raw(entry: KernelEntry, capture: Capture) -> Iterator[tuple[str, bytes]]:
    """Parameters of which only the bytes are known."""
    for parameter, passed in zip(entry.parameters, capture.parameters, strict=True):
        if not (parameter.is_pointer or parameter.scalar or parameter.ignored):
            yield parameter.name, passed.content
