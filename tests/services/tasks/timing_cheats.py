"""Solutions of a softmax that try to look faster than they are; each is a body of forward(x)."""

from __future__ import annotations

from pathlib import Path

PROBLEM = """
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, 1)


ROWS, COLUMNS = {rows}, {columns}


def get_inputs():
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs():
    return []
"""
SOLUTION = """
import ctypes, os, socket, sys, threading, time
import torch

KEPT = {{}}
{top}

class ModelNew(torch.nn.Module):
    def forward(self, x):
        {body}
"""
HONEST = ("", "return torch.softmax(x, 1)")
SLOWER = ("", "return torch.softmax(torch.log_softmax(torch.log_softmax(x, 1), 1), 1)")
STALE = {
    "results kept across calls": ("", "return KEPT.setdefault(0, torch.softmax(x, 1))"),
    "inputs recognised by their address": (
        "",
        "return KEPT.setdefault(x.data_ptr(), torch.softmax(x, 1))",
    ),
    "only the first call does the work": (
        "",
        "if KEPT: return torch.empty_like(x)\n        KEPT[0] = 1\n"
        "        return torch.softmax(x, 1)",
    ),
    "a result that is said to be another type's": (
        "class Lazy(torch.Tensor):\n"
        "    __torch_function__ = classmethod(lambda *_, **__: torch.zeros(()))\n",
        "return torch.zeros_like(x).as_subclass(Lazy)",
    ),
    "right in the first calls only": (
        "",
        "KEPT[0] = KEPT.get(0, 0) + 1\n"
        "        return torch.softmax(x, 1) if KEPT[0] < 10 else torch.softmax(x, 1) + 1",
    ),
    "an end that is reported before the work is done": (
        "",
        "for fd in range(3, 64):\n"
        "            try: os.write(fd, b'done 1\\n')\n"
        "            except OSError: pass\n"
        "        return torch.softmax(x, 1)",
    ),
    "a thread that does the work when the call has returned": (
        "def later(x, y):\n    time.sleep(0.02)\n    y.copy_(torch.softmax(x, 1))\n",
        "y = torch.empty_like(x)\n"
        "        threading.Thread(target=later, args=(x, y)).start()\n"
        "        return y",
    ),
}
"""Wrong where every call has inputs of its own."""
IN_ONE_CALL = {
    "the work of all calls in the first": (
        "SEEN = KEPT\nDONE = {}\n",
        "SEEN.setdefault(x.data_ptr(), x)\n"
        "        if x.data_ptr() == next(iter(SEEN)) or x.data_ptr() not in DONE:\n"
        "            whole = torch.softmax(torch.stack(list(SEEN.values())), 2)\n"
        "            DONE.update(zip(SEEN, whole))\n"
        "        return DONE.pop(x.data_ptr())",
    ),
    "the work of all calls in the last": (
        "SEEN = KEPT\nLATER = []\n",
        "y = torch.empty_like(x)\n"
        "        LATER.append((x, y))\n"
        "        again = x.data_ptr() in SEEN\n"
        "        SEEN.setdefault(x.data_ptr(), x)\n"
        "        if not again or len(LATER) >= len(SEEN):\n"
        "            whole = torch.softmax(torch.stack([a for a, _ in LATER]), 2)\n"
        "            for (_, b), c in zip(LATER, whole): b.copy_(c)\n"
        "            LATER.clear()\n"
        "        return y",
    ),
}
"""Batch and skip: it needs inputs before their call, or answers after it."""
_PLACE = """
BEFORE, NOW, LAST = [], [], [0.0]
def place(x):
    if time.monotonic() - LAST[0] > 1e-3:
        BEFORE[:] = NOW
        NOW.clear()
    LAST[0] = time.monotonic()
    NOW.append(x)
    KEPT[0] = KEPT.get(0, 0) + 1
    return len(NOW) - 1, KEPT[0] > {honest}
"""
"""Where a call is in its row, as far as it can know, and whether enough calls were honest."""
IN_A_ROW = {
    "the work of a row in its first call": (
        _PLACE + "DONE = {{}}\n",
        "i, sure = place(x)\n"
        "        if sure and i == 0 and len(BEFORE) > 1 and BEFORE[0].data_ptr() == x.data_ptr():\n"
        "            whole = torch.softmax(torch.stack(BEFORE), 2)\n"
        "            DONE.clear()\n"
        "            DONE.update(zip([b.data_ptr() for b in BEFORE], whole))\n"
        "        y = DONE.pop(x.data_ptr(), None) if sure else None\n"
        "        return torch.softmax(x, 1) if y is None else y",
    ),
    "the work of two calls in the second": (
        _PLACE + "LATER = []\n",
        "i, sure = place(x)\n"
        "        if not sure: return torch.softmax(x, 1)\n"
        "        y = torch.empty_like(x)\n"
        "        LATER.append((x, y))\n"
        "        if i % 2:\n"
        "            whole = torch.softmax(torch.stack([a for a, _ in LATER]), 2)\n"
        "            for (_, b), c in zip(LATER, whole): b.copy_(c)\n"
        "            LATER.clear()\n"
        "        return y",
    ),
    "every other call of a row left out": (
        _PLACE,
        "i, sure = place(x)\n"
        "        return torch.empty_like(x) if sure and i % 2 else torch.softmax(x, 1)",
    ),
    "one result for a whole row": (
        _PLACE,
        "i, sure = place(x)\n"
        "        if not sure or i == 0: KEPT['y'] = torch.softmax(x, 1)\n"
        "        return KEPT['y'].clone()",
    ),
    "results of a row that are computed when the first is read": (
        _PLACE + "class Lazy(torch.Tensor):\n"
        "    @classmethod\n"
        "    def __torch_function__(cls, f, types, args=(), kwargs=None):\n"
        "        with torch._C.DisableTorchFunctionSubclass():\n"
        "            return f(*[work(a) for a in args], **(kwargs or {{}}))\n"
        "def work(x):\n"
        "    if not isinstance(x, Lazy): return x\n"
        "    return torch.softmax(x.as_subclass(torch.Tensor), 1)\n",
        "i, sure = place(x)\n        return x.as_subclass(Lazy) if sure else torch.softmax(x, 1)",
    ),
    "a mode of torch's that is left on": (
        _PLACE + "class Mode(torch.overrides.TorchFunctionMode):\n"
        "    def __torch_function__(self, f, types, args=(), kwargs=None):\n"
        "        return f(*args, **(kwargs or {{}}))\n",
        "i, sure = place(x)\n"
        "        y = torch.softmax(x, 1)\n"
        "        if sure and 'm' not in KEPT: KEPT.setdefault('m', Mode()).__enter__()\n"
        "        return y",
    ),
}
"""Right until a row was tried."""
NO_GAIN = {
    "timers replaced": (
        "vars(time)['perf_counter'] = vars(time)['monotonic'] = lambda: 0.0\n"
        "vars(torch.cuda)['synchronize'] = lambda *_: None\n"
        "vars(torch.cuda)['Event'] = type('Event', (), {'elapsed_time': lambda *_: 0.0})\n",
        "return torch.softmax(x, 1)",
    ),
    "results kept by content": (
        "",
        "return KEPT.setdefault(float(x.sum()), torch.softmax(x, 1))",
    ),
    "results kept in a file": (
        "",
        "path = f'/dev/shm/{float(x.sum())}'\n"
        "        if not os.path.exists(path): torch.save(torch.softmax(x, 1), path)\n"
        "        return torch.load(path)",
    ),
    "a result that is computed when it is read": (
        "class Lazy(torch.Tensor):\n"
        "    @classmethod\n"
        "    def __torch_function__(cls, f, types, args=(), kwargs=None):\n"
        "        plain = [torch.softmax(a.as_subclass(torch.Tensor), 1)\n"
        "                 if isinstance(a, Lazy) else a for a in args]\n"
        "        return f(*plain, **(kwargs or {}))\n",
        "return x.as_subclass(Lazy)",
    ),
}
"""Right, and no faster for it."""
DEFERRED = {
    "work deferred by a subclass": (
        "class Lazy(torch.Tensor):\n"
        "    @classmethod\n"
        "    def __torch_function__(cls, f, types, args=(), kwargs=None):\n"
        "        with torch._C.DisableTorchFunctionSubclass():\n"
        "            plain = [work(a.as_subclass(torch.Tensor)) if isinstance(a, Lazy) else a\n"
        "                     for a in args]\n"
        "            return f(*plain, **(kwargs or {}))\n"
        "def work(x):\n"
        "    time.sleep(0.02)\n"
        "    return torch.softmax(x, 1)\n",
        "return x.as_subclass(Lazy)",
    ),
    "work deferred by a member of its own": (
        "def work(x):\n    time.sleep(0.02)\n    return torch.softmax(x, 1)\n",
        "y = torch.empty_like(x)\n        y.clone = y.detach = lambda: work(x)\n        return y",
    ),
    "the work of all calls when one is looked at": (
        "class Lazy(torch.Tensor):\n"
        "    @classmethod\n"
        "    def __torch_function__(cls, f, types, args=(), kwargs=None):\n"
        "        if f is torch.Tensor.clone: return args[0]\n"
        "        with torch._C.DisableTorchFunctionSubclass():\n"
        "            if WAITING: work()\n"
        "            plain = [DONE[a.data_ptr()] if isinstance(a, Lazy) else a for a in args]\n"
        "            return f(*plain, **(kwargs or {}))\n"
        "WAITING, DONE = [], {}\n"
        "def work():\n"
        "    time.sleep(0.02)\n"
        "    DONE.update({x.data_ptr(): torch.softmax(x, 1) for x in WAITING})\n"
        "    WAITING.clear()\n",
        "WAITING.append(x)\n        return x.as_subclass(Lazy)",
    ),
}
"""The answer is computed when it is looked at, in 20 ms."""
ON_GPU = {
    "calls of a row on several streams": (
        "",
        "i = KEPT[0] = (KEPT.get(0, 0) + 1) % 8\n"
        "        s = KEPT.setdefault(('s', i), torch.cuda.Stream())\n"
        "        with torch.cuda.stream(s): return torch.softmax(x, 1)",
    ),
    "calls that wait for the one before the last": (
        "",
        "i = KEPT[0] = (KEPT.get(0, 0) + 1) % 8\n"
        "        s = KEPT.setdefault(('s', i), torch.cuda.Stream())\n"
        "        now = torch.cuda.current_stream()\n"
        "        if 'e' in KEPT: now.wait_event(KEPT['e'])\n"
        "        s.wait_stream(now)\n"
        "        with torch.cuda.stream(s): y = torch.softmax(x, 1)\n"
        "        KEPT['e'] = s.record_event()\n"
        "        return y",
    ),
    "a stream that nobody waits for": (
        "",
        "s = KEPT.setdefault('s', torch.cuda.Stream())\n"
        "        with torch.cuda.stream(s): return torch.softmax(x, 1)",
    ),
    "inputs that stay in L2": (
        "d = ctypes.CDLL('libcuda.so.1')\n"
        "torch.cuda.init(); torch.zeros(1, device='cuda')\n"
        "assert d.cuCtxSetLimit(6, ctypes.c_size_t(32 << 20)) == 0\n",
        "return torch.softmax(x, 1)",
    ),
    "inputs that a window of the stream keeps in L2": (
        "d = ctypes.CDLL('libcuda.so.1')\n"
        "torch.cuda.init(); torch.zeros(1, device='cuda')\n"
        "assert d.cuCtxSetLimit(6, ctypes.c_size_t(32 << 20)) == 0\n"
        "class Window(ctypes.Structure):\n"
        "    _fields_ = [('base', ctypes.c_void_p), ('size', ctypes.c_size_t),\n"
        "                ('ratio', ctypes.c_float), ('hit', ctypes.c_int),\n"
        "                ('miss', ctypes.c_int), ('rest', ctypes.c_char * 36)]\n",
        "s = KEPT.setdefault('s', torch.cuda.Stream())\n"
        "        w = Window(x.data_ptr(), min(x.nbytes, 32 << 20), 1.0, 2, 1)\n"
        "        assert d.cuStreamSetAttribute(\n"
        "            ctypes.c_void_p(s.cuda_stream), 1, ctypes.byref(w)) == 0\n"
        "        s.wait_stream(torch.cuda.current_stream())\n"
        "        with torch.cuda.stream(s): y = torch.softmax(x, 1)\n"
        "        torch.cuda.current_stream().wait_stream(s)\n"
        "        return y",
    ),
    "a thread that keeps the GPU busy for the others": (
        "def busy():\n"
        "    a = torch.randn(4096, 4096, device='cuda')\n"
        "    while True:\n"
        "        for _ in range(8): a = torch.softmax(a @ a, 1)\n"
        "        torch.cuda.synchronize()\n"
        "threading.Thread(target=busy, daemon=True).start()\n",
        "return torch.softmax(x, 1)",
    ),
    "a thread that works before the clock": (
        "def early():\n"
        "    while True:\n"
        "        x = KEPT.get('x')\n"
        "        if x is not None:\n"
        "            KEPT['y'] = (float(x.sum()), torch.softmax(x, 1))\n"
        "threading.Thread(target=early, daemon=True).start()\n",
        "KEPT['x'] = x\n"
        "        key, y = KEPT.get('y', (None, None))\n"
        "        return y if key == float(x.sum()) else torch.softmax(x, 1)",
    ),
}
"""Where a card is needed to try."""


def honest_for(calls: int) -> dict[str, tuple[str, str]]:
    """IN_A_ROW, right for so many calls."""
    return {name: (top.format(honest=calls), body) for name, (top, body) in IN_A_ROW.items()}


def write(folder: Path, solution: tuple[str, str], rows: int, columns: int) -> tuple[Path, Path]:
    problem, path = folder / "softmax.py", folder / "solution.py"
    problem.write_text(PROBLEM.format(rows=rows, columns=columns))
    path.write_text(SOLUTION.format(top=solution[0], body=solution[1]))
    return problem, path
