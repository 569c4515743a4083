"""The plain data types: kernel, variant, experiment, evidence, verdict, record."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta

from kernelexp.measurement import Estimate, Measurement

AxisValue: TypeAlias = bool | int | str
Point: TypeAlias = dict[str, AxisValue]
"""A value for each axis (or for some of them, where the rest keeps its default)."""


class Written(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of what people write in experiments.yaml: nothing that is not known is let through."""


class Axis(Written, frozen=True, kw_only=True):
    """A named choice of a kernel: `-DKX_STAGES=4` for axis `stages` and value 4."""

    values: Annotated[list[AxisValue], Meta(description="The allowed values.")]
    default: Annotated[AxisValue, Meta(description="The value where a variant names none.")]
    about: Annotated[str, Meta(description="What the axis chooses, in a line.")] = ""


class Target(Written, frozen=True, kw_only=True):
    """A kernel's source for one architecture, with the axes that this source has."""

    source: Annotated[str, Meta(description="The .cu, in the kernel's folder.")]
    axes: Annotated[dict[str, Axis], Meta(description="Axes by name, as in -DKX_<NAME>=value.")]
    device: Annotated[str, Meta(description="The card, as the log's header names it.")] = ""
    flags: Annotated[list[str], Meta(description="More arguments for nvcc.")] = []


class Kernel(Written, frozen=True, kw_only=True):
    """A folder `variants/<kernel>/`: one problem, its sources, its problem.py."""

    title: Annotated[str, Meta(description="What the kernel is, in a line.")]
    problem: Annotated[str, Meta(description="Shapes and types, as the log's header shows them.")]
    targets: Annotated[dict[str, Target], Meta(description="Sources by architecture: sm_90a.")]


class Experiment(Written, frozen=True, kw_only=True):
    """A hypothesis about a kernel and the variants that test it; also a step of the history."""

    kernel: Annotated[str, Meta(description="The kernel's name.")]
    arch: Annotated[str, Meta(description="The architecture, one of the kernel's targets.")]
    title: Annotated[str, Meta(description="What is tried, in a line.")]
    baseline: Annotated[Point, Meta(description="Where it departs from the axes' defaults.")]
    candidate: Annotated[
        Point | list[Point],
        Meta(description="Where it departs from the baseline; several candidates as a list."),
    ]
    hypothesis: Annotated[str, Meta(description="What is expected and why, with a figure.")]
    changes: Annotated[list[str], Meta(description="What changes in the kernel.")] = []
    why: Annotated[str, Meta(description="Why it came out as it did: a person's words.")] = ""
    decision: Annotated[str, Meta(description="What the engineer did: a person's word.")] = ""
    notes: Annotated[str, Meta(description="The notes column of the history.")] = ""

    @property
    def candidates(self) -> list[Point]:
        """The candidates, also where there is one."""
        return self.candidate if isinstance(self.candidate, list) else [self.candidate]


class ProjectFile(Written, frozen=True, kw_only=True):
    """experiments.yaml as it is written."""

    version: Literal[1]
    kernels: dict[str, Kernel]
    experiments: dict[str, Experiment] = {}
    history: dict[str, Experiment] = {}
    """The committed steps, by commit, in the order of the log."""


class Variant(msgspec.Struct, frozen=True, kw_only=True):
    """A point on a kernel's axes for one architecture: all that a build is made from."""

    kernel: str
    arch: str
    source: str
    """Path of the .cu, from the project's root."""
    axes: dict[str, AxisValue]
    flags: tuple[str, ...] = ()

    @property
    def defines(self) -> tuple[str, ...]:
        """`KX_STAGES=4`; strings as bare tokens, so that a source writes TmemLoad::KX_TMEM_LOAD."""
        return tuple(f"KX_{axis.upper()}={spell(value)}" for axis, value in self.axes.items())


def spell(value: AxisValue) -> str:
    """An axis value as the command line, the log and the compiler's define spell it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def arm_names(candidates: int) -> tuple[str, ...]:
    """The names of a baseline and so many candidates, in their order."""
    if candidates == 1:
        return "baseline", "candidate"
    return "baseline", *(f"candidate {number}" for number in range(1, candidates + 1))


def spell_point(point: Mapping[str, AxisValue]) -> str:
    return ", ".join(f"{axis}={spell(value)}" for axis, value in point.items()) or "defaults"


class Resources(msgspec.Struct, frozen=True, kw_only=True):
    """What the compiler made of a variant's entry, from the cubin, and from ptxas's own report."""

    registers: int
    spill_store_bytes: int
    spill_load_bytes: int
    stack_bytes: int
    static_smem_bytes: int
    dynamic_smem_bytes: int
    threads: int
    cluster: int
    sass_bytes: int


class Occupancy(msgspec.Struct, frozen=True, kw_only=True):
    """CTAs that one SM holds at once, and what keeps it from holding more."""

    ctas_per_sm: int
    warps_per_sm: int
    warps_limit: int
    limited_by: tuple[str, ...]


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


class EmulatedArray(msgspec.Struct, frozen=True, kw_only=True):
    """An output of an emulated launch, held against the reference, every element of it."""

    name: str
    elements: int
    wrong: int
    worst: float
    """The largest |got - want| / (atol + rtol * |want|); up to 1 is right."""
    frobenius: float
    """||got - want|| / ||want||."""


class EmulatedFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A mistake of a kernel that some schedule brought out."""

    name: str
    sentence: str
    where: str
    count: int


class EmulatedLine(msgspec.Struct, frozen=True, kw_only=True):
    """What one line of a kernel's source costs in a launch."""

    file: str
    line: int
    counters: dict[str, int]


class EmulatedEvidence(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What executing a variant's PTX on a CPU showed: kind `emulated`, the same on any machine."""

    size: str
    schedules: tuple[str, ...] = ()
    arrays: tuple[EmulatedArray, ...] = ()
    differing: tuple[str, ...] = ()
    """Outputs that depend on the schedule."""
    findings: tuple[EmulatedFinding, ...] = ()
    hang: tuple[str, ...] = ()
    """Who waited for what when nothing could go on."""
    counters: dict[str, int] = {}
    """Of the launch, under ncu's names."""
    lines: tuple[EmulatedLine, ...] = ()
    """The lines with the most wavefronts and sectors."""
    unsupported: str = ""
    """The instruction that the emulator does not cover; nothing else is filled then."""
    thread_instructions: int = 0
    """Of one schedule."""
    seconds: float = 0.0
    """Of all schedules, on whatever machine emulated it first."""


class PublishedResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Figures that somebody published about a variant; what was not published is None."""

    time_ms: float | None = None
    time_ms_to: float | None = None
    """The upper end, where a range was published."""
    tflops: float | None = None
    registers: int | None = None
    approximate: bool = False
    """The publisher wrote these figures with a tilde."""


class Status(StrEnum):
    """What the evidence says of candidate against baseline; a machine's word."""

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
    """One variant in a record, with the evidence about it. An axis that was not known is absent."""

    axes: dict[str, AxisValue] = {}
    identity: str = ""
    source: str = ""
    defines: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    files: dict[str, str] = {}
    """SHA-256 of the source and of each header it includes, by path from the project's root."""
    build: BuildEvidence | None = None
    build_log: str = ""
    """The compiler's own words where it failed."""
    emulated: EmulatedEvidence | None = None
    published: PublishedResult | None = None


class Candidate(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A candidate's arm and what the evidence says of it against the baseline."""

    arm: Arm
    verdict: Verdict
    reproduction: str = ""
    """Whether this agrees with earlier records of the experiment, as a sentence."""


class Git(msgspec.Struct, frozen=True, kw_only=True):
    """The state of the project's repository."""

    commit: str
    dirty: bool


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """Where a run ran."""

    host: str
    cpu: str
    cores: int
    system: str
    python: str
    gpus: tuple[str, ...] = ()
    """The models of the NVIDIA GPUs, as the kernel driver names them; a run need not use them."""


Provenance: TypeAlias = Literal["run", "published"]


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One run of one experiment: written once, never edited.

    A later version may add fields with defaults; it does not change those that are here.
    """

    version: int
    run: str
    """The record's name: unique, and sorted by time."""
    experiment: str
    provenance: Provenance
    created: str
    """ISO 8601; only the date where a time was not published, empty where neither was."""
    kernel: str
    arch: str
    title: str
    hypothesis: str
    baseline: Arm
    candidates: tuple[Candidate, ...]
    tool: str = ""
    """kernelexp's version."""
    compiler: str = ""
    git: Git | None = None
    commit: str = ""
    """The commit of the kernel's own repository that a published result names."""
    machine: Machine | None = None
    device: str = ""
    """The GPU that times are from; empty where nothing was timed."""
    source: str = ""
    """Where a published result was published, and how it was measured."""
    overrides: dict[str, Any] = {}
    """--set values that changed the candidate from what experiments.yaml says."""
    size: str = ""
    """The problem's named size that was timed."""
    flops: int = 0
    """Useful FLOPs of one launch at that size, where the problem tells them."""
    margin: float = 0.01
    """The margin of the verdicts: a ratio within 1 +- margin is no difference."""
    measurement: Measurement | None = None
    """Every sample, so that the verdict can be reached again."""
    estimate: Estimate | None = None
    """What the samples say, so that the log need not work it out again."""
