"""The client's side: orders to a Dask scheduler, replies home."""

from __future__ import annotations

import logging
import socket
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelexp.evidence.build import Plan, transfer
from kernelexp.evidence.build.transfer import Shipped
from kernelexp.evidence.cluster import messages, worker
from kernelexp.evidence.cluster.messages import Answer, BuildTask, EmulateTask, MeasureTask, Order
from kernelexp.evidence.emulate.job import Emulated, EmulationJob
from kernelexp.evidence.measure import journals
from kernelexp.evidence.measure.measured import MeasurementQuestion
from kernelexp.evidence.measure.programs.measured_programs import ProgramQuestion
from kernelexp.model.arm import ArmOrFault
from kernelexp.model.errors import EnvironmentFault, KernelexpError, UsageError
from kernelexp.model.measurement import Device, Gpus, Measurement
from kernelexp.system.live import OnProgress, Step

if TYPE_CHECKING:
    from distributed import Client

CONNECT_S = 20.0
LOOK_S = 2.0
"""Seconds between checks for a worker that is left."""
ALONE_S = 20.0
"""How long an order waits where no worker could take it: a nanny starts one again in seconds."""
SLOTS_MAX = 256


@contextmanager
def connect(address: str) -> Iterator[Cluster]:
    """The workers of a scheduler; EnvironmentFault where it does not answer."""
    try:
        from distributed import Client
    except ImportError:
        raise EnvironmentFault(
            "--scheduler needs Dask: pip install 'kernelexp[dask]' into the environment of "
            f"{sys.executable}."
        ) from None
    for name in ("distributed", "tornado", "asyncio"):  # what fails is said in a sentence
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        _require_answer(address)
        client = Client(address, timeout=CONNECT_S, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise EnvironmentFault(
            f"no Dask scheduler answers at {address} ({type(error).__name__}): start one with "
            "dask scheduler, and name the address that it prints."
        ) from None
    try:
        yield Cluster(client, address)
    finally:
        client.close(timeout=5)


def _require_answer(address: str) -> None:
    """TimeoutError where a port takes the connection and says nothing, on which Dask waits."""
    host, _, port = address.removeprefix("tcp://").rpartition(":")
    if "://" in address.removeprefix("tcp://") or not port.isdecimal():
        return  # of another protocol: Dask's own limit
    with socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_S) as connection:
        if not connection.recv(1):
            raise TimeoutError


class Cluster:
    """Builds and emulates on any worker, measures on those that announce the architecture."""

    def __init__(self, client: Client, address: str) -> None:
        self._client, self._address = client, address
        self._lock = threading.Lock()
        self._sources: dict[Path, str] = {}
        self._left_alone = False
        """Whether an order has waited in vain for a worker: the next ones do not wait again."""
        self._seen: tuple[float, Mapping[str, Any]] = (0.0, {})

    # ---- what an executor does -------------------------------------------------------------------

    @property
    def slots(self) -> int:
        """Orders at once: two for each thread of the workers, so that none is idle."""
        threads: int = sum(item["nthreads"] for item in self._workers(0.0).values())
        return max(1, min(SLOTS_MAX, 2 * threads))

    def build(self, plan: Plan) -> ArmOrFault:
        """A build that a worker made, in the project's own cache; the worker's fault is its own."""
        task = BuildTask(variant=plan.variant, key=plan.key, timeout_s=plan.timeout_s)
        try:
            return transfer.receive(plan, self._order(task, plan.root, plan.label, Shipped))
        except EnvironmentFault as fault:
            return fault

    def emulate(self, job: EmulationJob) -> Emulated:
        """Has a worker emulate; returns the result."""
        paths = {"ptx": job.ptx, "cubin": job.cubin, "listing": job.listing}
        files = {name: Path(path).read_bytes() for name, path in paths.items() if path}
        task = EmulateTask(job=job, files=files)
        label = job.emulation_limit.of or job.kernel
        return self._order(task, Path(job.root), label, Emulated)

    def gpus(self) -> Gpus:
        """The GPUs of the workers that announce an architecture, each once."""
        names = [name for name, item in self._workers(0.0).items() if _archs(item)]
        if not names:
            return Gpus(why_none="no worker announces a GPU, as with --resources sm_90a=1.")
        devices: dict[str, Device] = {}
        for name, sealed in self._client.run(worker.gpu, workers=names).items():
            try:
                device = messages.read_answer(sealed, Device)
            except KernelexpError as fault:
                raise EnvironmentFault(f"worker {name} announces a GPU, but {fault}") from None
            devices[device.uuid] = device
        return Gpus(devices=tuple(devices.values()))

    def measure(
        self, question: MeasurementQuestion, journal: Path | None, on_progress: OnProgress | None
    ) -> Measurement:
        """A measurement by the next worker with a GPU of the architecture; one that came home
        before is in the journal."""
        job = question.job
        arms = tuple(job_arm.arm for job_arm in job.arms)
        if journal and (past := journals.find(journal, arms, question.options)):
            return past
        paths = {arm.cubin for arm in job.arms if arm.cubin}
        task = MeasureTask(question=question, cubins={p: Path(p).read_bytes() for p in paths})
        if on_progress:
            total = question.options.processes
            on_progress(Step(phase="measuring", done=0, total=total, now=f"at {self._address}"))
        root = Path(job.problem.removesuffix(job.name))
        taken = self._order(task, root, job.name, Measurement, question.arch)
        if journal:
            journals.save(journal, taken)
        return taken

    def run_programs(
        self, question: ProgramQuestion, journal: Path | None, on_progress: OnProgress | None
    ) -> Measurement:
        raise UsageError(
            f"{question.job.kernel} is a program, which is timed on this machine only: leave out "
            "--scheduler, or add --no-gpu."
        )

    # ---- orders ----------------------------------------------------------------------------------

    def _order(
        self,
        task: BuildTask | EmulateTask | MeasureTask,
        root: Path,
        label: str,
        kind: type[Answer],
        arch: str | None = None,
    ) -> Answer:
        """Waits for the answer; raises the fault that it is."""
        order = Order(task=task, sources=self._send_sources(root), code=messages.code())
        future = self._client.submit(
            worker.work,
            messages.seal(order),
            pure=False,
            resources={arch: 1} if arch else None,
        )
        return messages.read_answer(self._wait(future, label, arch), kind)

    def _wait(self, future: Any, label: str, arch: str | None) -> bytes:
        from distributed import KilledWorker

        alone_since: float | None = None
        while True:
            try:
                return bytes(future.result(timeout=LOOK_S))
            except TimeoutError:
                fitting = [w for w in self._workers().values() if arch is None or arch in _archs(w)]
                alone_since = None if fitting else alone_since or time.monotonic()
                if fitting:
                    self._left_alone = False
                longest = 0.0 if self._left_alone else ALONE_S
                if alone_since is not None and time.monotonic() - alone_since >= longest:
                    self._left_alone = True
                    future.cancel()
                    what = f"worker with {arch}" if arch else "worker"
                    raise EnvironmentFault(
                        f"{label}: no {what} is left at {self._address}: start one, and run the "
                        "command again: it goes on from what came home."
                    ) from None
            except KilledWorker as killed:
                count = killed.allowed_failures + 1
                raise EnvironmentFault(
                    f"{label}: {count} worker{'s' if count > 1 else ''} died of it, the last at "
                    f"{killed.last_worker.address}; their logs may say why."
                ) from None
            except KeyboardInterrupt:
                raise
            except Exception as error:
                words = str(error).partition("\n")[0]
                raise EnvironmentFault(
                    f"{label}: the worker or the scheduler at {self._address} failed: "
                    f"{type(error).__name__}: {words}"
                ) from None

    def _send_sources(self, root: Path) -> str:
        """The digest of the project's files, which all workers have or get."""
        from kernelexp.evidence.cluster import sources

        with self._lock:
            if root not in self._sources:
                files = sources.read(root)
                self._client.register_plugin(sources.Sources(files))
                self._sources[root] = sources.digest(files)
            return self._sources[root]

    def _workers(self, fresh_s: float = LOOK_S / 2) -> Mapping[str, Any]:
        seen, known = self._seen
        if time.monotonic() - seen > fresh_s:
            known = self._client.scheduler_info()["workers"]
            self._seen = (time.monotonic(), known)
        return known


def _archs(described: Mapping[str, Any]) -> list[str]:
    """The architectures that a worker announces."""
    return [name for name in described.get("resources", {}) if name.startswith("sm_")]
