"""The modelled time of a launch, from the CTAs of one SM, or of the SMs of one cluster."""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec
import numpy as np

from warpsim.launch import Launch
from warpsim.machine.core.arrays import Array
from warpsim.timing import replay
from warpsim.timing.chips import TimedChip
from warpsim.timing.recording import Recording, record
from warpsim.timing.replay import Replayed, Share

WAVES = 3
"""That are executed at most: the first, a steady one, the last."""


class Placement(msgspec.Struct, frozen=True, kw_only=True):
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


class ModelledLaunch(msgspec.Struct, frozen=True, kw_only=True):
    """What the model says of a launch."""

    cycles: float
    """Of the SMs' clock, without the time that a launch takes to begin."""
    clock_hz: float
    seconds: float
    """At that clock, from the beginning of the launch to its end."""
    replayed: Replayed
    placement: Placement


def place(launch: Launch, resident: int, chip: TimedChip, waves: int = WAVES) -> Placement:
    """CTAs go to SMs one by one in turn, clusters to as many neighbours as they have CTAs."""
    ctas, cluster = math.prod(launch.grid), math.prod(launch.cluster)
    clusters, groups = ctas // cluster, chip.sms // cluster
    per_sm = -(-clusters // groups)
    slots = min(resident, per_sm)
    group = min(groups // 2, (clusters - 1) % groups)
    count = min(per_sm, waves * slots)
    followed = tuple(
        (group + turn * groups) * cluster + rank
        for turn in range(count)
        for rank in range(cluster)
    )
    return Placement(ctas=ctas, cluster=cluster, slots=slots, per_sm=per_sm, followed=followed)


def follow(
    cubin: bytes,
    listing: str,
    launch: Launch,
    arrays: Mapping[str, Array],
    placement: Placement,
) -> Recording:
    """Executes the CTAs that are followed."""
    return record(cubin, listing, launch, arrays, placement.followed)


def model(
    recording: Recording, placement: Placement, chip: TimedChip, clock_hz: float = 0.0
) -> ModelledLaunch:
    """The time of a launch of which some CTAs were followed; at the chip's highest clock unless
    another is named."""
    clock_hz = clock_hz or chip.clock_hz
    sm_of = [place % placement.cluster for place in range(len(recording.ctas))]
    share = Share(from_dram=(1.0,) * len(recording.arrays), written=1.0)
    first = replay.replay(recording, chip, clock_hz, sm_of, placement.slots, share)
    share = _share(recording, placement, chip, first)
    replayed = replay.replay(recording, chip, clock_hz, sm_of, placement.slots, share)
    cycles = _whole(replayed, placement)
    seconds = cycles / clock_hz + chip["launch"] / 1e9
    return ModelledLaunch(
        cycles=cycles, clock_hz=clock_hz, seconds=seconds, replayed=replayed, placement=placement
    )


def _share(
    recording: Recording, placement: Placement, chip: TimedChip, replayed: Replayed
) -> Share:
    """Each byte of an array comes from DRAM once; of what is written, half of L2 stays there."""
    scale = placement.ctas / len(recording.ctas)
    parts = [
        min(1.0, (extent.end - extent.first) / (asked * scale)) if asked else 0.0
        for extent, asked in zip(recording.arrays, replayed.requested, strict=True)
    ]
    written = replayed.written * scale
    left = max(0.0, written - chip["l2_bytes"] / 2)
    return Share(from_dram=tuple(parts), written=left / written if written else 0.0)


def _whole(replayed: Replayed, placement: Placement) -> float:
    """Cycles of the busiest SM: what was followed, and as many CTAs more at the steady rate."""
    ends = np.sort(np.array(replayed.ends))[placement.cluster - 1 :: placement.cluster]
    count, slots = len(ends), placement.slots
    missing = placement.per_sm - count
    if missing <= 0:
        return float(ends[-1])
    steady = (ends[-1] - ends[slots - 1]) / (count - slots) if count > slots else ends[-1] / count
    return float(ends[-1] + missing * steady)
