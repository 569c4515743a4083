"""One emulation in a process of its own: job on standard input, evidence on standard output.

A process each, because two then use two cores, and because torch, which makes the inputs and the
reference, need not be loaded by the command line.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from kernelexp.errors import ConfigurationError
from kernelexp.model import (
    AxisValue,
    EmulatedArray,
    EmulatedEvidence,
    EmulatedFinding,
    EmulatedLine,
)
from kernelexp.problem import Problem, Tolerance, blame, load

if TYPE_CHECKING:
    import torch

    from kernelexp.emulator import Comparison, Counters

SEED = 1
LINES_KEPT = 8
# What a line is judged by: the two that cost time in a kernel which waits for memory.
COSTS = ("memory_l1_wavefronts_shared", "memory_l2_theoretical_sectors_global")


class EmulationJob(msgspec.Struct, frozen=True, kw_only=True):
    """A variant to emulate."""

    root: str
    kernel: str
    arch: str
    ptx: str
    """Path."""
    axes: dict[str, AxisValue]
    size: str
    exports: dict[str, int]


def emulate(job: EmulationJob) -> EmulatedEvidence:
    """Runs the variant under several schedules and holds what it wrote against the reference."""
    from kernelexp import emulator

    root = Path(job.root)
    problem = load(root, job.kernel)
    try:
        module = emulator.load(Path(job.ptx).read_text())
    except (emulator.UnsupportedInstruction, emulator.PtxSyntaxError) as fault:
        return EmulatedEvidence(size=job.size, unsupported=str(fault))
    with blame(root, f"variants/{job.kernel}/problem.py"):
        size = problem.SIZES[job.size]
        inputs = problem.inputs(size, SEED, "cpu")
        arrange = getattr(problem, "arrange", None)
        given = arrange(inputs, job.axes) if arrange else inputs
        outputs = _allocate(problem, job.size)
        launch = problem.launch(job.axes, size, job.exports)
    arrays = {name: _raw(tensor) for name, tensor in {**given, **outputs}.items()}
    compared = emulator.compare(module, launch, arrays, unwritten=tuple(outputs))
    with blame(root, f"variants/{job.kernel}/problem.py"):
        checked = _check(problem, job.size, job.arch, inputs, outputs)
    return _evidence(root, job.size, compared, checked)


def _allocate(problem: Problem, size: str) -> dict[str, torch.Tensor]:
    import torch

    types = {
        "u8": torch.uint8,
        "e4m3": torch.float8_e4m3fn,
        "e5m2": torch.float8_e5m2,
        "f16": torch.float16,
        "bf16": torch.bfloat16,
        "f32": torch.float32,
        "s32": torch.int32,
    }
    arrays = problem.outputs(problem.SIZES[size])
    return {name: torch.zeros(a.shape, dtype=types[a.dtype]) for name, a in arrays.items()}


def _raw(tensor: torch.Tensor) -> Any:
    """The tensor's own memory as a NumPy array of unsigned integers of the same width."""
    import torch

    widths = {1: torch.uint8, 2: torch.uint16, 4: torch.uint32, 8: torch.uint64}
    return tensor.contiguous().view(widths[tensor.element_size()]).numpy()


def _check(
    problem: Problem,
    size: str,
    arch: str,
    inputs: Mapping[str, torch.Tensor],
    outputs: Mapping[str, torch.Tensor],
) -> tuple[EmulatedArray, ...]:
    import torch

    tolerance: Tolerance = problem.tolerance(problem.SIZES[size], arch)
    elements = dict.fromkeys(outputs, 0)
    wrong = dict.fromkeys(outputs, 0)
    worst = dict.fromkeys(outputs, 0.0)
    squares: dict[str, list[float]] = {name: [0.0, 0.0] for name in outputs}
    for chunk in problem.reference(inputs, problem.SIZES[size]):
        want = chunk.values.double()
        got = outputs[chunk.array][chunk.first : chunk.first + len(want)].double()
        error = (got - want).abs()
        excess = torch.where(
            error == 0, 0.0, error / (tolerance.atol + tolerance.rtol * want.abs())
        )
        elements[chunk.array] += want.numel()
        wrong[chunk.array] += int((~(excess <= 1.0)).sum())
        worst[chunk.array] = max(worst[chunk.array], float(excess.nan_to_num(nan=1e30).max()))
        squares[chunk.array][0] += float(error.nan_to_num(nan=0.0).square().sum())
        squares[chunk.array][1] += float(want.square().sum())
    for name, tensor in outputs.items():
        if elements[name] != tensor.numel():
            raise ConfigurationError(
                f"the reference gives {elements[name]:,} elements of {name}, which has "
                f"{tensor.numel():,}: all of them must be checked."
            )
    return tuple(
        EmulatedArray(
            name=name,
            elements=elements[name],
            wrong=wrong[name],
            worst=min(worst[name], 1e30),
            frobenius=math.sqrt(squares[name][0] / squares[name][1]) if squares[name][1] else 0.0,
        )
        for name in outputs
    )


def _evidence(
    root: Path, size: str, compared: Comparison, checked: tuple[EmulatedArray, ...]
) -> EmulatedEvidence:
    results = compared.results
    hang = next((result.hang for result in results if result.hang), ())
    return EmulatedEvidence(
        size=size,
        schedules=tuple(str(result.schedule) for result in results),
        arrays=checked,
        differing=compared.differing,
        findings=tuple(
            EmulatedFinding(name=x.name, sentence=x.sentence, where=x.where(), count=x.count)
            for x in compared.findings
        ),
        hang=tuple(f"CTA {w.cta} warp {w.warp} at {w.where}: {w.waits_for}" for w in hang),
        counters=_nonzero(results[0].counters.kernel),
        lines=_dearest(root, results[0].counters),
        thread_instructions=results[0].thread_instructions,
        seconds=round(sum(result.seconds for result in results), 3),
    )


def _nonzero(counters: Mapping[str, int]) -> dict[str, int]:
    return {name: value for name, value in counters.items() if value}


def _relative(root: Path, file: str) -> str:
    """Sources of the project by their path from its root, as nvcc was given them."""
    path = Path(file)
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else file


def _dearest(root: Path, counters: Counters) -> tuple[EmulatedLine, ...]:
    costly = [
        line
        for line in counters.lines
        if line.source and any(line.counters.get(cost) for cost in COSTS)
    ]
    costly.sort(key=lambda line: -sum(line.counters.get(cost, 0) for cost in COSTS))
    return tuple(
        EmulatedLine(
            file=_relative(root, line.source.file),
            line=line.source.line,
            counters=_nonzero(line.counters),
        )
        for line in costly[:LINES_KEPT]
        if line.source
    )


if __name__ == "__main__":
    evidence = emulate(msgspec.json.decode(sys.stdin.buffer.read(), type=EmulationJob))
    sys.stdout.buffer.write(msgspec.json.encode(evidence))
