"""The arm: one variant on its way through a run, with its build and its evidence by kind."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Literal, TypeAlias

import msgspec

from kernelexp.model.errors import KernelexpError
from kernelexp.model.experiment import AxisValue, Program, Variant
from kernelexp.model.measurement import ArrayResult, Effect


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


Isa: TypeAlias = Literal["ptx", "sass"]
"""An instruction set that the emulator executes."""


class EmulatedFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A mistake of a kernel that some schedule brought out."""

    name: str
    sentence: str
    where: str
    count: int


class EmulatedPrint(msgspec.Struct, frozen=True, kw_only=True):
    """One printf() of a kernel."""

    cta: int
    thread: int
    """Of the CTA."""
    text: str


class EmulatedLine(msgspec.Struct, frozen=True, kw_only=True):
    """The cost of one line of a kernel's source in a launch."""

    file: str
    line: int
    counters: dict[str, int]


class AccessWidths(msgspec.Struct, frozen=True, kw_only=True):
    """A source line whose memory instructions have other widths in SASS than in PTX."""

    file: str
    line: int
    what: str
    """`shared load`, `local store`, ..."""
    ptx: dict[int, int]
    """Instructions by their bits per lane."""
    sass: dict[int, int]
    """The same; empty where ptxas left none at this line."""
    ratio: float | None = None
    """Instructions of SASS for one of PTX; None where they do not move the same bytes, as where
    ptxas merged accesses of several lines, or loads what is not used."""


class EmulatedLaunch(msgspec.Struct, frozen=True, kw_only=True):
    """One launch of a job of several."""

    entry: str
    ctas: int
    thread_instructions: int
    counters: dict[str, int]
    """Those that are not 0."""


class EmulatedEvidence(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The results of executing a variant on a CPU: kind `emulated`, the same on any machine."""

    size: str
    isa: Isa = "ptx"
    """What was executed: what nvcc made, or what ptxas made of it."""
    seed: int = 0
    """Of the inputs; early versions did not say it."""
    outputs: dict[str, str] = {}
    """The beginning of the SHA-256 of each array that the kernel wrote, after the first
    schedule."""
    schedules: tuple[str, ...] = ()
    arrays: tuple[ArrayResult, ...] = ()
    """Beside the reference: after the first schedule that left a wrong element, else after the
    first."""
    tolerance: dict[str, float] = {}
    """What the outputs were held to, by the names of problem.py's Tolerance."""
    doubts: tuple[str, ...] = ()
    """Why being right says little, as clauses: inputs that ignore their seed, or are all equal."""
    changed: tuple[str, ...] = ()
    """Inputs that the kernel wrote to."""
    differing: tuple[str, ...] = ()
    """Outputs that depend on the schedule."""
    varying: tuple[str, ...] = ()
    """The same where atomics or flags meet in an order that nothing decides: as they may."""
    findings: tuple[EmulatedFinding, ...] = ()
    warnings: tuple[EmulatedFinding, ...] = ()
    """Formal mistakes, which do not make a variant wrong."""
    failing: tuple[str, ...] = ()
    """Schedules that brought out a finding or another result than the first."""
    printed: tuple[EmulatedPrint, ...] = ()
    """What printf() showed under the first schedule: its first lines."""
    prints: int = 0
    """How often it printed."""
    hang: tuple[str, ...] = ()
    """Who waited for what when nothing could go on."""
    counters: dict[str, int] = {}
    """Of all launches: of PTX, named ptx__ and ncu's counter that counts the same on SASS; of SASS,
    by ncu's own name."""
    launches: tuple[EmulatedLaunch, ...] = ()
    """In their order, where there are several."""
    lines: tuple[EmulatedLine, ...] = ()
    """The lines with the most wavefronts and sectors."""
    opcodes: dict[str, int] = {}
    """Of SASS: executed warp instructions by opcode, as ncu's sass__inst_executed_per_opcode."""
    opcodes_with_modifiers: dict[str, int] = {}
    """The same by opcode with modifiers, as ncu's
    sass__inst_executed_per_opcode_with_modifier_all."""
    widths: tuple[AccessWidths, ...] = ()
    """Where the counters, which are of PTX, can't be the hardware's."""
    unsupported: str = ""
    """Why it could not be executed, such as the instruction that the emulator does not cover;
    nothing else is filled then."""
    thread_instructions: int = 0
    """Of one schedule."""
    seconds: float = 0.0
    """Of all schedules, on whatever machine emulated it first."""
    emulator: str = ""
    """Hash of the emulator: counters of two versions of it do not compare."""

    @property
    def finished(self) -> bool:
        """Whether nothing ended a launch early, so that its counters are of all of it."""
        return not (self.hang or self.findings)

    @property
    def is_right(self) -> bool:
        """Whether it was executed, and did what it should."""
        wrong = any(array.wrong for array in self.arrays)
        return bool(self.arrays) and self.finished and not (wrong or self.changed or self.differing)


class ProfiledInstruction(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One SASS instruction of a profile's source page."""

    offset: int
    """Bytes from the entry's first instruction."""
    sass: str
    file: str = ""
    line: int = 0
    """The source line that it was compiled from; 0 where the page does not say."""
    figures: dict[str, float] = {}
    """ncu's columns, those that are not 0: samples by stall, instructions, wavefronts, sectors."""


class Advice(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Advice of one of ncu's own rules on a launch."""

    section: str
    rule: str
    kind: str
    """ncu's word: OPT, WRN, INF."""
    sentence: str
    speedup_percent: float | None = None
    """ncu's estimate; None where the rule makes none."""
    scope: str = ""
    """`global`: of the launch; `local`: of the part that the rule is about."""


class ProfiledEvidence(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Hardware counters of one launch, as ncu reports them: kind `profiled`."""

    entry: str
    """The kernel's name as ncu prints it."""
    figures: dict[str, float | str]
    """By ncu's metric name, in base units: bytes, ns, Hz, percent."""
    units: dict[str, str] = {}
    """Of the figures that have one."""
    size: str = ""
    """The problem's named size; empty where an imported profile does not tell."""
    device: str = ""
    capability: str = ""
    """Compute capability, such as 9.0."""
    driver: str = ""
    tool: str = ""
    """ncu with its version."""
    clock_control: str = ""
    """ncu's --clock-control; empty where it is not known."""
    cache_control: str = ""
    replay: str = ""
    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    missing: tuple[str, ...] = ()
    """Metrics that were asked for and that this chip, driver or ncu does not have."""
    advice: tuple[Advice, ...] = ()
    instructions: tuple[ProfiledInstruction, ...] = ()
    """In the order of their addresses; empty without a source page."""


class PrintedResult(msgspec.Struct, frozen=True, kw_only=True):
    """A figure that a program printed in each of its runs."""

    value: float
    """The median."""
    unit: str
    better: Literal["less", "more"]


class MeasuredEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """The results of one measurement for an arm, computed from samples that the record keeps."""

    device: str
    size: str
    time_us: float | None
    """Of the baseline the median over all samples, of another arm that median times the ratio of
    their pairs; None where a program was judged by a figure that is not a time."""
    low_us: float | None
    """5th percentile of the arm's samples, scaled as its time is."""
    high_us: float | None
    """95th percentile, scaled alike."""
    flops: int = 0
    """Useful FLOPs of a launch; 0 where the problem does not say."""
    effect: Effect | None = None
    """Against the baseline; None for the baseline itself."""
    printed: dict[str, PrintedResult] = {}
    """What a program printed besides the time that it was judged by, if it was by a time."""
    judged: str = ""
    """The name in `printed` that the effect is of; empty where that is the time."""


class PublishedPeer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Somebody else's kernel, as it was published next to a variant."""

    name: str
    time_ms: float
    tflops: float | None = None
    notes: str = ""
    """What it does of the variant's work, and how it was chosen."""


class PublishedResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Figures that somebody published about a variant; what was not published is None."""

    time_ms: float | None = None
    time_ms_to: float | None = None
    """The upper end, where a range was published."""
    tflops: float | None = None
    registers: int | None = None
    spill_bytes: int | None = None
    """Stores and loads together."""
    stack_bytes: int | None = None
    approximate: bool = False
    """The publisher wrote these figures with a tilde."""
    peers: tuple[PublishedPeer, ...] = ()


class Status(StrEnum):
    """The machine's verdict on candidate against baseline, from the evidence."""

    IMPROVED = "IMPROVED"
    REJECTED = "REJECTED"
    NEUTRAL = "NEUTRAL"
    INCONCLUSIVE = "INCONCLUSIVE"
    INCORRECT = "INCORRECT"
    IMPOSSIBLE = "IMPOSSIBLE"
    BUILD_FAILED = "BUILD_FAILED"
    CRASHED = "CRASHED"
    TIMED_OUT = "TIMED_OUT"
    INVALID = "INVALID"
    UNMEASURED = "UNMEASURED"


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """A status, a reason code for machines, and the reason as a sentence for people."""

    status: Status
    reason: str
    sentence: str


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
    code: str = ""
    """SHA-256 of its machine code with constants and attributes, without line tables; empty where
    it is not known, as of programs and in early records."""
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
