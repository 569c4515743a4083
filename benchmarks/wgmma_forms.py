"""The rate of E4M3 MMAs by themselves at the card's power limit, form by form.

    python benchmarks/wgmma_forms.py [--seconds S]

Random operands, already in shared memory or registers; forms in turn, three times. Needs nvcc,
torch and a Hopper GPU, whose clocks and limits are left as they are.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from power import sustain

from kernelexp.evidence.build import CACHE
from kernelexp.evidence.measure.launch import LoadedKernel
from kernelexp.system import device, toolchain
from kernelexp.system.process import processes
from warpsim.launch import Launch, Pointer, Scalar

ROOT = Path(__file__).parent.parent
SOURCE = Path(__file__).with_suffix(".cu")
SMEM_BYTES = 12 * 64 * 128 + 3 * 256 * 128
TILES = 512
ROUNDS = 3
FORMS = {
    "shared_128": (128, 2),
    "shared_192": (192, 2),
    "shared_256": (256, 2),
    "registers_64": (64, 3),
    "registers_128": (128, 2),
}
"""Columns of an MMA and warpgroups, by entry."""


def main(argv: Sequence[str]) -> None:
    import torch

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=1.0, help="a form and round (1)")
    chosen = parser.parse_args(argv)
    sink = torch.zeros(1, device="cuda")
    stream = torch.cuda.current_stream().cuda_stream
    ctas = torch.cuda.get_device_properties(0).multi_processor_count
    nvcc = toolchain.find(None, ROOT / CACHE).nvcc
    with tempfile.TemporaryDirectory() as folder:
        cubin = Path(folder) / "forms.cubin"
        argv = [nvcc, "-cubin", "-std=c++17", "-O3", "-gencode", "arch=compute_90a,code=sm_90a"]
        argv += ["-I", str(ROOT / "variants/include"), str(SOURCE), "-o", str(cubin)]
        done = processes.run(argv)
        if done.returncode != 0:
            raise SystemExit(done.stderr)
        launches = {}
        for name, (_, warpgroups) in FORMS.items():
            launch = Launch(
                entry=name,
                grid=(ctas, 1, 1),
                block=(128 * warpgroups, 1, 1),
                cluster=(1, 1, 1),
                dynamic_smem_bytes=SMEM_BYTES,
                arguments=(
                    Pointer(array="sink"),
                    Scalar(type="u32", value=TILES),
                    Scalar(type="u32", value=0),
                ),
            )
            launches[name] = LoadedKernel(cubin, launch).bind({"sink": sink})
    result = {
        name: [sustain(lambda bound=bound: bound(stream), chosen.seconds) for _ in range(ROUNDS)]
        for name, bound in launches.items()
    }
    print(f"{device.find().name}\n  TFLOPS      lowest   highest   MHz    W  cycles")
    for name, runs in result.items():
        columns, warpgroups = FORMS[name]
        mmas = ctas * warpgroups * TILES * 24
        rates = sorted(mmas * 2 * 64 * columns * 32 / run.ms / 1e9 for run in runs)
        middle = sorted(runs, key=lambda run: run.ms)[len(runs) // 2]
        cycles = middle.megacycles * 1e6 / (mmas / ctas)
        print(
            f"{statistics.median(rates):8.0f} {rates[0]:11.0f} {rates[-1]:9.0f} {middle.mhz:5.0f} "
            f"{middle.watts:4.0f} {cycles:7.1f}  {name}"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
