"""Speed of the emulator: thread-instructions a second, seconds a tile, where the time goes.

    python benchmarks/emulator.py [--profile]

Needs nvcc for the last two rows (they are patch_embed_gemm). One process, one thread.
"""

from __future__ import annotations

import argparse
import cProfile
import platform
import pstats
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "emulator"))

import patch_embed
from harness import ptx

from kernelexp import emulator
from kernelexp.emulator.arithmetic import tensor
from kernelexp.launch import Launch

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


def loop(threads: int, grid: int) -> None:
    module = emulator.load(ptx(LOOP))
    launch = Launch(entry="k", grid=(grid, 1, 1), block=(threads, 1, 1))
    result = emulator.run(module, launch, {})
    rate = result.thread_instructions / result.seconds / 1e6
    warps = threads // 32 * grid
    print(f"integer loop, {warps:4} warps        {rate:8.1f} M thread-instructions/s")


def tensor_seconds(text: str) -> tuple[emulator.Result, float]:
    """A run of patch_embed_gemm, and the time that it spent in tensor.mma."""
    spent = 0.0
    plain = tensor.mma

    def timed(*arguments: object, **keywords: object) -> object:
        nonlocal spent
        started = time.perf_counter()
        result = plain(*arguments, **keywords)  # type: ignore[arg-type]
        spent += time.perf_counter() - started
        return result

    tensor.mma = timed  # type: ignore[assignment]
    try:
        outcome = patch_embed.run(text, m=M)
    finally:
        tensor.mma = plain
    assert outcome.right
    assert not outcome.found
    return outcome.result, spent


def patch_embed_row(store: str) -> None:
    text = patch_embed.ptx(store)
    started = time.perf_counter()
    patch_embed.load(text)
    loaded = time.perf_counter() - started
    result, spent = min((tensor_seconds(text) for _ in range(3)), key=lambda row: row[0].seconds)
    rest = result.seconds - spent
    print(
        f"patch_embed_gemm {store:9}       {result.thread_instructions / rest / 1e6:8.1f} "
        f"M thread-instructions/s without the tensor work; a tile {result.seconds / TILES:.3f} s, "
        f"{spent / TILES:.3f} s of it tensor.mma; load {loaded:.2f} s"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--profile", action="store_true", help="profile one patch_embed_gemm run")
    arguments = parser.parse_args()
    print(f"{platform.processor() or platform.machine()}, Python {platform.python_version()}")
    for threads, grid in ((32, 1), (128, 1), (128, 16), (256, 64)):
        loop(threads, grid)
    for store in ("direct_v8", "staged"):
        patch_embed_row(store)
    if arguments.profile:
        text = patch_embed.ptx("staged")
        profile = cProfile.Profile()
        profile.runcall(patch_embed.run, text, m=M)
        pstats.Stats(profile).sort_stats("tottime").print_stats(30)


if __name__ == "__main__":
    main()
