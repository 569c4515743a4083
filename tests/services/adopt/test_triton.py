"""What Triton leaves beside a kernel's PTX."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelexp.services.adopt import precompiled
from kernelexp.services.adopt.precompiled import LaunchNotes

FUNCTION = """module {
  tt.func public @gather(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32} loc("x"(#loc)), %to:
      !tt.ptr<bf16> loc("to"(#loc)), %columns: i32 loc("columns"(#loc))) attributes {noinline} {
    %0 = tt.get_program_id x : i32
    tt.store %to, %x : !tt.ptr<f32>
"""


def test_its_launch_and_its_signature_are_read(tmp_path: Path) -> None:
    (tmp_path / "gather.json").write_text('{"name": "gather", "num_warps": 8, "shared": 64}')
    (tmp_path / "gather.ttir").write_text(FUNCTION)
    assert precompiled.read_notes(tmp_path / "gather.ptx") == LaunchNotes(
        threads=256,
        dynamic_smem_bytes=64,
        parameters=("float* x", "__nv_bfloat16* to", "int columns"),
    )


@pytest.mark.parametrize("metadata", [None, "[]", '{"num_warps": "many"}'])
def test_where_it_is_not_triton_s_nothing_is_known(tmp_path: Path, metadata: str | None) -> None:
    if metadata:
        (tmp_path / "k.json").write_text(metadata)
        (tmp_path / "k.ttir").write_text(FUNCTION)
    assert precompiled.read_notes(tmp_path / "k.ptx") == LaunchNotes()
