"""kernelexp adopt --from-program: launches of whole programs become kernels."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Iterator
from pathlib import Path

import kept
import pytest
from support import ROOT, Kx

from kernelexp.evidence import build
from kernelexp.model import errors
from kernelexp.model.errors import ConfigurationError
from kernelexp.model.stored import read_array, store
from kernelexp.system.toolchain import Toolchain

PROGRAM = """
#include <cstdio>
#include <cstdint>
#include <utility>
#include "scale.cuh"

struct Pair { int first; float second; };
struct Params { const float* in; float* out; int n; };
__constant__ float weights[3];

template <int WIDTH>
__global__ void smooth(const float* in, float* out, int n, double weight) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < WIDTH || i >= n - WIDTH) return;
    float sum = 0;
    for (int k = -WIDTH; k <= WIDTH; ++k) sum += in[i + k];
    out[i] = weight * sum / (2 * WIDTH + 1);
}
__global__ void count(const Pair* pairs, unsigned long long* bins, const float* none, bool up) {
    atomicAdd(bins + pairs[threadIdx.x].first % 4, up ? 1ull : 2ull);
}
__global__ void copy(const Params p) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < p.n) p.out[i] = p.in[i];
}
__global__ void weighted(float* out) { out[threadIdx.x] = weights[threadIdx.x]; }
__global__ void beyond(float* out) { out[threadIdx.x + (1 << 20)] = 0; }
__global__ void tiles(float* out) {
    extern __shared__ float tile[];
    tile[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
}

int main(int, char** words) {
    const int n = 100;
    float *a, *b, host[n];
    cudaMalloc(&a, n * sizeof(float));
    cudaMalloc(&b, n * sizeof(float));
    for (int i = 0; i < n; ++i) host[i] = i * 7919 % 100;
    cudaMemcpy(a, host, sizeof host, cudaMemcpyHostToDevice);
    cudaMemcpy(b, a, sizeof host, cudaMemcpyDeviceToDevice);
    for (int step = 0; step < 3; ++step) {
        smooth<2><<<4, 32>>>(a, b, n, 0.5);
        scale<<<4, 32>>>(b, b, n);
        std::swap(a, b);
    }
    Pair pairs[8] = {};
    for (int i = 0; i < 8; ++i) pairs[i] = {i, float(i)};
    Pair* placed;
    unsigned long long* bins;
    cudaMalloc(&placed, sizeof pairs);
    cudaMalloc(&bins, 4 * sizeof *bins);
    cudaMemset(bins, 0, 4 * sizeof *bins);
    cudaMemcpy(placed, pairs, sizeof pairs, cudaMemcpyHostToDevice);
    count<<<1, 8>>>(placed, bins, nullptr, true);
    copy<<<5, 32>>>(Params{a, b, n});  // one more CTA than it needs
    tiles<<<1, 64, 64 * sizeof(float)>>>(a);
    float three[3] = {1, 2, 3};
    cudaMemcpyToSymbol(weights, three, sizeof three);
    weighted<<<1, 3>>>(a);
    beyond<<<1, 1>>>(a);
}
"""
SCALE = """#pragma once
__global__ void scale(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = FACTOR * in[i];
}
"""
SOURCE = "../program.cu --flags=-DFACTOR=2.0f -- 1"
BUILT = "-- ../program"

pytestmark = pytest.mark.xdist_group("launched")


@pytest.fixture(scope="module")
def project(hashed: Path, usual_tools: Toolchain) -> Iterator[Path]:
    with kept.same_folder("launched") as folder:
        (folder / "program.cu").write_text(PROGRAM)
        (folder / "scale.cuh").write_text(SCALE)
        source = folder / "program.cu"
        program = kept.program([source], usual_tools, "-DFACTOR=2.0f", include=[folder])
        shutil.copy(program, folder / "program")
        shutil.copytree(hashed, folder / "project" / build.CACHE)
        empty = "version: 1\nkernels: {}\nexperiments: {}\n"
        (folder / "project/experiments.yaml").write_text(empty)
        kept.share_builds(folder / "project")
        yield folder / "project"


@pytest.fixture
def taken(project: Path, kx: Kx, request: pytest.FixtureRequest) -> tuple[str, str]:
    """What adopt prints of the launch that the test names, and the problem.py that it wrote."""
    kernel, name = request.param
    program = SOURCE if name == "scaled" else BUILT
    shutil.rmtree(project / "variants" / name, ignore_errors=True)
    result = kx("adopt", "--from-program", program, "--kernel", kernel, "--as", name, cwd=project)
    assert result.exit_code == errors.OK, result.stderr
    return result.stdout, (project / f"variants/{name}/problem.py").read_text()


def of(kernel: str, name: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("taken", [(kernel, name)], indirect=True, ids=[name])


@of("smooth<2>:3", "third")
def test_a_launch_of_a_template_is_the_same_kernel_with_its_own_arrays(
    taken: tuple[str, str],
) -> None:
    result, problem = taken
    assert "out correct, all 100 elements" in result
    assert "blank" not in problem
    assert "grid=(4, 1, 1),\n        block=(32, 1, 1)" in problem
    assert 'Scalar(type="f64", value=0.5)' in problem
    # It leaves the ends as they were, which are inputs therefore.
    assert '"out": read_array(' in problem


@of("scale", "scaled")
def test_an_array_that_is_passed_twice_is_one_array(taken: tuple[str, str]) -> None:
    result, problem = taken
    assert "in_ correct, all 100 elements" in result
    assert problem.count('Pointer(array="in_")') == 2


@of("count", "counted")
def test_structures_are_bytes_and_a_null_pointer_stays_one(taken: tuple[str, str]) -> None:
    result, problem = taken
    assert "bins correct, all 4 elements" in result
    assert '"u8", (64,), device)' in problem
    assert 'Scalar(type="u64", value=0)' in problem
    assert 'rtol=0, why="a guess: integers are exact"' in problem


@of("copy", "copied")
def test_pointers_in_a_structure_are_arrays(taken: tuple[str, str]) -> None:
    result, problem = taken
    assert "out correct, all 100 elements" in result
    assert 'Field(offset=8, value=Pointer(array="out"))' in problem


@of("tiles", "tiled")
def test_what_a_launch_writes_in_part_is_an_input_too(taken: tuple[str, str]) -> None:
    result, problem = taken
    assert "dynamic_smem_bytes=256" in problem
    assert '"out": read_array(' in problem
    assert "out correct, all 100 elements" in result


def test_an_axis_is_a_number_of_the_source_that_block_and_grid_follow(
    project: Path, kx: Kx
) -> None:
    smooth = ROOT / "docs/examples/smooth.cu"
    result = kx(
        *("adopt", "--from-program", f"{smooth} -- 5000", "--kernel", "smooth<2>:2"),
        *("--as", "varied", "--axis", "BLOCK=64,128"),
        cwd=project,
    )
    assert result.exit_code == errors.OK, result.stderr
    problem = (project / "variants/varied/problem.py").read_text()
    assert 'grid=(-(-size["n"] // axes["block"]), 1, 1)' in problem
    assert 'block=(axes["block"], 1, 1)' in problem
    assert "#define BLOCK KX_BLOCK" in (project / "variants/varied/origin/smooth.cu").read_text()
    result = kx("run", "E1", cwd=project)
    assert result.exit_code == errors.OK, result.stderr
    assert "both arms: out correct, all 5,000 elements" in " ".join(result.stdout.split())


def test_a_grid_that_does_not_follow_the_block_is_told(project: Path, kx: Kx) -> None:
    """As where a program makes its grid of more than a size and a block."""
    result = kx(
        *("adopt", "--from-program", BUILT, "--kernel", "copy", "--as", "stays"),
        *("--axis", "block=32,64"),
        cwd=project,
    )
    assert result.exit_code == errors.OK, result.stderr
    assert "the block follows block and the grid does not" in " ".join(result.stderr.split())


def test_a_grid_follows_the_block_as_it_is_written(project: Path, kx: Kx) -> None:
    """Its program starts one CTA more than the kernel needs."""
    words = ("adopt", "--from-program", BUILT, "--kernel", "copy", "--as", "follows")
    result = kx(*words, "--axis", "block=32,64", "--grid", "n/block", cwd=project)
    assert result.exit_code == errors.USAGE
    assert "--grid n/block: that is 4,1,1 here, and the launch had 5,1,1." in result.stderr
    result = kx(*words, "--axis", "block=32,64", "--grid", "(n+1)/block+EXTRA", cwd=project)
    assert "'EXTRA' is not an integer parameter or axis" in " ".join(result.stderr.split())
    assert not (project / "variants/follows").exists()
    result = kx(
        *(*words, "--axis", "block=32,64", "--grid", "n/block+EXTRA", "--value", "EXTRA=1"),
        cwd=project,
    )
    assert result.exit_code == errors.OK, result.stderr
    assert "the grid does not" not in result.stderr
    result = kx("emulate", "follows:block=64", "--json", cwd=project)
    assert result.exit_code == errors.OK, result.stderr
    problem = (project / "variants/follows/problem.py").read_text()
    assert 'grid=(-(-size["n"] // axes["block"]) + size["EXTRA"], 1, 1)' in problem


@pytest.mark.parametrize(
    ("axis", "sentence"),
    [
        ("SPAN=4", "no line `#define SPAN NUMBER`"),
        ("block", "as in BLOCK=128,256, or in block=128,256, which is the block's x"),
        ("N=4", "a parameter of the kernel, or another axis, is n"),
    ],
)
def test_an_axis_that_there_is_not_is_one_sentence(
    axis: str, sentence: str, project: Path, kx: Kx
) -> None:
    result = kx(
        *("adopt", "--from-program", BUILT, "--kernel", "smooth", "--as", "none", "--axis", axis),
        cwd=project,
    )
    assert result.exit_code == errors.USAGE
    assert sentence in " ".join(result.stderr.split())
    assert not (project / "variants/none").exists()


@pytest.mark.parametrize(
    ("kernel", "sentence"),
    [
        ("weighted", "the program sets weights, which no experiment does"),
        ("beyond", "does not come to its end: see kernelexp exec"),
        ("smooth:9", "smooth is launched 3 times, not 9"),
        (
            "smoth",
            "launches no 'smoth', but beyond (1), copy (1), count (1), scale (3), smooth<2> (3)",
        ),
        ("", "say which launch: --kernel NAME"),
    ],
)
def test_what_cannot_be_had_by_itself_is_one_sentence(
    kernel: str, sentence: str, project: Path, kx: Kx
) -> None:
    result = kx("adopt", "--from-program", BUILT, "--kernel", kernel, "--as", "none", cwd=project)
    assert result.exit_code == errors.USAGE, result.stderr
    assert sentence in " ".join(result.stderr.split())
    assert not (project / "variants/none").exists()


def test_another_launch_of_a_kernel_has_another_name_or_replaces_it(project: Path, kx: Kx) -> None:
    words = ("adopt", "--from-program", BUILT, "--kernel")
    assert kx(*words, "smooth:1", cwd=project).exit_code == errors.OK
    again = kx(*words, "smooth<2>:3", cwd=project)
    sentence = "give another name with --as, or replace it: --as smooth --replace.\n"
    assert again.stderr.endswith(sentence)
    replaced = kx(*words, "smooth<2>:3", "--replace", cwd=project)
    assert replaced.exit_code == errors.OK, replaced.stderr
    assert "replaced: the old smooth is in .kernelexp/replaced/smooth\n" in replaced.stdout
    assert "launch 5" in (project / "experiments.yaml").read_text()


def test_a_build_of_its_own_says_what_the_kernel_is_compiled_with(project: Path, kx: Kx) -> None:
    (project.parent / "headers").mkdir()
    shutil.copy(project.parent / "scale.cuh", project.parent / "headers/elsewhere.cuh")
    (project.parent / "other.cu").write_text(PROGRAM.replace("scale.cuh", "elsewhere.cuh"))
    make = "cd .. && nvcc -D FACTOR=2.0f -I headers -arch=sm_90a other.cu -o other"
    result = kx(
        *("adopt", "--from-program", f"--make '{make}' -- ../other", "--kernel", "scale"),
        *("--as", "elsewhere"),
        cwd=project,
    )
    assert result.exit_code == errors.OK, result.stderr
    yaml = (project / "experiments.yaml").read_text()
    assert "-DFACTOR=2.0f, -Ivariants/elsewhere/origin, -std=c++17" in yaml


LEANING = """
__device__ float twice(float x);
__global__ void apart(float* out);
__global__ void beside(float* out) { out[threadIdx.x] = threadIdx.x + 1; }
__global__ void leaning(float* out) { out[threadIdx.x] = twice(threadIdx.x); }
int main() {
    float* out;
    cudaMalloc(&out, 128);
    apart<<<1, 32>>>(out);
    beside<<<1, 32>>>(out);
}
"""
APART = "__global__ void apart(float* out) { out[threadIdx.x] = threadIdx.x + 1; }\n"
TWICE = "__device__ float twice(float x) { return 2 * x; }\n"


@pytest.fixture(scope="module")
def linked(project: Path, usual_tools: Toolchain) -> str:
    """A program of three files whose device code is linked."""
    folder = project.parent / "linked"
    folder.mkdir()
    for name, text in (("leaning", LEANING), ("apart", APART), ("twice", TWICE)):
        (folder / f"{name}.cu").write_text(text)
    sources = sorted(folder.iterdir())
    return f"-- {kept.program(sources, usual_tools, '-rdc=true', include=[folder])}"


@pytest.mark.parametrize(
    ("kernel", "code", "words"),
    [
        ("apart", errors.OK, "entry: apart(float*)"),
        ("beside", errors.USAGE, "its file uses twice of another (-rdc=true)"),
    ],
)
def test_a_kernel_of_linked_device_code_is_taken_if_its_file_needs_no_other(
    kernel: str, code: int, words: str, linked: str, project: Path, kx: Kx
) -> None:
    command = ("adopt", "--from-program", linked, "--kernel", kernel, "--as", f"linked_{kernel}")
    result = kx(*command, cwd=project)
    assert result.exit_code == code, result.stderr
    assert words in " ".join(f"{result.stdout} {result.stderr}".split())


def test_flags_that_a_built_program_does_not_tell_can_be_said(project: Path, kx: Kx) -> None:
    words = ("adopt", "--from-program", BUILT, "--kernel", "scale", "--as", "flagged")
    result = kx(*words, cwd=project)
    assert result.exit_code == errors.BUILD
    assert "name a macro with --flag=-DNAME=VALUE" in " ".join(result.stderr.split())
    result = kx(*words, "--flag=-DFACTOR=2.0f", cwd=project)
    assert result.exit_code == errors.OK, result.stderr


def test_what_a_launch_says_is_no_option(kx: Kx) -> None:
    result = kx("adopt", "--from-program", BUILT, "--kernel", "scale", "--block", "32", cwd=ROOT)
    assert result.exit_code == errors.USAGE
    assert "leave out --block" in result.stderr


def test_a_stored_array_that_is_damaged_is_not_read(tmp_path: Path) -> None:
    name = store(tmp_path, bytes(range(8)))
    problem = str(tmp_path / "problem.py")
    assert read_array(problem, name, "u8", (2, 4)).tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    other = store(tmp_path, bytes(range(8, 16)))
    (tmp_path / "captured" / f"{other}.gz").write_bytes(gzip.compress(bytes(8)))
    with pytest.raises(ConfigurationError, match="is damaged"):
        read_array(problem, other, "u8", (8,))
