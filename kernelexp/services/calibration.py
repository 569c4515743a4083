"""Reliability of verdicts on this machine, and the model's parameters from a card's
microbenchmarks: the services of `calibrate`."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from kernelexp.evidence import build
from kernelexp.evidence.measure.job import ArmJob, Job
from kernelexp.evidence.measure.measure import measure
from kernelexp.judge.statistics import rates
from kernelexp.judge.statistics.rates import Rates
from kernelexp.model.arm import Arm
from kernelexp.model.errors import EnvironmentFault, UsageError
from kernelexp.model.experiment import Variant
from kernelexp.model.measurement import Measurement, Options, Role, TimedArm
from kernelexp.project.problem import loader
from kernelexp.system import device as devices
from kernelexp.system import disk, toolchain
from kernelexp.system.live import OnProgress
from kernelexp.system.process import processes
from kernelexp.system.toolchain import Toolchain
from warpsim.timing import chips, refit
from warpsim.timing.chips import TimedChip
from warpsim.timing.errors import NotModelled
from warpsim.timing.refit import SOURCE, Refitted

KNOB = Path(__file__).parent / "knob"
COMPARED = 4
"""Processes a comparison is drawn from: what a run takes by default."""


class Calibrated(msgspec.Struct, frozen=True, kw_only=True):
    """Rates by the extra work of the candidate, in percent; 0 is the kernel against itself."""

    device: str
    driver: str
    margin: float
    rates: dict[str, Rates]


def against_itself(
    device: str | None, margin: float, nvcc: str | None, on_progress: OnProgress | None
) -> Calibrated:
    """A kernel compared with itself: how often a run would call it faster or slower."""
    with _built_knob(device, nvcc) as knob:
        recorded = record_same_arms(knob, device=device, on_progress=on_progress)
    result = {"0": rates.of_same_arms(recorded, processes=COMPARED, margin=margin)}
    return Calibrated(
        device=recorded.device.name, driver=recorded.device.driver, margin=margin, rates=result
    )


def beside_itself(device: str, nvcc: str | None, options: Options) -> Measurement:
    """A kernel as baseline, placebo and candidate, once."""
    with _built_knob(device, nvcc) as knob:
        return record_same_arms(knob, arms=3, options=options, device=device)


def injected(
    percents: str,
    device: str | None,
    margin: float,
    nvcc: str | None,
    on_progress: OnProgress | None,
) -> Calibrated:
    """Times the same kernel with known extra work, such as "0.5,1,2,5" percent of it."""
    extra = _parse_percents(percents)
    with _built_knob(device, nvcc) as knob:
        recorded = record_injected(
            knob, list(extra.values()), device=device, on_progress=on_progress
        )
    by_extra = rates.of_injected(recorded, processes=COMPARED, margin=margin)
    result = {percent: by_extra[work] for percent, work in extra.items() if work in by_extra}
    return Calibrated(
        device=recorded.device.name, driver=recorded.device.driver, margin=margin, rates=result
    )


def _parse_percents(text: str) -> dict[str, int]:
    """Extra work in thousandths by the percents as they were written."""
    try:
        result = {part.strip(): round(10 * float(part)) for part in text.split(",")}
    except (ValueError, OverflowError):
        result = {}
    exact = all(work == 10 * float(item) for item, work in result.items())
    in_range = all(0 < work < rates.DOUBLE for work in result.values())
    if not result or not exact or not in_range or len(set(result.values())) < len(result):
        raise UsageError(
            f"--inject {text!r} should be distinct percentages from 0.1 to 99.9 in steps of 0.1, "
            "such as 0.5,1,2,5."
        )
    return result


def record_same_arms(
    knob: Knob,
    *,
    arms: int = 8,
    options: Options | None = None,
    device: str | None = None,
    on_progress: OnProgress | None = None,
) -> Measurement:
    """A/A on a GPU: the knob kernel as baseline, placebo and `arms` - 2 candidates."""
    points: list[tuple[str, Role, int]] = [*ITSELF]
    points += [(f"same-{i}", "candidate", 0) for i in range(max(1, arms - 2))]
    return _measure(knob, points, options, device, on_progress)


def record_injected(
    knob: Knob,
    extra: Sequence[int],
    *,
    copies: int = 2,
    options: Options | None = None,
    device: str | None = None,
    on_progress: OnProgress | None = None,
) -> Measurement:
    """The knob kernel against itself with `extra` thousandths of added work, `copies` arms of each.

    One more arm does all work twice and gives the true effects: time is linear in work, so an added
    thousandth costs a thousandth of what doubling costs.
    """
    points: list[tuple[str, Role, int]] = [*ITSELF]
    points += [(rates.arm_name(e, i), "candidate", e) for e in extra for i in range(copies)]
    points.append((rates.arm_name(rates.DOUBLE, 0), "candidate", rates.DOUBLE))
    return _measure(knob, points, options, device, on_progress)


def _measure(
    knob: Knob,
    points: Sequence[tuple[str, Role, int]],
    options: Options | None,
    device: str | None,
    on_progress: OnProgress | None,
) -> Measurement:
    job, options = knob.job(points), options or RECORDING
    return measure(job, options, device=device, on_progress=on_progress)


class Knob(msgspec.Struct, frozen=True, kw_only=True):
    """The calibration kernel, built: knob/problem.py, its cubin, a size's name."""

    problem: str
    cubin: str
    arch: str
    size: str = "full"

    def job(self, points: Sequence[tuple[str, Role, int]]) -> Job:
        """Arms of these names, roles and amounts of extra work; one cubin serves all of them."""
        problem = loader.load_file(Path(self.problem))
        size = dict(problem.sizes[self.size])
        arms = tuple(
            ArmJob(
                arm=TimedArm(name=name, role=role),
                cubin=self.cubin,
                arch=self.arch,
                launches=problem.launches({"extra": extra}, size, {}),
                axes={"extra": extra},
            )
            for name, role, extra in points
        )
        return Job(problem=self.problem, size=size, arms=arms)


# Twelve processes are three disjoint groups of four. Many arms share a process's time, so it takes
# longer than a measurement's.
RECORDING = Options(
    processes=12, processes_max=12, timing_s=1.0, budget_s=600.0, checks_during=2, peers=False
)
ITSELF: tuple[tuple[str, Role, int], ...] = (
    ("baseline", "baseline", 0),
    ("placebo", "placebo", 0),
)


@contextmanager
def _built_knob(device: str | None, nvcc: str | None) -> Iterator[Knob]:
    """The knob kernel for this machine's GPU, in a project that lasts as long as it is used."""
    target = devices.find(device)
    with tempfile.TemporaryDirectory(prefix="kernelexp-") as folder:
        root = Path(folder)
        problem = Path(shutil.copytree(KNOB, root / "variants/knob")) / "problem.py"
        source = "variants/knob/knob.cu"
        variant = Variant(kernel="knob", arch=target.arch, source=source, axes={})
        tools = toolchain.find(nvcc, root / build.CACHE)
        (built,) = build.build(root, [variant], tools)
        if not isinstance(built, Arm) or built.refused:
            why = built.build_log if isinstance(built, Arm) else built
            raise EnvironmentFault(f"the calibration kernel does not build on this machine: {why}")
        cubin = build.artefacts(root, built.identity).cubin
        yield Knob(problem=str(problem), cubin=str(cubin), arch=target.arch)


LIMIT_S = 600.0
"""Of the microbenchmarks' build, and of their run."""
_FLAGS = ("-O3", "-std=c++17", "-Xcudafe", "--diag_suppress=1886", "-cudart", "static")


class ModelRefit(msgspec.Struct, frozen=True, kw_only=True):
    """A chip's parameters as the microbenchmarks give them."""

    chip: str
    parameters: tuple[Refitted, ...]
    kept: tuple[str, ...]
    """Parameters that no microbenchmark gives."""


def refit_model(chip: str, tools: Toolchain | None, figures: Path | None) -> ModelRefit:
    """Refits from what the microbenchmarks printed, or by building and running them here."""
    try:
        known = chips.find(chip)
    except NotModelled as fault:
        raise UsageError(str(fault)) from None
    if figures is not None:
        try:
            text = figures.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as fault:
            raise UsageError(f"{figures} can't be read: {fault}.") from None
    else:
        assert tools
        text = _run(known, tools)
    try:
        parameters = refit.refit(text.splitlines(), known)
    except NotModelled as fault:
        raise EnvironmentFault(str(fault)) from None
    if not parameters:
        raise UsageError(f"{figures} has none of the figures of {SOURCE.name}.")
    fitted = {item.name for item in parameters}
    return ModelRefit(
        chip=known.name,
        parameters=parameters,
        kept=tuple(name for name in known.parameters if name not in fitted),
    )


def _run(chip: TimedChip, tools: Toolchain) -> str:
    """Returns the output of the microbenchmarks on this machine's card."""
    with tempfile.TemporaryDirectory() as folder:
        program = str(Path(folder) / "microbenchmarks")
        code = f"arch=compute_{chip.arch[3:]},code={chip.arch}"
        argv = [tools.nvcc, *_FLAGS, "-gencode", code, str(SOURCE), "-o", program]
        built = processes.run(argv, timeout_s=LIMIT_S)
        if built.returncode:
            raise EnvironmentFault(f"{SOURCE.name} does not build: {built.stderr.strip()}")
        return processes.run([program], timeout_s=LIMIT_S).output.decode("utf-8", "replace")


def write_chip(result: ModelRefit, target: Path) -> None:
    """The chip's file with the parameters as refitted, which say so in their source."""
    source = f"{SOURCE.name}, refitted"
    text = chips.path(result.chip).read_text("utf-8")
    for item in result.parameters:
        section = rf"(\[{item.name}\]\nvalue = )\S+(\nunit = .*\norigin = ).*(\nsource = ).*"
        text = re.sub(section, rf'\g<1>{item.refitted:.5g}\g<2>"measured"\g<3>"{source}"', text)
    disk.write(target, text.encode())
