"""A GPU whose times are a formula of the axes: real worker processes that launch nothing."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import pytest
from measurements import DEVICE

from kernelexp.evidence.measure import measure
from kernelexp.evidence.measure.job import Finished
from kernelexp.model.measurement import Block, DeviceState, Worker
from kernelexp.system import device

_STATE = DeviceState(sm_clock_mhz=1980, memory_clock_mhz=3201, power_w=300.0, temperature_c=50)
_FINISHED = Finished(
    worker=Worker(
        process=0,
        seed=0,
        load_order=(),
        launches_per_sample=1,
        sets=1,
        warm_up_s=0.1,
        drift=0.0,
        blocks=(Block(before=_STATE, after=_STATE, rows=()),),
        checks=(),
    )
)
"""What a worker answers, but for what it draws."""

# Of JSON, as importing the types would take 0.15 s in each of hundreds of processes.
_WORKER = """
import json, math, os, random, signal, sys, time

folder = sys.argv[1] + "/"
while not os.path.exists(folder + "turn.json"):
    if os.path.exists(folder + "dismissed"):
        os._exit(1)
    time.sleep(0.01)
with open(folder + "job.json") as file:
    job = json.load(file)
with open(folder + "turn.json") as file:
    excluded = json.load(file).get("excluded", ())
if job["process"] == KILLED_AT:
    os.kill(os.getpid(), signal.SIGKILL)

size = job["job"]["size"]

def ratio(name, grid, width=0, order="", **axes):
    return FORMULA

def grid(arm):
    return arm["launches"][0]["grid"][0] if arm.get("launches") else 0

rng = random.Random(job["process"])
arms = list(enumerate(job["job"]["arms"]))
means = {i: 100 * ratio(arm["arm"]["name"], grid(arm), **arm.get("axes", {})) for i, arm in arms}
times = {i: mean * math.exp(rng.gauss(0, 0.0005)) for i, mean in means.items()}
timed = [i for i, arm in arms if arm["arm"]["name"] not in excluded]
order = [*timed, *reversed(timed)]
row = [order, [round(times[i], 4) for i in order]]
answer = json.loads(FINISHED)
answer["worker"].update({name: job[name] for name in ("process", "seed", "load_order")})
answer["worker"]["blocks"][0]["rows"] = [row] * 4
with open(folder + "answers.jsonl", "w") as file:
    file.write(json.dumps(answer) + "\\n")
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
        finished = repr(msgspec.json.encode(_FINISHED).decode())
        script = _WORKER.replace("FORMULA", formula).replace("KILLED_AT", str(killed_at))
        script = script.replace("FINISHED", finished)
        start = [sys.executable, "-I", "-S", "-c", script]
        self._patch.setattr(
            measure, "run_worker", lambda argv, uuid: self._real([*start, argv[-1]], uuid)
        )
