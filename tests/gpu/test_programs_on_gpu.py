"""A program with a kernel and a main of its own, timed on a real GPU: run KX_GPU=1 pytest."""

from __future__ import annotations

from pathlib import Path

from gpu_kernels import ARCH, needs_gpu
from support import Kx

from kernelexp.logs import records
from kernelexp.model import errors

YAML = f"""\
version: 1
kernels:
  copy:
    title: y = x
    problem: 64 Mi floats
    runner: program
    program:
      correct: PASSED
      arguments: ['{{fault}}']
      figures:
        bandwidth: {{pattern: '([0-9.e+]+) GB/s', unit: GB/s, better: more}}
        time: {{pattern: '([0-9.e+]+) ms', unit: ms}}
    targets:
      {ARCH}:
        source: copy.cu
        axes:
          passes: {{values: [1, 2], default: 1, about: over the data}}
          fault: {{values: [none, fault], default: none}}
experiments:
  C1:
    kernel: copy
    arch: {ARCH}
    title: Two passes
    baseline: {{}}
    candidate: [{{passes: 2}}, {{fault: fault}}]
    hypothesis: Half the bandwidth; the other one faults.
"""
SOURCE = r"""
#include <cstdio>
#include <cstring>
enum class Fault { none, fault };
__global__ void copy(const float* x, float* y) {
    long i = blockIdx.x * 256L + threadIdx.x;
    for (int pass = 0; pass < KX_PASSES; ++pass) ((volatile float*)y)[i] = ((volatile float*)x)[i];
}
int main(int, char** argv) {
    const long count = 1 << 26;
    float *x, *y;
    cudaEvent_t begin, end;
    cudaEventCreate(&begin);
    cudaEventCreate(&end);
    if (cudaMalloc(&x, 4 * count) || cudaMalloc(&y, 4 * count)) return 2;
    cudaMemset(x, 0, 4 * count);
    if (!strcmp(argv[1], "fault")) y = nullptr;
    for (int i = 0; i < 20; ++i) copy<<<count / 256, 256>>>(x, y);
    cudaEventRecord(begin);
    for (int i = 0; i < 50; ++i) copy<<<count / 256, 256>>>(x, y);
    cudaEventRecord(end);
    if (cudaError_t error = cudaDeviceSynchronize()) {
        fprintf(stderr, "%s\n", cudaGetErrorString(error));
        return 1;
    }
    float ms;
    cudaEventElapsedTime(&ms, begin, end);
    printf("%g GB/s, %g ms\nPASSED\n", 50 * 8.0 * count / ms / 1e6, ms / 50);
}
"""


@needs_gpu
def test_a_program_is_judged_by_its_bandwidth_and_a_fault_takes_nothing_with_it(
    tmp_path: Path, kx: Kx
) -> None:
    (tmp_path / "variants/copy").mkdir(parents=True)
    (tmp_path / "variants/copy/copy.cu").write_text(SOURCE)
    (tmp_path / "experiments.yaml").write_text(YAML)
    result = kx("run", "C1", "--budget", "1m", cwd=tmp_path)
    assert result.exit_code == errors.WRONG_RESULT, result.stderr
    (record,), _ = records.read(tmp_path, "C1")
    slower, faulty = record.candidates
    assert slower.verdict.status == "REJECTED", slower.verdict.sentence
    assert slower.verdict.reason == "worse"
    assert faulty.verdict.status == "CRASHED"
    assert "an illegal memory access was encountered" in faulty.verdict.sentence
    assert record.baseline.program is not None
    (kernel,) = record.baseline.program.kernels
    assert kernel.registers > 0
