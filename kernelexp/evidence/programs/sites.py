"""Return addresses of a program to the lines that made the calls."""

from __future__ import annotations

import functools
import re
import shutil
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from kernelexp.evidence.programs import library
from kernelexp.system.process import processes

_MAP = re.compile(r"([0-9a-f]+)-([0-9a-f]+) \S+ ([0-9a-f]+) \S+ \d+\s+(/.*)")
_NAMED = re.compile(r"(\d+) (\d+) (\S+) (.*)")
"""What the runtime adds to the maps: a number instead of an address, line, name, file."""
_STUB = "__device_stub__"
_HEADERS = ("/usr/include/", "/usr/lib/", "/nvidia/cu")
_RUNTIME = ("libcudart.so", *(f"lib{name}.so" for name in library.LIBRARIES))
_SYSTEM = ("libc.so", "libc-", "libstdc++.so", "libpthread", "libm.so", "libgcc_s.so", "ld-linux")
_START = ("./csu/", "../csu/", "../sysdeps/")
"""Sources of what the C library calls main() from, as its line tables have them."""
_TOOLKIT = "cuda_runtime.h"
"""A header of CUDA's, beside or above which all its headers lie."""
_ET_DYN = 3
LIMIT_S = 120.0


class CallSite(msgspec.Struct, frozen=True, kw_only=True):
    """A line of a program."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{Path(self.file).name}:{self.line}"


class _Mapping(msgspec.Struct, frozen=True, kw_only=True):
    first: int
    end: int
    offset: int
    file: str


def resolve(maps: str, stacks: Iterable[Sequence[int]]) -> dict[tuple[int, ...], CallSite]:
    """The innermost line of the program itself in each stack of return addresses, or the line that
    an interpreter has named; those without line tables are left out."""
    mappings = list(_mappings(maps))
    wanted: dict[str, set[int]] = defaultdict(set)
    kept = [tuple(stack) for stack in stacks]
    for stack in kept:
        for address in stack:
            for mapping in mappings:
                others = Path(mapping.file).name.startswith((*_RUNTIME, *_SYSTEM))
                if mapping.first <= address < mapping.end and not others:
                    wanted[mapping.file].add(address)
    lines = _named(maps)
    for file, addresses in wanted.items():
        lines.update(_lines(file, mappings, sorted(addresses)))
    call_sites = {stack: _own(stack, lines) for stack in kept}
    return {stack: site for stack, site in call_sites.items() if site is not None}


def _named(maps: str) -> dict[int, list[CallSite]]:
    matches = filter(None, map(_NAMED.fullmatch, maps.splitlines()))
    return {
        int(match[1]): [CallSite(file=match[4], line=int(match[2]), function=match[3])]
        for match in matches
    }


def _mappings(maps: str) -> Iterable[_Mapping]:
    for line in maps.splitlines():
        match = _MAP.fullmatch(line)
        if match:
            first, end, offset = (int(match[index], 16) for index in (1, 2, 3))
            yield _Mapping(first=first, end=end, offset=offset, file=match[4])


def _own(stack: Sequence[int], lines: Mapping[int, list[CallSite]]) -> CallSite | None:
    return next((site for at in stack for site in lines.get(at, []) if _is_own(site)), None)


def _is_own(site: CallSite) -> bool:
    """Whether a line is the program's, not one of a header, a stub or the C library."""
    if site.file.startswith(("?", *_HEADERS, *_START)) or site.file.endswith(".stub.c"):
        return False
    if _STUB in site.function or any(part in site.file for part in _HEADERS):
        return False
    return not _is_of_toolkit(Path(site.file).parent)


@functools.cache
def _is_of_toolkit(folder: Path) -> bool:
    return any((above / _TOOLKIT).is_file() for above in (folder, *folder.parents))


def _lines(
    file: str, mappings: Sequence[_Mapping], addresses: Sequence[int]
) -> dict[int, list[CallSite]]:
    """The lines of each address, innermost first, by binutils' addr2line."""
    program = shutil.which("addr2line")
    if program is None or not Path(file).is_file():
        return {}
    base = _base(file, mappings)
    # A call returns behind itself: the byte before belongs to it.
    by_offset = {address - 1 - base: address for address in addresses}
    argv = [program, "-e", file, "-f", "-C", "-i", "-a", *(f"{item:#x}" for item in by_offset)]
    done = processes.run(argv, timeout_s=LIMIT_S)
    result: dict[int, list[CallSite]] = {}
    rest = iter(done.stdout.splitlines())
    current: list[CallSite] = []
    for word in rest:
        if word.startswith("0x"):
            current = result.setdefault(by_offset[int(word, 16)], [])
            continue
        name, _, line = next(rest, "").partition(" (")[0].rpartition(":")
        if line.isdigit():
            current.append(CallSite(file=name, line=int(line), function=word))
    return result


def _base(file: str, mappings: Sequence[_Mapping]) -> int:
    """Returns the offset to subtract from an address to get the file's own."""
    with open(file, "rb") as content:
        kind = int.from_bytes(content.read(18)[16:18], "little")
    if kind != _ET_DYN:
        return 0
    return min(mapping.first - mapping.offset for mapping in mappings if mapping.file == file)
