"""Atomic updates in compiled code and in Python; kernels whose CTAs wait for each other."""

from __future__ import annotations

import numpy as np
import pytest

import warpsim
from warpsim import compiled
from warpsim.arithmetic.reductions import GLOBAL_ADD, GLOBAL_ADD_64, Combine, reduction
from warpsim.machine.memory.arena import Arena
from warpsim.machine.sync.atomics import _sequence

INTEGERS = [reduction(n, t) for n in ("add", "min", "max") for t in ("u32", "s32", "u64", "s64")]
BITS = [reduction(n, t) for n in ("and", "or", "xor", "exch") for t in ("b32", "b64")]
COUNTS = [reduction(n, "u32") for n in ("inc", "dec")]
REALS = [reduction("add", t) for t in ("f32", "f64", "f16", "bf16x2")]
EVERY = [*INTEGERS, *BITS, *COUNTS, *REALS, GLOBAL_ADD, GLOBAL_ADD_64, None]
SPECIAL = (0, 1, 0x80000000, 0x7F800000, 0xFFC00001, 0x7FA00001, 0x00400000, 0x3F800000)


def updated(function: Combine | None, dtype: type[np.generic]) -> tuple[bytes, bytes]:
    """(memory, old values) after 64 lanes with few words."""
    rng, arena = np.random.default_rng(5), Arena(1024)
    words = rng.choice(np.array(SPECIAL, np.uint64), 128)
    arena.view(8, 1)[:128] = words | words[::-1] << np.uint64(32)
    offsets = rng.integers(0, 6, (2, 32)) * np.dtype(dtype).itemsize
    lanes = rng.random((2, 32)) < 0.8
    operands = [rng.choice(np.array(SPECIAL, np.uint64), (2, 32)).astype(dtype) for _ in range(2)]
    old = np.zeros((2, 32), dtype)
    given = operands if function is None else operands[:1]
    _sequence(arena, offsets, lanes, given, function, old)
    return arena.data.tobytes(), old.tobytes()


@pytest.mark.parametrize("function", EVERY, ids=lambda f: f.name if f else "cas")
def test_compiled_code_updates_words_as_python_does(function: Combine | None) -> None:
    name = function.name if function else "b64"
    dtype = np.uint64 if "64" in name else np.uint16 if name.endswith(".f16") else np.uint32
    assert compiled.is_loaded()
    fast = updated(function, dtype)
    compiled.unload()
    assert fast == updated(function, dtype)


LOOP = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out) {
  .reg .u64 %p; .reg .b32 %r; .reg .pred %q;
  ld.param.u64 %p, [out];
  BEGIN
  atom.global.add.u32 %r, [%p], 1;
  setp.eq.u32 %q, %r, 7;
  END
  st.global.u32 [%p+4], %r;
  ret;
}
"""


@pytest.mark.parametrize(
    ("begin", "end", "polls"),
    [("", "", False), ("AGAIN:", "@%q bra AGAIN;", True), ("@%q bra LAST;", "LAST:", False)],
    ids=["straight", "loop", "skipped"],
)
def test_ctas_can_wait_for_each_other_where_an_atomic_is_in_a_loop(
    begin: str, end: str, polls: bool
) -> None:
    ptx = LOOP.replace("BEGIN", begin).replace("END", end)
    assert warpsim.load(ptx).entries["k"].image.polls is polls
