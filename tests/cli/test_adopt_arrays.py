"""kernelexp adopt: axes of a source, TMA descriptors, and inputs that a fault can't hide behind."""

from __future__ import annotations

import shutil
from pathlib import Path

import kept
import pytest
from support import Kx

from kernelexp import project
from kernelexp.evidence import build
from kernelexp.model import errors

UNPACK = """#include <cstdint>
#define LANES 8
constexpr int THREADS = 128;
template <int STEP>
__global__ void unpack(const uint32_t* w, float* y, int n) {
    int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= n) return;
    float sum = 0;
    for (int j = 0; j < LANES; ++j) sum += (w[i] >> (STEP * j)) & 15;
    y[i] = sum;
}
"""
NIBBLES = "((w.long()[:, None] >> (4 * torch.arange(8))) & 15).sum(1)"
LAUNCH = (
    *("--arch", "sm_90a", "--block", "128", "--shape", "w=n", "--shape", "y=n"),
    *("--value", "n=1000", "--reference", f"y={NIBBLES}"),
)
TMA = """#include <cuda.h>
__global__ void fill(const __grid_constant__ CUtensorMap to, int value) {
    __shared__ alignas(128) int tile[8][32];
    for (int row = 0; row < 8; ++row) tile[row][threadIdx.x] = value + row;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned from = __cvta_generic_to_shared(&tile);
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];"
                     ::"l"(&to), "r"(blockIdx.x * 32), "r"(0), "r"(from) : "memory");
        asm volatile("cp.async.bulk.commit_group;");
        asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    }
}
"""
WITH_LIBCUDACXX = """#include <cuda.h>
#include <cuda/barrier>
namespace cde = cuda::device::experimental;
__global__ void fill(const __grid_constant__ CUtensorMap to, int value) {
    __shared__ alignas(128) int tile[8][32];
    for (int row = 0; row < 8; ++row) tile[row][threadIdx.x] = value + row;
    cde::fence_proxy_async_shared_cta();
    __syncthreads();
    if (threadIdx.x == 0) {
        cde::cp_async_bulk_tensor_2d_shared_to_global(&to, blockIdx.x * 32, 0, &tile);
        cde::cp_async_bulk_commit_group();
        cde::cp_async_bulk_wait_group_read<0>();
    }
}
"""


@pytest.fixture
def empty(same_path: Path, hashed: Path, kx: Kx) -> Path:
    kx("init", str(same_path / "own"), "--empty", cwd=same_path)
    (same_path / "unpack.cu").write_text(UNPACK)
    (same_path / "fill.cu").write_text(TMA)
    shutil.copytree(hashed, same_path / "own" / build.CACHE)
    kept.share_builds(same_path / "own")
    return same_path / "own"


def adopt(kx: Kx, root: Path, entry: str, *words: str) -> tuple[int, str]:
    result = kx("adopt", "../unpack.cu", "--entry", entry, *LAUNCH, *words, cwd=root)
    return result.exit_code, " ".join(f"{result.stdout} {result.stderr}".split())


def test_a_wrong_shift_of_the_upper_nibbles_is_seen(empty: Path, kx: Kx) -> None:
    code, result = adopt(kx, empty, "unpack<5>", "--grid", "n/128")
    assert code == errors.WRONG_RESULT
    assert "elements of y are wrong" in result
    code, result = adopt(kx, empty, "unpack<4>", "--grid", "n/128", "--kernel", "right")
    assert code == errors.OK, result


def test_constants_template_arguments_and_macros_become_axes(empty: Path, kx: Kx) -> None:
    axes = ("--axis", "THREADS=64,128", "--axis", "STEP=4,5", "--axis", "LANES=4,8")
    code, answer = adopt(kx, empty, "unpack<4>", "--grid", "n/THREADS", *axes)
    assert code == errors.OK, answer
    for old, new in (
        ("constexpr int THREADS = 128;", "constexpr int THREADS = KX_THREADS;"),
        ("#define LANES 8", "#define LANES KX_LANES"),
    ):
        assert f"-{old}" in answer
        assert f"+{new}" in answer
    assert "&unpack<KX_STEP>;" in answer
    loaded = project.load(empty)
    own = loaded.kernels["unpack"].targets["sm_90a"].axes
    assert {name: axis.default for name, axis in own.items()} == {
        "threads": 128,
        "step": 4,
        "lanes": 8,
    }
    result = kx("emulate", "unpack", "--set", "threads=64", cwd=empty)
    assert result.exit_code == errors.OK, result.stderr
    assert kx("emulate", "unpack", "--set", "step=5", cwd=empty).exit_code == errors.WRONG_RESULT


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--grid", "n/128", "--axis", "ROWS=1,2"), "no template argument ROWS"),
        (("--grid", "n/128", "--block", "2000"), "2,000 threads; a CTA has 1,024 at most"),
        (("--grid", "n/128", "--output", "z"), "--output: 'z' is not an array of the kernel"),
    ],
)
def test_a_mistake_in_an_option_leaves_nothing(
    empty: Path, kx: Kx, words: tuple[str, ...], sentence: str
) -> None:
    code, result = adopt(kx, empty, "unpack<4>", *words)
    assert code == errors.USAGE
    assert sentence in result
    assert not (empty / "variants/unpack").exists()


def test_an_array_behind_a_tensor_map_is_an_output(empty: Path, kx: Kx) -> None:
    (empty.parent / "fill.cu").write_text(WITH_LIBCUDACXX)
    known = (
        *("--arch", "sm_90a", "--block", "32", "--grid", "N/32", "--shape", "to=8,N"),
        *("--tensor-map", "to=s32:32xROWS", "--value", "N=64,ROWS=8", "--value", "value=3"),
        *("--reference", "to=(value + torch.arange(8)[:, None]).expand(8, N).double()"),
    )
    result = kx("adopt", "../fill.cu", *known, cwd=empty)
    assert result.exit_code == errors.OK, result.stderr
    assert "to correct, all 512 elements" in " ".join(result.stdout.split())
    assert 'box=(32, size["ROWS"]),' in (empty / "variants/fill/problem.py").read_text()


def test_a_tensor_map_may_lie_in_memory(empty: Path, kx: Kx) -> None:
    """As a pointer to one that the host has copied to the device."""
    text = TMA.replace("const __grid_constant__ CUtensorMap to", "const CUtensorMap* to")
    (empty.parent / "fill.cu").write_text(text.replace("&to", "to"))
    known = (
        *("--arch", "sm_90a", "--block", "32", "--grid", "N/32", "--shape", "to=8,N"),
        *("--tensor-map", "to=s32:32x8", "--value", "N=64", "--value", "value=3"),
        *("--reference", "to=(value + torch.arange(8)[:, None]).expand(8, N).double()"),
    )
    result = kx("adopt", "../fill.cu", *known, cwd=empty)
    assert result.exit_code == errors.OK, result.stderr
    assert "to correct, all 512 elements" in " ".join(result.stdout.split())


def test_what_is_not_said_of_a_tensor_map_is_blank(empty: Path, kx: Kx) -> None:
    result = kx("adopt", "../fill.cu", "--arch", "sm_90a", cwd=empty)
    assert result.exit_code == errors.OK, result.stderr
    for what in ("the shape of to", "elements that one copy takes", "none, 32B, 64B or 128B"):
        assert what in result.stdout


def test_a_header_that_another_header_lacks_is_left_empty(empty: Path, kx: Kx) -> None:
    folder = empty.parent / "library"
    folder.mkdir()
    (folder / "deep.h").write_text("#pragma once\n#include <absent/config.h>\n#define FACTOR 3\n")
    program = empty.parent / "program"
    (program / ".git").mkdir(parents=True)  # the library is none of its own folders
    (program / "grow.cu").write_text(
        "#include <deep.h>\n__global__ void grow(float* y) { y[threadIdx.x] = FACTOR; }\n"
    )
    known = (
        "--block",
        "32",
        "--grid",
        "1",
        "--shape",
        "y=32",
        "--reference",
        "y=torch.full((32,), 3.0)",
    )
    words = ("--arch", "sm_90a", f"--flag=-I{folder}", *known)
    result = kx("adopt", "../program/grow.cu", *words, cwd=empty)
    assert result.exit_code == errors.OK, result.stderr
    assert (empty / "variants/grow/origin/stubs/absent/config.h").is_file()


def test_what_the_compiler_could_not_choose_among_is_shown(empty: Path, kx: Kx) -> None:
    (empty.parent / "twice.cu").write_text(
        "#include <cuda_fp16.h>\n__global__ void twice(half* x, float y) { x[0] = x[0] * y; }\n"
    )
    result = kx("adopt", "../twice.cu", "--arch", "sm_90a", cwd=empty)
    assert result.exit_code == errors.BUILD
    assert 'function "operator*(const __half &, const __half &)"' in " ".join(result.stderr.split())


@pytest.mark.slow
def test_a_source_with_types_of_pytorch_compiles_by_itself(empty: Path, kx: Kx) -> None:
    (empty.parent / "grow.cu").write_text(
        "#include <c10/util/Half.h>\n#include <ATen/cuda/CUDAContext.h>\n"
        "__global__ void grow(const c10::Half* x, float* y, int n) {\n"
        "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "    if (i < n) y[i] = C10_WARP_SIZE * static_cast<float>(x[i]);\n}\n"
        "void host(at::Tensor x) { grow<<<1, 1>>>(x.data_ptr<c10::Half>(), nullptr, 0); }\n"
    )
    known = ("--block", "128", "--grid", "n/128", "--shape", "x=n", "--shape", "y=n")
    words = ("--arch", "sm_90a", *known, "--value", "n=300", "--reference", "y=32*x")
    result = kx("adopt", "../grow.cu", *words, cwd=empty)
    assert result.exit_code == errors.OK, result.stderr
    assert "y correct, all 300 elements" in " ".join(result.stdout.split())


def test_the_type_of_an_array_of_the_source_s_own_structures_can_be_said(
    empty: Path, kx: Kx
) -> None:
    (empty.parent / "pairs.cu").write_text(
        "struct Pair { unsigned char bits; };\n"
        "__global__ void low(const Pair* w, float* y) {\n"
        "    y[threadIdx.x] = w[threadIdx.x].bits & 15;\n}\n"
    )
    known = ("--block", "64", "--grid", "1", "--shape", "w=64", "--shape", "y=64")
    words = ("--arch", "sm_90a", *known, "--reference", "y=w.long() & 15")
    result = kx("adopt", "../pairs.cu", *words, "--dtype", "w=u8", cwd=empty)
    assert result.exit_code == errors.OK, result.stderr
    assert "y correct, all 64 elements" in " ".join(result.stdout.split())


def test_a_tensor_map_may_have_dimensions_of_its_own(empty: Path, kx: Kx) -> None:
    known = (
        *("--arch", "sm_90a", "--block", "32", "--grid", "N/32", "--shape", "to=2,4*N"),
        *("--value", "N=64", "--value", "value=3", "--value", "rows=8"),
        *("--reference", "to=(value + torch.arange(8)[:, None]).expand(8, N).reshape(2, -1)"),
    )
    words = (*known, "--tensor-map", "to=s32:32x8:none:N,rows:4*N")
    result = kx("adopt", "../fill.cu", *words, cwd=empty)
    assert result.exit_code == errors.OK, result.stderr
    assert "to correct, all 512 elements" in " ".join(result.stdout.split())
    words = (*known, "--kernel", "other", "--tensor-map", "to=s32:32x8:none:N:4*N")
    result = kx("adopt", "../fill.cu", *words, cwd=empty)
    assert result.exit_code == errors.USAGE
    assert "a box of 2 dimensions has as many extents" in " ".join(result.stderr.split())


def test_an_array_may_be_a_pointer_in_one_launch_and_a_descriptor_in_another(
    empty: Path, kx: Kx
) -> None:
    clear = "__global__ void clear(int* p) { p[threadIdx.x] = 7; }\n"
    (empty.parent / "fill.cu").write_text(
        TMA.replace("__global__ void fill", f"{clear}__global__ void fill")
    )
    known = (
        *("--entry", "fill<<<1, 32>>>(to, value)", "--entry", "clear<<<1, 32>>>(to)"),
        *("--arch", "sm_90a", "--shape", "to=8,32", "--tensor-map", "to=s32:32x8"),
        *("--value", "value=3", "--reference"),
        "to=torch.cat([torch.full((1, 32), 7), (3 + torch.arange(1, 8)[:, None]).expand(7, 32)])"
        ".double()",
    )
    result = kx("adopt", "../fill.cu", *known, cwd=empty)
    assert result.exit_code == errors.OK, f"{result.stdout} {result.stderr}"
    assert "to correct, all 256 elements" in " ".join(result.stdout.split())


PAIRS = """#include <cooperative_groups.h>
namespace cg = cooperative_groups;
constexpr int PAIR = 2;
__global__ void swap(const float* x, float* y) {
    __shared__ float own[32];
    cg::cluster_group cluster = cg::this_cluster();
    own[threadIdx.x] = x[blockIdx.x * 32 + threadIdx.x];
    cluster.sync();
    const float* other = cluster.map_shared_rank(own, PAIR - 1 - cluster.block_rank());
    y[blockIdx.x * 32 + threadIdx.x] = other[threadIdx.x];
    cluster.sync();
}
void launch(cudaLaunchAttribute* attribute) { attribute->val.clusterDim.x = PAIR; }
"""
SWAPPED = (
    *("--block", "32", "--grid", "n/32", "--shape", "x=n", "--shape", "y=n", "--value", "n=128"),
    *("--reference", "y=x.reshape(2, 2, 32).flip(1).reshape(-1)"),
)


def test_the_cluster_of_the_host_code_is_launched(empty: Path, kx: Kx) -> None:
    (empty.parent / "pairs.cu").write_text(PAIRS)
    result = kx("adopt", "../pairs.cu", *SWAPPED, "--arch", "sm_90a", cwd=empty)
    assert result.exit_code == errors.OK, result.stderr
    assert "cluster: PAIR,1,1, as the source launches it" in result.stdout
    assert "cluster=(2, 1, 1)," in (empty / "variants/swap/problem.py").read_text()


def test_a_cluster_that_nobody_has_said_is_asked_for(empty: Path, kx: Kx) -> None:
    (empty.parent / "pairs.cu").write_text(PAIRS.replace("clusterDim.x = PAIR", "priority = 1"))
    words = ("adopt", "../pairs.cu", *SWAPPED[:-2], "--arch", "sm_90a")
    result = kx(*words, cwd=empty)
    assert "swap asks for its place in a cluster" in " ".join(result.stderr.split())
    kx(*words, "--cluster", "PAIR", "--kernel", "other", cwd=empty)
    assert "cluster=(2, 1, 1)," in (empty / "variants/other/problem.py").read_text()
