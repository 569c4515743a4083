"""The plain data types of a measurement: its options, and every raw sample with the device's state
around it."""

from __future__ import annotations

import hashlib
import math
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import msgspec

from kernelexp.model.experiment import FULL, Experiment, split_sizes

Role: TypeAlias = Literal["candidate", "baseline", "placebo", "peer"]
Fault: TypeAlias = Literal["INCORRECT", "CRASHED", "TIMED_OUT"]
L2: TypeAlias = Literal["cold", "hot"]
Goal: TypeAlias = Literal["verdicts", "fastest"]
"""What several candidates are raced for: see kernelexp/judge/statistics/racing.py."""

# Looks at the interval while sampling goes on: after 4, 6, ... 16 processes. A race looks after 2
# and 3 too.
LOOKS_MAX = 7
EARLY_LOOKS = (2, 3)
BASELINE = "baseline"
"""The baseline's name in every measurement of a record."""
# For one candidate, and for each further one.
BUDGET_S = 30.0
BUDGET_PER_ARM_S = 5.0
# Stands for an infinite error, which JSON can't write.
WORST = 1e30


# What a file may hold; 1e15 us are 30 years.
Sample: TypeAlias = Annotated[float, msgspec.Meta(gt=0, le=1e15)]
Ratio: TypeAlias = Annotated[float, msgspec.Meta(gt=0, le=1e30)]
Bound: TypeAlias = Annotated[float, msgspec.Meta(ge=0)]
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
Few: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=10_000)]


class TimedArm(msgspec.Struct, frozen=True, kw_only=True):
    """One side of a measurement."""

    name: str
    role: Role
    identity: str = ""
    """What was compiled, as the record names it; the SHA-256 of the cubin where nothing else is."""


class Device(msgspec.Struct, frozen=True, kw_only=True):
    """The GPU that was measured, as NVML and the driver name it."""

    name: str
    uuid: str
    arch: str
    """What a cubin must be compiled for: sm_90a."""
    driver: str
    cuda: str
    """The newest CUDA version that the driver knows, as 13.0."""
    memory_bytes: int
    power_limit_w: float
    sm_clock_max_mhz: int
    memory_clock_max_mhz: int


class Gpus(msgspec.Struct, frozen=True, kw_only=True):
    """The GPUs to time on, or why there is none."""

    devices: tuple[Device, ...] = ()
    why_none: str = ""
    """A sentence; empty where there are GPUs."""

    def of(self, arch: str) -> Gpus:
        """Those that execute variants of an architecture, such as sm_90a."""
        if not self.devices:
            return self
        if fitting := tuple(gpu for gpu in self.devices if gpu.arch == arch):
            return Gpus(devices=fitting)
        names = dict.fromkeys(f"{gpu.name} ({gpu.arch})" for gpu in self.devices)
        return Gpus(why_none=f"this machine's is {', '.join(names)}.")


class DeviceState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a GPU at one moment, as NVML reported it."""

    sm_clock_mhz: Count
    memory_clock_mhz: Count
    power_w: float
    temperature_c: int
    throttle: tuple[str, ...] = ()
    """Why the clock is held down, in NVML's words: sw_power_cap, hw_thermal_slowdown."""
    others: int = 0
    """Other processes that compute on this GPU."""


class Row(msgspec.Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    """Launches in a random order of the arms and back again: an ABBA pair of any two arms.

    A drift that is linear over the row cancels in the ratio of any two arms. A project has
    millions of these: the garbage collector, which looks for cycles, passes over them.
    """

    order: tuple[Count, ...]
    """Positions in `Measurement.arms`, as launched."""
    times_us: tuple[Sample, ...]
    """GPU time of one launch each (of one of n, where a CUDA graph holds n of them)."""


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """Rows timed without a pause, between two looks at the device."""

    before: DeviceState
    after: DeviceState
    rows: tuple[Row, ...]
    set: int = 0
    """The set of arrays of the first row; each further row is on the next one."""


class ArrayResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One output of one launch, compared with the reference, every element of it."""

    name: str
    elements: int
    wrong: int
    worst: float
    """The largest |got - want| / (atol + rtol * |want|); up to 1 is right, WORST for a NaN."""
    frobenius: float = 0.0
    """||got - want|| / ||want||; WORST where that is not a number."""
    unwritten: int = 0
    """Wrong elements that the kernel never wrote."""
    where: str = ""
    """Which elements are wrong, in words, and the first of them with what was wanted."""
    lax: str = ""
    """Why being right says little, in words: any array of zeros, or of NaNs, would be."""


class ArrayCheck(ArrayResult, frozen=True, kw_only=True, rename={"name": "array"}):
    """An ArrayResult under the name that measured records have for it."""

    name: str


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """The outputs of one launch, compared with the reference, on inputs it had not seen before."""

    arm: str
    when: Literal["before", "during", "after"]
    arrays: tuple[ArrayCheck, ...]


class Worker(msgspec.Struct, frozen=True, kw_only=True):
    """The results of one measuring process."""

    process: int
    seed: int
    load_order: tuple[int, ...]
    """The order in which the arms' modules were loaded, as positions in `Measurement.arms`."""
    launches_per_sample: int
    """1, or the launches in the CUDA graph that one sample times."""
    sets: int
    """Input sets that the launches rotate over."""
    warm_up_s: float
    drift: float
    """The relative change of the time of a row when warm-up ended."""
    blocks: tuple[Block, ...]
    checks: tuple[Check, ...]
    peer_rows: tuple[Row, ...] = ()
    """Rows of the baseline with the peers, in early records: now they are in all other rows."""
    phases_s: dict[str, float] = {}
    """Where the process's time went."""


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """An arm that gave a wrong result, or did not come back."""

    arm: str
    status: Fault
    process: int
    words: str
    """The driver's, the sanitizer's or the check's own."""


class Departure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An arm that more processes need not time, as a look at the samples showed."""

    arm: str
    processes: int
    """How many were done then."""
    look: Few
    """The number of that look, from 1: its share of the risk is that of the arm's interval."""
    slower_than: str = ""
    """The arm that it was proved to be slower than; empty where its verdict was reached."""


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a look at the samples so far."""

    done: bool
    leaving: tuple[Departure, ...] = ()


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a measurement; kept with it."""

    processes: Few = 4
    """Processes before the first look at the interval."""
    processes_max: Few = 16
    budget_s: float = 30.0
    """From the third on, no process is started that would probably end later than this; what the
    first takes longer than another one is not counted."""
    timing_s: float = 1.0
    """GPU time that one process spends on timed rows."""
    l2: L2 = "cold"
    shared_gpu: bool = False
    """Go on where another process uses the GPU."""
    checks_during: int = 2
    launch_timeout_s: float = 10.0
    """A launch that takes longer hangs."""
    race: bool = False
    """Look after 2 and 3 processes too, and time no longer the arms that a look has settled."""
    problem_timeout_s: float = 60.0
    """What one call of a function of problem.py may take."""
    peers: bool = True
    sanitize: bool = False
    seed: int | None = None
    """None draws one; the seed that was used is in the measurement."""


class Measuring(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a measurement, as the command line gives them."""

    options: Options = Options()
    margin: float = 0.01
    size: str = FULL
    """Empty: that of the experiment, which at() puts in. Of several, over() makes one each."""
    budget_s: float | None = None
    """Instead of that of the options; None: 30 s, and 5 s for each candidate after the first."""
    goal: Goal = "verdicts"
    """What several candidates are raced for."""
    journals: Path | None = None
    """A folder for the samples of what is under way; None: a measurement that is killed is lost."""

    def at(self, size: str) -> Measuring:
        """Returns this at an experiment's size, where none is given; else at the full one."""
        return msgspec.structs.replace(self, size=self.size or size or FULL)

    def over(self, experiment: Experiment) -> tuple[Measuring, ...]:
        """One for each size to time: those given here, else the experiment's, else the full one."""
        names = split_sizes(self.size) or experiment.timed_sizes or (FULL,)
        return tuple(msgspec.structs.replace(self, size=name) for name in names)

    def of_arms(self, count: int) -> Options:
        """The options for so many arms, the baseline among them."""
        budget_s = self.budget_s or BUDGET_S + BUDGET_PER_ARM_S * (count - 2)
        return msgspec.structs.replace(self.options, race=count > 2, budget_s=budget_s)

    def journal(self, subject: object) -> Path | None:
        """The journal of exactly what `subject` says: nothing else may go on with its samples."""
        if self.journals is None:
            return None
        content = msgspec.json.encode(subject, order="deterministic")
        return self.journals / f"{hashlib.sha256(content).hexdigest()[:32]}.json"


class AlsoPrinted(msgspec.Struct, frozen=True, kw_only=True):
    """A figure that programs printed and that decides nothing."""

    unit: str
    better: Literal["less", "more"]
    values: dict[str, tuple[float, ...]]
    """By arm, in the order of its runs."""


class PrintedSamples(msgspec.Struct, frozen=True, kw_only=True):
    """Figures printed by programs, where programs were timed instead of launches."""

    figure: str
    """The name of the figure that they are judged by."""
    unit: str
    better: Literal["less", "more"]
    is_time: bool
    """The samples are then microseconds. Of another figure they are what was printed, or where more
    is better its reciprocal: less of a sample is always better."""
    also: dict[str, AlsoPrinted] = {}

    def to_sample(self, value: float, unit_us: float) -> float:
        """A printed value as samples have it; `unit_us` is a unit of time in microseconds."""
        if self.is_time:
            return value * unit_us
        return value if self.better == "less" else 1.0 / value

    def from_sample(self, sample: float) -> float:
        """The value of a figure that is not a time."""
        return sample if self.better == "less" else 1.0 / sample


class Measurement(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a measurement saw: a verdict can be reached again from this alone."""

    version: int = 1
    """From 2 on, blocks say on which set of arrays they begin, and a process's estimate is the mean
    of the medians of its sets."""
    device: Device
    options: Options
    seed: int
    arms: Annotated[tuple[TimedArm, ...], msgspec.Meta(min_length=1)]
    workers: tuple[Worker, ...] = ()
    failures: tuple[Failure, ...] = ()
    looks: tuple[Few, ...] = ()
    """Numbers of processes after which the interval was looked at: each look costs confidence."""
    departures: tuple[Departure, ...] = ()
    """Arms that later processes left out, other than for a failure."""
    invalid: str = ""
    """Why the measurement says nothing, as a sentence; empty where it does."""
    printed: PrintedSamples | None = None
    """What programs printed. A worker is then a round of runs, each in a process of its own, in two
    rows: every arm once in a random order, then in the reverse order."""
    software: dict[str, str] = {}
    """Versions of what launched and timed: torch, cuda.bindings, python."""
    created: str = ""
    elapsed_s: float = 0.0

    @property
    def excluded(self) -> tuple[str, ...]:
        """The arms that further processes leave out: those that failed or are settled."""
        failed = (failure.arm for failure in self.failures)
        return (*failed, *(departure.arm for departure in self.departures))

    def departure(self, arm: str) -> Departure | None:
        """Returns when and why this arm was settled early, if it was."""
        return next(
            (arm_departure for arm_departure in self.departures if arm_departure.arm == arm), None
        )

    def position(self, role: Role) -> int | None:
        """Returns the position in `arms` of the first arm of this role."""
        for index, arm in enumerate(self.arms):
            if arm.role == role:
                return index
        return None


class Effect(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Time of an arm over time of the baseline, with its interval; below 1 is faster.

    Of a figure that is not a time, the ratio of the figures, or where more of it is better of their
    reciprocals: below 1 is better.
    """

    arm: str
    ratio: Ratio
    low: Bound
    high: Bound
    level: float
    """Confidence of this interval, after what looks and further candidates cost."""
    spread: float
    """Standard deviation of the processes' estimates, as a fraction (0.001 is 0.1%)."""
    within: float
    """Median standard error of one process's estimate from its own pairs, as a fraction."""
    detectable: float
    """The smallest true effect that 80% of such measurements tell from none, as a fraction."""
    pairs: Count
    dropped: int
    """Pairs left out because the device changed while they were taken."""
    processes: Count
    unit: str = ""
    """Of a figure that is not a time."""
    more: bool = False
    """More of that figure is better."""

    @property
    def printed(self) -> tuple[float, float, float]:
        """Ratio and interval of the figure as it is printed: of one of which more is better, above
        1 is better."""
        if not self.more:
            return self.ratio, self.low, self.high
        return 1.0 / self.ratio, 1.0 / self.high, 1.0 / self.low if self.low > 0.0 else math.inf

    def after(self, link: Effect) -> Effect:
        """The ratio to the baseline of an arm that was compared with `link.arm`: both ratios, and
        the ends of both intervals, multiplied."""
        return msgspec.structs.replace(
            self,
            ratio=self.ratio * link.ratio,
            low=self.low * link.low,
            high=self.high * link.high,
            level=max(0.0, self.level + link.level - 1.0),
            spread=math.hypot(self.spread, link.spread),
            within=math.hypot(self.within, link.within),
            detectable=self.detectable + link.detectable,
            pairs=min(self.pairs, link.pairs),
            processes=min(self.processes, link.processes),
        )


class Times(msgspec.Struct, frozen=True, kw_only=True):
    """One arm's times alone, over the rounds that it was in: never to decide by.

    A page shows what Estimate.shown() makes of them.
    """

    arm: str
    median_us: Sample
    low_us: Sample
    """5th percentile of all samples."""
    high_us: Sample
    samples: int


class Conditions(msgspec.Struct, frozen=True, kw_only=True):
    """The device while it was timed: medians over blocks, and what held its clock down."""

    sm_clock_mhz: float
    sm_clock_low_mhz: int
    sm_clock_high_mhz: int
    memory_clock_mhz: float
    power_w: float
    temperature_c: float
    throttle: dict[str, float] = {}
    """Share of the blocks in which NVML gave this reason."""


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """The estimates from a measurement's samples."""

    effects: tuple[Effect, ...]
    """One for each candidate that was timed."""
    placebo: Effect | None
    peers: tuple[Effect, ...]
    """As the candidates'; of early records from one process, an interval over its rows, which knows
    nothing of placement."""
    times: tuple[Times, ...]
    conditions: Conditions | None

    def effect(self, arm: str) -> Effect | None:
        """The ratio of any arm, peers and placebo too; None for the baseline."""
        placebo = (self.placebo,) if self.placebo else ()
        every = (*self.effects, *placebo, *self.peers)
        return next((effect for effect in every if effect.arm == arm), None)

    def shown(
        self, arm: str, baseline_us: float | None = None, effect: Effect | None = None
    ) -> Times | None:
        """An arm's times as they are shown: the baseline's time times the ratio of their pairs.

        The median of an arm's own samples is of the rounds that it was in. On an H200 whose clock
        ran from 1,395 to 1,965 MHz, that of an arm that had left early was 19% off its ratio.
        `baseline_us` and `effect` are the baseline's time and the ratio to it where other
        measurements have them.
        """
        own, base = (self._alone(name) for name in (arm, BASELINE))
        base_us = baseline_us or (base.median_us if base else None)
        effect = effect or self.effect(arm)
        if own is None or base_us is None or (effect is None and arm != BASELINE):
            return own
        factor = base_us * (effect.ratio if effect else 1.0) / own.median_us
        return msgspec.structs.replace(
            own,
            median_us=_round(own.median_us * factor),
            low_us=_round(own.low_us * factor),
            high_us=_round(own.high_us * factor),
        )

    def _alone(self, arm: str) -> Times | None:
        return next((times for times in self.times if times.arm == arm), None)


def _round(value: float) -> float:
    """Rounds to 12 digits, so that a product of floats reads 37753 and not 37752.99999999998."""
    return float(f"{value:.12g}")
