"""Modules of a program: what is in them, and what their kernels ask of a launch."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable

import msgspec

from warpsim.errors import UsageError
from warpsim.front.ptx.decode import decode
from warpsim.front.ptx.faults import MALFORMED, PtxSyntaxError
from warpsim.front.ptx.parser import parse
from warpsim.front.sass import cubin
from warpsim.front.sass.faults import UnknownCard
from warpsim.machine.core.image import Variable
from warpsim.machine.memory.layout import SharedLayout
from warpsim.machine.schedule.program import DecodedProgram
from warpsim.runtime import containers, linking
from warpsim.runtime.containers import FatImage
from warpsim.runtime.device import DeviceMemory, World

_LAUNCHES = "__cudaCDP2"
"""How the functions of the device's runtime begin, which launch kernels."""
Extract = Callable[[bytes], Iterable[FatImage]]
"""Reads the images of a container that are compressed."""


class KernelResources(msgspec.Struct, frozen=True, kw_only=True):
    """What a kernel takes on the device, as its machine code says; zeros where there is none."""

    registers: int = 0
    local_bytes: int = 0


class Loaded:
    """One module."""

    def __init__(self, image: bytes, arch: int, extract: Extract, device: DeviceMemory) -> None:
        fat_images = list(_images(image, extract))
        ptx = containers.choose(fat_images, arch)
        if not ptx:
            raise UsageError(_why_not(fat_images, arch))
        contents = dict.fromkeys(fat_image.content for fat_image in ptx)
        texts = [content.decode(errors="replace") for content in contents]
        self._texts = texts
        self._syntax = linking.link(texts) if texts[1:] else parse(texts[0])
        self._programs: dict[str, DecodedProgram] = {}
        self.arch = ptx[-1].arch
        self._cubins = [fat_image.content for fat_image in fat_images if not fat_image.is_ptx]
        functions = [
            function.name for function in self._syntax.functions.values() if not function.entry
        ]
        self.world = World(device, functions)
        self.variables: list[Variable] = [
            variable for variable in self._syntax.variables if variable.space in ("global", "const")
        ]

    def changed(self) -> Iterable[str]:
        """The variables that the program has given other values than their first."""
        for variable in self.variables:
            result = self.world.variables[variable.name]
            if self.world.device.read(result) != self.world.first_content(variable):
                yield variable.name

    def has(self, entry: str) -> bool:
        function = self._syntax.functions.get(entry)
        return function is not None and function.entry

    def text(self, entry: str) -> str:
        """The PTX of the file that has an entry; UsageError where it needs another's."""
        text = next(text for text in self._texts if linking.defines(text, entry))
        missing = linking.others(text)
        if missing:
            raise UsageError(
                f"its file uses {', '.join(missing)} of another (-rdc=true): a launch is taken "
                "from one file, so include that file into the kernel's."
            )
        return text

    def program(self, entry: str) -> DecodedProgram:
        """Of an entry; UsageError if there is none, or for what the emulator does not execute."""
        decoded_program = self._programs.get(entry)
        if decoded_program is None:
            decoded_program = self._programs[entry] = self._decoded(entry)
        return decoded_program

    def _decoded(self, entry: str) -> DecodedProgram:
        try:
            return decode(self._syntax, entry)
        except UsageError as error:
            if _LAUNCHES in str(error):
                raise UsageError(
                    "it launches kernels itself (dynamic parallelism), which the emulator does not "
                    "execute."
                ) from error
            raise
        except MALFORMED as error:
            why = f"{type(error).__name__}: {error}"
            raise PtxSyntaxError(f"kernel {entry} can't be decoded ({why}).") from error

    def resources(self, entry: str) -> KernelResources:
        """Of an entry, from the first machine code that has it and can be read."""
        for content in self._cubins:
            if entry in cubin.entries(content):
                with contextlib.suppress(UnknownCard):  # its PTX is executed
                    read = cubin.read(content, entry)
                    return KernelResources(registers=read.registers, local_bytes=read.frame_bytes)
        return KernelResources()

    def static_shared(self, entry: str) -> int:
        return SharedLayout(self.program(entry).image.variables, 0).static_bytes


_SPECIFIC = 90
"""From here on a card has instructions that PTX of its own suffix alone may use (wgmma)."""


def _images(data: bytes, extract: Extract) -> Iterable[FatImage]:
    if data[:4] != containers.MAGIC.to_bytes(4, "little"):
        return [containers.ptx_image(data)]
    try:
        return list(containers.images(data))
    except containers.Compressed:
        return extract(data)


def _why_not(fat_images: Iterable[FatImage], arch: int) -> str:
    ptx = sorted(
        {
            f"compute_{fat_image.arch}{fat_image.suffix}"
            for fat_image in fat_images
            if fat_image.is_ptx
        }
    )
    if ptx:
        return (
            f"it was compiled for {', '.join(ptx)} only, which the chosen card (compute_{arch}) "
            "does not run: choose another with --device, or compile for it."
        )
    virtual = f"compute_{arch}{'a' if arch >= _SPECIFIC else ''}"
    return (
        "it has machine code only, and no PTX, which is what is executed: compile with "
        f"-gencode arch={virtual},code={virtual} too."
    )
