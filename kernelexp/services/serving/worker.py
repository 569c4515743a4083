"""A worker: takes jobs from a queue, evaluates them, one after the other."""

from __future__ import annotations

import contextlib
import functools
import os
import socket
import sqlite3
import tempfile
import threading
import time
import traceback
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from kernelexp.model.arm import Status
from kernelexp.model.errors import EnvironmentFault, KernelexpError, explain
from kernelexp.model.measurement import Device
from kernelexp.services.serving import job as jobs
from kernelexp.services.serving.queue import LEASE_S, Leased, Offer
from kernelexp.services.serving.remote import QueueAway
from kernelexp.services.tasks import cascade
from kernelexp.services.tasks.assessment import Assessment
from kernelexp.system.process import processes
from kernelexp.system.process.interrupts import Interrupted
from kernelexp.system.toolchain import Toolchain

IDLE_S = 0.01
"""Between the first two looks at a queue that is empty; twice as long each time."""
PATIENCE_S = 600.0
"""How long a queue may be away: a service that is updated, a disk that is full."""
AWAY = (QueueAway, sqlite3.OperationalError)
Answer = TypeVar("Answer")


def new_name() -> str:
    """Returns a worker's name that no other has."""
    return f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:6]}"


class JobSource(Protocol):
    """A queue in a folder, or behind an address."""

    idle_s: float
    """Between two looks at a queue that stays empty."""

    def take(self, worker: str, gpu: bool = False) -> Offer: ...
    def renew(self, key: str, worker: str) -> bool: ...
    def finish(self, key: str, worker: str, result: bytes) -> bool: ...
    def fail(self, key: str, worker: str, sentence: str, again: bool = False) -> bool: ...
    def pass_on(self, key: str, worker: str) -> bool: ...
    def give_back(self, worker: str) -> None: ...


class QueueWorker:
    """The worker of one process; `root` has the cache."""

    def __init__(
        self,
        queue: JobSource,
        root: Path,
        tools: Toolchain,
        gpu: Device | None = None,
        name: str = "",
    ) -> None:
        self._queue, self._root, self._tools, self._gpu = queue, root, tools, gpu
        self.name = name or new_name()

    def work(self, *, until_empty: bool = False) -> int:
        """Works until it is interrupted, or every job has ended; returns how many it did."""
        done, idle = 0, IDLE_S
        take = functools.partial(self._queue.take, self.name, self._gpu is not None)
        try:
            while True:
                offer = self._insist(take)
                if offer.leased is not None:
                    done += self._do(offer.leased)
                    idle = IDLE_S
                elif until_empty and not offer.left:
                    return done
                else:
                    time.sleep(idle)
                    idle = min(2 * idle, self._queue.idle_s)
        except Interrupted:
            with contextlib.suppress(*AWAY):
                self._queue.give_back(self.name)
            raise

    def _insist(self, call: Callable[[], Answer]) -> Answer:
        """Asks again while the queue is away; EnvironmentFault after PATIENCE_S."""
        since, pause = time.monotonic(), 0.1
        while True:
            try:
                return call()
            except AWAY as error:
                if time.monotonic() - since > PATIENCE_S:
                    raise EnvironmentFault(
                        f"the queue has been away for {PATIENCE_S:.0f} s: {error}."
                    ) from None
            time.sleep(pause)
            pause = min(2 * pause, 5.0)

    def _do(self, leased: Leased) -> bool:
        lost = threading.Event()
        try:
            with self._renewed(leased.id, lost):
                return self._insist(self._ending(leased))
        except Interrupted:
            if lost.is_set():  # cancelled, or given to another worker
                return False
            raise

    def _ending(self, leased: Leased) -> Callable[[], bool]:
        """Evaluates; what the queue is to be told then. No job ends its worker."""
        fail = functools.partial(self._queue.fail, leased.id, self.name)
        try:
            assessed = self._evaluated(jobs.decode(leased.job))
        except EnvironmentFault as error:
            return functools.partial(fail, str(error), again=True)
        except OSError as error:
            return functools.partial(fail, f"{explain(error)}.", again=True)
        except KernelexpError as error:
            return functools.partial(fail, str(error))
        except Exception as error:
            traceback.print_exc()
            sentence = f"kernelexp failed ({type(error).__name__}): {error}"
            return functools.partial(fail, sentence, again=True)
        if assessed is None:
            return functools.partial(self._pass_on, leased.id)
        result = msgspec.json.encode(assessed)
        return functools.partial(self._queue.finish, leased.id, self.name, result)

    def _pass_on(self, key: str) -> bool:
        self._queue.pass_on(key, self.name)
        return False

    def _evaluated(self, job: jobs.QueuedJob) -> Assessment | None:
        """Assesses a job; None for what is right so far, and has to be timed elsewhere."""
        wanted = cascade.Assignment(
            largest=job.largest,
            schedules=job.schedules,
            limit_s=job.limit_s,
            gpu=self._gpu if job.timed else None,
        )
        with tempfile.TemporaryDirectory(prefix="kernelexp-") as place:
            problem, solution = jobs.unpack(job, Path(place))
            assessed = cascade.assess(problem, solution, self._tools, self._root, wanted)
        right = assessed.status is Status.UNMEASURED and assessed.reason == "no_gpu"
        return None if right and job.timed and self._gpu is None else assessed

    @contextlib.contextmanager
    def _renewed(self, key: str, lost: threading.Event) -> Iterator[None]:
        """The lease is renewed while the block runs; what was lost is ended.

        A worker that could not renew for as long as a lease lasts has to take it for lost: the job
        may run elsewhere.
        """
        over = threading.Event()

        def renew() -> None:
            last = time.monotonic()
            while not over.wait(LEASE_S / 10):
                now = time.monotonic()
                try:
                    own = self._queue.renew(key, self.name)
                except AWAY:
                    own = now - last < LEASE_S
                else:
                    last = now
                if not own:
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
