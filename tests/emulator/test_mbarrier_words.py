"""The 64 bits of mbarriers."""

from __future__ import annotations

import numpy as np

from warpsim.machine.core.mbarrier_words import counts, parities, word


def test_a_new_mbarrier_may_begin_in_either_phase() -> None:
    words = np.array([word(phase, 3, 0, 3) for phase in (0, 1)], np.uint64)
    assert counts(words).tolist() == [3, 3]
    assert parities(words).tolist() == [0, 1]
    assert words[1] == 0xFFFF_E800_001F_FFFA  # as cuBLAS's nvjet writes it


def test_one_in_use_is_not_a_new_one() -> None:
    assert counts(np.array([word(0, 2, 0, 3), word(0, 3, 16, 3)], np.uint64)).tolist() == [-1, -1]
