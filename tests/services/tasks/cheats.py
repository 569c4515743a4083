"""Cheats that were published, as solutions of the cumsum of tests/projects/tasks/gpumode, or of the
kernel of docs/examples/tasks: docs/red-team.md has them as a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

GM = "reference-kernels"
BOT = "kernelbot"
BENCH = "pygpubench"
KB = "KernelBench"
ARENA = "KernelArena"
MAKORA = "makora"
HONEST = "torch.cumsum(data[0], dim=1)"
SHARED = """#include <cuda_runtime.h>

__global__ void scale(const float* x, float* y, float factor, size_t n) {
    extern __shared__ float kept[];
    size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    if (i < n) y[i] = kept[threadIdx.x] * factor;
}

extern "C" void solve(const float* x, float* y, float factor, size_t n) {
    scale<<<(n + 127) / 128, 128, 128 * sizeof(float)>>>(x, y, factor, n);
    cudaDeviceSynchronize();
}
"""
EMPTY = """#include <cuda_runtime.h>

__global__ void scale(const float* x, float* y, float factor, size_t n) {}

extern "C" void solve(const float* x, float* y, float factor, size_t n) {
    scale<<<(n + 127) / 128, 128>>>(x, y, factor, n);
    cudaDeviceSynchronize();
}
"""
BY_POINTER = """#include <cuda_runtime.h>
#include <cstdlib>
#include <map>
#include <vector>

__global__ void scale(const float* x, float* y, float factor, size_t n) {
    size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    if (i < n) y[i] = x[i] * factor;
}

extern "C" void solve(const float* x, float* y, float factor, size_t n) {
    static std::map<size_t, float*> kept;
    float*& copy = kept[n];
    if (!copy) {
        cudaMalloc(&copy, n * sizeof(float));
        scale<<<(n + 127) / 128, 128>>>(x, copy, factor, n);
    }
    cudaMemcpy(y, copy, n * sizeof(float), cudaMemcpyDeviceToDevice);
}
"""


class Cheat(NamedTuple):
    """A solution that is no solution."""

    text: str
    reason: str
    """Why it is stopped, as an assessment has it; empty: for any."""
    published: tuple[str, ...]
    stops: str


def _kernel(body: str, top: str = "") -> str:
    return f"{top}def custom_kernel(data):\n    {body}\n"


SUBMISSIONS = {
    "a timer and a comparison patched behind the rule's back": Cheat(
        _kernel(
            "return torch.zeros_like(data[0])",
            "vars(torch)['allclose'] = lambda *_, **__: True\nvars(torch.cuda)['Event'] = None\n",
        ),
        "wrong_result",
        (f"{GM} #162", f"{ARENA}: patching timing"),
        "the clock and the comparison are in other processes",
    ),
    "the reference imported": Cheat(
        _kernel("return data[0]", "from reference import check_implementation\n"),
        "raised",
        (),
        "it is not there",
    ),
    "results kept by shape": Cheat(
        _kernel(f"return kept.setdefault(data[0].shape, {HONEST})", "kept = {}\n"),
        "stale",
        ("tensara #238",),
        "a second call has other contents",
    ),
    "inputs recognised by their address": Cheat(
        _kernel(f"return kept.setdefault(data[0].data_ptr(), {HONEST})", "kept = {}\n"),
        "stale",
        (f"{BOT} #501", "tensara #238"),
        "a second call has other contents at the same address",
    ),
    "answers of the published seeds": Cheat(
        _kernel(
            "n = data[0].shape[0]\n"
            "    x = torch.randn(n, n, generator=torch.Generator().manual_seed(1))\n"
            "    return torch.cumsum(x, dim=1)"
        ),
        "wrong_result",
        (f"{BOT} cheat-rng",),
        "seeds are drawn after the solution is handed in",
    ),
    "not a number": Cheat(
        _kernel("return torch.full_like(data[0], float('nan'))"),
        "wrong_result",
        (f"{BENCH} #7",),
        "NaN and infinity agree with themselves only",
    ),
    "memory that may hold the reference's result": Cheat(
        _kernel("return torch.empty_like(data[0])"),
        "wrong_result",
        (f"{KB} result_reuse",),
        "new memory is filled with 0xff, which is NaN",
    ),
    "the inputs changed, so that any answer is right": Cheat(
        _kernel("return data[0].zero_()"),
        "wrong_result",
        (f"{BOT} cheat-input", f"{KB} zero_out"),
        "the reference has its own inputs",
    ),
    "the input as the answer": Cheat(
        _kernel("return data[0].clone()"),
        "wrong_result",
        (f"{ARENA}: identity kernel",),
        "every element is compared",
    ),
    "fewer bits than asked for": Cheat(
        _kernel("return torch.cumsum(data[0].half(), dim=1).float()"),
        "wrong_result",
        (f"{ARENA}: precision downgrade",),
        "the problem's tolerance, with every element compared",
    ),
    "a tensor that equals everything": Cheat(
        "class Liar(torch.Tensor):\n"
        "    __eq__ = lambda self, other: True\n"
        "    __torch_function__ = classmethod(lambda *_, **__: True)\n"
        + _kernel("return torch.zeros_like(data[0]).as_subclass(Liar)"),
        "",
        (),
        "its bytes are compared",
    ),
    "tensors of the harness found by the garbage collector": Cheat(
        _kernel(
            "own = {id(t) for t in data}\n"
            "    for t in gc.get_objects():\n"
            "        same = type(t) is torch.Tensor and t.shape == data[0].shape\n"
            "        if same and id(t) not in own:\n"
            "            return t\n"
            "    return torch.zeros_like(data[0])",
            "import gc\n",
        ),
        "wrong_result",
        (f"{BENCH} #7", f"{BENCH} #23"),
        "the expected answer is in another process",
    ),
    "an exit before the work, with a report of success": Cheat(
        _kernel(
            "open(sys.argv[3] + '/told.json', 'w').write('{\"built\": true}')\n    os._exit(0)"
        ),
        "wrong_result",
        (f"{GM} #162: forged result",),
        "an answer that is missing is wrong",
    ),
    "a verdict written to every open descriptor": Cheat(
        _kernel(
            "for fd in range(256):\n"
            "        try: os.write(fd, b'check: pass\\nbenchmark.0.mean: 1\\n')\n"
            "        except OSError: pass\n"
            "    os._exit(0)"
        ),
        "",
        (f"{BOT} cheat-fd", f"{BENCH} #7", f"{BENCH} #15"),
        "what it says of itself is believed nowhere",
    ),
    "an endless loop": Cheat(
        _kernel("while True: pass"), "limit", (), "limits of time and of instructions"
    ),
}
KERNELS = {
    "a kernel without instructions": Cheat(
        EMPTY, "wrong_result", (f"{ARENA}: no-op kernel",), "every element is compared"
    ),
    "shared memory that was never written": Cheat(
        SHARED,
        "uninitialised-read",
        (f"{ARENA}: shared memory overflow",),
        "the emulator knows what was written",
    ),
    "results kept in a map of C++": Cheat(
        BY_POINTER,
        "stale",
        (f"{ARENA}: caching",),
        "a second call has other contents",
    ),
}
NO_KERNEL = {
    "a kernel behind a condition that no test meets": Cheat(
        "import triton\n"
        "import triton.language as tl\n\n\n"
        "@triton.jit\n"
        "def kernel(x, n: tl.constexpr):\n"
        "    at = tl.arange(0, n)\n"
        "    tl.store(x + at, tl.load(x + at))\n\n\n"
        + _kernel(f"if data[0].numel() > 1 << 40: kernel[(1,)](data[0], 16)\n    return {HONEST}"),
        "no_gpu",
        (f"{MAKORA}: ghost optimisation branch",),
        "`kernels` is empty, and the sentence says so",
    ),
    "torch's own operation": Cheat(
        _kernel(f"return {HONEST}"),
        "no_gpu",
        (f"{MAKORA}: baseline kernel", f"{ARENA}: baseline kernel"),
        "`kernels` is empty, and the sentence says so",
    ),
}
"""Right, with nothing of their own."""


TIMED: dict[str, tuple[tuple[str, ...], str]] = {
    "results kept across calls": (
        (f"{GM} #160", f"{BOT} #501", "tensara #238"),
        "each call has other contents",
    ),
    "inputs recognised by their address": ((f"{GM} #160",), "contents change, addresses stay"),
    "only the first call does the work": ((f"{GM} #104",), "an answer of every turn is compared"),
    "right in the first calls only": (("llm.c #851",), "answers are compared while it is timed"),
    "a result that is said to be another type's": ((f"{GM} #161",), "its bytes are compared"),
    "a thread that does the work when the call has returned": (
        (f"{ARENA}: thread injection",),
        "the answer is copied when the call has returned",
    ),
    "an end that is reported before the work is done": (
        (f"{GM} #162: forged result",),
        "an answer is asked for after its digest, which has to be its own",
    ),
    "the work of all calls in the first": (
        (f"{GM} #104",),
        "part of a call's inputs comes when the call before is done",
    ),
    "the work of all calls in the last": (
        (f"{GM} #104",),
        "an answer is copied before the next call's inputs are whole",
    ),
    "the work of a row in its first call": (
        (f"{GM} #104",),
        "part of some calls' inputs comes right before them, of calls drawn by chance",
    ),
    "the work of two calls in the second": (
        (f"{GM} #104",),
        "part of some answers is taken before the next call, in the order of the stream",
    ),
    "every other call of a row left out": ((f"{GM} #104",), "some answers of a row are compared"),
    "one result for a whole row": ((f"{GM} #160",), "each call of a row has other contents"),
    "results of a row that are computed when the first is read": (
        (f"{GM} #161", f"{ARENA}: lazy evaluation"),
        "what is read in a row are tensors of torch's own",
    ),
    "a mode of torch's that is left on": ((), "none may be on when answers are read"),
    "timers replaced": (
        (f"{GM} #162", f"{ARENA}: patching timing"),
        "the clock is in another process",
    ),
    "results kept by content": ((f"{GM} #160",), "no contents come twice"),
    "results kept in a file": ((f"{GM} #160",), "no contents come twice"),
    "a result that is computed when it is read": (
        (f"{GM} #161", f"{ARENA}: lazy evaluation"),
        "the digest reads all of it before the clock stops",
    ),
    "work deferred by a subclass": (
        (f"{GM} #161",),
        "20 ms of work when it is looked at are 20 ms of its time",
    ),
    "work deferred by a member of its own": (
        (f"{GM} #161",),
        "20 ms of work when it is looked at are 20 ms of its time",
    ),
    "the work of all calls when one is looked at": (
        (f"{GM} #161",),
        "what is lazy is digested before the next call",
    ),
    "calls of a row on several streams": (
        (f"{KB} non_default_stream",),
        "part of some answers is taken in the order of the stream",
    ),
    "calls that wait for the one before the last": ((), "the same"),
    "a stream that nobody waits for": (
        (f"{KB} non_default_stream", f"{ARENA}: stream injection"),
        "all streams are waited for",
    ),
    "inputs that stay in L2": (
        ("llm.c #851",),
        "they are new, L2 is overwritten, its persisting part reset",
    ),
    "inputs that a window of the stream keeps in L2": (("llm.c #851", f"{BENCH} #49"), "the same"),
    "a thread that keeps the GPU busy for the others": (
        (),
        "the reference is timed again when the solution has ended",
    ),
    "a thread that works before the clock": (
        (),
        "the time to take inputs is compared with that of a process that does nothing",
    ),
}
"""Solutions of timing_cheats by name: where they were published, and what stops them."""


def rows() -> list[str]:
    """The page's first table."""
    every = {**SUBMISSIONS, **KERNELS, **NO_KERNEL}
    return _table({name: (cheat.published, cheat.stops) for name, cheat in every.items()})


def timed_rows() -> list[str]:
    """Its second."""
    return _table(TIMED)


def _table(cheats: Mapping[str, tuple[tuple[str, ...], str]]) -> list[str]:
    stopped: dict[str, list[str]] = {}
    for name, (published, stops) in cheats.items():
        where = f" ({', '.join(published)})" if published else ""
        stopped.setdefault(stops, []).append(name + where)
    lines = [f"| {stops} | {'; '.join(names)} |" for stops, names in stopped.items()]
    return ["| What stops it | Cheats, and where they were published |", "|---|---|", *lines]
