"""Models every variant that records of an H200 measured, and compares the times.

    python benchmarks/modelled_times.py [--kernel NAME ...] [--experiment NAME ...] [--worst N]

Each is built from the present sources; those whose code is no longer that of the record are left
out. Cycles are compared at the clock that NVML showed during the run. A pair is two arms of one
run: right where the model puts them in the measured order. The floor is what counts alone say: the
busiest unit, without a latency. Nothing is timed; no GPU is needed.
"""

from __future__ import annotations

import argparse
import itertools
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from kernelexp import project
from kernelexp.dossier.session import Session
from kernelexp.evidence import build
from kernelexp.logs import records
from kernelexp.model.arm import Arm
from kernelexp.model.modelled import ModelledTime
from kernelexp.model.record import Record
from kernelexp.services import modelling
from kernelexp.system import toolchain
from kernelexp.system.process import processes

ROOT = Path(__file__).parent.parent
DEVICE = "H200"
DISTANCES = (0.0, 0.01, 0.03, 0.05, 0.1, 0.2)


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """An arm of a run."""

    experiment: str
    kernel: str
    key: str
    """Kernel, size, axes and code."""
    arm: Arm
    microseconds: float
    clock_mhz: float


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """Two arms of a run: logarithms of the ratios of their times."""

    experiment: str
    kernel: str
    arms: tuple[str, str]
    modelled: float
    floor: float
    measured: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernel", action="append", default=[])
    parser.add_argument("--experiment", action="append", default=[])
    parser.add_argument("--worst", type=int, default=10)
    asked = parser.parse_args()
    loaded = project.load(ROOT)
    runs = [
        record
        for record in records_of_device()
        if (not asked.kernel or record.kernel in asked.kernel)
        and (not asked.experiment or record.experiment in asked.experiment)
    ]
    times = model(loaded, runs)
    arms = [arm for record in runs for arm in measured(record) if arm.key in times]
    pairs = [pair for record in runs for pair in pairs_of(record, times)]
    print(table(arms, pairs, times))
    print(distances(pairs))
    print(worst(pairs, asked.worst))


def records_of_device() -> list[Record]:
    """Measured ones, with times."""
    found = []
    for path in sorted((ROOT / "logs" / "runs").glob("*/*.measured.json")):
        record = records.read_file(path)
        if record.device.endswith(DEVICE) and record.estimate and record.measurement:
            found.append(record)
    return found


def model(loaded: project.Project, runs: Sequence[Record]) -> dict[str, ModelledTime]:
    """By key of an arm."""
    session = Session(tools=toolchain.find(None, ROOT / build.CACHE))
    wanted = {each.key: (record, each.arm) for record in runs for each in measured(record)}

    def one(name: str) -> ModelledTime | str:
        record, arm = wanted[name]
        variant = loaded.variant(arm.kernel, arm.arch, arm.axes)
        found, faults = modelling.look(loaded, [variant], session, record.size)
        for fault in faults:
            return str(fault)
        if found[0].time.refused:
            return found[0].time.refused
        return found[0].time if _same_code(arm, found[0].arm) else "its code has changed since."

    times = {}
    for name, each in zip(wanted, processes.parallel(one, list(wanted)), strict=True):
        if isinstance(each, str):
            print(f"{name}: {each}")
        else:
            times[name] = each
    return times


def _same_code(then: Arm, now: Arm) -> bool:
    return bool(then.build and now.build and then.build.resources == now.build.resources)


def named(record: Record) -> Iterator[tuple[str, Arm]]:
    """The record's arms by the names that its estimate has."""
    yield record.names[0], record.baseline
    for name, candidate in zip(record.names[1:], record.candidates, strict=False):
        yield name, candidate.arm


def key(record: Record, arm: Arm) -> str:
    axes = " ".join(f"{name}={value}" for name, value in sorted(arm.axes.items()))
    code = arm.build.resources.sass_bytes if arm.build else 0
    return f"{arm.kernel} {record.size} {axes} ({code} bytes)"


def measured(record: Record) -> Iterator[Measured]:
    if record.estimate is None or record.measurement is None:
        return
    medians = {each.arm: each.median_us for each in record.estimate.times}
    clocks = [
        state.sm_clock_mhz
        for worker in record.measurement.workers
        for block in worker.blocks
        for state in (block.before, block.after)
        if state is not None and state.sm_clock_mhz
    ]
    for name, arm in named(record):
        if name in medians and clocks:
            yield Measured(
                experiment=record.experiment,
                kernel=record.kernel,
                key=key(record, arm),
                arm=arm,
                microseconds=medians[name],
                clock_mhz=statistics.median(clocks),
            )


def pairs_of(record: Record, times: Mapping[str, ModelledTime]) -> Iterator[Pair]:
    known = [arm for arm in measured(record) if arm.key in times]
    for first, second in itertools.combinations(known, 2):
        one, other = times[first.key], times[second.key]
        yield Pair(
            experiment=record.experiment,
            kernel=record.kernel,
            arms=(first.key, second.key),
            modelled=math.log(one.cycles / other.cycles),
            floor=math.log(floor(one) / floor(other)),
            measured=math.log(first.microseconds / second.microseconds),
        )


def floor(time: ModelledTime) -> float:
    """Cycles of the busiest unit."""
    return time.cycles * max(time.units.values())


def table(
    arms: Sequence[Measured], pairs: Sequence[Pair], times: Mapping[str, ModelledTime]
) -> str:
    """By kernel, and of all."""
    lines = [
        "| kernel | times | mean error | bias | pairs >= 5% right | pairs >= 10% right "
        "| floor >= 5% | floor >= 10% |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for kernel in (*dict.fromkeys(arm.kernel for arm in arms), ""):
        own = [arm for arm in arms if not kernel or arm.kernel == kernel]
        errors = [times[arm.key].cycles / arm.clock_mhz / arm.microseconds - 1 for arm in own]
        compared = [pair for pair in pairs if not kernel or pair.kernel == kernel]
        cells = [
            kernel or "all",
            str(len(own)),
            f"{100 * statistics.mean(map(abs, errors)):.1f}%",
            f"{100 * statistics.mean(errors):+.1f}%",
            *(right(compared, each) for each in (0.05, 0.1)),
            *(right(compared, each, floor=True) for each in (0.05, 0.1)),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def right(pairs: Sequence[Pair], distance: float, *, floor: bool = False) -> str:
    """Of those that are measured so far apart."""
    apart = [pair for pair in pairs if abs(pair.measured) >= math.log1p(distance)]
    good = [pair for pair in apart if (pair.floor if floor else pair.modelled) * pair.measured > 0]
    return f"{len(good)} of {len(apart)}" + (f" ({len(good) / len(apart):.1%})" if apart else "")


def distances(pairs: Sequence[Pair]) -> str:
    """What kernelexp/facts/modelled_errors.py has; and intervals that other experiments give."""
    residuals = sorted(abs(pair.modelled - pair.measured) for pair in pairs)
    within = quantile(residuals)
    lines = [f"9 of 10 measured ratios are within {within:.3f} of the modelled one (logarithms)."]
    inside = decided = decided_right = 0
    for experiment in dict.fromkeys(pair.experiment for pair in pairs):
        others = [abs(x.modelled - x.measured) for x in pairs if x.experiment != experiment]
        own = [pair for pair in pairs if pair.experiment == experiment]
        reach = quantile(sorted(others)) if others else math.inf
        inside += sum(abs(pair.modelled - pair.measured) <= reach for pair in own)
        spoken = [pair for pair in own if abs(pair.modelled) > reach]
        decided += len(spoken)
        decided_right += sum(pair.modelled * pair.measured > 0 for pair in spoken)
    lines.append(
        f"By the other experiments' residuals: {inside} of {len(pairs)} pairs inside their "
        f"interval; {decided} decided, {decided_right} of them right; {len(pairs) - decided} too "
        "close for the model."
    )
    for distance in DISTANCES:
        far = [pair for pair in pairs if abs(pair.modelled) >= math.log1p(distance)]
        good = sum(pair.modelled * pair.measured > 0 for pair in far)
        lines.append(f"modelled {distance:.0%} apart or more: {good} of {len(far)} right")
    return "\n".join(lines) + "\n"


def quantile(residuals: Sequence[float], part: float = 0.9) -> float:
    return residuals[min(len(residuals) - 1, math.ceil(part * len(residuals)))]


def worst(pairs: Sequence[Pair], count: int) -> str:
    """Pairs in the wrong order, those farthest apart first."""
    wrong = [pair for pair in pairs if pair.modelled * pair.measured <= 0]
    lines = ["wrong order:"]
    for pair in sorted(wrong, key=lambda each: -abs(each.measured))[:count]:
        first, second = (set(arm.split()) for arm in pair.arms)
        lines.append(
            f"{pair.experiment}: measured {math.expm1(pair.measured):+.1%}, modelled "
            f"{math.expm1(pair.modelled):+.1%}: {' '.join(sorted(first - second))} against "
            f"{' '.join(sorted(second - first))}"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
