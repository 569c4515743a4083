"""A launch of a program becomes a kernel, with the memory that it was given and what it wrote."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from kernelexp.evidence.programs import cards
from kernelexp.evidence.programs.compiling import CompilerCall
from kernelexp.model import stored
from kernelexp.model.errors import UsageError, join
from kernelexp.project import Project
from kernelexp.services import execution
from kernelexp.services.adopt import adopted, copying, jobs, service
from kernelexp.services.adopt.adopted import Compiled
from kernelexp.services.adopt.answers import Answers, LaunchShape
from kernelexp.services.adopt.entry import KernelEntry, KernelParameter
from kernelexp.services.adopt.notation import WantedLaunch
from kernelexp.services.execution import ExecRequest
from kernelexp.system.toolchain import Toolchain
from warpsim import execute, modules
from warpsim.dtypes import SIZES
from warpsim.launch import (
    Field,
    Launch,
    Pointer,
    StructValue,
    full_name,
    plain_name,
    scalar_from_bytes,
)
from warpsim.runtime.capturing import CapturedLaunch, LaunchChoice, Region

Bytes = NDArray[np.uint8]
_FILE = re.compile(r'^\s*\.file\s+\d+\s+"([^"]+)"', re.M)
NOWHERE = "unsigned char"
"""The type of what points to elements that have no type of their own here: its bytes."""
_POISON = 0xFF
"""What memory that nobody wrote reads as."""


class LaunchedArray(msgspec.Struct, frozen=True, kw_only=True):
    """The array that a parameter points to."""

    name: str
    address: int
    size: int
    """In bytes, whole elements."""
    before: bytes
    after: bytes
    read: bool
    written: bool


class AdoptedLaunch(msgspec.Struct, frozen=True, kw_only=True):
    """A kernel that is compiled in its place, and all that a person would be asked for it."""

    compiled: Compiled
    answers: Answers
    flags: tuple[str, ...]


def adopt(
    project: Project,
    request: ExecRequest,
    choice: LaunchChoice,
    name: str,
    tools: Toolchain,
    extra: Sequence[str] = (),
    output: int | None = None,
) -> AdoptedLaunch:
    """Runs the program up to the launch and writes the kernel's folder, without problem.py.

    extra: flags that the kernel is compiled with besides those that are known; output: where the
        program's standard output goes.
    Raises UsageError where a launch can't be had by itself, and BuildError.
    """
    _, arch = cards.describe(request.device)
    launch, calls = execution.capture(request, choice, tools, project.root, output)
    spelled = full_name(launch.symbol)
    if not launch.finished:
        raise UsageError(
            f"launch {launch.launch}, of {spelled}, does not come to its end: see kernelexp exec."
        )
    source = _source(request, launch)
    wanted = WantedLaunch(entry=_instance(spelled))
    given = (*_device_flags(calls, [source, *_written(launch)]), *extra)
    chosen = service.choose(project, source, [wanted], name, given, option="--as")
    compiled = service.compile_entry(project, chosen, arch, tools)
    with adopted.whole(compiled.folder):
        (entry,) = compiled.entries
        entry, arrays = find_arrays(entry, launch)
        raw = dict(_raw(entry, launch))
        before, after = _contents(entry, launch, arrays, request.limit)
        answers = known(compiled.folder, entry, launch, arrays, before, after)
        answers = msgspec.structs.replace(answers, raw=raw)
    title = f"{spelled} of {Path(compiled.origin).name}, launch {launch.launch}"
    compiled = msgspec.structs.replace(compiled, entries=(entry,), title=title)
    return AdoptedLaunch(compiled=compiled, answers=answers, flags=chosen.flags)


def known(
    folder: Path,
    entry: KernelEntry,
    launch: CapturedLaunch,
    arrays: Sequence[LaunchedArray],
    before: Mapping[str, bytes],
    after: Mapping[str, bytes],
) -> Answers:
    """What a launch says by itself; what arrays hold before and after it is kept in the folder."""
    shape = LaunchShape(
        block=launch.block,
        grid=tuple(map(str, launch.grid)),
        cluster=tuple(map(str, launch.cluster)) if launch.cluster != (1, 1, 1) else (),
        smem=str(launch.dynamic_smem_bytes or ""),
    )
    return Answers(
        launches=(shape,),
        shapes={array.name: (str(element_count(entry, array)),) for array in arrays},
        values=dict(passed_values(entry, launch)),
        before={name: stored.store(folder, content) for name, content in before.items()},
        after={name: stored.store(folder, content) for name, content in after.items()},
    )


def _instance(spelled: str) -> str:
    """A kernel as a source outside of its namespace names it."""
    return spelled.replace("(anonymous namespace)::", "")


def _source(request: ExecRequest, launch: CapturedLaunch) -> Path:
    """The file that has the kernel, or includes it."""
    plain = plain_name(launch.symbol)
    # A source before a header: that may need what is included before it.
    for path in (
        *request.sources,
        *sorted(_written(launch), key=lambda file: file.suffix != ".cu"),
    ):
        if any(kernel.kernel == plain for kernel in copying.kernels(copying.read(path))):
            return path
    raise UsageError(f"none of the program's sources has {full_name(launch.symbol)}.")


_WITH_VALUE = ("-D", "-U", "-I", "-std", "--std", "-include", "-isystem")
_OF_DEVICE = (
    *(*_WITH_VALUE, "-use_fast_math", "--use_fast_math", "-fmad", "--fmad"),
    *("-expt", "--expt", "-extended-lambda", "--extended-lambda"),
)


def _written(launch: CapturedLaunch) -> list[Path]:
    """The files that the kernel's module was made from."""
    named = (Path(item) for item in _FILE.findall(launch.ptx))
    return [path for path in named if path.is_file()]


def _device_flags(calls: Sequence[CompilerCall], sources: Sequence[Path]) -> Iterator[str]:
    """Yields the options that device code of these files was compiled with: macros, folders of
    headers, the language."""
    call = next(
        (compiler_call for compiler_call in calls if any(map(compiler_call.compiles, sources))),
        None,
    )
    words = list(_joined(call.arguments)) if call else []
    for word in words:
        if word.startswith(("-I", "-isystem")) and call:
            yield f"-I{(call.folder / word.removeprefix('-isystem').removeprefix('-I')).resolve()}"
        elif word.startswith(_OF_DEVICE):
            yield word
    if not any("std=" in item for item in words):
        yield "-std=c++17"


def _joined(arguments: Sequence[str]) -> Iterator[str]:
    """Flags with their values, which may be words of their own."""
    rest = iter(arguments)
    for word in rest:
        if word in _WITH_VALUE:
            yield f"{word}{'=' * word.endswith('std')}{next(rest, '')}"
        else:
            yield word


# ---- What the parameters were


def find_arrays(
    entry: KernelEntry, launch: CapturedLaunch
) -> tuple[KernelEntry, tuple[LaunchedArray, ...]]:
    """The entry with what is known of its pointers now, and the arrays that these point to."""
    names: dict[int, str] = {}
    parameters = []
    for kernel_parameter, data in zip(entry.parameters, launch.arguments, strict=True):
        members = tuple(
            _pointed(member, data, launch, names) for member in kernel_parameter.members
        )
        whole = (
            kernel_parameter
            if kernel_parameter.members
            else _pointed(kernel_parameter, data, launch, names)
        )
        parameters.append(msgspec.structs.replace(whole, members=members))
    entry = msgspec.structs.replace(entry, parameters=tuple(parameters))
    arrays = [_array(entry, address, names, launch) for address in names]
    known = {array.name: array for array in arrays}
    parameters = [_with_uses(parameter, known) for parameter in entry.parameters]
    return msgspec.structs.replace(entry, parameters=tuple(parameters)), tuple(arrays)


def _pointed(
    parameter: KernelParameter, data: bytes, launch: CapturedLaunch, names: dict[int, str]
) -> KernelParameter:
    """A pointer to nothing is not used; one to the same place as another is its alias. A tensor map
    begins with its address."""
    if not parameter.is_array or parameter.ignored:
        return parameter
    address = int.from_bytes(data[parameter.offset : parameter.offset + 8], "little")
    if _region(launch, address) is None:
        return msgspec.structs.replace(parameter, ignored=True)
    first = names.setdefault(address, parameter.name)
    kind = parameter.type if parameter.dtype or parameter.is_tensor_map else NOWHERE
    alias = first if first != parameter.name else ""
    return msgspec.structs.replace(parameter, type=kind, alias=alias)


def _region(launch: CapturedLaunch, address: int) -> Region | None:
    return next(
        (region for region in launch.regions if region.address <= address < region.end), None
    )


def _array(
    entry: KernelEntry, address: int, names: dict[int, str], launch: CapturedLaunch
) -> LaunchedArray:
    """Returns the array up to the next address that is passed, or to the end of its allocation."""
    region = _region(launch, address)
    assert region is not None
    same = [
        parameter
        for parameter in jobs.flat(entry.parameters)
        if names[address] in (parameter.name, parameter.alias)
    ]
    end = min([region.end, *(name for name in names if address < name)])
    size = (end - address) // _element(same[0]) * _element(same[0])
    inside = slice(address - region.address, address - region.address + size)
    before, after = region.before[inside], region.after[inside]
    return LaunchedArray(
        name=names[address],
        address=address,
        size=size,
        before=before,
        after=after,
        read=any(parameter.read for parameter in same),
        written=any(parameter.written for parameter in same) or before != after,
    )


def _element(parameter: KernelParameter) -> int:
    return SIZES[parameter.dtype or "u8"]


def element_count(entry: KernelEntry, array: LaunchedArray) -> int:
    (parameter,) = (value for value in entry.values if value.name == array.name)
    return array.size // _element(parameter)


def _with_uses(parameter: KernelParameter, known: dict[str, LaunchedArray]) -> KernelParameter:
    members = tuple(_with_uses(member, known) for member in parameter.members)
    array = known.get(parameter.name) if parameter.is_array else None
    if array is None:
        return msgspec.structs.replace(parameter, members=members)
    return msgspec.structs.replace(parameter, read=array.read, written=array.written)


def passed_values(
    entry: KernelEntry, launch: CapturedLaunch
) -> Iterator[tuple[str, bool | int | float]]:
    """Yields the values of scalars, by name."""
    for parameter, data in zip(entry.parameters, launch.arguments, strict=True):
        for value in parameter.members or (parameter,):
            if value.scalar and not value.ignored:
                content = data[value.offset : value.offset + value.size]
                yield value.name, scalar_from_bytes(value.scalar, content)


def _raw(entry: KernelEntry, launch: CapturedLaunch) -> Iterator[tuple[str, bytes]]:
    """Structures of which only the bytes are known, none of which may be an address."""
    for parameter, data in zip(entry.parameters, launch.arguments, strict=True):
        for member in parameter.members:
            if member.is_tensor_map and not member.ignored:
                raise UsageError(
                    f"{member.name} of {parameter.name} is a tensor map, which has an "
                    "address in it: a launch with it can't be had by itself."
                )
        if parameter.members or not (parameter.is_structure or parameter.is_tensor_map):
            continue
        words = struct.iter_unpack("<Q", data[: len(data) // 8 * 8])
        if parameter.is_tensor_map or any(_region(launch, word) for (word,) in words):
            raise UsageError(
                f"{parameter.name} ({parameter.type}) has addresses in it, at "
                "places that are not known: a launch with it can't be had by itself."
            )
        yield parameter.name, data


# ---- What it read and wrote


def _contents(
    entry: KernelEntry, launch: CapturedLaunch, arrays: Sequence[LaunchedArray], limit: int
) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """Returns what arrays hold before the launch, where that matters, and outputs after it.

    It is launched again on these arrays alone, those that it only writes empty: then it is known
    which bytes it writes, and that nothing else is needed.
    """
    held = {
        launched_array.name: np.frombuffer(launched_array.before, np.uint8).copy()
        for launched_array in arrays
    }
    empty = [
        launched_array.name
        for launched_array in arrays
        if launched_array.written and not launched_array.read
    ]
    for name in empty:
        held[name][:] = _POISON
    again = Launch(
        entry=launch.symbol,
        grid=launch.grid,
        block=launch.block,
        cluster=launch.cluster,
        dynamic_smem_bytes=launch.dynamic_smem_bytes,
        arguments=tuple(_arguments(entry, launch)),
    )
    execute.run(modules.load(launch.ptx), again, held, unwritten=empty, limit=limit)
    before: dict[str, bytes] = {}
    after: dict[str, bytes] = {}
    for array in arrays:
        if array.written:
            start = _needed(array, held[array.name], launch)
            before |= {array.name: start} if start else {}
            after[array.name] = array.after
        else:
            before[array.name] = array.before
    return before, after


def _needed(array: LaunchedArray, again: Bytes, launch: CapturedLaunch) -> bytes:
    """Returns what an output has to hold before the launch; empty where the launch writes all of
    it.

    UsageError where it does not become what it became in the program.
    """
    was = np.frombuffer(array.before, np.uint8)
    became = np.frombuffer(array.after, np.uint8)
    differs = again != became
    kept = differs & (again == _POISON) & (was == became)
    if array.read:
        kept[:] = False
    if (differs & ~kept).any():
        raise UsageError(_more_than_arguments(array, launch))
    if array.read:
        return array.before
    return np.where(kept, was, np.uint8(_POISON)).tobytes() if kept.any() else b""


def _more_than_arguments(array: LaunchedArray, launch: CapturedLaunch) -> str:
    variables = [plain_name(item) for item in launch.changed]
    why = (
        f"the program sets {join(variables)}, which no experiment does"
        if variables
        else "it uses memory that its arguments do not point to"
    )
    return (
        f"launch {launch.launch}, of {full_name(launch.symbol)}, can't be had by itself: {why}, "
        f"and {array.name} becomes something else without it."
    )


def _arguments(entry: KernelEntry, launch: CapturedLaunch) -> Iterator[StructValue]:
    """The arguments as they were, with the addresses of arrays where these lie now."""
    for parameter, data in zip(entry.parameters, launch.arguments, strict=True):
        fields = tuple(
            Field(offset=value.offset, value=Pointer(array=value.alias or value.name))
            for value in parameter.members or (parameter,)
            if value.is_pointer and not value.ignored
        )
        yield StructValue(data=data, fields=fields)
