"""The reference of a set of inputs."""

import pytest
import torch

from kernelexp.evidence.measure.bench import Reference
from kernelexp.model.problem import Chunk


@pytest.mark.parametrize(("room", "kept"), [(1 << 20, 2), (40, None)])
def test_a_reference_is_kept_where_it_fits(room, kept):
    chunks = (Chunk(array="y", first=row, values=torch.zeros(2, 2).double()) for row in (0, 2))
    reference = Reference(chunks, keep_bytes=room)
    assert (reference.chunks and len(reference.chunks)) == kept
