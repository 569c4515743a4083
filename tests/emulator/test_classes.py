"""What an opcode counts as, and where arrays begin."""

from __future__ import annotations

import numpy as np
import pytest

from warpsim.front.ptx.classes import classify
from warpsim.machine.memory.layout import GlobalLayout


@pytest.mark.parametrize(
    ("opcode", "kind"),
    [
        ("ld.global.nc.v4.u32", "global load"),
        ("ld.volatile.shared.u16", "shared load"),
        ("ld.u32", "global load"),
        ("bar.warp.sync", "warp barrier"),
        ("barrier.cluster.arrive.release.aligned", "barrier"),
        ("mbarrier.try_wait.parity.shared::cta.b64", "mbarrier wait"),
        ("mbarrier.arrive.expect_tx.shared::cta.b64", "mbarrier"),
        ("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes", "dshared copy"),
        ("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group", "tma reduction"),
    ],
)
def test_an_opcode_has_the_class_that_ncu_counts_it_in(opcode, kind):
    assert classify(opcode) == kind


def test_an_array_begins_at_a_line_as_one_of_cudamalloc_does():
    arrays = {"a": np.zeros(3, np.uint8), "b": np.zeros(3, np.uint8)}
    layout = GlobalLayout((), arrays, frozenset())
    assert [layout.address(name) % 256 for name in ("a", "b")] == [0, 0]
