"""On a GPU: arrays that are read and written have their first values before every launch."""

import os
import random
from pathlib import Path

import pytest
from gpu_kernels import ARCH, compile_source, needs_gpu

from kernelexp.evidence.measure.job import ArmJob, Job, Turn, WorkerJob
from kernelexp.model.measurement import Options, TimedArm
from kernelexp.project.problem.loader import load_file
from kernelexp.system import device

FOLDER = Path(__file__).parent / "accumulating"
QUICK = Options(
    processes=1, timing_s=0.1, checks_during=2, launch_timeout_s=3.0, seed=1, shared_gpu=True
)


@pytest.fixture(scope="session")
def measured(tmp_path_factory):
    """Measures an entry against `accumulates`, with the peer, in this process."""
    from kernelexp.evidence.measure.bench import Bench

    cubin = compile_source(FOLDER / "accumulating.cu", ARCH, tmp_path_factory.mktemp("cubins"))
    problem = load_file(FOLDER / "problem.py")

    def measure(entry, size, **options):
        def arm(name, role, entry):
            axes = {"entry": entry}
            return ArmJob(
                arm=TimedArm(name=name, role=role, identity=entry),
                cubin=str(cubin),
                arch=ARCH,
                launches=problem.launches(axes, problem.sizes[size], {}),
                axes=axes,
            )

        arms = (
            arm("candidate", "candidate", entry),
            arm("baseline", "baseline", "accumulates"),
            arm("placebo", "placebo", "accumulates"),
            ArmJob(arm=TimedArm(name="torch", role="peer")),
        )
        job = WorkerJob(
            job=Job(problem=str(FOLDER / "problem.py"), size=dict(problem.sizes[size]), arms=arms),
            options=QUICK,
            device=device.find(),
            process=0,
            seed=random.randrange(1 << 31),
            load_order=tuple(range(len(arms))),
            with_peers=True,
            parent=os.getpid(),
            **options,
        )
        return Bench(job, Turn(), problem, lambda _: None)

    return measure


@needs_gpu
@pytest.mark.parametrize("size", ["full", "short"])
@pytest.mark.parametrize("entry", ["accumulates", "scales+adds"])
def test_what_adds_to_its_output_is_right_in_every_check(measured, entry, size):
    result = measured(entry, size).run()
    checks = [check for check in result.checks if check.arm == "candidate"]
    assert {check.when for check in checks} == {"before", "during", "after"}
    assert sum(array.wrong for check in checks for array in check.arrays) == 0
    assert (result.launches_per_sample > 1) == (size == "short")


@needs_gpu
@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("forgets_what_it_was", "elements of c"),
        ("adds_twice", "row 7"),
        ("adds+scales", "elements of c"),
        ("scales", "elements of c"),
        ("writes_past_its_tickets", "it wrote outside of tickets"),
    ],
)
def test_what_adds_wrongly_is_found_out(measured, entry, words):
    from kernelexp.evidence.measure.bench import WrongResult

    with pytest.raises(WrongResult, match=words) as caught:
        measured(entry, "short").run()
    assert caught.value.arm == "candidate"


@needs_gpu
def test_a_sanitized_launch_finds_its_tickets_at_zero(measured):
    bench = measured("accumulates", "short", once=True)
    bench.launch_each_once()
    tickets = bench._placed.sets[0].written("candidate")["tickets"].tensor
    assert int(tickets) == 2048
