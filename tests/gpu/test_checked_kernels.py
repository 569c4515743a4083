"""Twelve honest kernels pass every check, fifteen cheating ones do not; faults become evidence."""

import os
import random

import pytest
from gpu_kernels import (
    CHEATING,
    HONEST,
    KERNELS,
    compile_kernels,
    compile_source,
    needs_gpu,
)
from msgspec.structs import replace

from kernelexp.evidence.measure import measure
from kernelexp.evidence.measure.job import ArmJob, Turn, WorkerJob
from kernelexp.judge.statistics import rates
from kernelexp.model.measurement import Options, TimedArm
from kernelexp.services import calibration
from kernelexp.system import device

# This process has a context on the GPU too: to the measuring processes it is company.
QUICK = Options(
    processes=1, timing_s=0.2, checks_during=6, launch_timeout_s=3.0, seed=1, shared_gpu=True
)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["honest", "cheating"])
@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a"])
def test_every_kernel_compiles(name, arch, tmp_path):
    assert compile_kernels(name, arch, tmp_path).stat().st_size > 0


def run_here(job, problem, options=QUICK, with_peers=False):
    """The measuring process's work, in this process: no start-up for each of many kernels."""
    from kernelexp.evidence.measure.bench import Bench

    worker = WorkerJob(
        job=job,
        options=options,
        device=device.find(),
        process=0,
        seed=random.randrange(1 << 31),
        load_order=tuple(range(len(job.arms))),
        with_peers=with_peers,
        parent=os.getpid(),
    )
    return Bench(worker, Turn(), problem, lambda _: None).run()


@needs_gpu
@pytest.mark.parametrize("size", ["full", "short"])
@pytest.mark.parametrize("entry", HONEST)
def test_an_honest_kernel_passes_every_check(entry, size, make_job, problem):
    options = replace(QUICK, checks_during=1, timing_s=0.1)
    result = run_here(make_job(entry, size, HONEST[entry]), problem, options)
    assert {check.when for check in result.checks if check.arm == "candidate"} == {
        "before",
        "during",
        "after",
    }
    assert sum(array.wrong for check in result.checks for array in check.arrays) == 0
    assert (result.launches_per_sample > 1) == (size == "short")


@needs_gpu
@pytest.mark.parametrize("size", ["full", "short"])
@pytest.mark.parametrize("entry", CHEATING)
def test_a_cheating_kernel_is_found_out(entry, size, make_job, problem):
    from kernelexp.evidence.measure.bench import WrongResult

    with pytest.raises(WrongResult) as caught:
        run_here(make_job(entry, size), problem)
    assert caught.value.arm == "candidate"


@needs_gpu
def test_a_result_written_late_by_another_stream_is_found_out(problem):
    import torch

    from kernelexp.evidence.measure.arrays import InputSet
    from kernelexp.evidence.measure.results import compare

    size = problem.sizes["full"]
    chosen = InputSet(problem, size, {"candidate": {}}, seed=1)
    right = chosen.inputs["x"] * chosen.inputs["scale"]
    side = torch.cuda.Stream()
    chosen.reset(1)
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        torch.cuda._sleep(50_000_000)
        chosen.outputs["y"].tensor.copy_(right)
    written = {name: output.tensor.clone() for name, output in chosen.outputs.items()}
    torch.cuda.synchronize()
    checks = compare(
        written, problem.reference(chosen.inputs, size), problem.tolerance(size, "sm_90a", {})
    )
    assert checks[0].wrong == checks[0].elements


@needs_gpu
@pytest.mark.parametrize(
    ("entry", "status", "words"),
    [
        ("reads_address_zero", "CRASHED", "illegal memory access"),
        ("traps", "CRASHED", "CUDA"),
        ("never_ends", "TIMED_OUT", "had not ended after 3 s"),
        ("does_nothing", "INCORRECT", "never written"),
    ],
)
def test_a_failing_candidate_is_evidence_with_the_drivers_words(entry, status, words, make_job):
    result = measure.measure(make_job(entry, "short"), QUICK)
    assert [(f.arm, f.status) for f in result.failures] == [("candidate", status)]
    assert words in result.failures[0].words


@needs_gpu
def test_two_processes_time_three_arms_and_check_them(make_job):
    options = Options(processes=2, timing_s=0.2, peers=False, shared_gpu=True)
    result = measure.measure(make_job("vectorised"), options)
    assert [worker.process for worker in result.workers] == [0, 1]
    assert result.looks == (2,)
    assert result.workers[1].load_order == result.workers[0].load_order[::-1]


@needs_gpu
def test_compute_sanitizer_names_the_bad_access(make_job):
    options = replace(QUICK, sanitize=True)
    result = measure.measure(make_job("reads_address_zero", "short"), options)
    assert "Invalid __global__ read" in result.failures[0].words


@needs_gpu
@pytest.mark.parametrize("size", ["full", "short"])
def test_a_peer_is_timed_in_the_rows_of_all_arms(size, make_job, problem):
    job = make_job("plain", size)
    peer = ArmJob(arm=TimedArm(name="torch", role="peer"))
    job = replace(job, arms=(*job.arms, peer))
    options = replace(QUICK, checks_during=1, timing_s=0.1)
    result = run_here(job, problem, options, with_peers=True)
    rows = [row for block in result.blocks for row in block.rows]
    assert {frozenset(row.order) - {3} for row in rows} == {frozenset((0, 1, 2))}
    assert sum(3 in row.order for row in rows) > 1
    assert not any(check.arm == "torch" for check in result.checks)


@needs_gpu
def test_a_hot_l2_is_timed_launch_by_launch_even_for_a_short_kernel(make_job, problem):
    options = replace(QUICK, checks_during=1, timing_s=0.1, l2="hot")
    result = run_here(make_job("vectorised", "short"), problem, options)
    assert result.launches_per_sample == 1


@needs_gpu
def test_another_process_on_the_gpu_makes_the_measurement_invalid(make_job):
    import torch

    torch.zeros(1, device="cuda")
    result = measure.measure(make_job("plain"), Options(processes=1, timing_s=0.1))
    assert result.workers == ()
    assert result.invalid == "Another process computed on the GPU during the measurement."


@needs_gpu
def test_calibration_finds_a_slowdown_of_two_percent_and_none_where_there_is_none(tmp_path):
    source = KERNELS.parents[2] / "kernelexp/services/knob/knob.cu"
    cubin = compile_source(source, "sm_90a", tmp_path)
    knob = calibration.Knob(
        problem=str(source.parent / "problem.py"), cubin=str(cubin), arch="sm_90a"
    )
    options = Options(processes=4, timing_s=0.3, peers=False, shared_gpu=True)
    same = calibration.record_same_arms(knob, arms=4, options=options)
    slower = calibration.record_injected(knob, [20], copies=1, options=options)
    assert rates.of_same_arms(same, count=20).false_verdicts == 0
    assert rates.of_injected(slower, count=20)[20].statuses["REJECTED"] >= 18


def test_the_kernels_of_this_folder_are_at_least_ten_of_each():
    sources = {name: (KERNELS / f"{name}.cu").read_text() for name in ("honest", "cheating")}
    assert len(HONEST) >= 10
    assert len(CHEATING) >= 10
    assert all(f" {entry}(" in sources["honest"] for entry in HONEST)
    assert all(f" {entry}(" in sources["cheating"] for entry in CHEATING)
