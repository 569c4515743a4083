"""The arm: one variant on its way through a run, with its build and its evidence by kind."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import msgspec

from kernelexp.model.arm.built import (
    BuildEvidence,
    Occupancy,
    OtherEntry,
    ProgramEvidence,
    ProgramKernel,
    Resources,
)
from kernelexp.model.arm.emulated import (
    AccessWidths,
    EmulatedEvidence,
    EmulatedFinding,
    EmulatedLaunch,
    EmulatedLine,
    EmulatedPrint,
    Isa,
)
from kernelexp.model.arm.measured import MeasuredEvidence, PrintedResult
from kernelexp.model.arm.profiled import Advice, ProfiledEvidence, ProfiledInstruction
from kernelexp.model.arm.published import PublishedPeer, PublishedResult
from kernelexp.model.arm.verdict import Status, Verdict
from kernelexp.model.axes import AxisValue
from kernelexp.model.errors import KernelexpError
from kernelexp.model.measurement import Effect
from kernelexp.model.variant import Variant

__all__ = [
    "AccessWidths",
    "Advice",
    "Arm",
    "ArmOrFault",
    "BuildEvidence",
    "EmulatedEvidence",
    "EmulatedFinding",
    "EmulatedLaunch",
    "EmulatedLine",
    "EmulatedPrint",
    "Isa",
    "MeasuredEvidence",
    "Occupancy",
    "OtherEntry",
    "PrintedResult",
    "ProfiledEvidence",
    "ProfiledInstruction",
    "ProgramEvidence",
    "ProgramKernel",
    "PublishedPeer",
    "PublishedResult",
    "Resources",
    "Status",
    "Verdict",
    "begin",
    "faults",
    "sound",
    "without_fault",
]


class Arm(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One variant with all that is known about it; what is not known is absent.

    It begins as a variant alone, and each step of a run gives back an arm with more evidence. A
    record keeps it as it is at the end, but for `measured`, which is worked out when it is read,
    and for `profiled`, which a profile keeps.
    """

    kernel: str = ""
    arch: str = ""
    axes: dict[str, AxisValue] = {}
    """A published arm names only the axes that its source tells of."""
    identity: str = ""
    """Hash of all that the build is made from; empty before it."""
    source: str = ""
    sources: str = ""
    """The source as the target names it, where it depends on axes."""
    defines: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    """The compiler's arguments, those of the kernel's target last."""
    config: str = ""
    """The header that was read before the build; empty where the target names none."""
    files: dict[str, str] = {}
    """SHA-256 of each file of the project that the build read, by path from the root."""
    headers: dict[str, str] | None = None
    """SHA-256 of each of kernelexp's own headers that it read, by name; None where it was not
    recorded, as early versions did not."""
    launch: str = ""
    """SHA-256 of its launches at every size; empty where it is not known."""
    build: BuildEvidence | None = None
    program: ProgramEvidence | None = None
    """Instead of `build`, where the variant is a program."""
    build_log: str = ""
    """The compiler's own words where it failed."""
    emulated: EmulatedEvidence | None = None
    """Of its PTX, by which it is judged."""
    emulated_sass: EmulatedEvidence | None = None
    """Of its SASS, which gives the counts that ncu gives."""
    measured: MeasuredEvidence | None = None
    profiled: ProfiledEvidence | None = None
    published: PublishedResult | None = None
    refused: Verdict | None = None
    """Why there is nothing to time: a limit, the compiler, a wrong result."""

    @property
    def is_built(self) -> bool:
        return bool(self.build or self.program)

    @property
    def has_code(self) -> bool:
        """Whether it is built, and has code for a GPU; a program may have none."""
        return self.build is not None or bool(self.program and self.program.kernels)

    @property
    def effect(self) -> Effect | None:
        """The measured change against the baseline; None where nothing was compared."""
        return self.measured.effect if self.measured else None

    @property
    def exports(self) -> dict[str, int]:
        """The figures that the source computed for its host; none of what is not built."""
        return self.build.exports if self.build else {}

    @property
    def executed(self) -> EmulatedEvidence | None:
        """The emulation that judges it, of PTX unless SASS alone was executed; None where the
        emulator does not cover the kernel."""
        evidence = self.emulated or self.emulated_sass
        return evidence if evidence and evidence.arrays else None

    @property
    def counted(self) -> EmulatedEvidence | None:
        """The evidence that counts as ncu does: the executed SASS; None where it was not executed,
        or where its results are not right, so that its counts are of a different execution."""
        every = (self.emulated_sass, self.emulated)  # of a cubin the latter is of SASS too
        return next((x for x in every if x and x.isa == "sass" and x.is_right), None)


ArmOrFault: TypeAlias = Arm | KernelexpError
"""An arm; or the fault of a machine or a project that kept its variant from being examined, which
says nothing of the variant."""


def sound(arm: ArmOrFault) -> Arm:
    """Returns the arm, or raises its fault."""
    if isinstance(arm, KernelexpError):
        raise arm
    return arm


def without_fault(arms: Iterable[ArmOrFault]) -> list[Arm]:
    """Returns those that could be examined."""
    return [arm for arm in arms if isinstance(arm, Arm)]


def faults(arms: Iterable[ArmOrFault]) -> list[KernelexpError]:
    """Returns the faults of those that could not be examined, each once."""
    return list(dict.fromkeys(arm for arm in arms if isinstance(arm, KernelexpError)))


def begin(variant: Variant, known: Arm | None = None) -> Arm:
    """The arm of a variant, about which nothing is known yet but what `known` says."""
    return msgspec.structs.replace(
        known or Arm(),
        kernel=variant.kernel,
        arch=variant.arch,
        axes=variant.axes,
        source=variant.source,
        sources=variant.sources,
        defines=variant.defines,
        config=variant.config,
    )
