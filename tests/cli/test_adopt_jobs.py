"""kernelexp adopt with several --entry: launches in order, on arrays that they share."""

from __future__ import annotations

import shutil
from pathlib import Path

import kept
import pytest
from support import Kx

from kernelexp.evidence import build
from kernelexp.model import errors

SOURCE = """__global__ void parts(const float* in, float* sums, int n) {
    __shared__ float tile[128];
    int i = blockIdx.x * 128 + threadIdx.x;
    tile[threadIdx.x] = i < n ? in[i] : 0;
    __syncthreads();
    for (int step = 64; step; step /= 2) {
        if (threadIdx.x < step) tile[threadIdx.x] += tile[threadIdx.x + step];
        __syncthreads();
    }
    if (threadIdx.x == 0) sums[blockIdx.x] = tile[0];
}
__global__ void clear(float* y) { *y = 0; }
__global__ void total(const float* parts, float* y, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) atomicAdd(y, parts[i]);
}
__global__ void other(float* y) { *y = 1; }
int main() { other<<<1, 1>>>(nullptr); }
"""
JOB = (
    *("--entry", "parts<<<n/128, 128>>>(x, sums, n)", "--entry", "clear<<<1, 1>>>(y)"),
    *("--entry", "total<<<n/16384, 128>>>(sums, y, n/128)", "--arch", "sm_90a"),
    *("--shape", "x=n", "--shape", "sums=n/128", "--shape", "y=1", "--value", "n=1000"),
)


@pytest.fixture
def empty(same_path: Path, hashed: Path, kx: Kx) -> Path:
    kx("init", str(same_path / "own"), "--empty", cwd=same_path)
    (same_path / "sum.cu").write_text(SOURCE)
    shutil.copytree(hashed, same_path / "own" / build.CACHE)
    kept.share_builds(same_path / "own")
    return same_path / "own"


def adopt(kx: Kx, root: Path, *words: str) -> tuple[int, str]:
    result = kx("adopt", "../sum.cu", *JOB, *words, cwd=root)
    return result.exit_code, " ".join(f"{result.stdout} {result.stderr}".split())


def test_a_job_of_several_launches_is_right_at_once(empty: Path, kx: Kx) -> None:
    code, text = adopt(kx, empty, "--reference", "y=x.sum().reshape(1)")
    assert code == errors.OK, text
    assert "note: sums is written by one launch and read by a later one" in text
    assert "y correct, its one element" in text
    assert "__global__ void other" not in (empty / "variants/parts/origin/sum.cu").read_text()


def test_a_launch_that_is_left_out_is_missed(empty: Path, kx: Kx) -> None:
    words = [*JOB[:2], *JOB[4:], "--output", "sums", "--reference", "y=x.sum().reshape(1)"]
    padded = "torch.nn.functional.pad(x, (0, 24)).reshape(-1, 128).sum(1)"
    result = kx("adopt", "../sum.cu", *words, "--reference", f"sums={padded}", cwd=empty)
    assert result.exit_code == errors.WRONG_RESULT
    text = " ".join(result.stdout.split())
    assert "element of y is wrong" in text
    assert "of sums" not in text


MEANS = """__global__ void gather(const float* x, float* sums, unsigned* counts, int n, int bins) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    atomicAdd(&sums[i % bins], x[i]);
    atomicInc(&counts[i % bins], 0x7fffffff);
}
__global__ void divide(const float* sums, const unsigned* counts, float* means) {
    means[threadIdx.x] = sums[threadIdx.x] / counts[threadIdx.x];
}
"""


def test_what_starts_as_zero_and_is_only_read_at_the_end_is_no_result(empty: Path, kx: Kx) -> None:
    (empty.parent / "means.cu").write_text(MEANS)
    result = kx(
        *("adopt", "../means.cu", "--arch", "sm_90a", "--value", "n=96,bins=8"),
        *("--entry", "gather<<<n/64, 64>>>(x, sums, counts, n, bins)"),
        *("--entry", "divide<<<1, bins*1>>>(sums, counts, means)"),
        *("--shape", "x=n", "--shape", "sums=bins", "--shape", "counts=bins"),
        *("--shape", "means=bins", "--zero", "sums", "--zero", "counts"),
        *("--reference", "means=x.reshape(-1, 8).mean(0)"),
        cwd=empty,
    )
    assert result.exit_code == errors.OK, result.stderr
    assert "means correct, all 8 elements" in " ".join(result.stdout.split())
    assert "block=(size['bins'] * 1, 1, 1)" in (
        (empty / "variants/gather/problem.py").read_text().replace('"', "'")
    )


def test_arguments_that_no_entry_has_leave_nothing(empty: Path, kx: Kx) -> None:
    result = kx("adopt", "../sum.cu", "--arch", "sm_90a", "--entry", "parts(x, sums)", cwd=empty)
    assert result.exit_code == errors.USAGE
    assert "parts has 3 parameters (in_, sums, n), and 2 arguments" in " ".join(
        result.stderr.split()
    )
    assert not (empty / "variants/parts").exists()


def test_an_instance_beside_others_of_the_source_is_launched_by_its_symbol(
    empty: Path, kx: Kx
) -> None:
    (empty / "fill.cu").write_text(
        "template <int N> __global__ void fill(int* y) { *y = N; }\n"
        "template __global__ void fill<1>(int*);\ntemplate __global__ void fill<2>(int*);\n"
    )
    kx("adopt", "fill.cu", "--entry", "void fill<2>(int*)<<<1, 1>>>", cwd=empty)
    assert 'entry="_Z4fillILi2EEvPi"' in (empty / "variants/fill/problem.py").read_text()


TILED = """constexpr int THREADS = 256;
__global__ void parts(const float* x, float* sums, int n) {
    extern __shared__ float tile[];
    int i = blockIdx.x * THREADS + threadIdx.x;
    tile[threadIdx.x] = i < n ? x[i] : 0;
    __syncthreads();
    for (int step = THREADS / 2; step; step /= 2) {
        if (threadIdx.x < step) tile[threadIdx.x] += tile[threadIdx.x + step];
        __syncthreads();
    }
    if (threadIdx.x == 0) sums[blockIdx.x] = tile[0];
}
__global__ void total(const float* sums, float* y, int count, int width) {
    y[0] = 0;
    for (int i = 0; i < count; i++) y[0] += sums[i] * (width == THREADS);
}
"""
PARTS = "parts<<<n/THREADS, THREADS, THREADS*sizeof(float)>>>(x, sums, n)"
TOTAL = "total<<<1, 1>>>(sums, y, n/THREADS, THREADS)"


def adopt_tiled(kx: Kx, root: Path, parts: str, total: str, *words: str) -> tuple[int, str]:
    (root.parent / "tile.cu").write_text(TILED)
    result = kx(
        *("adopt", "../tile.cu", "--arch", "sm_90a", "--entry", parts, "--entry", total),
        *("--axis", "THREADS=128,256", "--shape", "x=n", "--shape", "y=1", "--value", "n=1000"),
        *("--reference", "y=x.sum().reshape(1)", *words),
        cwd=root,
    )
    return result.exit_code, " ".join(f"{result.stdout} {result.stderr}".split())


def test_all_that_depends_on_an_axis_follows_it(empty: Path, kx: Kx) -> None:
    code, text = adopt_tiled(kx, empty, PARTS, TOTAL, "--shape", "sums=n/THREADS")
    assert code == errors.OK, text
    drafted = (empty / "variants/parts/problem.py").read_text()
    assert drafted.count("dynamic_smem_bytes") == 1
    result = kx("emulate", "parts", "--set", "threads=128", cwd=empty)
    assert result.exit_code == errors.OK, result.stdout


@pytest.mark.parametrize(
    ("parts", "total", "words", "sentence"),
    [
        (PARTS.replace("n/T", "n/"), TOTAL, (), "the grid 'n/HREADS': 'HREADS' is not an integer"),
        pytest.param(
            *(PARTS.replace("THREADS*", "N*"), TOTAL, ()),
            "shared memory 'N*4': 'N' is not an integer",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            *(PARTS, TOTAL.replace("n/", "2*m/"), ()),
            "--entry: argument '2*m/threads': 'm' is not an",
            marks=pytest.mark.slow,
        ),
        (PARTS, TOTAL, ("--output", "sums"), "--shape sums: threads is an axis, and an input or"),
    ],
)
def test_a_name_that_can_t_stand_there_is_a_sentence_that_says_where(
    empty: Path, kx: Kx, parts: str, total: str, words: tuple[str, ...], sentence: str
) -> None:
    code, text = adopt_tiled(kx, empty, parts, total, "--shape", "sums=n/THREADS", *words)
    assert code == errors.USAGE
    assert sentence in text


def test_a_finding_says_in_which_launch_it_is(empty: Path, kx: Kx) -> None:
    (empty.parent / "sum.cu").write_text(SOURCE.replace("i < count", "i <= count"))
    code, text = adopt(kx, empty, "--reference", "y=x.sum().reshape(1)")
    assert code == errors.WRONG_RESULT
    assert "PTX line" in text
    assert "launch 3, total, CTA 0" in text
