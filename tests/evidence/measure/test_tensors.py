"""Arrays as tensors: how they begin, and whether they were changed."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from kernelexp.evidence.measure.tensors import POISON, allocate, as_bytes, fingerprint
from kernelexp.model.problem import Array


def test_an_array_begins_as_poison_as_zero_or_as_the_input_of_its_name():
    arrays = {
        "y": Array(shape=(2, 3), dtype="bf16"),
        "tickets": Array(shape=(2,), dtype="u64", zero=True),
        "c": Array(shape=(2,), dtype="f64"),
    }
    inputs = {"c": torch.tensor([1.0, 2.0], dtype=torch.float64)}
    result = allocate(arrays, inputs)
    assert set(as_bytes(result["y"]).tolist()) == {POISON}
    assert set(as_bytes(result["tickets"]).tolist()) == {0}
    assert result["c"].tolist() == [1.0, 2.0]
    result["c"][0] = 7
    assert inputs["c"][0] == 1.0


@given(st.data())
def test_the_fingerprint_sees_any_change_and_any_exchange(data):
    raw = data.draw(st.lists(st.integers(0, 255), min_size=1, max_size=70))
    tensor = torch.tensor(raw, dtype=torch.uint8)
    before = fingerprint(tensor)
    one, other = (data.draw(st.integers(0, len(raw) - 1)) for _ in range(2))
    changed = tensor.clone()
    changed[one], changed[other] = tensor[other].item(), tensor[one].item()
    assert (fingerprint(changed) == before) == torch.equal(changed, tensor)
    flipped = tensor.clone()
    flipped[one] ^= 1 << data.draw(st.integers(0, 7))
    assert fingerprint(flipped) != before


def test_the_fingerprint_sees_words_exchanged_that_differ_in_their_top_bit_alone():
    words = torch.tensor([0, -(1 << 63), 5], dtype=torch.int64)
    assert fingerprint(words) != fingerprint(words[[1, 0, 2]])
