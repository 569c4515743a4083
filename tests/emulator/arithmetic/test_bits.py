"""Logic, shifts, bytes and fields of words, against Python's integers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warpsim.arithmetic import bits

ALL = 0xFFFFFFFF
WORD = st.one_of(st.integers(0, ALL), st.integers(0, 70), st.sampled_from([ALL, 1 << 31, ALL >> 1]))
BITS = {"U32": 32, "S32": 32, "U64": 64, "S64": 64}

some = settings(max_examples=40)


def word(value: int) -> np.ndarray:
    return np.array([value], np.uint32)


@some
@given(WORD, WORD, WORD, st.integers(0, 255))
def test_a_logic_function_is_looked_up_bit_by_bit(a, b, c, table):
    want = sum(
        (table >> ((a >> i & 1) << 2 | (b >> i & 1) << 1 | c >> i & 1) & 1) << i for i in range(32)
    )
    assert bits.lop3(word(a), word(b), word(c), table)[0] == want


@some
@given(st.booleans(), st.booleans(), st.booleans(), st.integers(0, 255))
def test_a_function_of_predicates_is_looked_up(p, q, r, table):
    result = bits.truth(table, *(np.array([item]) for item in (p, q, r)))
    assert result[0] == bool(table >> (p << 2 | q << 1 | r) & 1)


@some
@given(WORD, WORD, WORD)
def test_bytes_are_picked_with_their_sign(a, selector, b):
    octets, want = (b << 32 | a).to_bytes(8, "little"), 0
    for position in range(4):
        chosen = selector >> 4 * position & 15
        octet = octets[chosen & 7]
        want |= (0xFF * (octet >> 7) if chosen & 8 else octet) << 8 * position
    assert bits.permute(word(a), word(selector), word(b))[0] == want


@some
@given(WORD, WORD, WORD, st.booleans(), st.sampled_from(list(BITS)), st.booleans(), st.booleans())
def test_a_shift_of_two_words_is_clamped_or_wraps(low, shift, high, left, kind, wraps, upper):
    width, both = BITS[kind], high << 32 | low
    count = shift % width if wraps else min(shift, width)
    if left:
        moved = both << count
    else:
        signed = both - (1 << 64) if kind[0] == "S" and both >> 63 else both
        moved = signed >> count
    want = (moved >> 32 if upper else moved) & ALL
    result = bits.funnel(
        word(low), word(shift), word(high), left=left, kind=kind, wraps=wraps, upper=upper
    )
    assert result[0] == want


@some
@given(WORD, st.booleans(), st.booleans())
def test_the_highest_bit_is_counted_from_either_end(a, signed, shift):
    value = ~a & ALL if signed and a >> 31 else a
    at = value.bit_length() - 1
    want = ALL if at < 0 else 31 - at if shift else at
    assert bits.highest(word(a), signed=signed, shift=shift)[0] == want


@some
@given(WORD)
def test_bits_are_reversed(a):
    assert bits.reverse(word(a))[0] == int(f"{a:032b}"[::-1], 2)


@some
@given(WORD, WORD, st.booleans())
def test_a_mask_has_so_many_ones(position, length, wraps):
    if wraps:
        position, length = position % 32, length % 32
    want = ((1 << min(length, 32)) - 1) << min(position, 32) & ALL
    assert bits.mask(word(position), word(length), wraps=wraps)[0] == want


@some
@given(WORD, WORD, st.booleans(), st.booleans())
def test_low_bits_are_extended(a, length, signed, wraps):
    length = length % 32 if wraps else min(length, 32)
    low = a & ((1 << length) - 1)
    if signed and length and low >> (length - 1):
        low -= 1 << length
    result = bits.extend(word(a), word(length), signed=signed, wraps=wraps)
    assert result[0] == low & ALL


@pytest.mark.parametrize(
    ("mode", "selector", "want"),
    [("F4E", 1, 0x44332211 >> 8 | 0x55 << 24), ("B4E", 1, 0x77881122), ("RC8", 2, 0x33333333),
     ("ECL", 2, 0x44333333), ("ECR", 2, 0x33332211), ("RC16", 1, 0x44334433)],
)  # fmt: skip
def test_the_modes_of_a_permutation_stand_for_selectors(mode, selector, want):
    result = bits.permute(word(0x44332211), word(selector), word(0x88776655), mode)
    assert result[0] == want
