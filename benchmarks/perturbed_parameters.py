"""Replays what records measured with other parameters of the model of time.

    python benchmarks/perturbed_parameters.py keep FOLDER CHIP [EXPERIMENT ...]
    python benchmarks/perturbed_parameters.py compare FOLDER [PARAMETER=FACTOR ...]
    python benchmarks/perturbed_parameters.py perturb FOLDER PERCENT [PARAMETER ...]

`keep` builds the variants of the records of a chip (or those of the published steps on a B200),
executes each once, and writes what its CTAs did to FOLDER. The others execute nothing: `compare`
replays all with the present model, with some parameters multiplied, and prints how far off it is;
`perturb` does so with each of the parameters lower and higher by PERCENT, or of all that the chip
has, and prints a row for each, beside one in which all are changed at random.
"""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import os
import pickle
import random
import statistics
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from multiprocessing.pool import Pool
from pathlib import Path
from typing import TypeVar

import msgspec
import published_history

import warpsim as emulator
from kernelexp.cli import common
from kernelexp.cli.console import output
from kernelexp.dossier import prepare
from kernelexp.dossier.session import Session
from kernelexp.evidence import jobs, native
from kernelexp.evidence.emulate import modelling_worker
from kernelexp.evidence.emulate.job import ModellingJob
from kernelexp.model.arm import Arm, without_fault
from kernelexp.model.errors import KernelexpError, UsageError
from kernelexp.model.modelled import ModelledTime
from kernelexp.project import Project, load
from kernelexp.report import calibrated
from kernelexp.services import validating
from kernelexp.services.validating import MeasuredArm
from kernelexp.system.process import isolated
from kernelexp.system.process.isolated import TimeLimit
from warpsim.timing import chips, model
from warpsim.timing.errors import NotModelled
from warpsim.timing.replay import REASONS, UNITS

ROOT = Path(__file__).parents[1]
LIMIT = TimeLimit(name="emulation", seconds=1800)
AT_ONCE = 48
"""Variants that are built before the first of them is executed."""
PUBLISHED = "B200"
DRAWS = 4
"""Rows of `perturb` in which all parameters are changed at once."""
T = TypeVar("T")


class KeptLaunch(msgspec.Struct, frozen=True, kw_only=True):
    """A variant of a record that is executed once."""

    name: str
    """As validating.py names it."""
    job: ModellingJob


def measured_arms(
    project: Project, chip: str, experiments: Sequence[str]
) -> dict[str, MeasuredArm]:
    """The arms that records of a chip measured, by name."""
    runs = validating.measured_runs(project, chip, experiments)
    return {measured.name: measured for arms in runs.values() for measured in arms}


def wanted(
    project: Project, session: Session, chip: str, experiments: Sequence[str]
) -> Iterator[KeptLaunch]:
    """The variants that records of a chip measured, as far as their code is still the same; of a
    B200, those that were published."""
    if chip == PUBLISHED:
        steps = published_history.steps(project, published_history.names(project, experiments))
        variants = {project.label(x): x for step in steps for x in step.variants}
        for group in _groups(variants.values()):
            for now in without_fault(prepare.built(project, group, session)):
                if now.build:  # F9's needs more tensor memory than there is
                    label = project.label(now)
                    yield _kept(project, label, now, chip, published_history.SIZE)
        return
    for group in _groups(measured_arms(project, chip, experiments).values()):
        variants = {}
        for measured in group:
            arm = measured.arm
            with contextlib.suppress(UsageError):  # an axis that there is no longer
                variants[measured.name] = project.variant(arm.kernel, arm.arch, arm.axes)
        arms = prepare.built(project, list(variants.values()), session)
        now_by_name = dict(zip(variants, arms, strict=True))
        for measured in group:
            now = now_by_name.get(measured.name)
            if isinstance(now, Arm) and validating.is_same_code(measured.arm, now):
                yield _kept(project, measured.name, now, chip, measured.record.size)


def _groups(items: Iterable[T]) -> Iterator[list[T]]:
    every = iter(items)
    while group := list(itertools.islice(every, AT_ONCE)):
        yield group


def _kept(project: Project, name: str, arm: Arm, chip: str, size: str) -> KeptLaunch:
    return KeptLaunch(name=name, job=jobs.modelling(project.root, arm, chip, size, LIMIT, LIMIT))


def keep_one(folder: Path, item: KeptLaunch) -> str:
    """Executes a variant and writes what it did; why it could not, or nothing."""
    path = folder / f"{zlib.crc32(item.name.encode()):08x}.sample"
    if path.exists():
        return ""
    emulator.load_compiled(Path(item.job.native))
    try:
        with open(os.devnull, "w+b") as nowhere:
            sampled = modelling_worker.follow(item.job, isolated.Watch(nowhere))
    except (NotModelled, KernelexpError, *emulator.REFUSALS) as fault:
        return str(fault)
    content = pickle.dumps((item.name, sampled.samples, sampled.launch))
    partial = path.with_suffix(".part")
    partial.write_bytes(zlib.compress(content, 1))
    partial.rename(path)
    return ""


def keep(folder: Path, chip: str, experiments: Sequence[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "chip").write_text(chip)
    project = load(ROOT)
    native.library(ROOT)
    with multiprocessing.get_context("spawn").Pool(maxtasksperchild=8) as pool:
        with common.session(project, None, ["problem=10m"]) as session:
            starts = [
                (item, pool.apply_async(keep_one, (folder, item)))
                for item in wanted(project, session, chip, experiments)
            ]
        for item, outcome in starts:
            print(item.name, outcome.get() or "kept", flush=True)


def replay_one(path: Path, chip_name: str, factors: Mapping[str, float]) -> ModelledTime:
    """Models a kept launch with parameters that are multiplied."""
    emulator.load_compiled(Path(native.library(ROOT)))
    chip = chips.find(chip_name)
    chip = chip.altered(**{name: chip[name] * factor for name, factor in factors.items()})
    name, samples, launch = pickle.loads(zlib.decompress(path.read_bytes()))
    modelled = model.model(samples, launch, chip)
    replayed = modelled.replayed
    busy, total = replayed.busy.max(axis=0) / max(replayed.ends), replayed.reasons.sum()
    shares = replayed.reasons.sum(axis=0) / total
    return ModelledTime(
        chip=chip_name,
        size=name,
        cycles=modelled.cycles,
        clock_mhz=modelled.clock_hz / 1e6,
        highest_mhz=chip.clock_hz / 1e6,
        tensor_duty=modelled.tensor_duty,
        microseconds=1e6 * modelled.seconds,
        units={name: min(1.0, float(x)) for name, x in zip(UNITS, busy, strict=True)},
        reasons={name: float(x) for name, x in zip(REASONS, shares, strict=True)},
    )


def replay_all(
    folder: Path, pool: Pool, factors: Mapping[str, float] | None = None
) -> dict[str, ModelledTime]:
    """The modelled times of all that FOLDER has, by name."""
    chip = (folder / "chip").read_text()
    paths = sorted(folder.glob("*.sample"), key=lambda path: -path.stat().st_size)
    times = pool.starmap(replay_one, [(path, chip, factors or {}) for path in paths], chunksize=1)
    return {time.size: time for time in times}


def compare(folder: Path, pool: Pool, factors: Mapping[str, float]) -> None:
    project, times = load(ROOT), replay_all(folder, pool, factors)
    chip = (folder / "chip").read_text()
    if chip == PUBLISHED:
        published_history.report(
            list(published_history.steps(project, published_history.names(project))), times
        )
        return
    runs = validating.measured_runs(project, chip)
    found = validating.summarise(chip, list(runs.values()), times, {})
    output("model-validation", found, calibrated.validated(found), False)


class Drawn(msgspec.Struct, frozen=True, kw_only=True):
    """Parameters that are multiplied at once."""

    name: str
    factors: dict[str, float]


def draws(names: Sequence[str], percent: float) -> Iterator[Drawn]:
    """Each alone, lower and higher; then all at once, at random."""
    part = percent / 100
    yield Drawn(name="as they are", factors={})
    for name in names:
        yield Drawn(name=f"{name} lower", factors={name: 1 - part})
        yield Drawn(name=f"{name} higher", factors={name: 1 + part})
    dice = random.Random(0)
    for number in range(1, DRAWS + 1):
        factors = {name: 1 + dice.uniform(-part, part) for name in names}
        yield Drawn(name=f"all, draw {number}", factors=factors)


def perturb(folder: Path, pool: Pool, percent: float, names: Sequence[str]) -> None:
    chip = (folder / "chip").read_text()
    runs = list(validating.measured_runs(load(ROOT), chip).values())
    print("| parameters | mean error | bias | pairs >= 5% | >= 10% | regret | worst regret |")
    print("|---|---|---|---|---|---|---|")
    for drawn in draws(names or list(chips.find(chip).parameters), percent):
        times = replay_all(folder, pool, drawn.factors)
        found = validating.summarise(chip, runs, times, {})
        every = found.families[-1]
        shares = [f"{every.apart[x][1]} of {every.apart[x][0]}" for x in every.apart]
        regrets = [regret.regret for regret in found.regrets]
        print(
            f"| {drawn.name} | {every.mean:.1%} | {every.bias:+.1%} | {' | '.join(shares)} | "
            f"{statistics.mean(regrets):.1%} | {max(regrets):.1%} |",
            flush=True,
        )


def main() -> None:
    action, folder, *others = sys.argv[1], Path(sys.argv[2]), *sys.argv[3:]
    if action == "keep":
        keep(folder, others[0], others[1:])
        return
    native.library(ROOT)
    with multiprocessing.get_context("spawn").Pool() as pool:
        if action == "compare":
            given = (item.partition("=") for item in others)
            compare(folder, pool, {name: float(factor) for name, _, factor in given})
        else:
            perturb(folder, pool, float(others[0]), others[1:])


if __name__ == "__main__":
    main()
