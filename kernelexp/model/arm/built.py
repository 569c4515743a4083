"""Evidence of kind `built`: what the compiler made of a variant, the same on any machine."""

from __future__ import annotations

import msgspec

from kernelexp.model.experiment import Program


class Resources(msgspec.Struct, frozen=True, kw_only=True):
    """The compiled resources of a variant's entry, from the cubin and from ptxas's own report."""

    registers: int
    spill_store_bytes: int | None
    """None where no report of ptxas says: of a kernel that came as a cubin and has a stack."""
    spill_load_bytes: int | None
    stack_bytes: int
    static_smem_bytes: int
    dynamic_smem_bytes: int
    threads: int
    cluster: int
    sass_bytes: int

    @property
    def spill_bytes(self) -> int | None:
        """Stores and loads together."""
        if self.spill_store_bytes is None or self.spill_load_bytes is None:
            return None
        return self.spill_store_bytes + self.spill_load_bytes


class Occupancy(msgspec.Struct, frozen=True, kw_only=True):
    """CTAs that one SM holds at once, and what keeps it from holding more."""

    ctas_per_sm: int
    warps_per_sm: int
    warps_limit: int
    limited_by: tuple[str, ...]


class OtherEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry that a variant launches besides the one that it is judged by."""

    resources: Resources
    occupancy: Occupancy


class BuildEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about a variant from its cubin: kind `build`, the same on any machine."""

    entry: str
    resources: Resources
    occupancy: Occupancy
    pipes: dict[str, int]
    """Static SASS instructions of the entry, by the pipe that executes them."""
    opcodes: dict[str, int]
    exports: dict[str, int]
    """The figures that the source computed for its host (KX_EXPORT), without their kx_ prefix."""
    warnings: tuple[str, ...] = ()
    """What ptxas warned of, in its own words: wgmma that it serializes, an ignored setmaxnreg."""
    others: dict[str, OtherEntry] = {}
    """Entries that are launched too, where a job is of several; all else is of `entry`."""


class ProgramKernel(msgspec.Struct, frozen=True, kw_only=True):
    """A __global__ function in an executable, from its SASS and from ptxas's own report."""

    name: str
    """Mangled, as cuobjdump prints it."""
    registers: int
    spill_store_bytes: int
    spill_load_bytes: int
    stack_bytes: int
    static_smem_bytes: int
    sass_bytes: int


class ProgramEvidence(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The build of a program with a main of its own, and how it is run: kind `built`."""

    spec: Program
    kernels: tuple[ProgramKernel, ...] = ()
    """None where the program has no code for a GPU."""
    pipes: dict[str, int] = {}
    """Static SASS instructions of all kernels, by the pipe that executes them."""
    opcodes: dict[str, int] = {}
    warnings: tuple[str, ...] = ()
