"""Emulated evidence: variants executed on the CPU, judged and kept."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
from support import ROOT, Kx

from kernelexp import project
from kernelexp.dossier import prepare
from kernelexp.dossier.session import Session
from kernelexp.evidence import jobs
from kernelexp.evidence.emulate import emulated
from kernelexp.evidence.emulate.emulation_worker import emulate
from kernelexp.evidence.measure import doubts
from kernelexp.judge.verdict import emulated as judge
from kernelexp.model import errors
from kernelexp.model.arm import Arm, EmulatedEvidence, Status
from kernelexp.model.errors import ConfigurationError, EnvironmentFault
from kernelexp.model.experiment import spell_point
from kernelexp.model.limits import Limits
from kernelexp.model.measurement import ArrayResult
from kernelexp.model.problem import Tolerance
from kernelexp.project.problem import consult
from kernelexp.project.problem.loader import load
from kernelexp.report.variants import emulation
from kernelexp.system.process import isolated
from kernelexp.system.process.isolated import TimeLimit
from kernelexp.system.toolchain import Toolchain
from warpsim.schedule import first_schedules


class Home(NamedTuple):
    """A project in which the default variant of `scale` is built."""

    root: Path
    arm: Arm

    def copy(self, folder: Path) -> Path:
        """The same project elsewhere, with nothing emulated."""
        return Path(shutil.copytree(self.root, folder / "home"))


def built(root: Path, tools: Toolchain) -> Home:
    loaded = project.load(root)
    variant = loaded.variant("scale", "sm_90a")
    arm = prepare.arm_of(loaded, variant, Session(tools=tools))
    assert arm.build
    return Home(root, arm)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, tools: Toolchain) -> Home:
    """For tests that change problem.py alone."""
    root = Path(shutil.copytree(ROOT / "tests/projects/scale", tmp_path_factory.mktemp("b") / "s"))
    return built(root, tools)


def take(
    root: Path, arms: list[Arm], limits: Limits
) -> list[EmulatedEvidence | errors.KernelexpError]:
    wanted = [(arm, "ptx") for arm in arms]
    return emulated.take(
        root, wanted, emulated.SIZE, limits, None, lambda arm: spell_point(arm.axes)
    )


def emulate_with(root: Path, home: Home) -> EmulatedEvidence:
    """The built variant with the problem.py of another copy, in this process."""
    limit = TimeLimit(name="emulation", seconds=60.0)
    job = jobs.emulation(home.root, home.arm, "emulated", consult.limit(), limit)
    job = msgspec.structs.replace(job, root=str(root))
    return emulate(job, isolated.Watch(sys.stderr)).evidence


INIT = 'asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(address));'
ENTRIES = {
    "wrong": "if (i == 77) v.at[0] += 1;",
    "infinite": "if (i == 3) v.at[0] = __int_as_float(0x7f800000);",
    "missing": "if (i == 5) return;",
    "racing": "__shared__ float s[256]; s[threadIdx.x ^ 32] = v.at[0]; v.at[0] = s[threadIdx.x];",
    "hanging": 'if (threadIdx.x < 32) asm volatile("bar.sync 1, 64;");',
    "odd": 'asm volatile("pmevent 1;");',
    "zeroing": "const_cast<Vector<WIDTH>*>(x)[i].at[0] = 0; v.at[0] = 0;",
    "again": "__shared__ __align__(8) unsigned long long barrier; if (threadIdx.x == 0) {"
    f" unsigned address = (unsigned)__cvta_generic_to_shared(&barrier); {INIT} {INIT} }}",
    "printing": 'if (i % 300 == 299) printf("item %d\\n", i);',
    "harmless": "last[threadIdx.x] = i;\n if (last[threadIdx.x ^ 32] > 9999) v.at[0] = 1;",
    "drawing": "if (threadIdx.x % 32 == 0) v.at[0] = atomicAdd(&turn, 1u);",
}
"""Kernels beside `scale`, by what each does before it stores."""


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory, tools: Toolchain) -> Home:
    """A source with these kernels, compiled once."""
    root = Path(shutil.copytree(ROOT / "tests/projects/scale", tmp_path_factory.mktemp("f") / "s"))
    source = root / "variants/scale/scale.cu"
    before, kernel = source.read_text().split('extern "C"')
    kernels = [f'extern "C"{kernel}']
    for name, what in ENTRIES.items():
        named = kernels[0].replace(" scale(", f" {name}(")
        kernels.append(named.replace("y[i] = v;", f"{what} y[i] = v;"))
    text = ["#include <cstdio>", before, "__device__ unsigned turn, last[1024];", *kernels]
    source.write_text("\n".join(text))
    return built(root, tools)


def evidence(faulty: Home, entry: str, tmp_path: Path) -> EmulatedEvidence:
    """One of these kernels, emulated in this process."""
    root = Path(shutil.copytree(ROOT / "tests/projects/scale", tmp_path / "scale"))
    change(root, 'entry="scale"', f'entry="{entry}"')
    return emulate_with(root, faulty)


def change(root: Path, text: str, instead: str) -> None:
    problem = root / "variants/scale/problem.py"
    assert text in problem.read_text()
    problem.write_text(problem.read_text().replace(text, instead))


def test_a_right_kernel_is_right_and_counted(faulty: Home, tmp_path: Path) -> None:
    result = evidence(faulty, "scale", tmp_path)
    assert judge(result) is None
    assert result.arrays[0].elements == 4096
    assert result.counters["ptx__sass__inst_executed_global_loads"] == 4096 // 32
    assert result.counters["ptx__memory_l2_theoretical_sectors_global"] == 2 * 4096 * 4 // 32


def test_a_wrong_element_is_found_under_every_schedule(faulty: Home, tmp_path: Path) -> None:
    result = evidence(faulty, "wrong", tmp_path)
    verdict = judge(result)
    assert verdict
    assert (verdict.status, verdict.reason) == (Status.INCORRECT, "emulated_reference")
    assert "1 of 4,096 elements of y is wrong" in verdict.sentence
    assert "element 77; first y[77]: got " in verdict.sentence
    assert result.failing == ("seed 0, late", "seed 1, late", "seed 2, early")
    assert result.failing == result.schedules


def test_an_element_that_is_never_written_is_found(faulty: Home, tmp_path: Path) -> None:
    assert evidence(faulty, "missing", tmp_path).arrays[0].wrong == 1


def test_a_race_is_found_with_its_line(faulty: Home, tmp_path: Path) -> None:
    verdict = judge(evidence(faulty, "racing", tmp_path))
    assert verdict
    assert verdict.status is Status.INCORRECT
    assert "scale.cu" in verdict.sentence


@pytest.mark.parametrize(
    ("pieces", "reason"),
    [(["] = i;", "] > 9999"], None), (["] = i;"], "emulated_race")],
)
def test_a_race_is_benign_if_problem_py_names_both_of_its_lines(
    pieces: list[str], reason: str | None, faulty: Home, tmp_path: Path
) -> None:
    root = Path(shutil.copytree(faulty.root, tmp_path / "scale"))
    change(root, 'entry="scale"', 'entry="harmless"')
    with (root / "variants/scale/problem.py").open("a") as file:
        file.write(f"BENIGN_RACES = {dict.fromkeys([*pieces, 'no such'], 'it is not used')}\n")
    result = emulate_with(root, faulty)
    verdict = judge(result)
    assert (verdict and verdict.reason) == reason
    assert {warning.name for warning in result.warnings} == {"benign-race"}
    assert "Benign by problem.py: it is not used." in result.warnings[0].sentence
    assert "no line of its source has 'no such', as BENIGN_RACES says" in result.doubts
    assert judge(result, pedantic=True)


def test_a_hang_is_a_verdict_with_who_waits(faulty: Home, tmp_path: Path) -> None:
    result = evidence(faulty, "hanging", tmp_path)
    verdict = judge(result)
    assert verdict
    assert (verdict.status, verdict.reason) == (Status.INCORRECT, "emulated_hang")
    assert result.hang


def test_an_instruction_that_is_not_covered_is_named_and_is_no_verdict(
    faulty: Home, tmp_path: Path
) -> None:
    result = evidence(faulty, "odd", tmp_path)
    assert "pmevent" in result.unsupported
    assert judge(result) is None


def test_lines_are_named_from_the_root_of_the_project(faulty: Home, tmp_path: Path) -> None:
    lines = evidence(faulty, "scale", tmp_path).lines
    assert {line.file for line in lines} == {"variants/scale/scale.cu"}


def test_evidence_is_kept_beside_the_build(
    scale: Path, tools: Toolchain, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, arm = built(scale, tools)
    first = take(scale, [arm], Limits())
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    assert take(scale, [arm], Limits()) == first


def test_every_line_is_kept_beside_the_build_and_few_in_the_evidence(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, arm = home.copy(tmp_path), home.arm
    (result,) = take(root, [arm], Limits())
    assert isinstance(result, EmulatedEvidence)
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    lines = emulated.lines(root, arm, "emulated", Limits(), "scale")
    assert len({(line.source.file, line.source.line) for line in lines}) > len(result.lines) == 3
    loads = "ptx__sass__inst_executed_global_loads"
    assert sum(line.counters.get(loads, 0) for line in lines) == result.counters[loads]
    assert {line.warps for line in lines} == {0b11111111}


def test_lines_that_were_lost_are_emulated_again(home: Home, tmp_path: Path) -> None:
    root, arm = home.copy(tmp_path), home.arm
    take(root, [arm], Limits())
    (kept,) = root.glob(".kernelexp/build/*/lines-*.json")
    before = kept.read_bytes()
    kept.unlink()
    assert emulated.lines(root, arm, "emulated", Limits(), "scale")
    assert kept.read_bytes() == before


def test_kept_evidence_that_was_altered_is_not_believed(home: Home, tmp_path: Path) -> None:
    root, arm = home.copy(tmp_path), home.arm
    first = take(root, [arm], Limits())
    (kept,) = root.glob(".kernelexp/build/*/emulated-*.json")
    kept.write_text('{"size":"emulated"}')
    (again,) = take(root, [arm], Limits())
    assert isinstance(again, EmulatedEvidence)
    assert isinstance(first[0], EmulatedEvidence)
    assert again.counters == first[0].counters


def test_run_refuses_to_time_what_emulation_finds_wrong(scale: Path, kx: Kx) -> None:
    source = scale / "variants/scale/scale.cu"
    source.write_text(source.read_text().replace("each *= factor", "each += factor"))
    result = kx("run", "S1", "--json", cwd=scale)
    (ran,) = json.loads(result.stdout)
    assert result.exit_code == errors.WRONG_RESULT
    assert ran["record"]["candidates"][0]["verdict"]["status"] == "INCORRECT"
    assert ran["path"].endswith(".emulated.json")


ROWS = 'yield Chunk(array="y", first=0, values=inputs["x"].double() * FACTOR)'


def test_a_kernel_that_zeroes_its_input_and_its_output_is_wrong(
    faulty: Home, tmp_path: Path
) -> None:
    result = evidence(faulty, "zeroing", tmp_path)
    verdict = judge(result)
    assert result.changed == ("x",)
    assert result.arrays[0].wrong == 4096
    assert verdict
    assert (verdict.status, verdict.reason) == (Status.INCORRECT, "emulated_inputs")
    assert "the kernel changed its inputs: it wrote to x" in verdict.sentence


def test_swapped_pointers_are_a_wrong_result(scale: Path, home: Home) -> None:
    pointers = 'Pointer(array="x"),\n            Pointer(array="y")'
    change(scale, pointers, 'Pointer(array="y"),\n            Pointer(array="x")')
    result = emulate_with(scale, home)
    assert result.changed == ("x",)
    assert result.arrays[0].unwritten == 4096
    assert b"null" not in msgspec.json.encode(result.arrays)


def test_an_infinity_is_a_wrong_result_and_no_traceback(faulty: Home, tmp_path: Path) -> None:
    result = evidence(faulty, "infinite", tmp_path)
    verdict = judge(result)
    assert verdict
    assert "first y[3]: got inf, want" in verdict.sentence
    assert msgspec.json.decode(msgspec.json.encode(result), type=EmulatedEvidence) == result


def test_inputs_that_ignore_their_seed_are_a_fault(scale: Path, home: Home) -> None:
    change(scale, "generator = torch.Generator(device).manual_seed(seed)", "generator = None")
    with pytest.raises(ConfigurationError, match=r"inputs\(\) gives other values of 'x'"):
        emulate_with(scale, home)


@pytest.mark.parametrize(
    ("text", "instead", "words"),
    [
        ('entry="scale"', 'entry="scael"', "launch(): the PTX has no entry 'scael'"),
        ('Pointer(array="x")', 'Pointer(array="z")', "launch(): the launch names array 'z'"),
        ('Scalar(type="s32", value=count),', "", "launch(): entry scale takes 4 arguments"),
        ('type="s32"', 'type="u64"', "launch(): parameter"),
        (ROWS, "import sys; sys.exit(3)", "problem.py:23: it calls sys.exit(3)"),
        (ROWS, f"{ROWS}\n    {ROWS}", "it gives rows 0 to 4095 of y more than once"),
    ],
)
def test_a_fault_of_problem_py_is_the_projects(
    scale: Path, home: Home, text: str, instead: str, words: str
) -> None:
    change(scale, text, instead)
    with pytest.raises(ConfigurationError) as caught:
        emulate_with(scale, home)
    assert str(caught.value).startswith("variants/scale/problem.py")
    assert words in str(caught.value)


def test_a_crash_in_the_reference_ends_a_run_with_2(scale: Path, kx: Kx) -> None:
    change(scale, ROWS, "import ctypes; yield ctypes.string_at(0)")
    result = kx("run", "S1", "--no-record", cwd=scale)
    assert result.exit_code == errors.USAGE
    assert "variants/scale/problem.py:23: reference() crashed with SIGSEGV" in result.stderr


def test_a_reference_and_an_emulation_have_limits_of_their_own(cold: Path, home: Home) -> None:
    shutil.copytree(home.root / ".kernelexp", cold / ".kernelexp", dirs_exist_ok=True)
    (fault,) = take(cold, [home.arm], Limits(emulation_s=0.001))
    assert isinstance(fault, EnvironmentFault)
    assert str(fault).startswith("width=1, order=forward: the emulation had not ended after 0.001s")
    assert "--limit emulation=0.002s" in str(fault)
    change(cold, ROWS, f"import time; time.sleep(99); {ROWS}")
    (fault,) = take(cold, [home.arm], Limits(problem_s=5.0))
    assert isinstance(fault, ConfigurationError)
    assert ":23: reference() had not returned after 5s" in str(fault)


def test_an_instruction_that_only_running_finds_is_evidence_too(
    scale: Path, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    import warpsim as emulator

    def refuse(*_: object, **__: object) -> None:
        raise emulator.UnsupportedInstruction("tcgen05.mma with a mask")

    monkeypatch.setattr(emulator, "compare", refuse)
    assert "with a mask" in emulate_with(scale, home).unsupported


@pytest.mark.parametrize("name", ["factors.py", "data/factors.txt"])
def test_another_file_next_to_problem_py_makes_evidence_anew(scale: Path, name: str) -> None:
    before = emulated._digest(scale, "scale")
    (scale / "variants/scale/data").mkdir()
    (scale / "variants/scale" / name).write_text("FACTOR = 3.0\n")
    assert emulated._digest(scale, "scale") != before


def test_a_file_by_another_name_makes_evidence_anew(tmp_path: Path) -> None:
    folder = tmp_path / "variants/scale"
    folder.mkdir(parents=True)
    (folder / "fast.py").write_text("FACTOR = 3.0\n")
    before = emulated._digest(tmp_path, "scale")
    (folder / "fast.py").rename(folder / "slow.py")
    assert emulated._digest(tmp_path, "scale") != before


def test_a_linked_folder_of_the_project_makes_evidence_anew(tmp_path: Path) -> None:
    for name in ("scale", "common"):
        (tmp_path / "variants" / name).mkdir(parents=True)
    (tmp_path / "variants/scale/common").symlink_to("../common")
    (tmp_path / "variants/scale/around").symlink_to(".")
    (tmp_path / "variants/scale/elsewhere").symlink_to("/")
    shared = tmp_path / "variants/common/factors.py"
    shared.write_text("FACTOR = 3.0\n")
    before = emulated._digest(tmp_path, "scale")
    shared.write_text("FACTOR = 2.0\n")
    assert emulated._digest(tmp_path, "scale") != before


def test_evidence_is_kept_of_no_problem_py_that_changed_meanwhile(scale: Path, home: Home) -> None:
    shutil.copytree(home.root / ".kernelexp", scale / ".kernelexp", dirs_exist_ok=True)
    strict, loose = "rtol=2**-24", "rtol=2**-10"
    edited = f"Path(__file__).write_text(Path(__file__).read_text().replace({strict!r}, {loose!r}))"
    change(scale, ROWS, f"from pathlib import Path; {edited}; {ROWS}")
    (fault,) = take(scale, [home.arm], Limits())
    assert str(fault).startswith("variants/scale/problem.py changed while ")
    assert emulated.find(scale, home.arm) is None


@pytest.mark.slow
def test_a_reference_without_an_end_is_no_emulation_s_fault(scale: Path, home: Home) -> None:
    shutil.copytree(home.root / ".kernelexp", scale / ".kernelexp", dirs_exist_ok=True)
    endless = ROWS.replace("* FACTOR", "[:0]")
    change(scale, ROWS, f"while True: {endless}")
    (fault,) = take(scale, [home.arm], Limits(problem_s=5.0))
    assert isinstance(fault, ConfigurationError)
    assert "with --limit problem=10s" in str(fault)


@pytest.mark.parametrize(
    ("code", "doubted"),
    [
        ("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 ...", False),
        ("HGMMA.64x128x8.F32.TF32 R24, ...", False),
        ("fma.rn.f32 ...", True),
    ],
)
def test_a_tolerance_for_operands_that_mmas_round_is_not_doubted(code: str, doubted: bool) -> None:
    problem = load(ROOT / "tests/projects/scale", "scale")
    size = problem.sizes["emulated"]
    outputs, inputs = problem.outputs(size), problem.inputs(size, 1, "cpu")
    tolerance = Tolerance(rtol=4e-3, why="TF32")
    found = list(doubts.find(problem, size, 1, inputs, outputs, tolerance, code))
    assert bool(found) is doubted


def test_a_comparison_that_says_little_is_warned_of() -> None:
    array = ArrayResult(name="y", elements=1, wrong=0, worst=0.0, lax="zeros too")
    arm = Arm(axes={}, emulated=EmulatedEvidence(size="emulated", arrays=(array,)))
    result = list(emulation.results({"variant": arm}, ["k"]))
    assert "variant, warning: of y, zeros too." in str(result)


def test_a_formal_mistake_is_a_warning_that_counts_if_it_should(
    faulty: Home, tmp_path: Path
) -> None:
    result = evidence(faulty, "again", tmp_path)
    assert [warning.name for warning in result.warnings] == ["missing-inval"]
    assert "scale.cu" in result.warnings[0].where
    assert judge(result) is None
    verdict = judge(result, pedantic=True)
    assert verdict
    assert (verdict.status, verdict.reason) == (Status.INCORRECT, "emulated_missing_inval")


def test_what_a_kernel_prints_is_kept_with_who_printed_it(faulty: Home, tmp_path: Path) -> None:
    result = evidence(faulty, "printing", tmp_path)
    assert result.prints == len(result.printed) == 4096 // 300
    assert all(item.text == f"item {256 * item.cta + item.thread}\n" for item in result.printed)


def test_an_array_that_atomics_let_vary_is_named_as_such(faulty: Home, tmp_path: Path) -> None:
    result = evidence(faulty, "drawing", tmp_path)
    assert (result.varying, result.differing) == (("y",), ())


def test_a_wrong_element_beside_others_that_vary_is_found_under_every_schedule(
    faulty: Home, tmp_path: Path
) -> None:
    result = evidence(faulty, "drawing", tmp_path)
    assert result.failing == result.schedules


def test_other_schedules_are_emulated_anew_and_kept(home: Home, tmp_path: Path) -> None:
    root, arm = home.copy(tmp_path), home.arm
    schedules = first_schedules(4)
    wanted = [(arm, "ptx")]
    (result,) = emulated.take(root, wanted, emulated.SIZE, Limits(), None, str, schedules)
    assert isinstance(result, EmulatedEvidence)
    assert result.schedules == tuple(map(str, schedules))
    assert emulated.find(root, arm, "emulated") is None
    assert emulated.find(root, arm, "emulated", schedules) == result
