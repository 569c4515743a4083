"""What variants draw when they are launched one after the other, with nothing in between.

    python benchmarks/power.py [VARIANT ...] [--size NAME] [--seconds S]

VARIANT is KERNEL[@ARCH][:axis=value,...] or an experiment, as for `kernelexp emulate`; without one,
patch_embed_gemm@sm_90a. The first variant's peers are run, too. Each arm runs for S seconds; clock
and power are NVML's over the second half. Needs nvcc, torch and a GPU, whose clocks and limits are
left as they are. A kernel at the power limit is as fast as it is frugal: joules a launch tell which
one is, cycles a launch what it would be without a limit.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from kernelexp import project
from kernelexp.cli.common import parse_variants
from kernelexp.dossier import prepare
from kernelexp.dossier.session import Session
from kernelexp.evidence import build
from kernelexp.model.arm import sound
from kernelexp.project.problem import loader
from kernelexp.system import device, toolchain

ROOT = Path(__file__).parent.parent
DEFAULT = "patch_embed_gemm@sm_90a"
SEED = 7


class Sustained(msgspec.Struct, frozen=True, kw_only=True):
    """Medians over the second half of a run."""

    ms: float
    """Of one launch, all of the second half divided by its launches."""
    mhz: float
    watts: float

    @property
    def joules(self) -> float:
        return self.watts * self.ms / 1e3

    @property
    def megacycles(self) -> float:
        return self.mhz * self.ms / 1e3


def sustain(launch: Callable[[], object], seconds: float) -> Sustained:
    """Launches without a pause for `seconds` and reads the card meanwhile."""
    import torch

    monitor = device.Monitor(device.find().uuid)
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    launch()
    torch.cuda.synchronize()
    start, launches, states = time.perf_counter(), 0, []
    while (elapsed := time.perf_counter() - start) < seconds:
        if elapsed > seconds / 2:
            if not states:
                begin.record()
            states.append(monitor.read())
            launches += 8
        for _ in range(8):
            launch()
        if not states or len(states) % 4 == 0:  # at most 32 launches are queued
            torch.cuda.synchronize()
    end.record()
    torch.cuda.synchronize()
    return Sustained(
        ms=begin.elapsed_time(end) / launches,
        mhz=statistics.median(state.sm_clock_mhz for state in states),
        watts=statistics.median(state.power_w for state in states),
    )


def arms(names: Sequence[str], size_name: str) -> Iterator[tuple[str, Callable[[], object]]]:
    """Each variant's launch, then those of the first one's peers."""
    import torch

    from kernelexp.evidence.measure.launch import LoadedKernel
    from kernelexp.evidence.measure.tensors import torch_dtype

    loaded = project.load(ROOT)
    variants = parse_variants(loaded, list(names), None)
    tools = toolchain.find(None, ROOT / build.CACHE)
    built = prepare.built(loaded, variants, Session(tools=tools))
    torch.zeros(1, device="cuda")
    stream = torch.cuda.current_stream().cuda_stream
    kept: dict[str, Any] = {}
    for item in map(sound, built):
        label = loaded.label(item)
        if item.build is None:
            raise SystemExit(f"{label}: {item.refused.sentence if item.refused else ''}")
        module = loader.load(ROOT, item.kernel)
        size = module.sizes[size_name]
        if item.kernel not in kept:
            outputs = {
                name: torch.empty(array.shape, dtype=torch_dtype(array.dtype), device="cuda")
                for name, array in module.outputs(size).items()
            }
            kept[item.kernel] = module.inputs(size, SEED, "cuda"), outputs
        inputs, outputs = kept[item.kernel]
        given = module.arrange(inputs, item.axes)
        exports = item.build.exports
        cubin = build.artefacts(ROOT, item.identity).cubin
        bound = LoadedKernel(cubin, module.launches(item.axes, size, exports)).bind(
            {**given, **outputs}
        )
        yield label, lambda bound=bound: bound(stream)
    first = variants[0].kernel
    module = loader.load(ROOT, first)
    if module.peer_names:
        yield from module.peers(kept[first][0], module.sizes[size_name]).items()


def main(argv: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("variants", metavar="VARIANT", nargs="*", default=[DEFAULT])
    parser.add_argument("--size", default="full", help="a key of problem.py's SIZES")
    parser.add_argument("--seconds", type=float, default=3.0, help="a variant (3)")
    chosen = parser.parse_args(argv)
    print(f"{device.find().name}\n      ms   MHz    W      J  Mcycles")
    for label, launch in arms(chosen.variants, chosen.size):
        result = sustain(launch, chosen.seconds)
        print(
            f"{result.ms:8.3f} {result.mhz:5.0f} {result.watts:4.0f} {result.joules:6.3f} "
            f"{result.megacycles:8.3f}  {label}",
            flush=True,
        )


if __name__ == "__main__":
    main(sys.argv[1:])
