"""Reads of what nobody wrote, as SASS has them: found where a result depends on them."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from correct.page import SOURCES as DRIVER
from harness import assemble, compile_cu
from pairs.page import SOURCES, TARGETS
from reported.faults import SOURCES as MACROS

import warpsim
from warpsim.launch import Launch, Pointer

TARGET = "sm_90a"
KERNELS = """
#include "driver.cuh"

// Ten words are there; what a predicate takes away does not matter.
KERNEL(comparison_that_a_guard_absorbs) {
  __shared__ unsigned s[32];
  const unsigned t = threadIdx.x;
  if (t < 10) s[t] = in[t];
  __syncwarp();
  out[t] = t < 10 && s[t] > 5 ? 1 : 2;
}

KERNEL(choice_of_what_is_there) {
  __shared__ unsigned s[32];
  const unsigned t = threadIdx.x;
  if (t < 10) s[t] = in[t];
  __syncwarp();
  const unsigned x = s[t];
  out[t] = t < 10 ? x : 7;
}

KERNEL(byte_of_a_word_of_which_the_rest_is_missing) {
  __shared__ unsigned s[32];
  const unsigned t = threadIdx.x;
  reinterpret_cast<unsigned char *>(s)[4 * t] = in[t];
  __syncwarp();
  out[t] = s[31 - t] & 0xff;
}

KERNEL(copied_through_shared_memory) {
  __shared__ unsigned s[64];
  const unsigned t = threadIdx.x;
  if (t < 10) s[t] = in[t];
  __syncwarp();
  s[32 + t] = s[t];
  __syncwarp();
  if (t < 10) out[t] = s[32 + t];
}

KERNEL(added_where_it_is_there) {
  __shared__ unsigned s[32];
  const unsigned t = threadIdx.x;
  if (t < 10) s[t] = in[t];
  __syncwarp();
  const unsigned x = s[t];
  if (t < 10) atomicAdd(out + t, x);
  atomicMax(out + 32 + t, t < 10 ? x : 7);
}

KERNEL(added_to_memory) {
  __shared__ unsigned s[32];
  const unsigned t = threadIdx.x;
  if (t < 10) s[t] = in[t];
  __syncwarp();
  atomicAdd(out + t, s[t]);
}

KERNEL(least_of_what_is_not_there) {
  __shared__ unsigned s[32], least;
  const unsigned t = threadIdx.x;
  if (t == 0) least = ALL;
  if (t < 10) s[t] = in[t];
  __syncwarp();
  atomicMin(&least, s[t] + t);
  __syncwarp();
  out[t] = least;
}

KERNEL(place_and_old_value_of_an_atomic) {
  __shared__ unsigned s[32];
  const unsigned t = threadIdx.x;
  if (t < 10) s[t] = in[t];
  __syncwarp();
  out[32 + t] = atomicAdd(out + t, s[t] / 2);
}

KERNEL(sum_of_a_warp_added_at_once) {
  __shared__ unsigned s[32];
  const unsigned t = threadIdx.x;
  if (t < 10) s[t] = in[t];
  __syncwarp();
  atomicAdd(out, s[t]);
}

KERNEL(sum_of_what_is_not_there) {
  __shared__ unsigned s[32];
  const unsigned t = threadIdx.x;
  if (t < 10) s[t] = in[t];
  __syncwarp();
  out[t] = s[t] + 1;
}

KERNEL(shuffled_among_those_that_are_there) {
  __shared__ unsigned s[32];
  const unsigned t = threadIdx.x;
  if (t < 10) s[t] = in[t];
  __syncwarp();
  out[t] = __shfl_sync(ALL, s[t], t % 10) + 1;
}

KERNEL(sum_over_shuffles_of_what_is_not_there) {
  __shared__ unsigned s[32];
  const unsigned t = threadIdx.x;
  if (t < 10) s[t] = in[t];
  __syncwarp();
  unsigned sum = s[t];
  for (int i = 16; i; i /= 2) sum += __shfl_xor_sync(ALL, sum, i);
  out[t] = sum;
}

// Rows of A from 8 on, and columns of B from 4 on, are missing: so are these of the product.
__device__ void product_of_a_corner(unsigned *d, const unsigned *in) {
  __shared__ unsigned a[32 * 4], b[32 * 2];
  const unsigned t = threadIdx.x;
  for (unsigned i = 0; i < 4; i += 2) a[4 * t + i] = in[t];
  if (t < 16) b[2 * t] = b[2 * t + 1] = in[t];
  __syncwarp();
  const unsigned *const x = a + 4 * t, *const y = b + 2 * t;
  d[0] = d[1] = d[2] = d[3] = 0;
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7},"
      " {%8, %9}, {%0, %1, %2, %3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
}

KERNEL(corner_of_a_product) {
  unsigned d[4];
  product_of_a_corner(d, in);
  if (threadIdx.x % 4 < 2) out[threadIdx.x] = d[0], out[32 + threadIdx.x] = d[1];
}

KERNEL(product_of_what_is_not_there) {
  unsigned d[4];
  product_of_a_corner(d, in);
  out[threadIdx.x] = d[0];
}

KERNEL(branch_on_what_is_not_there) {
  __shared__ unsigned s[32];
  const unsigned t = threadIdx.x;
  if (t < 10) s[t] = in[t];
  __syncwarp();
  if (s[t] > 5) out[t] = 1;
}

KERNEL(index_that_is_not_there) {
  __shared__ unsigned s[32];
  const unsigned t = threadIdx.x;
  if (t < 10) s[t] = in[t];
  __syncwarp();
  out[s[t] % 32] = 1;
}
"""
RIGHT = (
    "comparison_that_a_guard_absorbs",
    "choice_of_what_is_there",
    "byte_of_a_word_of_which_the_rest_is_missing",
    "copied_through_shared_memory",
    "added_where_it_is_there",
    "shuffled_among_those_that_are_there",
    "corner_of_a_product",
)
WRONG = (
    "sum_of_what_is_not_there",
    "branch_on_what_is_not_there",
    "index_that_is_not_there",
    "added_to_memory",
    "least_of_what_is_not_there",
    "place_and_old_value_of_an_atomic",
    "sum_of_a_warp_added_at_once",
    "sum_over_shuffles_of_what_is_not_there",
    "product_of_what_is_not_there",
)


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> warpsim.Module:
    source = tmp_path_factory.mktemp("unwritten") / "kernels.cu"
    source.write_text(KERNELS)
    return warpsim.load_cubin(
        *assemble(compile_cu(source, target=TARGET, include=[DRIVER]), TARGET)
    )


def reported(module: warpsim.Module, name: str, threads: int = 32) -> set[str]:
    arrays = {name: np.zeros(4096, np.uint32) for name in ("out", "in", "scratch")}
    arrays["in"][:] = np.arange(4096)
    pointers = tuple(Pointer(array=name) for name in arrays)
    launch = Launch(entry=name, grid=(1, 1, 1), block=(threads, 1, 1), arguments=pointers)
    result = warpsim.run(module, launch, arrays)
    return {finding.name for finding in result.findings}


@pytest.mark.parametrize("name", RIGHT)
def test_what_no_result_depends_on_is_no_finding(module: warpsim.Module, name: str) -> None:
    assert reported(module, name) == set()


@pytest.mark.parametrize("name", WRONG)
def test_what_a_result_depends_on_is_one(module: warpsim.Module, name: str) -> None:
    assert reported(module, name) == {"uninitialised-read"}


@functools.cache
def pair(area: str, wrong: bool) -> warpsim.Module:
    defines, target = ["WRONG"] if wrong else [], TARGETS[area]
    text = compile_cu(
        SOURCES / f"{area}.cu", target=target, include=[MACROS, DRIVER], defines=defines
    )
    return warpsim.load_cubin(*assemble(text, target))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["accumulator_that_nobody_cleared", "compacted_by_a_counter"])
@pytest.mark.parametrize("wrong", [False, True])
def test_a_kernel_that_leaves_words_unwritten_is_found(name: str, wrong: bool) -> None:
    found = reported(pair("blocks", wrong), name, threads=64)
    assert found == ({"uninitialised-read"} if wrong else set())
