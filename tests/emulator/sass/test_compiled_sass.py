"""SASS in compiled code: the same bits and counters as in Python."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest
from harness import assemble, compile_cu

import warpsim
from warpsim import compiled
from warpsim.launch import Launch, Pointer, Scalar
from warpsim.machine.core.forms import OF_SASS

SOURCE = Path(__file__).parents[1] / "kernels" / "sass_forms.cu"
TYPES = {
    "words": (np.int32, 256),
    "more": (np.int32, 256),
    "bytes": (np.int8, 256),
    "reals": (np.float32, 1024),
}


@functools.cache
def module() -> warpsim.Module:
    return warpsim.load_cubin(*assemble(compile_cu(SOURCE, target="sm_90a"), "sm_90a"))


def launched(entry: str) -> tuple[bytes, warpsim.Result]:
    kind, count = TYPES[entry]
    octets = np.random.default_rng(5).integers(0, 256, count * np.dtype(kind).itemsize)
    x = octets.astype(np.uint8).view(kind)
    arrays = {"x": x, "out": np.zeros(count, np.float32 if entry == "reals" else np.int32)}
    scalar = Scalar(type="f32", value=1.5) if entry == "reals" else Scalar(type="s32", value=11)
    arguments = (*(Pointer(array=name) for name in arrays), scalar)
    launch = Launch(entry=entry, grid=(2, 1, 1), block=(128, 1, 1), arguments=arguments)
    result = warpsim.run(module(), launch, arrays)
    return arrays["out"].tobytes(), result


@pytest.mark.parametrize("entry", TYPES)
def test_sass_has_the_bits_and_counters_of_python(entry: str) -> None:
    out, result = launched(entry)
    compiled.unload()
    plain, expected = launched(entry)
    assert out == plain
    assert any(out)
    assert result.counters == expected.counters
    assert result.findings == expected.findings == ()


def test_every_operation_of_sass_is_one_that_instructions_have() -> None:
    entries = (module().entries[name] for name in TYPES)
    blocks = (block for program in entries for block in program.blocks.values())
    assert {form.operation for block in blocks for form in block.forms if form} >= OF_SASS
