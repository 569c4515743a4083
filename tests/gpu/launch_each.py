"""A program that launches variants that are built, each once: what compute-sanitizer looks at.

python tests/gpu/launch_each.py JOBS.json
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from kernelexp.evidence.emulate.job import SEED
from kernelexp.model.experiment import AxisValue
from kernelexp.project.problem import loader


class LaunchJob(msgspec.Struct, frozen=True, kw_only=True):
    """A built variant to be launched once."""

    root: str
    kernel: str
    cubin: str
    axes: dict[str, AxisValue]
    size: str
    exports: dict[str, int]


def launch_each(jobs: Sequence[LaunchJob]) -> None:
    """One launch of each, in this process, on the inputs that the emulator had."""
    import torch

    from kernelexp.evidence.measure.launch import LoadedKernel
    from kernelexp.evidence.measure.tensors import torch_dtype

    torch.zeros(1, device="cuda")
    for job in jobs:
        module = loader.load(Path(job.root), job.kernel)
        size = module.sizes[job.size]
        inputs = module.inputs(size, SEED, "cpu")
        given = module.arrange(inputs, job.axes)
        arrays = {name: tensor.cuda() for name, tensor in given.items()}
        for name, array in module.outputs(size).items():
            dtype = torch_dtype(array.dtype)
            arrays[name] = torch.zeros(array.shape, dtype=dtype, device="cuda")
        kernel = LoadedKernel(Path(job.cubin), module.launches(job.axes, size, job.exports))
        kernel.bind(arrays)(torch.cuda.current_stream().cuda_stream)
        torch.cuda.synchronize()


if __name__ == "__main__":
    launch_each(msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=list[LaunchJob]))
