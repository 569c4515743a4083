"""Speed of the emulator: thread-instructions a second, seconds a tile, where the time goes.

    python benchmarks/emulator.py [--variants] [--profile] [--against FOLDER]

Needs nvcc for all rows but the loops. One process, one thread. With --against, variants are also
emulated by the package in another checkout (FOLDER/kernelexp), in turn with this one's.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import importlib
import os
import platform
import pstats
import sys
import time
from pathlib import Path
from types import ModuleType

from kernelexp.dossier.session import Session

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "emulator"))

import msgspec
import patch_embed
from harness import ptx

import warpsim as emulator
from kernelexp import project
from kernelexp.dossier import prepare
from kernelexp.evidence import jobs, native
from kernelexp.evidence.build import CACHE
from kernelexp.evidence.emulate.job import EmulationJob
from kernelexp.model.arm import EmulatedEvidence
from kernelexp.project import parse_variant
from kernelexp.system import toolchain
from kernelexp.system.process.isolated import TimeLimit
from warpsim import compiled
from warpsim.arithmetic import tensor
from warpsim.launch import Launch

LOOP = """
mov.u32 %r0, 0;
mov.u32 %r1, %t;
LOOP:
mad.lo.s32 %r1, %r1, 1664525, 1013904223;
xor.b32 %r2, %r1, %r0;
add.s32 %r3, %r2, %r1;
and.b32 %r4, %r3, 255;
add.s32 %r5, %r5, %r4;
sub.s32 %r6, %r5, %r1;
max.s32 %r7, %r6, %r4;
add.s32 %r0, %r0, 1;
setp.lt.s32 %p0, %r0, 2000;
@%p0 bra LOOP;
"""
M = 512
TILES = 3 * M // 256
ROOT = Path(__file__).parents[1]
VARIANTS = (
    "patch_embed_gemm@sm_90a",
    "patch_embed_gemm@sm_100a",
    "flash_attention_hopper@sm_90a",
    "flash_attention@sm_90a",
    "flash_attention@sm_90a:phase=3,block_m=32",
    "flash_attention@sm_90a:phase=3,block_m=32,sync_policy=none",
    "fa_4x4@sm_90a",
    "transpose@sm_90a",
)
ROUNDS = 3


def loop(threads: int, grid: int) -> None:
    """The CPU time of the best of some runs."""
    module = emulator.load(ptx(LOOP))
    launch = Launch(entry="k", grid=(grid, 1, 1), block=(threads, 1, 1))
    spent = float("inf")
    for _ in range(ROUNDS):
        started = time.process_time()
        result = emulator.run(module, launch, {})
        spent = min(spent, time.process_time() - started)
    rate = result.thread_instructions / spent / 1e6
    warps = threads // 32 * grid
    print(f"integer loop, {warps:4} warps        {rate:8.1f} M thread-instructions/s")


def tensor_seconds(text: str) -> tuple[int, float, float]:
    """Of a run of patch_embed_gemm: thread-instructions, its CPU time, and that of tensor.mma."""
    spent = 0.0
    plain = tensor.mma

    def timed(*arguments: object, **keywords: object) -> object:
        nonlocal spent
        started = time.process_time()
        result = plain(*arguments, **keywords)  # type: ignore[arg-type]
        spent += time.process_time() - started
        return result

    tensor.mma = timed  # type: ignore[assignment]
    begun = time.process_time()
    try:
        outcome = patch_embed.run(text, m=M)
    finally:
        tensor.mma = plain
    assert outcome.right
    assert not outcome.found
    return outcome.result.thread_instructions, time.process_time() - begun, spent


def patch_embed_row(store: str) -> None:
    text = patch_embed.ptx(store)
    started = time.process_time()
    patch_embed.load(text)
    loaded = time.process_time() - started
    instructions, seconds, spent = min(
        (tensor_seconds(text) for _ in range(ROUNDS)), key=lambda row: row[1]
    )
    print(
        f"patch_embed_gemm {store:9}       {instructions / (seconds - spent) / 1e6:8.1f} "
        f"M thread-instructions/s without the tensor work; a tile {seconds / TILES:.3f} s, "
        f"{spent / TILES:.3f} s of it tensor.mma; load {loaded:.2f} s"
    )


_ROOMS = (
    "warpsim",
    "kernelexp.system.process.isolated",
    "kernelexp.evidence.emulate.emulation_worker",
    "kernelexp.evidence.native",
)
_FLAT = (
    "kernelexp.emulator",
    "kernelexp.isolated",
    "kernelexp.evidence.emulation_worker",
    "kernelexp.evidence.native",
)
"""Where versions before the emulator was a package of its own have these."""


class Package:
    """A copy of the package: its modules are in sys.modules only while it emulates."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._modules: dict[str, ModuleType] = {}

    def emulate(self, job: EmulationJob) -> tuple[EmulatedEvidence, float]:
        """The evidence, of this process's package's type or of the copy's, and the CPU time of the
        emulation in seconds: other work on the machine disturbs that less than a clock."""
        if self._folder is None:
            return self._call(job)
        own = _take_modules()
        sys.modules.update(self._modules)
        sys.path.insert(0, str(self._folder))
        try:
            return self._call(job)
        finally:
            sys.path.remove(str(self._folder))
            self._modules = _take_modules()
            sys.modules.update(own)

    def _call(self, job: EmulationJob) -> tuple[EmulatedEvidence, float]:
        folder = self._folder or ROOT
        names = _ROOMS if (folder / "warpsim").is_dir() else _FLAT
        own, isolated, worker, native = map(importlib.import_module, names)
        mine = msgspec.json.decode(msgspec.json.encode(job), type=worker.EmulationJob)
        mine = msgspec.structs.replace(mine, native=native.library(ROOT))
        plain, spent = own.compare, 0.0
        gc.freeze()  # as the server that forks emulations does, once it has imported all this

        def timed(*arguments: object, **keywords: object) -> object:
            nonlocal spent
            started = time.process_time()
            result = plain(*arguments, **keywords)
            spent = time.process_time() - started
            return result

        own.compare = timed
        try:
            with open(os.devnull, "w") as nowhere:
                evidence: EmulatedEvidence = worker.emulate(mine, isolated.Watch(nowhere)).evidence
        finally:
            own.compare = plain
        return evidence, spent


def _take_modules() -> dict[str, ModuleType]:
    """The package's modules, and what a problem.py has imported from its folder."""
    variants = str(ROOT / "variants")
    names = [
        name
        for name, module in sys.modules.items()
        if name.split(".")[0] in ("kernelexp", "warpsim")
        or str(getattr(module, "__file__", "")).startswith(variants)
    ]
    return {name: sys.modules.pop(name) for name in names}


def job_of(name: str) -> EmulationJob:
    """An emulation of a variant of this repository under the usual schedules."""
    loaded = project.load(ROOT)
    tools = toolchain.find(None, ROOT / CACHE)
    variant, limit = (
        parse_variant(loaded, name),
        TimeLimit(name="emulation", seconds=900.0, of=name),
    )
    arm = prepare.arm_of(loaded, variant, Session(tools=tools))
    return jobs.emulation(ROOT, arm, "emulated", limit, limit)


def variant_row(name: str, packages: list[Package]) -> None:
    """All in, over all schedules: tensor arithmetic, checks and counters."""
    job = job_of(name)
    spent = [float("inf")] * len(packages)
    instructions = 0
    for _ in range(ROUNDS):
        for index, package in enumerate(packages):
            evidence, seconds = package.emulate(job)
            spent[index] = min(spent[index], seconds)
            instructions = evidence.thread_instructions * len(evidence.schedules)
    rate = f"{instructions / spent[0] / 1e6:8.1f} M thread-instructions/s all in"
    ratio = f"; {spent[1] / spent[0]:.2f} times as fast as the other" if len(spent) > 1 else ""
    print(f"{name:41} {rate}{ratio}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--profile", action="store_true", help="profile one patch_embed_gemm run")
    parser.add_argument("--against", type=Path, metavar="FOLDER", help="another checkout")
    parser.add_argument("--variants", action="store_true", help="only the variants, all in")
    arguments = parser.parse_args()
    print(f"{platform.processor() or platform.machine()}, Python {platform.python_version()}")
    if library := native.library(ROOT):
        compiled.load(Path(library))
    if not arguments.variants:
        for threads, grid in ((32, 1), (128, 1), (128, 16), (256, 64)):
            loop(threads, grid)
        for store in ("direct_v8", "staged"):
            patch_embed_row(store)
    packages = [Package(None), *([Package(arguments.against)] if arguments.against else [])]
    for name in VARIANTS:
        variant_row(name, packages)
    if arguments.profile:
        text = patch_embed.ptx("staged")
        profile = cProfile.Profile()
        profile.runcall(patch_embed.run, text, m=M)
        pstats.Stats(profile).sort_stats("tottime").print_stats(30)


if __name__ == "__main__":
    main()
