"""Forms of SASS that few kernels have: bytes of a register, early returns, their own address."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from harness import assemble, compile_cu

import warpsim as emulator
from warpsim.launch import Launch, Pointer

SOURCE = """
#include <cassert>
extern "C" __global__ void bytes(const int *x, float *y) {
  int v = x[threadIdx.x];
  for (int byte = 0; byte < 4; ++byte)
    y[4 * threadIdx.x + byte] = (float)(unsigned char)(v >> 8 * byte);
}
extern "C" __global__ void asserts(const int *x, float *y) {
  assert(x[threadIdx.x] >= 0);
  y[threadIdx.x] = x[threadIdx.x];
}
__device__ __noinline__ void doubled(float *y, int n) {
  if (n <= 0) return;
  for (int i = 0; i < n; i++) *y = *y * 2 + 1;
}
extern "C" __global__ void early(const int *x, float *y) {
  doubled(y + threadIdx.x, x[threadIdx.x] % 3);
  doubled(y + threadIdx.x, x[0]);
}
extern "C" __global__ void leaves(const int *x, float *y) {
  float a = __int_as_float(x[threadIdx.x] << 29), b = __int_as_float(x[threadIdx.x] >> 8 << 30);
  if (a == 0.f && b != 2.f) return;
  y[threadIdx.x] = 1;
}
"""
X = np.arange(2, 34, dtype=np.int32) * 0x1234567 & 0x7FFF_FFFF
X[0] = 2
WANT = {
    "bytes": X.view(np.uint8).astype(np.float32),
    "asserts": X.astype(np.float32),
    # n times y = 2y + 1, from 0.
    "early": 2.0 ** (X % 3 + 2) - 1,
    "leaves": np.float32(((X & 3) != 0) | (X >> 8 & 3 == 1)),
}


@pytest.fixture(scope="module", params=["sm_80", "sm_89"])
def listed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    source: Path = tmp_path_factory.mktemp("rare") / "rare.cu"
    source.write_text(SOURCE)
    return request.param, *assemble(compile_cu(source, target=request.param), request.param)


@pytest.mark.parametrize("entry", WANT)
def test_it_does_what_its_source_says(listed, entry: str) -> None:
    _, cubin, text = listed
    arrays = {"x": X.copy(), "y": np.zeros(128 if entry == "bytes" else 32, np.float32)}
    arguments = (Pointer(array="x"), Pointer(array="y"))
    launch = Launch(entry=entry, grid=(1, 1, 1), block=(32, 1, 1), arguments=arguments)
    result = emulator.run(emulator.load_cubin(cubin, text), launch, arrays)
    assert result.findings == ()
    assert arrays["y"].tolist() == WANT[entry].tolist()


def test_these_forms_are_among_them(listed) -> None:
    arch, _, text = listed
    assert "@!P0 RET.REL.NODEC" in text
    assert "LEPC R" in text
    assert "EXIT P" in text
    assert arch != "sm_80" or "R0.B3" in text
