"""Solutions of other people's problems, executed without a GPU."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from schemas import validate
from support import ROOT, Kx

from kernelexp.model import errors
from kernelexp.model.arm import Status
from kernelexp.services.tasks import cascade, modelled
from kernelexp.services.tasks.assessment import Assessment, Confinement, ModelledCall
from kernelexp.services.tasks.cascade import Assignment
from kernelexp.system.toolchain import Toolchain

pytestmark = pytest.mark.xdist_group("tasks")  # One process starts torch.

TASKS = ROOT / "tests/projects/tasks"
LEETGPU = ROOT / "docs/examples/tasks"
SOLVE = (TASKS / "leetgpu/solve.cu").read_text()
Assess = Callable[..., Assessment]


@pytest.fixture
def assess(tools: Toolchain, tmp_path: Path) -> Assess:
    def of_text(name: str | Path, solution: str, text: str, **wanted: object) -> Assessment:
        path = tmp_path / solution
        path.write_text(text)
        result = Assignment(**{"schedules": 0, "largest": 32, **wanted})  # type: ignore[arg-type]
        return cascade.assess(TASKS / name, path, tools, tmp_path, result)

    return of_text


def outcomes(assessed: Assessment) -> dict[str, str]:
    return {stage.name: stage.outcome for stage in assessed.stages}


def test_a_cu_file_of_leetgpu_is_compiled_executed_and_compared(assess: Assess) -> None:
    """And the same machine code, of another text, has the same verdict without that."""
    assessed = assess(LEETGPU, "solve.cu", SOLVE, schedules=1)
    assert assessed.status is Status.UNMEASURED, assessed.sentence
    assert list(outcomes(assessed)) == ["rules", "build", "known", "emulate", "schedules", "time"]
    assert [kernel.name for kernel in assessed.kernels] == ["scale"]
    assert assessed.score == 1.0
    text = SOLVE.replace("size_t i", "size_t at").replace("i < n", "at < n")
    renamed = "// faster\n" + text.replace("y[i] = x[i]", "y[at] = x[at]")
    again = assess(LEETGPU, "other.cu", renamed, schedules=1)
    assert outcomes(again)["known"] == "failed"
    assert again.sentence == assessed.sentence
    assert again.sha256 != assessed.sha256


def test_a_wrong_result_is_said_with_elements(assess: Assess) -> None:
    assessed = assess(LEETGPU, "solve.cu", SOLVE.replace("x[i] * factor", "x[i] + factor"))
    assert (assessed.status, assessed.reason) == (Status.INCORRECT, "wrong_result")
    assert "elements of [0].y are wrong: [0] is " in assessed.sentence
    assert assessed.score == 0.0


def test_an_access_beyond_the_end_is_said_by_line(assess: Assess) -> None:
    assessed = assess(LEETGPU, "solve.cu", SOLVE.replace("if (i < n) ", ""))
    assert assessed.status is Status.CRASHED
    assert (assessed.feedback[0].name, assessed.feedback[0].line) == ("out-of-bounds", 5)
    assert outcomes(assessed)["emulate"] == "failed"


def test_a_source_that_does_not_compile_is_said_by_line(assess: Assess) -> None:
    assessed = assess(LEETGPU, "solve.cu", SOLVE.replace("x[i] *", "z[i] *"))
    assert assessed.status is Status.BUILD_FAILED
    assert 'identifier "z" is undefined' in assessed.feedback[0].sentence
    assert assessed.feedback[0].line == 5
    assert list(outcomes(assessed)) == ["rules", "build"]


def test_a_submission_of_gpumode_gets_its_sizes_and_their_check(assess: Assess) -> None:
    text = (TASKS / "gpumode/submission.py").read_text()
    assessed = assess("gpumode", "submission.py", text)
    assert assessed.status is Status.UNMEASURED, assessed.sentence
    assert [case.name for case in assessed.cases] == ["size=31", "size=32"]
    assert "without a kernel of its own" in assessed.sentence


def test_a_python_solution_that_raises_is_said_by_line(assess: Assess) -> None:
    text = "def custom_kernel(data):\n    return data[7]\n"
    assessed = assess("gpumode", "submission.py", text)
    assert (assessed.status, assessed.feedback[0].line) == (Status.CRASHED, 2)
    assert assessed.sentence == "submission.py:2: IndexError: tuple index out of range"


def test_a_definition_of_flashinfer_is_evaluated_and_traced(tmp_path: Path, kx: Kx) -> None:
    data = json.loads((TASKS / "flashinfer/solution.json").read_text())
    data["sources"][0]["content"] = (
        "import torch\n\ndef run(x, a, y):\n    torch.add(x, a, out=y)\n"
    )
    solution = tmp_path / "solution.json"
    solution.write_text(json.dumps(data))
    arguments = ("evaluate", str(TASKS / "flashinfer"), str(solution), "--trace", "traces.jsonl")
    result = kx(*arguments, "--schedules", "0", "--json", cwd=tmp_path)
    assert result.exit_code == errors.WRONG_RESULT
    validate("assessment", result.stdout)
    traces = [json.loads(line) for line in (tmp_path / "traces.jsonl").read_text().splitlines()]
    assert [trace["workload"]["uuid"] for trace in traces] == ["one", "two"]
    assert {trace["evaluation"]["status"] for trace in traces} == {"INCORRECT_NUMERICAL"}


AXPY = """#include <cuda_runtime.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/function.h>

__global__ void axpy(const float* x, float a, float* y, long n) {
    long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * a;
}

void run(tvm::ffi::TensorView x, double a, tvm::ffi::TensorView y) {
    TVM_FFI_ICHECK_EQ(x.device().device_type, kDLCUDA) << "x is not on a GPU";
    DLDevice device = x.device();
    auto stream = (cudaStream_t)TVMFFIEnvGetStream(device.device_type, device.device_id);
    long n = x.size(0) * x.size(1);
    axpy<<<(n + 127) / 128, 128, 0, stream>>>(
        (const float*)x.data_ptr(), a, (float*)y.data_ptr(), n);
}
TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, run);
"""


@pytest.mark.slow
@pytest.mark.parametrize("good", [True, False])
def test_a_solution_that_tvm_ffi_binds_is_compiled_and_executed(
    assess: Assess, tmp_path: Path, good: bool
) -> None:
    text = AXPY if good else AXPY.replace("if (i < n) ", "")
    spec = {"language": "cuda", "entry_point": "axpy.cu::run", "target_hardware": ["NVIDIA_H100"]}
    solution = {
        "name": "ffi",
        "definition": "axpy",
        "author": "me",
        "spec": spec,
        "sources": [{"path": "axpy.cu", "content": text}],
    }
    assessed = assess("flashinfer", "solution.json", json.dumps(solution))
    if good:
        assert assessed.score == 1.0, assessed.sentence
        assert [kernel.name for kernel in assessed.kernels] == ["axpy"]
    else:
        assert assessed.status is Status.CRASHED
        assert assessed.sentence.startswith(
            "axpy.cu:8: load by thread (96, 0, 0) of block (1, 0, 0)"
        )
        assert "is outside every object, just past the end of" in assessed.sentence


@pytest.mark.parametrize("wrong", ["", "tensor_key", "path"])
def test_inputs_of_a_workload_lie_in_a_safetensors_file(
    assess: Assess, tmp_path: Path, wrong: str
) -> None:
    folder = tmp_path / "definitions/axpy"
    folder.mkdir(parents=True)
    shutil.copy(TASKS / "flashinfer/definition.json", folder)
    save_file({"x": torch.randn(100, 32)}, tmp_path / "x.safetensors")
    held = {"type": "safetensors", "path": "x.safetensors", "tensor_key": "x"}
    inputs = {"x": {**held, wrong: "y"} if wrong else held, "a": {"type": "scalar", "value": 3}}
    line = {
        "definition": "axpy",
        "workload": {"uuid": "held", "axes": {"N": 100}, "inputs": inputs},
    }
    (folder / "workloads.jsonl").write_text(json.dumps(line))
    text = (TASKS / "flashinfer/solution.json").read_text()
    if wrong:
        with pytest.raises(errors.EnvironmentFault, match=r"has no tensor y|lies in no folder"):
            assess(folder, "solution.json", text)
        return
    assessed = assess(folder, "solution.json", text)
    assert assessed.status is Status.UNMEASURED, assessed.sentence
    assert [case.reduced for case in assessed.cases] == [{}]
    assert any("results kept by content pass" in note for note in assessed.not_checked)


WITHOUT_TORCH = """
import torch
from torch.utils.cpp_extension import load_inline

CUDA = r'''
__global__ void scale_add(const float* x, const float* bias, float* y, int n, int features) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i] * 2.0f + bias[i % features], 0.0f);
}
void run(const float* x, const float* bias, float* y, int n, int features) {
    scale_add<<<(n + 127) / 128, 128>>>(x, bias, y, n, features);
}
'''
CPP = '''
#include <pybind11/pybind11.h>
void run(const float* x, const float* bias, float* y, int n, int features);
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
    m.def("run", [](size_t x, size_t b, size_t y, int n, int features) {
        run((const float*)x, (const float*)b, (float*)y, n, features);
    });
}
'''
extension = load_inline("scale_add", CPP, CUDA, no_implicit_headers=True)


class ModelNew(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        self.bias = torch.nn.Parameter(torch.randn(features))

    def forward(self, x):
        y = torch.empty_like(x)
        given = x.data_ptr(), self.bias.data_ptr(), y.data_ptr(), x.numel(), self.bias.numel()
        extension.run(*given)
        return y
"""


@pytest.mark.slow
def test_an_extension_without_torch_s_headers_is_compiled_and_executed(assess: Assess) -> None:
    assessed = assess("kernelbench/problem.py", "solution.py", WITHOUT_TORCH)
    assert [kernel.name for kernel in assessed.kernels] == ["scale_add"], assessed.sentence
    assert assessed.score == 1.0


@pytest.mark.slow
def test_a_torch_extension_of_kernelbench_is_compiled_and_executed(assess: Assess) -> None:
    text = (TASKS / "kernelbench/solution.py").read_text()
    assessed = assess("kernelbench/problem.py", "solution.py", text)
    assert assessed.status is Status.UNMEASURED, assessed.sentence
    assert assessed.kernels[0].name == "scale_add"
    text = text.replace("if (i < n) ", "")
    wrong = assess("kernelbench/problem.py", "solution.py", text, largest=31)
    assert wrong.feedback[0].file == "solution.py"
    assert "out[i] = fmaxf" in text.splitlines()[wrong.feedback[0].line - 1]


@pytest.mark.slow
def test_only_on_request_does_the_model_of_time_end_a_solution(assess: Assess) -> None:
    told = assess(LEETGPU, "solve.cu", SOLVE, modelled=True)
    assert outcomes(told)["model"] == "passed"
    assert told.modelled is not None
    assert [kernel.name for kernel in told.modelled.kernels] == ["scale"]
    pruned = assess(LEETGPU, "solve.cu", SOLVE, prune_us=told.modelled.time_us / 10)
    assert (pruned.status, pruned.reason) == (Status.UNMEASURED, "modelled_slower")
    assert "Nothing was measured" in pruned.sentence
    assert pruned.score == 1.0


def test_a_modelled_time_is_surely_slower_only_beyond_the_model_s_own_error() -> None:
    call = ModelledCall(case="", chip="H200", time_us=20.0)
    assert modelled.slower(call, 10.0)[0] > 1
    low, high = modelled.slower(call, 19.0)
    assert low < 1 < high


def test_what_did_not_hold_is_said_by_where_it_was_executed() -> None:
    assert list(Confinement(where="emulated", measures=("files", "sockets")).gaps()) == []
    words = " ".join(Confinement(where="timed", measures=("sockets",)).gaps())
    assert "Files: on the GPU" in words
    assert "User: on the GPU" in words
    assert "Network" not in words
