"""kernelexp adopt FILE.cu: kernels from sources that were not written for it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import kept
import pytest
from support import ROOT, Kx

from kernelexp import project
from kernelexp.evidence import build
from kernelexp.model import errors
from kernelexp.system.toolchain import Toolchain

HEADER = (
    "#pragma once\n#include <absent/library.h>\nusing real = float;\nabsent::Handle handle();\n"
)
SOURCE = """#include "own/types.h"
#include <absent/tensor.h>
#include <cuda_runtime.h>

__global__ void scale(const real* __restrict__ x, real* y, real factor, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) y[i] = factor * x[i];
}

__global__ void other(real* y) { y[0] = 1; }

template <int STEP>
__global__ void shift(const int* x, int* y, unsigned rows, size_t columns) {
    y[blockIdx.x * columns + threadIdx.x] = x[blockIdx.x * columns + threadIdx.x] + STEP;
}

__global__ void flagged(float* y, bool up) { y[0] = up; }

__global__ void grows(float* y) { y[threadIdx.x] += 1.0f; }

void run(absent::Tensor x) {
    scale<<<1, 256>>>(x.data(), x.data(), 2.0f, 1);
    shift<3><<<1, 1>>>(nullptr, nullptr, 0, 0);
}
ABSENT_MODULE(name, m) { m.def("run", &run); }
int main() { return absent::run(); }
"""
KNOWN = (
    *("--block", "256", "--grid", "count/256", "--shape", "x=count", "--shape", "y=count"),
    *("--value", "count=1000", "--value", "factor=2.0", "--reference", "y=factor * x"),
)


@pytest.fixture
def new(same_path: Path, hashed: Path, kx: Kx) -> Path:
    """A new project with the compiler hashed already, and a foreign source beside it."""
    (same_path / "theirs/own").mkdir(parents=True)
    (same_path / "theirs/kernels.cu").write_text(SOURCE)
    (same_path / "theirs/own/types.h").write_text(HEADER)
    root = same_path / "new"
    kx("init", "new", "--arch", "sm_90a", cwd=same_path)
    shutil.copytree(hashed, root / build.CACHE)
    kept.share_builds(root)
    return root


def adopt(kx: Kx, root: Path, entry: str, *options: str):  # type: ignore[no-untyped-def]
    return kx("adopt", "../theirs/kernels.cu", "--entry", entry, *options, cwd=root)


@pytest.mark.slow
def test_a_kernel_among_others_is_drafted_and_right_and_its_source_stays(new: Path, kx: Kx) -> None:
    result = adopt(kx, new, "scale", *KNOWN)
    assert result.exit_code == errors.OK, result.stderr
    assert "entry: scale(float const*, float*, float, int)" in result.stdout
    assert "  x: float*, 8 bytes, read" in result.stdout
    assert "  y: float*, 8 bytes, written" in result.stdout
    assert "y correct, all 1,000 elements" in result.stdout
    assert "next: kernelexp explain scale says what limits it." in result.stdout
    assert "left out of the copy of own/types.h, lines: 4, #include <absent/library.h>" in " ".join(
        result.stdout.split()
    )
    assert (new.parent / "theirs/kernels.cu").read_text() == SOURCE
    copy = (new / "variants/scale/origin/kernels.cu").read_text()
    assert copy.splitlines()[4:8] == SOURCE.splitlines()[4:8]
    assert "absent::" not in copy


def test_what_is_not_said_is_blank_and_one_sentence_when_it_runs(new: Path, kx: Kx) -> None:
    result = adopt(kx, new, "shift<3>", "--block", "32", "--kernel", "mine", "--value", "rows=2")
    assert result.exit_code == errors.OK, result.stderr
    assert "entry: void shift<3>(int const*, int*, unsigned int, unsigned long)" in result.stdout
    blanks = [line for line in result.stdout.splitlines() if line.startswith("blank: ")]
    assert any("the value of unsigned long columns" in line for line in blanks)
    assert any("how many CTAs" in line for line in blanks)
    assert not any("rows" in line for line in blanks)
    assert result.stdout.splitlines()[-1].endswith("kernelexp emulate mine")
    ran = kx("emulate", "mine", cwd=new)
    assert ran.exit_code == errors.USAGE
    where = blanks[0].removeprefix("blank: ").partition(": ")[0]
    assert ran.stderr == f"error: {where}: this is blank: the value of unsigned long columns\n"
    assert 'dtype="s32"' in (new / "variants/mine/problem.py").read_text()


@pytest.mark.slow
def test_an_array_that_is_read_and_written_is_noted(new: Path, kx: Kx) -> None:
    result = adopt(kx, new, "grows", "--block", "32")
    assert "note: y is read and written: it is an input and an output" in result.stderr


@pytest.mark.slow
def test_a_wrong_result_of_a_draft_leads_to_its_tolerance(new: Path, kx: Kx) -> None:
    result = adopt(kx, new, "scale", *KNOWN[:-1], "y=1.0001 * factor * x")
    assert result.exit_code == errors.WRONG_RESULT
    lines = (new / "variants/scale/problem.py").read_text().splitlines()
    number = 1 + next(i for i, line in enumerate(lines) if "return Tolerance(" in line)
    assert f"at variants/scale/problem.py:{number}, where the tolerance is a guess" in result.stderr


@pytest.mark.slow
def test_values_that_are_far_off_are_no_matter_of_a_tolerance(new: Path, kx: Kx) -> None:
    result = adopt(kx, new, "scale", *KNOWN[:-1], "y=2 * factor * x")
    assert result.exit_code == errors.WRONG_RESULT
    assert "tolerance is a guess" not in result.stderr
    assert "found under each of 3 schedules" in result.stdout


@pytest.mark.slow
def test_a_parameter_that_there_is_not_is_a_sentence_and_nothing_is_left(new: Path, kx: Kx) -> None:
    before = (new / "experiments.yaml").read_text()
    result = adopt(kx, new, "flagged", "--block", "32", "--value", "down=1")
    assert result.exit_code == errors.USAGE
    assert "--value: 'down' is not a scalar of the kernel; known: up." in result.stderr
    assert not (new / "variants/flagged").exists()
    assert (new / "experiments.yaml").read_text() == before


@pytest.mark.slow
def test_a_reference_that_fails_is_shown_and_leaves_nothing(new: Path, kx: Kx) -> None:
    before = (new / "experiments.yaml").read_text()
    result = adopt(kx, new, "scale", *KNOWN[:-1], "y=x.doubled()")
    assert result.exit_code == errors.USAGE
    assert "values=x.doubled())" in result.stderr
    assert result.stderr.endswith(
        "note: nothing was kept: correct the option, and adopt it again\n"
    )
    assert not (new / "variants/scale").exists()
    assert (new / "experiments.yaml").read_text() == before


def test_device_code_that_does_not_compile_is_a_sentence(new: Path, kx: Kx) -> None:
    source = new.parent / "theirs/kernels.cu"
    source.write_text(SOURCE.replace("= factor * x[i]", "= absent::twice(x[i])"))
    result = adopt(kx, new, "scale", "--block", "32")
    assert result.exit_code == errors.BUILD
    assert "headers were not found: <absent/library.h>, <absent/tensor.h>" in result.stderr
    assert 'kernels.cu:7: name followed by "::" must be a class or namespace name' in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (new / "variants/scale").exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "has several kernels: say which with --entry: scale, other, shift<...>, flagged"),
        (("--entry", "scales"), "has no kernel 'scales'; did you mean 'scale'?"),
        (
            ("--entry", "shift"),
            "shift is a template: name its arguments, as in --entry 'shift<...>'",
        ),
        (
            ("--entry", "scale", "--signature", "int n"),
            "--signature is for .ptx and .cubin: a source has its own.",
        ),
        (("--entry", "scale", "--block", "0"), "--block '0' should be threads in x, y and z"),
        (
            ("--entry", "scale", "--block", "32", "--grid", "f()"),
            "should be made of numbers, names",
        ),
        (("--entry", "scale", "--block", "32", "--grid", "1 +"), "'1 +' is not an expression"),
        (("--entry", "scale", "--block", "32", "--shape", "x"), "--shape 'x' should be NAME=..."),
        (
            ("--entry", "scale", "--block", "32", "--value", "n=x"),
            "'x' should be a number, as",
        ),
        (("--entry", "scale", "--kernel", "row_softmax"), "edit variants/row_softmax/problem.py"),
        (("--entry", "scale", "--kernel", "a b"), "'a b' can't be a kernel's name"),
        (("--entry", "scale", "--set", "a=1"), "there is no option '--set'"),
    ],
)
def test_a_mistake_is_a_sentence_before_anything_is_compiled(
    new: Path, kx: Kx, words: tuple[str, ...], sentence: str
) -> None:
    result = kx("adopt", "../theirs/kernels.cu", *words, cwd=new)
    assert result.exit_code == errors.USAGE
    assert sentence in result.stderr
    assert result.stderr.count("\n") == 1
    assert sorted(path.name for path in (new / "variants").iterdir()) == ["row_softmax"]


def test_a_source_that_is_not_there_and_one_without_kernels_are_mistakes(new: Path, kx: Kx) -> None:
    assert "can't be read: No such file" in kx("adopt", "no.cu", cwd=new).stderr
    (new / "host.cu").write_text("int main() {}\n")
    assert "host.cu has no __global__ function." in kx("adopt", "host.cu", cwd=new).stderr


def test_new_has_no_options_of_a_source(new: Path, kx: Kx) -> None:
    result = kx("new", "Title", "--set", "threads=128", "--block", "32", cwd=new)
    assert "there is no option '--block'" in result.stderr
    assert "E2" not in project.load(new).experiments


@pytest.mark.slow
def test_a_terminal_is_asked_for_what_is_missing_until_it_makes_sense(new: Path) -> None:
    answers = ("256", "2.0", "many", "1000", "rows", "count", "", "", "count/256")
    ours, theirs = os.openpty()
    os.write(ours, "".join(f"{answer}\n" for answer in answers).encode())
    argv = [sys.executable, "-m", "kernelexp", "adopt", "../theirs/kernels.cu"]
    done = subprocess.run(
        [*argv, "--entry", "scale"], cwd=new, stdin=theirs, capture_output=True, text=True
    )
    assert done.returncode == errors.OK, done.stderr
    assert "error: 'many' should be a number" in done.stderr
    assert "'rows' is not an integer parameter" in done.stderr
    text = (new / "variants/scale/problem.py").read_text()
    assert '"full": {"count": 1000}' in text
    assert 'Scalar(type="f32", value=2.0)' in text
    assert 'randn((size["count"],)' in text
    assert 'Array(shape=blank("the shape of y, a tuple"), dtype="f32")' in text
    assert 'grid=(-(-size["count"] // 256), 1, 1)' in text


SIGNATURE = "const float4* x, float4* y, float factor, int count"


@pytest.mark.parametrize("form", ["ptx", pytest.param("cubin", marks=pytest.mark.slow)])
def test_ptx_and_a_cubin_are_brought_in_by_their_signature(
    new: Path, warm: Path, tools: Toolchain, kx: Kx, form: str
) -> None:
    other = new.parent / "scale"
    shutil.copytree(ROOT / "tests/projects/scale", other)
    shutil.copytree(warm, other / build.CACHE)
    variant = project.load(other).variant("scale", None, {"width": 4})
    (built,) = build.build(other, [variant], tools)
    answer = new.parent / f"scale.{form}"
    shutil.copy(getattr(build.artefacts(other, built.identity), form), answer)
    result = kx(
        *("adopt", str(answer), "--signature", SIGNATURE, "--block", "256"),
        *("--grid", "count/256", "--shape", "x=4*count", "--shape", "y=4*count"),
        *("--value", "count=100", "--value", "factor=2", "--reference", "y=factor * x"),
        cwd=new,
    )
    assert result.exit_code == errors.OK, result.stderr
    assert "  x: float4*, 8 bytes, read\n  y: float4*, 8 bytes, written" in result.stdout
    assert "y correct, all 400 elements" in result.stdout
    assert f"source: scale.{form}" in (new / "experiments.yaml").read_text()


@pytest.mark.slow
def test_the_members_of_a_structure_are_parameters(new: Path, kx: Kx) -> None:
    (new / "params.cu").write_text(PARAMS)
    result = kx(
        *("adopt", "params.cu", "--block", "128", "--grid", "n/128"),
        *("--shape", "x=n", "--shape", "y=n", "--value", "n=300", "--value", "to_0_step=1"),
        *("--value", "from_step=1", "--value", "mode=1", "--reference", "y=2 * x"),
        cwd=new,
    )
    assert result.exit_code == errors.OK, result.stderr
    assert "    x: float*, 8 bytes, read\n    y: float*, 8 bytes, written" in result.stdout
    assert "unused" not in result.stdout
    assert "y correct, all 300 elements" in result.stdout


PARAMS = """
struct Steps { int before, step; };
enum class Mode { once, twice };
struct Base { const float* x; };
struct Params : Base { float* y; void* unused; int n; Steps from, to[1]; Mode mode; };
__global__ void twice(const __grid_constant__ Params p) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= p.n) return;
    p.y[i * p.to[0].step] = (p.mode == Mode::twice ? 2 : 1) * p.x[i * p.from.step];
}
"""


def test_launches_that_differ_in_their_block_list_their_parameters_once(
    scale: Path, kx: Kx
) -> None:
    (scale / "add.cu").write_text(
        "__global__ void add(float* y, const float* x) { y[threadIdx.x] = x[threadIdx.x]; }"
    )
    result = kx(
        "adopt", "add.cu", "--entry", "add<<<1,32>>>", "--entry", "add<<<1,64>>>", cwd=scale
    )
    assert result.stdout.count("entry: add(") == 1, result.stderr
