"""Modelled times of a solution at the sizes that are timed, without executing it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from kernelexp.evidence import native
from kernelexp.facts.modelled_errors import ERRORS
from kernelexp.judge import modelled_pairs
from kernelexp.model.errors import EnvironmentFault, KernelexpError
from kernelexp.services.tasks.assessment import ModelledCall
from kernelexp.services.tasks.modelling_process import LaunchesModelled, LaunchModelling
from kernelexp.services.tasks.task import Task
from kernelexp.services.tasks.workplace import ARCH, Workplace
from kernelexp.system.process import processes
from kernelexp.system.toolchain import Toolchain
from warpsim.runtime.capturing import CapturedLaunch

CHIP = "H200"
MOST = 16
"""Launches of a call."""
LIMIT_S = 120.0


def look(work: Workplace, task: Task, tools: Toolchain, root: Path) -> ModelledCall:
    """Models a call with the last set of sizes that is timed; `refused` in it says why not.

    Launches are taken with the memory that they find, and none is executed: what one leaves for the
    next is not there. torch's own operations are not modelled.
    """
    case = (task.timed or task.cases)[-1]
    try:
        launches = _launches(work)
        if not launches:
            return ModelledCall(case=case.name, chip=CHIP, refused="it launches no kernel.")
        result = _model(work.own, launches, tools, root)
    except KernelexpError as error:
        return ModelledCall(case=case.name, chip=CHIP, refused=str(error))
    return ModelledCall(
        case=case.name,
        chip=CHIP,
        time_us=sum(kernel.time_us for kernel in result.kernels),
        kernels=result.kernels,
        refused=result.refused,
    )


def slower(call: ModelledCall, than_us: float) -> tuple[float, float]:
    """Returns the factor by which it is slower than a modelled time: an interval that holds eight
    of ten."""
    ratio = math.log(call.time_us / than_us)
    reach = modelled_pairs.reach(ratio, ERRORS.of("another source").worth.within)
    return math.exp(ratio - reach), math.exp(ratio + reach)


def _launches(work: Workplace) -> Sequence[CapturedLaunch]:
    if fault := work.problem("draw", work.given).fault:
        raise EnvironmentFault(fault)
    launches = work.launches(MOST + 1)
    if len(launches) > MOST:
        raise EnvironmentFault(f"a call makes more than {MOST} launches.")
    return launches


def _model(
    place: Path, launches: Sequence[CapturedLaunch], tools: Toolchain, root: Path
) -> LaunchesModelled:
    library = native.library(root)
    if not library:
        raise EnvironmentFault("the compiled part of the emulator is missing.")
    path = place / "launches"
    path.write_bytes(msgspec.msgpack.encode(launches))
    order = LaunchModelling(
        launches=str(path),
        cubins=list(_code(place, launches, tools)),
        arch=ARCH,
        chip=CHIP,
        native=library,
    )
    done = processes.run_forked(
        "kernelexp.services.tasks.modelling_process",
        stdin=msgspec.json.encode(order).decode(),
        timeout_s=LIMIT_S,
    )
    if done.returncode != 0:
        raise EnvironmentFault((done.stderr.strip().splitlines() or ["it was killed"])[-1])
    return msgspec.convert(json.loads(done.stdout), LaunchesModelled)


def _code(
    place: Path, launches: Sequence[CapturedLaunch], tools: Toolchain
) -> Iterator[tuple[str, str]]:
    """Cubins of the launches' modules, and their listings."""
    known: dict[str, tuple[str, str]] = {}
    for launch in launches:
        if launch.ptx not in known:
            source, cubin = (place / f"module-{len(known)}.{kind}" for kind in ("ptx", "cubin"))
            source.write_text(launch.ptx)
            _run([tools.ptxas, f"-arch={ARCH}", str(source), "-o", str(cubin)])
            listing = cubin.with_suffix(".sass")
            listing.write_text(_run([tools.cuobjdump, "-sass", "-res-usage", str(cubin)]))
            known[launch.ptx] = str(cubin), str(listing)
        yield known[launch.ptx]


def _run(argv: Sequence[str]) -> str:
    done = processes.run(argv, timeout_s=LIMIT_S)
    if done.returncode != 0:
        raise EnvironmentFault(f"{Path(argv[0]).name}: {done.stderr.strip()[:300]}")
    return done.stdout
