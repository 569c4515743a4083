"""A Dask cluster of real processes on this machine, for tests: a scheduler and its workers."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from support import ROOT, wait_until


class RealCluster:
    """A scheduler with workers that have no nanny: one that is killed is gone."""

    def __init__(self, folder: Path, workers: int, allowed_failures: int = 1) -> None:
        self._folder = folder
        self._environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": str(allowed_failures),
            "KX_TEST_WORKER": "1",
        }
        self._processes: list[subprocess.Popen[bytes]] = []
        log = folder / "scheduler.log"
        self._start(log, "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
        wait_until(lambda: re.search(r"Scheduler at:\s+tcp://", log.read_text()))
        result = re.search(r"Scheduler at:\s+(tcp://\S+)", log.read_text())
        assert result
        self.address = result[1]
        self.workers = [self.add_worker() for _ in range(workers)]
        if workers:
            self.wait_for(workers)

    def _start(self, log: Path, *arguments: str, **variables: str) -> subprocess.Popen[bytes]:
        argv = [sys.executable, "-m", "dask", *arguments]
        environment = {**self._environment, **variables}
        with log.open("wb") as file:
            process = subprocess.Popen(
                argv, stdout=file, stderr=file, env=environment, cwd=self._folder
            )
        self._processes.append(process)
        return process

    def add_worker(self, *options: str, **variables: str) -> subprocess.Popen[bytes]:
        """Variables are of its environment."""
        number = len(self._processes)
        local = self._folder / f"worker-{number}"
        return self._start(
            self._folder / f"worker-{number}.log",
            "worker", self.address, "--no-nanny", "--nthreads", "1", "--no-dashboard",
            "--local-directory", str(local), "--death-timeout", "60", *options,
            **variables,
        )  # fmt: skip

    def wait_for(self, workers: int) -> None:
        from distributed import Client

        with Client(self.address, set_as_default=False) as client:
            client.wait_for_workers(workers, timeout=120)

    def logs(self) -> str:
        return "\n".join(path.read_text() for path in self._folder.glob("*.log"))

    def close(self) -> None:
        for process in reversed(self._processes):
            process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + 20
        for process in self._processes:
            try:
                process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
