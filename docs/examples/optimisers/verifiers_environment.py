"""An environment for verifiers: the problems of the folder KX_PROBLEMS as its tasks."""

import asyncio
import os
import tempfile
from pathlib import Path

import verifiers.v1 as vf

from kernelexp import api

__all__ = ["KernelTaskset"]
ASK = "Write a faster CUDA solution of this problem, in one ```cuda block.\n\n"


class KernelTask(vf.Task[vf.TaskData, vf.State, vf.TaskConfig]):
    @vf.reward
    async def faster(self, trace: vf.Trace) -> float:
        source = trace.last_reply.partition("```cuda\n")[2].partition("```")[0]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "solution.cu"
            path.write_text(source)
            problem = Path(os.environ["KX_PROBLEMS"]) / self.data.name
            return api.reward(await asyncio.to_thread(api.assess, problem, path))


class KernelTaskset(vf.Taskset[KernelTask, vf.TasksetConfig]):
    def load(self):
        for path in sorted(Path(os.environ["KX_PROBLEMS"]).glob("*/challenge.py")):
            data = vf.TaskData(name=path.parent.name, prompt=ASK + path.read_text())
            yield KernelTask(data, self.config.task)
