"""Contents of a record: one run of one experiment, and how its parts belong together."""

from __future__ import annotations

import re
import statistics
from typing import Any, Literal, TypeAlias

import msgspec

from kernelexp.model.arm import Arm, MeasuredEvidence, PrintedResult, Verdict
from kernelexp.model.experiment import AxisValue, Point, arm_names, holds, spell
from kernelexp.model.measurement import (
    BASELINE,
    Effect,
    Estimate,
    Measurement,
    PrintedSamples,
    Times,
)

# Of a file's SHA-256, as many digits as tell files apart; the profile has all.
_DIGEST = re.compile(r"(SHA-256 [0-9a-f]{10})[0-9a-f]{54}")


class Candidate(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A candidate's arm and what the evidence says of it against the baseline."""

    arm: Arm
    verdict: Verdict
    reproduction: str = ""
    """Whether this agrees with earlier records of the experiment, as a sentence."""
    reproduces: bool | None = None
    """The same as an answer; None where nothing earlier could be confirmed or contradicted."""
    same_code: bool = False
    """Whether its instructions and its launch are the baseline's."""
    remarks: tuple[str, ...] = ()
    """Why being right says little, a sentence each."""
    over_sizes: Verdict | None = None
    """The verdict over all sizes of the run, in the record of the last of them."""


class Git(msgspec.Struct, frozen=True, kw_only=True):
    """The state of the project's repository."""

    commit: str
    dirty: bool


class HostMachine(msgspec.Struct, frozen=True, kw_only=True):
    """The machine that a run used."""

    host: str
    cpu: str
    cores: int
    system: str
    python: str
    gpus: tuple[str, ...] = ()
    """The models of the NVIDIA GPUs, as the kernel driver names them; a run need not use them."""


Provenance: TypeAlias = Literal["run", "published"]


class Heat(msgspec.Struct, frozen=True, kw_only=True):
    """Part of a record's arms, the baseline among them, timed on one GPU."""

    measurement: Measurement
    estimate: Estimate


class LaunchCounts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The emulated counts of a timed launch, where its time is near the least that they allow."""

    counters: dict[str, int]
    """Of SASS, by ncu's names."""
    flops_of_mma: dict[str, float] = {}
    """What a tensor instruction does, by the type of its operands."""
    polls: bool = False
    """Whether it waits in a loop, so that other counters depend on time."""
    how: str
    """As the end of a sentence."""


class SizeResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a run at one of its sizes, which has a record of its own."""

    run: str
    size: str
    parameters: dict[str, int]
    weight: float
    """What it counts in the verdict over all."""
    baseline_us: float | None
    effects: tuple[Effect, ...]
    verdicts: dict[str, Verdict]

    def effect(self, arm: str) -> Effect | None:
        return next((effect for effect in self.effects if effect.arm == arm), None)


class Trial(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A variant that an optimiser proposed, and what it was told."""

    axes: Point
    """Its swept axes."""
    arm: str = ""
    """Its name in the record; empty where it could not be examined."""
    value: float | None = None
    """Of the objective; None where the variant was refused."""
    why: str = ""
    """What refused it, as a sentence."""


class Tuning(msgspec.Struct, frozen=True, kw_only=True):
    """A search in a space of variants: with the same seed and figures it makes the same trials."""

    strategy: str
    optimizer: str
    """The library with its version."""
    seed: int
    objective: str
    """A figure of the table of metrics; the time is that relative to the baseline."""
    better: Literal["less", "more"]
    space: int
    """Variants in it, those that the kernel's rules refuse included."""
    trials: tuple[Trial, ...]
    baseline: float | None = None
    """The objective of the baseline, where that is no evidence of an arm: a modelled time."""
    ended: str
    """Why the search ended, as a sentence."""


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, weakref=True):
    """One run of one experiment: written once, never edited.

    A later version may add fields with defaults; it does not change those that are here. Version 2
    names what is counted on PTX ptx__; complete() gives records of version 1 these names.
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
    expect: tuple[dict[str, str], ...] = ()
    """What the experiment expected of each candidate when it ran; empty where it said nothing."""
    tool: str = ""
    """kernelexp's version."""
    compiler: str = ""
    git: Git | None = None
    host_files: dict[str, str] = {}
    """SHA-256 of problem.py, the files next to it and the modules of the repository that it
    imports, by path from the root; empty for one that it looked for in vain."""
    environment: dict[str, str] = {}
    """SHA-256 of the environment variables that problem.py reads, by name; `unset` of one that is
    not set."""
    sources_kept: bool = False
    """Every file of the run is in logs/sources, since no commit has all of them as they were."""
    repeats: str = ""
    """The run whose variants this one took again from its record."""
    commit: str = ""
    """The commit of the kernel's own repository that a published result names."""
    machine: HostMachine | None = None
    device: str = ""
    """The GPU that times are from; empty where nothing was timed."""
    source: str = ""
    """Where a published result was published, and how it was measured."""
    overrides: dict[str, Any] = {}
    """--set values that changed the candidate from what experiments.yaml says."""
    size: str = ""
    """The problem's named size that was timed; where nothing was, all that should have been."""
    bytes: int = 0
    """That a launch of the size that was timed must move, as problem.py states it."""
    flops: int = 0
    """Useful FLOPs of one launch at that size, where the problem tells them."""
    margin: float = 0.01
    """The margin of the verdicts: a ratio within 1 +- margin is no difference."""
    measurement: Measurement | None = None
    """Every sample, so that the verdict can be reached again."""
    estimate: Estimate | None = None
    """What the samples say, so that the log need not work it out again."""
    launched: dict[str, LaunchCounts] = {}
    """By the names of arms whose time is near the least that their executed work allows."""
    sizes: tuple[SizeResult, ...] = ()
    """All sizes of the run, this last one too, where several were timed."""
    heats: tuple[Heat, ...] = ()
    """Measurements of part of the arms each; `measurement` is then the final, of the best."""
    tuning: Tuning | None = None
    """How the candidates were chosen, where an optimiser proposed them."""
    recounted: str = ""
    """When its emulated evidence was taken again, and by which version, as it is read; no file
    has it."""
    edited: bool = False
    """Whether its file is not as it was written, as it is read; no file has it."""

    @property
    def arms(self) -> tuple[Arm, ...]:
        """Baseline and candidates, in the order of arm_names()."""
        return (self.baseline, *(candidate.arm for candidate in self.candidates))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of `arms`, by which the measurement knows them."""
        return arm_names(len(self.candidates))

    @property
    def by_name(self) -> dict[str, Arm]:
        """`arms` by `names`."""
        return dict(zip(self.names, self.arms, strict=True))

    @property
    def judged(self) -> dict[str, Candidate]:
        """The candidates by their arms' names."""
        return dict(zip(self.names[1:], self.candidates, strict=True))


class Profile(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One profile of one variant: written once, never edited, as `logs/profiles/RUN.json`.

    It belongs to the variant, by kernel, architecture and axes, whatever experiments name it.
    """

    version: int
    run: str
    provenance: Literal["run", "imported", "published"]
    created: str
    """ISO 8601: when it was taken, or read from a file; only a date where that was published."""
    arm: Arm
    """The variant with its profiled evidence; an imported one may know no more than its axes."""
    step: str = ""
    """The experiment or the step of the history that a published profile is of."""
    source: str = ""
    """Where imported or published figures are from: file and its SHA-256, or a document."""
    tool: str = ""
    compiler: str = ""
    git: Git | None = None
    machine: HostMachine | None = None
    edited: bool = False
    """Whether its file is not as it was written, as it is read; no file has it."""

    @property
    def short_source(self) -> str:
        """`source` for a page: of each SHA-256 the beginning."""
        return _DIGEST.sub(r"\1...", self.source)


def separate(record: Record) -> Record:
    """The record as it is written: nothing in it twice."""
    record = msgspec.structs.replace(record, recounted="", edited=False)
    bare = {"kernel": "", "arch": "", "measured": None}
    return with_arms(record, [msgspec.structs.replace(arm, **bare) for arm in record.arms])


def with_arms(record: Record, arms: list[Arm]) -> Record:
    candidates = (
        msgspec.structs.replace(candidate, arm=arm)
        for candidate, arm in zip(record.candidates, arms[1:], strict=True)
    )
    return msgspec.structs.replace(record, baseline=arms[0], candidates=tuple(candidates))


def measurements(record: Record) -> tuple[Measurement, ...]:
    """All that was timed: the final or the only measurement, then the heats."""
    last = (record.measurement,) if record.measurement else ()
    return (*last, *(heat.measurement for heat in record.heats))


def measurement_of(record: Record, name: str) -> Measurement | None:
    """Returns the measurement behind an arm's verdict: the final, for those that were in it with
    the baseline, else the arm's heat."""
    reference = final_reference(record)
    for measurement in measurements(record):
        is_final = measurement is record.measurement
        if any(arm.name == name for arm in measurement.arms) and not (is_final and reference):
            return measurement
    return record.measurement


def final_reference(record: Record) -> str:
    """The arm that those of the final are compared with, where the baseline was too slow to be in
    it; else empty."""
    final = record.measurement
    place = final.position("baseline") if final and record.heats else None
    name = final.arms[place].name if final and place is not None else BASELINE
    return "" if name == BASELINE else name


def measured_evidence(record: Record, name: str) -> MeasuredEvidence | None:
    """Returns an arm's evidence from the record's samples, with the time that every page shows."""
    own = record.measurement
    printed = own.printed if own else None
    is_time = printed is None or printed.is_time
    for device, estimate in _estimates(record):
        effect = _effect(record, estimate, name)
        if times := estimate.shown(name, _baseline_us(record), effect):
            return MeasuredEvidence(
                device=device,
                size=record.size,
                time_us=times.median_us if is_time else None,
                low_us=times.low_us if is_time else None,
                high_us=times.high_us if is_time else None,
                flops=record.flops,
                effect=effect,
                printed=_printed(printed, times) if printed else {},
                judged="" if printed is None or printed.is_time else printed.figure,
            )
    return None


def _estimates(record: Record) -> list[tuple[str, Estimate]]:
    """All that was timed, with its GPU: the final, then the heats; of a final without the baseline,
    the heat of its reference first."""
    reference, final = final_reference(record), record.measurement
    device = final.device.name if final else record.device
    heats = [(heat.measurement.device.name, heat.estimate) for heat in record.heats]
    heats.sort(key=lambda heat: bool(reference) and heat[1].effect(reference) is None)
    return [*([(device, record.estimate)] if record.estimate else []), *heats]


def _effect(record: Record, estimate: Estimate, name: str) -> Effect | None:
    """The ratio of a candidate to the baseline: in a final without it, that to the final's
    reference times the reference's own of its heat."""
    own = next((effect for effect in estimate.effects if effect.arm == name), None)
    reference = final_reference(record)
    if not reference or estimate is not record.estimate:
        return own
    link = next((item.effect(reference) for _, item in _estimates(record)[1:]), None)
    return link if name == reference else own and link and own.after(link)


def _baseline_us(record: Record) -> float | None:
    """The one time of the baseline that all times of a record are relative to: the final's, or that
    of the heat of the final's reference."""
    shown = (estimate.shown(BASELINE) for _, estimate in _estimates(record))
    return next((base.median_us for base in shown if base), None)


def _printed(printed: PrintedSamples, times: Times) -> dict[str, PrintedResult]:
    """Medians of what an arm printed; of a time that it is judged by, the samples speak."""
    results: dict[str, PrintedResult] = {}
    if not printed.is_time:
        value = printed.from_sample(times.median_us)
        results[printed.figure] = PrintedResult(
            value=value, unit=printed.unit, better=printed.better
        )
    for name, also_printed in printed.also.items():
        if values := also_printed.values.get(times.arm):
            value = statistics.median(values)
            results[name] = PrintedResult(
                value=value, unit=also_printed.unit, better=also_printed.better
            )
    return results


def is_usual(size: str) -> bool:
    """Whether a size is what is timed where no other is asked for; a program has none."""
    return size in ("full", "")


def unusual(record: Record) -> tuple[str, ...]:
    """Returns the unusual conditions of the times in a record, as in "size small"."""
    if record.measurement is None:
        return ()
    size = () if is_usual(record.size) else (f"size {record.size}",)
    return (*size, "L2 warm") if record.measurement.options.l2 == "hot" else size


def own_axes(baseline: Arm, arm: Arm) -> Point:
    """The axes in which an arm departs from the baseline of its record."""
    return {axis: value for axis, value in arm.axes.items() if baseline.axes.get(axis) != value}


def is_of(axes: dict[str, AxisValue], arm: Arm) -> bool:
    """Whether an arm of a record is of the variant at `axes`, for all the axes that it names.

    Values compare with their types: an axis that was 1 and is now true is another variant.
    """
    return holds(arm.axes, axes)


def swept_axes(record: Record) -> list[str]:
    """The axes in which a record's arms differ."""
    first = {axis: spell(value) for axis, value in record.baseline.axes.items()}
    return [
        axis for axis in first if any(spell(arm.axes[axis]) != first[axis] for arm in record.arms)
    ]
