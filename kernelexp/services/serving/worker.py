"""A worker: takes jobs from a queue, evaluates them, one after the other."""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import msgspec

from kernelexp.model.errors import KernelexpError
from kernelexp.services.serving import job as jobs
from kernelexp.services.serving.queue import LEASE_S, Leased, Queue
from kernelexp.services.tasks import cascade
from kernelexp.system import device
from kernelexp.system.process import processes
from kernelexp.system.process.interrupts import Interrupted
from kernelexp.system.toolchain import Toolchain

IDLE_S = (0.01, 0.25)
"""Between two looks at a queue that is empty: at first, and at last."""


class QueueWorker:
    """Of one process."""

    def __init__(self, folder: Path, tools: Toolchain) -> None:
        self._folder, self._tools = folder, tools
        self._gpu = device.find_if_any()
        self._queue = Queue(folder)
        self.name = f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:6]}"

    def work(self, *, until_empty: bool = False) -> int:
        """Until it is interrupted, or no job is left; how many were done."""
        done, idle = 0, IDLE_S[0]
        try:
            while True:
                leased = self._queue.take(self.name)
                if leased is not None:
                    done += self._do(leased)
                    idle = IDLE_S[0]
                elif until_empty:
                    return done
                else:
                    time.sleep(idle)
                    idle = min(2 * idle, IDLE_S[1])
        finally:
            self._queue.give_back(self.name)

    def _do(self, leased: Leased) -> bool:
        lost = threading.Event()
        try:
            with self._renewed(leased.id, lost):
                result = self._evaluated(leased.job)
            return self._queue.finish(leased.id, self.name, result)
        except KernelexpError as error:
            return self._queue.finish(leased.id, self.name, None, str(error))
        except Interrupted:
            if lost.is_set():  # cancelled, or given to another worker
                return False
            raise

    def _evaluated(self, content: bytes) -> bytes:
        job = jobs.decode(content)
        wanted = cascade.Assignment(
            largest=job.largest, schedules=job.schedules, limit_s=job.limit_s, gpu=self._gpu
        )
        with tempfile.TemporaryDirectory(prefix="kernelexp-") as place:
            problem, solution = jobs.unpack(job, Path(place))
            assessed = cascade.assess(problem, solution, self._tools, self._folder, wanted)
        return msgspec.json.encode(assessed)

    @contextlib.contextmanager
    def _renewed(self, key: str, lost: threading.Event) -> Iterator[None]:
        """The lease is renewed while the block runs; what was lost is ended."""
        over = threading.Event()
        queue = self._queue

        def renew() -> None:
            while not over.wait(LEASE_S / 10):
                if not queue.renew(key, self.name):
                    lost.set()
                    processes.stop_all()
                    return

        thread = threading.Thread(target=renew, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
