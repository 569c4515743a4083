"""How ncu is called, and what becomes of each way in which it fails.

No GPU is here: a shell script stands in for ncu. It prints pages that an H200 recorded, and answers
as the worker process that ncu would have started. tests/gpu/test_profile.py runs the real one.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from support import ROOT, Kx

from kernelexp import project
from kernelexp.dossier import prepare
from kernelexp.dossier.session import Session
from kernelexp.evidence import build
from kernelexp.evidence.measure.job import Answer, FailedJob, Launched, RefusedJob, WorkerJob
from kernelexp.evidence.profile import ncu as programs
from kernelexp.evidence.profile import take
from kernelexp.evidence.profile.take import ProfileSettings, ProfileTaken
from kernelexp.logs import profiles
from kernelexp.model import errors
from kernelexp.model.arm import Arm
from kernelexp.model.errors import ConfigurationError, EnvironmentFault, KernelFault, UsageError
from kernelexp.model.limits import Limits
from kernelexp.model.measurement import Device, Failure
from kernelexp.system import device
from kernelexp.system.toolchain import Toolchain

DATA = Path(__file__).parents[2] / "data" / "ncu"
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
RIGHT = Launched(checks=())
NCU = """#!/bin/sh
page= source= report= sections=
for word; do
    case $last in
        --page) page=$word;;
        --print-source) source=$word;;
        --export) report=$word;;
        --section) sections="$sections $word";;
    esac
    last=$word
done
case $1 in
    --version) echo "NVIDIA (R) Nsight Compute"; echo "Version 2025.3.1.0 (build 1) (release)";;
    --list-sections) cat {data}/sections.txt;;
    --import) cat "{pages}/$page$source.csv";;
    *)
        echo "$@" >> {pages}/calls
        echo "==PROF== Connected to process 1"
        {launch}
        ;;
esac
"""

Stand = Callable[..., ProfileTaken]


def first_launch(name: str) -> str:
    """The part of a recorded page that is of its first launch."""
    lines = (DATA / name).read_text().splitlines(keepends=True)
    if name.startswith("source"):
        end = next(
            at
            for at, line in enumerate(lines[3:], 3)
            if line.startswith(('"Kernel', '"File Path"'))
        )
        return "".join(lines[:end])
    return "".join(line for line in lines if not line.startswith(('"1"', '"2"', '"3"')))


def answering(answer: Answer, *, report: bool = True, code: int = 0) -> str:
    """Shell: what ncu does where the worker in the folder, its last argument, answers this."""
    outcome = shlex.quote(msgspec.json.encode(answer).decode())
    result = '; : > "$report"' if report else ""
    return f'echo {outcome} > "$word/answers.jsonl"{result}; exit {code}'


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Writes an ncu that does as it is told when it is to profile; its path."""
    monkeypatch.setattr(device, "LOCKS", tmp_path / "locks")
    monkeypatch.setattr(device, "find", lambda _: H200)
    pages = tmp_path / "pages"
    pages.mkdir()
    for page, name in (
        ("raw", "raw.csv"),
        ("details", "details.csv"),
        ("sourcesass", "source-sass.csv"),
        ("sourcecuda,sass", "source-cuda-sass.csv"),
    ):
        (pages / f"{page}.csv").write_text(first_launch(name))

    def write(launch: str) -> str:
        path = tmp_path / "ncu"
        path.write_text(NCU.format(data=DATA, pages=pages, launch=launch))
        path.chmod(0o755)
        return str(path)

    return write


@pytest.fixture(scope="module")
def built(
    tools: Toolchain, hashed: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Arm]:
    """The project `scale` with one variant that is built."""
    root = tmp_path_factory.mktemp("built") / "scale"
    shutil.copytree(ROOT / "tests/projects/scale", root)
    shutil.copytree(hashed, root / build.CACHE)
    loaded = project.load(root)
    variant = loaded.variant("scale", None)
    return root, prepare.arm_of(loaded, variant, Session(tools=tools))


@pytest.fixture
def profiled(built: tuple[Path, Arm], stand_in: Callable[[str], str]) -> Stand:
    """Profiles the arm with an ncu that does `launch`."""

    def run(
        launch: str, settings: ProfileSettings | None = None, limit_s: float = 60.0
    ) -> ProfileTaken:
        ncu = programs.find(stand_in(launch))
        return take.take(*built, settings or ProfileSettings(), Limits(profile_s=limit_s), ncu)

    return run


COUNTERS = ProfileSettings(sections=programs.SECTIONS)


def test_a_profile_has_figures_advice_instructions_and_its_conditions(profiled: Stand) -> None:
    taken = profiled(answering(RIGHT))
    evidence = taken.evidence
    assert evidence.figures["gpu__time_duration.sum"] == pytest.approx(754_368)
    assert evidence.advice
    assert evidence.instructions[0].line
    assert evidence.tool == "ncu 2025.3.1.0"
    assert (evidence.device, evidence.driver) == ("NVIDIA H200", "580.159.04")
    assert (evidence.size, evidence.replay) == ("full", "kernel")
    assert (evidence.clock_control, evidence.cache_control) == ("none", "all")
    assert taken.lost == ()


def test_ncu_profiles_one_launch_of_the_variants_own_kernel(
    profiled: Stand, tmp_path: Path
) -> None:
    profiled(answering(RIGHT), ProfileSettings(sections=("Occupancy",), clock_control="base"))
    (call,) = (tmp_path / "pages/calls").read_text().splitlines()
    assert "--kernel-name regex:^scale$" in call
    assert "--launch-count 1" in call
    assert "--clock-control base --cache-control all --section Occupancy" in call
    assert "-m kernelexp.evidence.measure.worker" in call


def test_source_counters_have_a_pass_of_their_own(profiled: Stand, tmp_path: Path) -> None:
    profiled(answering(RIGHT))
    first, second = (tmp_path / "pages/calls").read_text().splitlines()
    assert "SourceCounters" not in first
    assert second.count("--section") == 1
    assert "--section SourceCounters" in second


def test_the_launch_is_to_be_compared_with_the_reference(profiled: Stand, tmp_path: Path) -> None:
    profiled(f'cp "$word/job.json" {tmp_path}; {answering(RIGHT)}', COUNTERS)
    job = msgspec.json.decode((tmp_path / "job.json").read_bytes(), type=WorkerJob)
    assert job.once
    assert job.checked
    assert job.limit_s == 60


def test_a_hang_over_source_counters_loses_only_these(
    profiled: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(take, "ENDING_S", 0.0)
    hang = f"case $sections in *SourceCounters*) sleep 600;; esac; {answering(RIGHT)}"
    taken = profiled(hang, limit_s=1.0)
    assert taken.evidence.figures
    assert taken.evidence.instructions == ()
    (lost,) = taken.lost
    assert lost.startswith("no source counters: scale under ncu 2025.3.1.0 was not done after 1s")


def test_a_hang_over_counters_is_ended(profiled: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(take, "ENDING_S", 0.0)
    with pytest.raises(KernelFault, match="allow more with --limit profile=20m"):
        profiled("sleep 600", limit_s=1.0)


@pytest.mark.parametrize(
    ("status", "words"), [("CRASHED", "an illegal address"), ("INCORRECT", "y: 7 of 8 are wrong")]
)
def test_a_kernel_that_fails_under_ncu_is_said_to(profiled: Stand, status: str, words: str) -> None:
    failed = FailedJob(failure=Failure(arm="candidate", status=status, process=0, words=words))  # type: ignore[arg-type]
    with pytest.raises(KernelFault, match=f"scale is {status} at size 'full' .*: {words}") as error:
        profiled(answering(failed, report=False, code=1))
    assert error.value.exit_code == errors.WRONG_RESULT


def test_a_kernel_that_hangs_under_ncu_is_said_to(profiled: Stand) -> None:
    failed = FailedJob(
        failure=Failure(arm="candidate", status="TIMED_OUT", process=0, words="it hangs")
    )
    with pytest.raises(KernelFault, match="it hangs; allow more with --limit profile=20m"):
        profiled(answering(failed, report=False, code=1))


def test_counters_that_only_root_may_read_are_said_to_be(profiled: Stand) -> None:
    denied = (
        'echo "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA '
        f'GPU Performance Counters on the target device 0."; {answering(RIGHT, report=False)}'
    )
    with pytest.raises(EnvironmentFault, match="NVreg_RestrictProfilingToAdminUsers=0"):
        profiled(denied)


@pytest.mark.parametrize(
    ("environment", "kind"), [(True, EnvironmentFault), (False, ConfigurationError)]
)
def test_what_the_worker_refuses_keeps_its_sentence(
    profiled: Stand, environment: bool, kind: type[Exception]
) -> None:
    refused = RefusedJob(sentence="no memory", environment=environment)
    with pytest.raises(kind, match=r"^no memory$"):
        profiled(answering(refused, report=False, code=1))


def test_an_error_of_ncu_is_told_in_its_words(profiled: Stand) -> None:
    with pytest.raises(EnvironmentFault, match="made no profile of scale: Cuda driver is too old"):
        profiled('echo "==ERROR== Cuda driver is too old." >&2; exit 1')


def test_an_unverified_launch_is_no_profile(profiled: Stand) -> None:
    with pytest.raises(EnvironmentFault, match="made no profile of scale"):
        profiled(': > "$report"')


def test_metrics_that_this_ncu_does_not_have_are_missing(profiled: Stand) -> None:
    warned = (
        'echo "==WARNING== Unable to access the following 2 metrics: a__b.sum, c__d.sum."; '
        + answering(RIGHT)
    )
    settings = ProfileSettings(sections=("Occupancy",), metrics=("e__f.sum", "gpu__time_duration"))
    missing = profiled(warned, settings).evidence.missing
    assert {"a__b.sum", "c__d.sum", "e__f.sum"} <= set(missing)
    assert "gpu__time_duration" not in missing


def test_sections_are_those_of_this_ncu(stand_in: Callable[[str], str]) -> None:
    ncu = programs.find(stand_in("exit 1"))
    assert programs.sections(ncu, "Occupancy,LaunchStats") == ("Occupancy", "LaunchStats")
    assert {*programs.SECTIONS, programs.SOURCE} <= set(programs.sections(ncu, "all"))
    assert programs.sections(ncu, None) == (*programs.SECTIONS, programs.SOURCE)
    with pytest.raises(UsageError, match="did you mean 'Occupancy'"):
        programs.sections(ncu, "Ocupancy")


def test_a_program_that_is_not_ncu_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFault, match="does not answer like ncu"):
        programs.find("true")
    with pytest.raises(UsageError, match="--ncu names"):
        programs.find(str(tmp_path / "none"))


def test_the_command_keeps_a_profile_of_each_variant(
    scale: Path, kx: Kx, stand_in: Callable[[str], str]
) -> None:
    done = kx("profile", "S1", "--ncu", stand_in(answering(RIGHT)), cwd=scale)
    assert done.exit_code == errors.OK, done.output
    assert "754.37 us" in done.output
    kept, unreadable = profiles.read_all(scale)
    assert unreadable == []
    assert {item.arm.axes["width"] for item in kept} == {1, 4}
    assert all(item.arm.build and item.arm.files and item.compiler for item in kept)
    (scale / "variants/scale/scale.cu").write_text("// changed\n")
    words = " ".join(kx("show", "S1", cwd=scale).output.split())
    assert "taken before this changed: variants/scale/scale.cu" in words


def test_a_variant_that_is_refused_keeps_no_other_from_its_profile(
    scale: Path, kx: Kx, stand_in: Callable[[str], str]
) -> None:
    impossible = "scale:order=backward,width=4"
    done = kx("profile", impossible, "scale", "--ncu", stand_in(answering(RIGHT)), cwd=scale)
    assert "variant 1: IMPOSSIBLE" in done.output
    assert len(profiles.read_all(scale)[0]) == 1


@pytest.mark.parametrize(
    ("asked", "words", "passes"),
    [
        ((), "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed", 2),
        (
            ("--sections", "conflicts"),
            "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
            2,
        ),
        (("--sections", "icache,Occupancy"), "--section Occupancy --metrics smsp__warps_issue", 1),
    ],
)
def test_the_metrics_of_kernelexps_sections_are_asked_for(
    scale: Path,
    kx: Kx,
    stand_in: Callable[[str], str],
    tmp_path: Path,
    asked: tuple[str, ...],
    words: str,
    passes: int,
) -> None:
    done = kx("profile", "scale", *asked, "--ncu", stand_in(answering(RIGHT)), cwd=scale)
    assert done.exit_code == 0, done.output

    calls = (tmp_path / "pages/calls").read_text().splitlines()
    assert len(calls) == passes
    assert words in calls[0]
    assert "sm__pipe_tc_cycles_active" not in calls[0]  # which an H200 does not have


def test_without_a_gpu_the_command_says_how_to_import(
    scale: Path, kx: Kx, stand_in: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ncu = stand_in("exit 1")

    def none(_: str | None) -> Device:
        raise EnvironmentFault("no NVIDIA GPU is in this machine: timing needs one.")

    monkeypatch.setattr(device, "find", none)
    done = kx("profile", "S1", "--ncu", ncu, cwd=scale)
    assert done.exit_code == errors.ENVIRONMENT
    assert "kernelexp profile --import FILE --variant NAME" in done.output
