"""What a machine without a GPU says; these run where there is none."""

import os
import sys
from pathlib import Path

import msgspec
import pytest
from gpu_kernels import needs_gpu

from kernelexp.evidence.measure import launch, measure, underway, worker
from kernelexp.evidence.measure.job import Answer, ArmJob, Job, RefusedJob, WorkerJob
from kernelexp.model.errors import EnvironmentFault, UsageError
from kernelexp.model.measurement import Device, Options, TimedArm
from kernelexp.system import device
from kernelexp.system.process import processes
from warpsim.launch import Field, Launch, Scalar, StructValue

H200 = Device(
    name="NVIDIA H200",
    uuid="GPU-7d9f",
    arch="sm_90a",
    driver="580.159.04",
    cuda="13.0",
    memory_bytes=150_754_820_096,
    power_limit_w=700.0,
    sm_clock_max_mhz=1980,
    memory_clock_max_mhz=3201,
)
without_gpu = pytest.mark.skipif(Path("/dev/nvidiactl").exists(), reason="a GPU is here")


def job_for(arch, problem="problem.py"):
    arm = ArmJob(
        arm=TimedArm(name="new", role="candidate"),
        cubin="new.cubin",
        arch=arch,
        launches=(Launch(entry="kernel", grid=(1, 1, 1), block=(32, 1, 1)),),
    )
    return Job(problem=problem, size={}, arms=(arm,))


@without_gpu
def test_measuring_needs_a_gpu_and_says_so_in_one_sentence():
    with pytest.raises(EnvironmentFault) as caught:
        measure.measure(job_for("sm_90a"), Options())
    assert str(caught.value).count(".") == 1
    assert "no usable NVIDIA GPU" in str(caught.value)


@without_gpu
def test_a_worker_answers_what_it_lacks_in_one_sentence(tmp_path):
    job = WorkerJob(
        job=job_for("sm_90a"),
        options=Options(),
        device=H200,
        process=0,
        seed=1,
        load_order=(0,),
        with_peers=False,
        parent=os.getpid(),
    )
    (tmp_path / worker.JOB).write_bytes(msgspec.json.encode(job))
    argv = [sys.executable, "-m", "kernelexp.evidence.measure.worker", str(tmp_path)]
    completed = processes.run(argv, cwd=Path(__file__).parents[2], timeout_s=60)
    lines = (tmp_path / worker.ANSWERS).read_bytes().splitlines()
    answer = msgspec.json.decode(lines[-1], type=Answer)
    assert completed.returncode == 1
    assert isinstance(answer, RefusedJob)
    assert answer.environment


@pytest.mark.parametrize("module", ["measure", "worker", "bench", "launch"])
def test_importing_the_backend_loads_neither_torch_nor_cuda(module):
    heavy = "{'torch', 'cuda', 'pynvml'}"
    code = f"import kernelexp.evidence.measure.{module}, sys; print({heavy} & set(sys.modules))"
    result = processes.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parents[2], timeout_s=60
    )
    assert result.stdout.strip() == "set()"


def test_a_cubin_for_another_architecture_is_refused_before_anything_starts():
    with pytest.raises(UsageError, match=r"new was built for sm_100a, but GPU GPU-7d9f .* sm_90a"):
        measure.refuse_other_architectures(job_for("sm_100a"), H200)
    measure.refuse_other_architectures(job_for("sm_90a"), H200)


def test_throttle_reasons_carry_nvmls_names_and_idle_is_none():
    assert device.throttle_names(0x1 | 0x4 | 0x40) == ("sw_power_cap", "hw_thermal_slowdown")


def test_a_gpu_is_held_by_one_run_at_a_time():
    with (
        device.hold("GPU-of-a-test"),
        pytest.raises(EnvironmentFault, match="another run of kernelexp is timing"),
        device.hold("GPU-of-a-test"),
    ):
        pass


@pytest.mark.parametrize(
    ("argument", "raw"),
    [
        (Scalar(type="u32", value=7), b"\x07\0\0\0"),
        (Scalar(type="s64", value=-1), b"\xff" * 8),
        (Scalar(type="f32", value=1), b"\0\0\x80\x3f"),
        (Scalar(type="s8", value=-2), b"\xfe"),
        (
            StructValue(size=4, fields=(Field(offset=1, value=Scalar(type="u16", value=258)),)),
            b"\0\2\1\0",
        ),
    ],
)
def test_arguments_are_passed_as_the_bytes_of_their_type(argument, raw):
    assert bytes(launch.encode(argument, {}, [])) == raw


WAITS = (
    "import sys, time; from kernelexp.evidence.measure.worker import leave_when_dismissed; "
    "from pathlib import Path; leave_when_dismissed(Path(sys.argv[1]), int(sys.argv[2])); "
    "time.sleep(60)"
)


@pytest.mark.parametrize("dismissed", [True, False])
def test_a_worker_leaves_when_it_is_dismissed_or_its_owner_is_gone(dismissed, tmp_path):
    parent = os.getpid() if dismissed else 2**22 + 1
    if dismissed:
        (tmp_path / worker.DISMISSED).touch()
    argv = [sys.executable, "-c", WAITS, str(tmp_path), str(parent)]
    completed = processes.run(argv, cwd=Path(__file__).parents[2], timeout_s=30)
    assert completed.returncode == 1


@needs_gpu
def test_the_gpu_is_found_by_index_and_by_uuid():
    result = device.find("0")
    assert device.find(result.uuid) == result
    with pytest.raises(UsageError, match="there is no GPU"):
        device.find("GPU-none")


@pytest.mark.parametrize(
    ("turns", "spent"),
    [
        ([40.0], False),
        ([40.0, 5.0, 5.0, 5.0], False),
        ([40.0, 5.0, 5.0, 5.0, 5.0], True),
        ([5.0, 5.0, 5.0, 5.0], False),
        ([5.0, 5.0, 5.0, 5.0, 5.0], True),
        ([20.0, 20.0], True),
    ],
)
def test_starting_up_is_not_counted_to_a_budget_of_30_s(turns, spent):
    assert underway.is_budget_spent(sum(turns) + 0.1, turns, 30.0) == spent
