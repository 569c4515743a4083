"""Values that go from process to process."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kernelexp.model.errors import UsageError
from kernelexp.services.tasks import wire

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
    max_leaves=8,
)


@given(PLAIN)
def test_plain_values_come_back(tmp_path_factory: pytest.TempPathFactory, value: object) -> None:
    path = tmp_path_factory.getbasetemp() / "plain value"
    wire.write(path, value)
    assert wire.read(path) == value


@pytest.mark.parametrize("name", ["float32", "bfloat16", "float8_e4m3fn", "int64", "bool"])
def test_tensors_come_back_with_their_types(tmp_path: Path, name: str) -> None:
    tensor = (torch.arange(12).reshape(3, 4) % 2).to(getattr(torch, name))
    wire.write(tmp_path / "value", {"x": tensor})
    read = wire.read(tmp_path / "value")["x"]
    assert read.dtype == tensor.dtype
    assert torch.equal(read.to(torch.float32), tensor.to(torch.float32))


def test_a_transposed_tensor_stays_transposed(tmp_path: Path) -> None:
    tensor = torch.arange(12.0).reshape(3, 4).T
    wire.write(tmp_path / "value", tensor)
    read = wire.read(tmp_path / "value")
    assert read.stride() == tensor.stride()
    assert torch.equal(read, tensor)


def test_a_tensor_that_leaves_its_file_is_refused(tmp_path: Path) -> None:
    wire.write(tmp_path / "value", torch.zeros(4))
    file = tmp_path / "value.json"
    data = json.loads(file.read_text())
    data["tensor"]["shape"] = [1 << 40]
    file.write_text(json.dumps(data))
    with pytest.raises(ValueError, match="leaves its file"):
        wire.read(tmp_path / "value")


def test_what_would_need_a_pickle_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="type object can't be handed to another process"):
        wire.write(tmp_path / "value", [object()])


@pytest.mark.parametrize(
    "value",
    [
        lambda: [torch.randn(5), {"x": torch.randn(3, 7).t(), "n": 3}],
        lambda: torch.randn(3, requires_grad=True),
        lambda: torch.randn(4, 6).to(torch.bfloat16)[:, :3],
        lambda: torch.randn(wire.STACKED // 4 + 8),
        lambda: torch.randn(int(torch.randint(1, 9, ()))),
        lambda: (),
    ],
)
def test_digests_that_are_taken_together_are_those_of_each(value: Callable[[], Any]) -> None:
    values = [value() for _ in range(5)]
    assert wire.digests(values) == [wire.digest(one) for one in values]


def test_a_digest_is_of_all_tensors() -> None:
    three = torch.tensor([3], dtype=torch.int32)
    assert wire.digest([three, {"x": torch.tensor([4, 5])}, torch.empty(0), "text"]) == 12


def test_memory_has_the_bytes_of_a_layout() -> None:
    value = [torch.randn(3, 5), torch.randn(4, 6).T, torch.randn(2, 8)[:, ::2]]
    tree, size = wire.layout(value)
    flat = torch.zeros(size, dtype=torch.uint8)
    wire.fill(tree, flat, value)
    for tensor, at in zip(value[:2], wire.places(tree), strict=False):
        memory = wire.memory(tensor)
        assert torch.equal(flat[at : at + memory.numel()], memory)
    assert wire.memory(torch.zeros(1).expand(8)) is None
