"""How long the command line takes: --help, the log over 10,000 records, profiles compared.

    python benchmarks/command_line.py [RECORDS]

Prints, for each command, the fastest and the median wall time of whole processes, beside that of a
bare interpreter, taken in turns so that a slow moment of the machine hits them all.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from kernelexp import project
from kernelexp.dossier.session import Session
from kernelexp.evidence import build
from kernelexp.logs import records
from kernelexp.services.run import conclusion, runner
from kernelexp.system import device, toolchain

ROOT = Path(__file__).parent.parent
ROUNDS = 15
PAGES = ROOT.parent / "shared/data"
"""Two real raw pages, where they are; else such pages are made up."""


def fill(root: Path, count: int) -> None:
    """`count` records as runs leave them, of one built pair of variants."""
    loaded = project.load(root)
    tools = toolchain.find(None, root / build.CACHE)
    (outcome,) = runner.run(
        loaded, ["S1"], Session(tools=tools, emulate=True), settings=conclusion.RunSettings()
    )
    assert isinstance(outcome, conclusion.Concluded)
    for _ in range(count - 1):
        records.write(root, msgspec.structs.replace(outcome.record, run=records.new_run_name()))


def page(path: Path, scale: float) -> str:
    """A raw page as ncu prints it: 300 counters with four rollups each, half of which differ."""
    about = ["ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream"]
    about += ["Block Size", "Grid Size", "Device", "CC"]
    names = [f"l1tex__c{n}.{view}" for n in range(300) for view in ("avg", "max", "min", "sum")]
    values = [n * (scale if n % 8 < 4 else 1.0) for n in range(1, len(names) + 1)]
    launch = ["0", "1", "python", "here", "k", "1", "7", "(128, 1, 1)", "(132, 1, 1)", "0", "9.0"]
    rows = ([*about, *names], [""] * len(about) + ["sector"] * len(names), [*launch, *values])
    path.write_text("".join(",".join(f'"{cell}"' for cell in row) + "\n" for row in rows))
    return str(path)


def seconds(argv: list[str], cwd: Path) -> float:
    start = time.perf_counter()
    subprocess.run(argv, cwd=cwd, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    os.environ["PYTHONPATH"] = str(ROOT)
    program = [sys.executable, "-m", "kernelexp"]
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "kernelexp --help": [*program, "--help"],
        "kernelexp list": [*program, "list"],
        f"kernelexp log, {count:,} records": [*program, "log"],
        f"kernelexp show S1, {count:,} records": [*program, "show", "S1"],
        "kernelexp run S2, cached": [*program, "run", "S2", "--no-record"],
    }
    with tempfile.TemporaryDirectory() as folder:
        root = Path(shutil.copytree(ROOT / "tests/projects/scale", Path(folder) / "scale"))
        fill(root, count)
        pages = [str(path) for path in sorted(PAGES.glob("ncu-b200-*.csv"), reverse=True)]
        pages = pages or [page(root / f"{n}.csv", scale) for n, scale in (("a", 1.0), ("b", 1.1))]
        commands["kernelexp compare, 1,200 metrics"] = [*program, "compare", *pages]
        times: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(ROUNDS):
            for name, argv in commands.items():
                times[name].append(seconds(argv, root))
    machine = device.read_machine()
    print(f"{machine.cpu}, {machine.cores} cores, Python {machine.python}; {ROUNDS} rounds")
    print(f"{'':32} {'min s':>8} {'median s':>9}")
    for name, values in times.items():
        print(f"{name:32} {min(values):8.3f} {statistics.median(values):9.3f}")


if __name__ == "__main__":
    main()
