"""The 64 bits that an mbarrier is in shared memory, from Hopper on.

Bit 63 is the parity of the phase. Counts stand in 20 bits each, negated: the hardware counts up
until they overflow. Those of pending arrivals begin at bit 43, of expected ones at bit 1, and the
transaction bytes lie between them; of these no program has shown the sign.
"""

from __future__ import annotations

import numpy as np

from warpsim.machine.core.arrays import Array

_COUNT = 1 << 20
_TRANSACTIONS = 1 << 22
_PHASE_AT, _PENDING_AT, _TRANSACTIONS_AT, _EXPECTED_AT = 63, 43, 21, 1


def word(phase: int, pending: int, transactions: int, expected: int) -> int:
    """The 64 bits of an mbarrier: what an arrival returns of it."""
    return (
        (phase & 1) << _PHASE_AT
        | -pending % _COUNT << _PENDING_AT
        | transactions % _TRANSACTIONS << _TRANSACTIONS_AT
        | -expected % _COUNT << _EXPECTED_AT
    )


def counts(words: Array) -> Array:
    """The counts of new mbarriers that uint64 words are, in either phase; -1 for other words."""
    words = words & np.uint64((1 << _PHASE_AT) - 1)
    negated = words >> np.uint64(_EXPECTED_AT) & np.uint64(_COUNT - 1)
    new = negated << np.uint64(_PENDING_AT) | negated << np.uint64(_EXPECTED_AT)
    return np.where(words == new, _COUNT - negated.astype(np.int64), -1)


def parities(words: Array) -> Array:
    """Of the phases of mbarriers that uint64 words are: cuBLAS's begin in the odd one where the
    first wait is for nothing."""
    return (words >> np.uint64(_PHASE_AT)).astype(np.int64)
