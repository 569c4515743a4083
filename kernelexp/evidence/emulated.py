"""Variants that are built, executed on the CPU: evidence of kind `emulated`, once a build."""

from __future__ import annotations

import hashlib
import math
import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from kernelexp import toolchain
from kernelexp.errors import EnvironmentFault
from kernelexp.evidence.emulation_worker import EmulationJob
from kernelexp.evidence.scaling import Extent
from kernelexp.model import EmulatedEvidence, Variant
from kernelexp.problem import Problem

SIZE = "emulated"
# A kernel that never ends is stopped by the emulator's own limit long before this.
TIMEOUT_S = 900.0


class Emulable(msgspec.Struct, frozen=True, kw_only=True):
    """A variant that is built, and the folder that keeps what is known of it."""

    variant: Variant
    ptx: Path
    exports: dict[str, int]


def take(
    root: Path,
    sides: Sequence[Emulable],
    size: str = SIZE,
    on_progress: Callable[[int, int], None] | None = None,
) -> list[EmulatedEvidence]:
    """Emulates each variant in a process of its own, as many at once as there are cores.

    The evidence is kept beside the build, and found there by a run with the same problem.py and the
    same emulator. Raises EnvironmentFault with the words of an emulation that failed.
    """
    found = []
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        for evidence in pool.map(lambda side: _take(root, side, size), sides):
            found.append(evidence)
            if on_progress:
                on_progress(len(found), len(sides))
    return found


def extent(problem: Problem, side: Emulable, size: str) -> Extent | None:
    """Tiles and CTAs of a launch of this size; None where the problem does not tell its tiles."""
    tiles = getattr(problem, "tiles", None)
    if tiles is None:
        return None
    values = problem.SIZES[size]
    launch = problem.launch(side.variant.axes, values, side.exports)
    return Extent(tiles=tiles(side.variant.axes, values), ctas=math.prod(launch.grid))


def _take(root: Path, side: Emulable, size: str) -> EmulatedEvidence:
    kept = side.ptx.with_name(f"emulated-{size}-{_digest(root, side.variant.kernel)}.json")
    try:
        return msgspec.json.decode(kept.read_bytes(), type=EmulatedEvidence)
    except (OSError, msgspec.DecodeError):
        pass
    job = EmulationJob(
        root=str(root),
        kernel=side.variant.kernel,
        arch=side.variant.arch,
        ptx=str(side.ptx),
        axes=side.variant.axes,
        size=size,
        exports=side.exports,
    )
    argv = [sys.executable, "-m", "kernelexp.evidence.emulation_worker"]
    done = toolchain.run(argv, stdin=msgspec.json.encode(job).decode(), timeout_s=TIMEOUT_S)
    if done.returncode != 0:
        words = done.stderr.strip().splitlines() or ["no word"]
        raise EnvironmentFault(f"the emulation of {side.variant.kernel} ended with: {words[-1]}")
    evidence = msgspec.json.decode(done.stdout, type=EmulatedEvidence)
    temporary = kept.with_suffix(f".{os.getpid()}.tmp")
    temporary.write_bytes(msgspec.json.encode(evidence))
    temporary.replace(kept)
    return evidence


def _digest(root: Path, kernel: str) -> str:
    """Of what the evidence depends on beside the PTX: problem.py and the emulator itself."""
    package = Path(__file__).parent.parent
    files = [
        root / "variants" / kernel / "problem.py",
        Path(__file__).with_name("emulation_worker.py"),
    ]
    files += sorted((package / "emulator").rglob("*.py"))
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]
