"""Times whole-project builds: the cache of builds against ninja, cold and with nothing to do.

    python benchmarks/builders.py [PROJECT]

Builds every variant that experiments name, alternating between the two, each with all cores. ninja
runs the same steps, each with a shell; it checks no output and kills no compiler that hangs.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from kernelexp import project
from kernelexp.dossier import prepare
from kernelexp.evidence import build
from kernelexp.evidence.build import ninjafile
from kernelexp.model.arm import sound
from kernelexp.model.limits import Limits
from kernelexp.services.check import gates
from kernelexp.system import toolchain

ROUNDS = 3


def main(root: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        for name in ("variants", "experiments", "experiments.yaml"):
            if (root / name).exists():
                copy = shutil.copytree if (root / name).is_dir() else shutil.copy
                copy(root / name, Path(scratch) / name)
        measure(Path(scratch))


def measure(root: Path) -> None:
    loaded = project.load(root)
    tools = toolchain.find(None, root / build.CACHE)
    variants = prepare.possible(loaded, list(gates.named_variants(loaded).values()), Limits())
    plans = build.make_plans(root, variants, tools)
    ninjafile.write(root / "out", {loaded.label(plan.variant): plan for plan in plans})
    times: dict[str, list[float]] = {}

    def own() -> None:
        assert all(sound(arm).refused is None for arm in build.build(root, variants, tools))

    def ninja() -> None:
        argv = [sys.executable, "-m", "ninja", "--quiet", "-f", "out/build.ninja"]
        subprocess.run(argv, cwd=root, check=True, stdout=subprocess.DEVNULL)

    for _ in range(ROUNDS):
        shutil.rmtree(root / build.CACHE / "build")
        (root / build.CACHE / "build/manifests").mkdir(parents=True)
        for path in ("sm", *loaded.kernels, ".ninja_log", ".ninja_deps"):
            result = root / "out" / path
            shutil.rmtree(result) if result.is_dir() else result.unlink(missing_ok=True)
        for name, work in (("cache", own), ("ninja", ninja)):
            timed(times, f"{name}, cold", work)
        for name, work in (("cache", own), ("ninja", ninja)):
            timed(times, f"{name}, nothing to do", work)
    print(f"{len(variants)} variants, {ROUNDS} rounds, medians in seconds")
    for name, seconds in times.items():
        print(f"{name:24}{statistics.median(seconds):8.2f}")


def timed(times: dict[str, list[float]], name: str, work: Callable[[], None]) -> None:
    begun = time.monotonic()
    work()
    times.setdefault(name, []).append(time.monotonic() - begun)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent)
