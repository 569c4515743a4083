"""The modelled time of a launch, from the CTAs of one SM, or of the SMs of one cluster."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from warpsim.launch import Launch
from warpsim.machine.core.arrays import Array
from warpsim.timing import replay
from warpsim.timing.chips import TimedChip
from warpsim.timing.recording import Recording, record
from warpsim.timing.replay import Replayed, Share

WAVES = 6
"""That are executed at most: the first, steady ones, the last."""
TURNS = 3
"""How often a launch is replayed with the load of DRAM that the time before amounts to."""


class CtaPlacement(msgspec.Struct, frozen=True, kw_only=True):
    """Which CTAs an SM executes, or the SMs of a cluster, and which of them are followed."""

    ctas: int
    """Of the launch."""
    cluster: int
    slots: int
    """CTAs that are resident on an SM at once."""
    per_sm: int
    """CTAs of the busiest SM."""
    followed: tuple[int, ...]
    """Numbers of CTAs, cluster by cluster."""


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """What followed CTAs did, of the launch itself or of a smaller one of the same kernel."""

    recording: Recording
    placement: CtaPlacement
    tiles: float = 1
    """Of the busiest CTA, where what a CTA does grows with the problem."""


class WholeLaunch(msgspec.Struct, frozen=True, kw_only=True):
    """The launch that is modelled."""

    placement: CtaPlacement
    array_bytes: Mapping[str, int]
    tiles: float = 1


class ModelledLaunch(msgspec.Struct, frozen=True, kw_only=True):
    """What the model says of a launch."""

    cycles: float
    """At the chip's highest clock, without the time that a launch takes to begin."""
    tensor_duty: float
    """Part of these in which the tensor cores are busy."""
    clock_hz: float
    """What the power limit leaves of the highest clock, at that duty."""
    seconds: float
    """At that clock, from the beginning of the launch to its end."""
    replayed: Replayed
    """Of the largest sample, at the highest clock."""


def place(launch: Launch, resident: int, chip: TimedChip, waves: int = WAVES) -> CtaPlacement:
    """CTAs go to SMs one by one in turn, clusters to as many neighbours as they have CTAs."""
    ctas, cluster = math.prod(launch.grid), math.prod(launch.cluster)
    clusters, groups = ctas // cluster, chip.sms // cluster
    per_sm = -(-clusters // groups)
    slots = min(resident, per_sm)
    # One of those with most CTAs; where each has one, the first, which has most of what is shared.
    group = min(groups // 2, (clusters - 1) % groups) if clusters > groups else 0
    count = min(per_sm, waves * slots)
    followed = tuple(
        (group + turn * groups) * cluster + rank for turn in range(count) for rank in range(cluster)
    )
    return CtaPlacement(ctas=ctas, cluster=cluster, slots=slots, per_sm=per_sm, followed=followed)


def follow(
    cubin: bytes,
    listing: str,
    launch: Launch,
    arrays: Mapping[str, Array],
    placement: CtaPlacement,
) -> Recording:
    """Executes the CTAs that are followed."""
    return record(cubin, listing, launch, arrays, placement.followed)


def model(
    samples: Sequence[Sample], whole: WholeLaunch, chip: TimedChip, traced: int = 0
) -> ModelledLaunch:
    """The time of a launch; `traced` instructions of the last sample's first CTA are listed.

    From one sample that does as many tiles per CTA as the launch, or from two that do fewer: what
    a tile adds is the same from there on.
    """
    replays = [_replay(sample, whole, chip, chip.clock_hz) for sample in samples[:-1]]
    replays.append(_replay(samples[-1], whole, chip, chip.clock_hz, traced, path=True))
    cycles = _cycles(samples, replays, whole)
    busy = [_tensor_cycles(*item, whole) for item in zip(samples, replays, strict=True)]
    duty = min(1.0, _extrapolate(samples, busy, whole) / cycles)
    clock_hz = chip.clock_hz - chip.optional("throttling") * max(
        0.0, duty - chip.optional("free_duty")
    )
    return ModelledLaunch(
        cycles=cycles,
        tensor_duty=duty,
        clock_hz=clock_hz,
        seconds=cycles / clock_hz + chip["launch"] / 1e9,
        replayed=replays[-1],
    )


def _cycles(samples: Sequence[Sample], replays: Sequence[Replayed], whole: WholeLaunch) -> float:
    ends = [
        _whole(replayed, whole.placement if sample.tiles == whole.tiles else sample.placement)
        for sample, replayed in zip(samples, replays, strict=True)
    ]
    return _extrapolate(samples, ends, whole)


def _tensor_cycles(sample: Sample, replayed: Replayed, whole: WholeLaunch) -> float:
    """In which the tensor cores of the busiest SM are busy, in all of its CTAs."""
    placement = whole.placement if sample.tiles == whole.tiles else sample.placement
    followed = len(replayed.ends) / placement.cluster
    busy = replayed.busy[:, replay.UNITS.index("tensor")].max()
    return float(busy * placement.per_sm / followed)


def _extrapolate(samples: Sequence[Sample], figures: Sequence[float], whole: WholeLaunch) -> float:
    """What the samples have of something, for as many tiles as the launch does."""
    first, last = samples[0], samples[-1]
    if last.tiles == whole.tiles:
        return figures[-1]
    per_tile = (figures[-1] - figures[0]) / (last.tiles - first.tiles)
    return figures[-1] + per_tile * (whole.tiles - last.tiles)


def _replay(
    sample: Sample,
    whole: WholeLaunch,
    chip: TimedChip,
    clock_hz: float,
    traced: int = 0,
    path: bool = False,
) -> Replayed:
    """Once with every byte from DRAM, to see what is asked for; then with what L2 gives again."""
    recording, placement = sample.recording, sample.placement
    sms = min(chip.sms, whole.placement.ctas)
    sm_of = [place % placement.cluster for place in range(len(recording.ctas))]
    all_of_it = (1.0,) * len(recording.arrays)
    share = Share(
        from_dram=all_of_it,
        prefetched=all_of_it,
        written=all_of_it,
        together=all_of_it,
        sms=sms,
    )
    first = replay.replay(recording, chip, clock_hz, sm_of, placement.slots, share)
    scale = whole.placement.ctas / len(recording.ctas) * whole.tiles / sample.tiles
    share = _share(recording, whole, scale, chip, first)
    replayed = replay.replay(recording, chip, clock_hz, sm_of, placement.slots, share)
    for turn in range(TURNS):
        busy = (share.dram_busy + _dram_busy(replayed)) / 2
        share = msgspec.structs.replace(share, dram_busy=busy)
        look = path and turn == TURNS - 1
        replayed = replay.replay(
            recording, chip, clock_hz, sm_of, placement.slots, share, traced, path=look
        )
    return replayed


def _dram_busy(replayed: Replayed) -> float:
    busy = replayed.busy[:, replay.UNITS.index("dram")].max() / max(replayed.ends)
    return min(1.0, float(busy))


def _share(
    recording: Recording, whole: WholeLaunch, scale: float, chip: TimedChip, first: Replayed
) -> Share:
    """Each byte of an array comes from DRAM once, by a prefetch where there are enough of them; of
    what is written, each byte goes there once, and half of L2 stays there."""
    parts, prefetched, given, leaving, together = [], [], [], [], []
    for number, extent in enumerate(recording.arrays):
        result, ahead = first.requested[number] * scale, first.prefetched[number] * scale
        once = min(result, whole.array_bytes[extent.name])
        parts.append(max(0.0, once - ahead) / result if result else 0.0)
        prefetched.append(min(1.0, once / ahead) if ahead else 0.0)
        together.append(max(1.0, result / once) if once else 1.0)
        given.append(first.written[number] * scale)
        leaving.append(min(given[-1], whole.array_bytes[extent.name]))
    left = max(0.0, 1 - chip["l2_bytes"] / 2 / max(1.0, sum(leaving)))
    return Share(
        from_dram=tuple(parts),
        prefetched=tuple(prefetched),
        written=tuple(left * x / y if y else 0.0 for x, y in zip(leaving, given, strict=True)),
        together=tuple(together),
        sms=min(chip.sms, whole.placement.ctas),
    )


def _whole(replayed: Replayed, placement: CtaPlacement) -> float:
    """Cycles of the busiest SM: what was followed, and as many CTAs more at the steady rate."""
    ends = np.sort(np.array(replayed.ends))[placement.cluster - 1 :: placement.cluster]
    count, slots = len(ends), placement.slots
    missing = placement.per_sm - count
    # A launch ends when L2 has all that it wrote.
    last = max(float(ends[-1]), replayed.drained)
    if missing <= 0:
        return last
    steady = (ends[-1] - ends[slots - 1]) / (count - slots) if count > slots else ends[-1] / count
    # What stores have left to do when their CTA ends, others wait for.
    steady = max(steady, replayed.busy.max() / count)
    return last + missing * float(steady)
