"""Measurements for tests: recorded on an H200, and made up of processes with known ratios."""

import math
import random
from pathlib import Path

import msgspec

from kernelexp.model.measurement import (
    Block,
    Device,
    DeviceState,
    Measurement,
    Options,
    Row,
    TimedArm,
    Worker,
)

SAMPLES = Path(__file__).parent / "data/samples"
STATE = DeviceState(sm_clock_mhz=1980, memory_clock_mhz=3201, power_w=300.0, temperature_c=50)
DEVICE = Device(
    name="NVIDIA H200",
    uuid="GPU-0",
    arch="sm_90a",
    driver="580.159.04",
    cuda="13.0",
    memory_bytes=1,
    power_limit_w=700.0,
    sm_clock_max_mhz=1980,
    memory_clock_max_mhz=3201,
)
ARMS = (
    TimedArm(name="new", role="candidate"),
    TimedArm(name="old", role="baseline"),
    TimedArm(name="old again", role="placebo"),
)


def recorded(name):
    return msgspec.json.decode((SAMPLES / f"h200-{name}.json").read_bytes(), type=Measurement)


def worker(process, ratios, rows=40, noise=0.0, after=STATE, seed=0):
    """A process in which the arms' times stand in these ratios to 100 us, drifting as it goes."""
    rng = random.Random(seed * 1000 + process)
    result = []
    for number in range(rows):
        order = list(range(len(ratios)))
        rng.shuffle(order)
        order += reversed(order)
        start = 100.0 * (1.0 + 0.001 * number)
        times = [
            start * math.exp(rng.gauss(0.0, noise)) * ratios[arm] * (1.0 + 0.0001 * place)
            for place, arm in enumerate(order)
        ]
        result.append(Row(order=tuple(order), times_us=tuple(times)))
    return Worker(
        process=process,
        seed=process,
        load_order=(0, 1, 2),
        launches_per_sample=1,
        sets=2,
        warm_up_s=0.1,
        drift=0.001,
        blocks=(Block(before=STATE, after=after, rows=tuple(result)),),
        checks=(),
    )


def measurement(workers, looks=None, arms=ARMS):
    workers = tuple(workers)
    return Measurement(
        device=DEVICE,
        options=Options(),
        seed=1,
        arms=arms,
        workers=workers,
        looks=(len(workers),) if looks is None else looks,
    )
