"""JSON decoded as types that no thread has used before."""

from __future__ import annotations

import subprocess
import sys

import msgspec
import pytest

from kernelexp.model.decoding import decode

THREADS = """
import sys, threading
from typing import Optional
import msgspec
from kernelexp.model.decoding import decode
sys.setswitchinterval(1e-6)
for _ in range(40):
    kind = type("Leaf", (msgspec.Struct,), {})
    for _ in range(20):
        fields = {f"f{number}": Optional[kind] for number in range(6)}
        names = dict.fromkeys(fields)
        kind = type("Node", (msgspec.Struct,), {"__annotations__": fields, **names})
    together = threading.Barrier(4)
    def first():
        together.wait()
        assert decode(b'{"f0": {"f1": {"f2": {}}}}', kind).f0.f1.f2.f0 is None
        right.append(1)
    right = []
    threads = [threading.Thread(target=first) for _ in range(4)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    assert len(right) == 4
"""


def test_threads_that_first_use_a_type_at_once_all_decode() -> None:
    done = subprocess.run([sys.executable, "-c", THREADS], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_json_that_is_nested_too_deeply_is_none() -> None:
    with pytest.raises(msgspec.DecodeError, match="recursion"):
        decode("[" * 20_000 + "]" * 20_000, list)
