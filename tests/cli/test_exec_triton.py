"""`exec -- python script.py`, where the script launches Triton kernels on CPU tensors."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from schemas import validate
from support import ROOT

from kernelexp.model import errors

pytestmark = pytest.mark.xdist_group("exec")
needs_triton = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="runs Triton: pip install triton"
)

RIGHT = """
import torch, triton, triton.language as tl

@triton.jit
def softmax(x, out, stride, n, B: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, B)
    v = tl.load(x + row * stride + i, mask=i < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(out + row * stride + i, e / tl.sum(e, axis=0), mask=i < n)

def config(m, n, warps):
    return triton.Config({"BM": m, "BN": n, "BK": 32}, num_warps=warps)

@triton.autotune([config(32, 32, 2), config(64, 64, 4)], key=["M"])
@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    sums = tl.zeros((BM, BN), tl.float32)
    for first in range(0, K, BK):
        k = first + tl.arange(0, BK)
        x = tl.load(a + m[:, None] * K + k, mask=(m[:, None] < M) & (k < K), other=0.0)
        y = tl.load(b + k[:, None] * N + n, mask=(k[:, None] < K) & (n < N), other=0.0)
        sums = tl.dot(x, y, sums)
    tl.store(c + m[:, None] * N + n, sums, mask=(m[:, None] < M) & (n < N))

@triton.jit
def histogram(x, counts, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.atomic_add(counts + tl.load(x + i, mask=i < n, other=0), 1, mask=i < n)

device = triton.runtime.driver.active.get_active_torch_device()
x = torch.randn(37, 300, device=device)
out = torch.empty_like(x)
softmax[(37,)](x, out, x.stride(0), 300, B=512)
torch.testing.assert_close(out, torch.softmax(x, 1))

a, b = torch.randn(97, 80).half(), torch.randn(80, 113).half()
c = torch.empty(2, 97, 113)
grid = lambda meta: (triton.cdiv(97, meta["BM"]), triton.cdiv(113, meta["BN"]))
matmul[grid](a, b, c[1], 97, 113, 80)
torch.testing.assert_close(c[1], a.float() @ b.float(), rtol=1e-3, atol=1e-3)

x = torch.randint(0, 16, (5000,), dtype=torch.int32)
counts = torch.zeros(16, dtype=torch.int32)
histogram[(5,)](x, counts, 5000, B=1024)
assert counts.tolist() == torch.bincount(x, minlength=16).tolist()
print(triton.testing.do_bench(lambda: histogram[(5,)](x, counts, 5000, B=1024)))
"""

WRONG = """
@triton.jit
def kernel(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    value = tl.load(x + i)
    tl.store(out + i, value, mask=i < n)
    tl.store(out, tl.program_id(0).to(tl.float32))

x = torch.randn(1000)
out = torch.empty(1000)
kernel[(4,)](x, out, 1000, B=256)
"""


def run(script: str, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    (folder / "script.py").write_text(script)
    argv = [sys.executable, "-m", "kernelexp", "exec", *words, "--", sys.executable, "script.py"]
    return subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)


def mistakes_of(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    validate("exec", done.stdout)
    every: list[dict[str, Any]] = json.loads(done.stdout)["mistakes"]
    return [mistake for mistake in every if mistake["level"] == "finding"]


@needs_triton
@pytest.mark.parametrize("device", ["H200", pytest.param("L4", marks=pytest.mark.slow)])
def test_kernels_give_what_torch_gives_and_take_no_time(tmp_path: Path, device: str) -> None:
    done = run(RIGHT, tmp_path, "--device", device)
    assert done.returncode == errors.OK, done.stderr
    assert done.stdout == "nan\n"
    assert "0 findings; 6 launches" in " ".join(done.stderr.split())


CUDA = """
import torch, triton, triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

@triton.jit
def product(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    sums = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        sums = tl.dot(a.load([m, k]), b.load([k, n]), sums)
    c.store([m, n], sums.to(tl.float16))

@triton.jit
def double(x, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(x + i, 2 * tl.load(x + i))

device = torch.device("cuda")
assert torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)
a, b = (torch.randn(128, 128, device=device, dtype=torch.float16) for _ in range(2))
c = torch.empty_like(a)
assert c.is_cuda and c.device.type == "cuda" and (a + b).is_cuda and not c.cpu().is_cuda
made = lambda x: TensorDescriptor.from_tensor(x, [64, 64])
product[(2, 2)](made(a), made(b), made(c), 128, 64, 64, 64)
torch.testing.assert_close(c.float(), a.float() @ b.float(), rtol=1e-2, atol=1e-2)

before = c.cpu()
flat = c.view(-1)
double[(64,)](flat, B=256)
torch.testing.assert_close(flat.cpu(), 2 * before.view(-1))
assert torch.nn.Linear(4, 4).cuda().weight.is_cuda
part = torch.empty(512, device="cuda")
part[:256] = 1
double[(2,)](part, B=256)
"""


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    """Both scripts after one another: torch and Triton take 4 s to begin with."""
    return run(CUDA + WRONG, tmp_path_factory.mktemp("triton"), "--json")


def line_of(text: str) -> int:
    """Of the script that has all faults."""
    return 1 + (CUDA + WRONG).splitlines().index(text)


@needs_triton
def test_a_cuda_device_lies_in_the_cpus_memory(faulty: subprocess.CompletedProcess[str]) -> None:
    """Descriptors of the host too; what torch.empty gives out is unwritten until it is written."""
    note = 'note: there is no CUDA device: tensors on "cuda" lie in'
    assert note in " ".join(faulty.stderr.split())
    unwritten, *_ = mistakes_of(faulty)
    call = f"script.py:{line_of('double[(2,)](part, B=256)')}"
    assert (unwritten["name"], unwritten["call"]) == ("uninitialised-read", call)
    assert "byte 1,024 of the storage of x" in unwritten["sentence"]


@needs_triton
def test_faults_name_the_scripts_lines_and_the_argument(
    faulty: subprocess.CompletedProcess[str],
) -> None:
    assert faulty.returncode == 1  # the script's own: a CUDA error ends it
    assert "cudaErrorIllegalAddress" in faulty.stderr
    _, outside, race = mistakes_of(faulty)
    call = f"script.py:{line_of('kernel[(4,)](x, out, 1000, B=256)')}"
    load = line_of("    value = tl.load(x + i)")
    assert (outside["name"], outside["line"], outside["call"]) == ("out-of-bounds", load, call)
    assert f"past the end of the storage of x ({call}) (4,000 bytes)" in outside["sentence"]
    assert (race["name"], race["line"]) == ("race", load + 2)


COMPILED = """
import torch

@torch.compile
def scaled(x, y):
    return torch.nn.functional.gelu(2 * x + y).sum(dim=1)

x, y = (torch.randn(64, 300, device="cuda") for _ in range(2))
sums = scaled(x, y)
assert sums.is_cuda
torch.testing.assert_close(sums, torch.nn.functional.gelu(2 * x + y).sum(dim=1))
scaled(torch.empty_like(x), y)
"""


@needs_triton
@pytest.mark.slow  # torch's compiler alone takes most of 8 s
def test_what_torch_compiles_is_launched_on_the_emulator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "torchinductor"))
    done = run(COMPILED, tmp_path, "--json")
    assert done.returncode == errors.WRONG_RESULT, done.stderr
    (unwritten,) = mistakes_of(done)
    at = "script.py:4"  # the compiled function
    assert (unwritten["name"], unwritten["call"]) == ("uninitialised-read", at)


def test_a_sitecustomize_of_the_users_still_runs(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "sitecustomize.py").write_text("import sys; sys.own = 'ran'\n")
    script = f"import sys; sys.stdout.write(sys.own); assert '{ROOT}' not in sys.own"
    (tmp_path / "script.py").write_text(script)
    argv = ["env", f"PYTHONPATH={tmp_path / 'own'}:{ROOT}", sys.executable, "-m", "kernelexp"]
    argv += ["exec", "--", sys.executable, "script.py"]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (errors.OK, "ran")
