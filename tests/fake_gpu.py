"""A GPU whose times are a formula of the axes: real worker processes that launch nothing."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import pytest
from measurements import DEVICE

from kernelexp.evidence.measure import measure
from kernelexp.system import device

_WORKER = """
import json, math, os, random, signal, sys, time
from pathlib import Path
import msgspec
from kernelexp.evidence.measure.job import Finished, Turn, WorkerJob
from kernelexp.model.measurement import Block, DeviceState, Row, Worker

folder = Path(sys.argv[1])
while not (folder / "turn.json").exists():
    if (folder / "dismissed").exists():
        os._exit(1)
    time.sleep(0.01)
job = msgspec.json.decode((folder / "job.json").read_bytes(), type=WorkerJob)
turn = msgspec.json.decode((folder / "turn.json").read_bytes(), type=Turn)
if job.process == KILLED_AT:
    os.kill(os.getpid(), signal.SIGKILL)

size = job.job.size

def ratio(name, grid, width=0, order="", **axes):
    return FORMULA

def grid(arm):
    return arm.launches[0].grid[0] if arm.launches else 0

rng = random.Random(job.process)
arms = list(enumerate(job.job.arms))
means = {i: 100 * ratio(arm.arm.name, grid(arm), **arm.axes) for i, arm in arms}
times = {i: mean * math.exp(rng.gauss(0, 0.0005)) for i, mean in means.items()}
timed = [i for i, arm in arms if arm.arm.name not in turn.excluded]
order = (*timed, *reversed(timed))
row = Row(order=order, times_us=tuple(round(times[i], 4) for i in order))
state = DeviceState(sm_clock_mhz=1980, memory_clock_mhz=3201, power_w=300.0, temperature_c=50)
found = Finished(worker=Worker(
    process=job.process, seed=job.seed, load_order=job.load_order, launches_per_sample=1, sets=1,
    warm_up_s=0.1, drift=0.0, blocks=(Block(before=state, after=state, rows=(row,) * 4),),
    checks=(),
))
(folder / "answers.jsonl").write_bytes(msgspec.json.encode(found) + b"\\n")
"""


class FakeGpu:
    """Makes this machine seem to have an H200, on which a variant takes `formula` times 100 us."""

    def __init__(self, locks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._patch = monkeypatch
        self._real = measure.run_worker
        monkeypatch.setattr(device, "LOCKS", locks)
        self.has("GPU-0")

    def has(self, *uuids: str) -> None:
        """From now on the machine has these GPUs."""
        gpus = tuple(msgspec.structs.replace(DEVICE, uuid=uuid) for uuid in uuids)
        self._patch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        self._patch.setattr(device, "list_gpus", lambda: gpus)

    def takes(self, formula: str, killed_at: int = -1) -> None:
        """From now on; `killed_at` is the process that is killed instead."""
        script = _WORKER.replace("FORMULA", formula).replace("KILLED_AT", str(killed_at))
        self._patch.setattr(
            measure,
            "run_worker",
            lambda argv, uuid: self._real([sys.executable, "-c", script, argv[-1]], uuid),
        )
