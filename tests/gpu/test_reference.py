"""The reference of a set of inputs."""

import pytest
import torch

from kernelexp.evidence.measure import bench
from kernelexp.model.problem import Chunk


@pytest.mark.parametrize(("room", "count"), [(1 << 20, 2), (40, None)])
def test_a_reference_is_kept_where_it_fits(room, count):
    chunks = (Chunk(array="y", first=row, values=torch.zeros(2, 2).double()) for row in (0, 2))
    kept = bench.kept(chunks, room)
    assert (kept and len(kept)) == count
