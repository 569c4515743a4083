"""Evaluations by many clients at once, while the service and its workers are killed.

    python benchmarks/serve_load.py [--jobs 1000] [--clients 50] [--real 50] [--remote]

Ends with an error if an evaluation was lost or done twice. Prints how long the queue itself takes:
to accept an evaluation, and between two evaluations of a worker. Runs without a GPU.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import service_load


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    usual = {"jobs": 1000, "clients": 50, "workers": 2, "kills": 2, "real": 50}
    for name, value in usual.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--remote", action="store_true", help="workers that have the address only")
    load = service_load.Load(**vars(parser.parse_args()))
    with tempfile.TemporaryDirectory() as folder:
        figures = service_load.run(Path(folder) / "queue", load)
    rows = {
        "evaluations, clients, workers": f"{load.jobs:,}, {load.clients}, {load.workers}",
        "of them executed": f"{load.real}, the others refused by rule",
        "killed": f"the service once, all workers {load.kills} times",
        "tried again": f"{figures.retried}",
        "lost, doubled": "0, 0",
        "answer to POST, as clients see it": _spelled(figures.post_ms),
        "to accept, p95": f"{figures.accept_ms:.1f} ms",
        "between two of a worker": _spelled(figures.between_ms),
        "memory of the service": " ".join(f"{value:.0f}" for value in figures.service_mb) + " MB",
        "the queue's file": f"{figures.queue_mb:.1f} MB",
        "all of it": f"{figures.seconds:.0f} s",
        "machine": f"{os.cpu_count()} cores of {platform.machine()}, "
        f"Python {platform.python_version()}",
    }
    for name, text in rows.items():
        print(f"{name:34} {text}")


def _spelled(milliseconds: tuple[float, float]) -> str:
    return f"p50 {milliseconds[0]:.1f} ms, p95 {milliseconds[1]:.1f} ms"


if __name__ == "__main__":
    main()
