"""Captured launches are repeated, here by the emulator."""

from __future__ import annotations

import struct
from pathlib import Path

import captured
import numpy as np
import pytest
from tensor_map_bytes import made

from kernelexp.model.errors import UsageError
from kernelexp.services import replaying
from kernelexp.services.replaying import Replay
from kernelexp.system.toolchain import Toolchain


@pytest.fixture(scope="module")
def cubin(usual_tools: Toolchain) -> bytes:
    return captured.compile_cubin(usual_tools, captured.SAXPY)


def replay(folder: Path, tools: Toolchain, root: Path) -> Replay:
    return replaying.replay(folder, "emulator", tools, root)


def test_a_launch_leaves_the_bytes_that_it_left_in_the_program(
    tmp_path: Path, cubin: bytes, tools: Toolchain, user_cache: Path
) -> None:
    captured.write_saxpy(tmp_path / "c", cubin)
    result = replay(tmp_path / "c", tools, user_cache)
    assert (result.same, result.regions, result.changed) == (True, 3, 1)
    assert result.findings == ()


def test_a_constant_has_the_value_that_the_program_gave_it(
    tmp_path: Path, cubin: bytes, tools: Toolchain, user_cache: Path
) -> None:
    captured.write_saxpy(tmp_path / "c", cubin, twice=4.0)
    assert replay(tmp_path / "c", tools, user_cache).same


def test_a_byte_that_is_another_is_named(
    tmp_path: Path, cubin: bytes, tools: Toolchain, user_cache: Path
) -> None:
    captured.write_saxpy(tmp_path / "c", cubin)
    after = bytearray((tmp_path / "c/2.after").read_bytes())
    after[512 + 4 * 70] ^= 1
    (tmp_path / "c/2.after").write_bytes(after)
    (difference,) = replay(tmp_path / "c", tools, user_cache).differences
    assert (difference.region, difference.first, difference.bytes) == (2, 512 + 4 * 70, 1)
    assert 0 < difference.as_floats < 1e-6


TMA = """
struct alignas(64) Map { char bytes[128]; };
extern "C" __global__ void take(int first, const __grid_constant__ Map map, float* out) {
  __shared__ alignas(128) float tile[8 * 32];
  __shared__ alignas(8) unsigned long long full;
  unsigned bar = __cvta_generic_to_shared(&full), to = __cvta_generic_to_shared(tile);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(bar));
    asm volatile("fence.mbarrier_init.release.cluster;");
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 1024;" :: "r"(bar));
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier"
                 "::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                 :: "r"(to), "l"(&map), "r"(first), "r"(first), "r"(bar) : "memory");
  }
  __syncthreads();
  asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared.b64 p, [%0], 0;"
               " @!p bra again; }" :: "r"(bar) : "memory");
  for (int i = threadIdx.x; i < 8 * 32; i += blockDim.x) out[i] = tile[i];
}
"""


def test_a_tensor_map_is_read_from_its_bytes(
    tmp_path: Path, tools: Toolchain, user_cache: Path
) -> None:
    rows, columns, first = 20, 64, 8
    changes: list[tuple[str, int, int | None]] = [
        ("global_address", captured.X + 512, None),
        ("rank", 1, None),
        *(("global_dim", extent, place) for place, extent in enumerate((columns, rows))),
        ("global_stride", 4 * columns, 0),
        *(("box_dim", extent, place) for place, extent in enumerate((32, 8))),
        *(("element_stride", 1, place) for place in range(2)),
        ("elemtype", 7, None),
    ]
    array = np.arange(rows * columns, dtype=np.float32).reshape(rows, columns)
    given = bytes(512) + array.tobytes()
    result = array[first : first + 8, first : first + 32].tobytes()
    parameters = [
        struct.pack("<i", first),
        made(tools, changes),
        struct.pack("<Q", captured.Y),
    ]
    regions = [(captured.X, given, given), (captured.Y, bytes(len(result)), result)]
    cubin = captured.compile_cubin(tools, TMA)
    captured.write(tmp_path / "c", cubin, "take", parameters, regions)
    assert replay(tmp_path / "c", tools, user_cache).same


def test_an_access_beyond_an_allocation_is_a_finding(
    tmp_path: Path, cubin: bytes, tools: Toolchain, user_cache: Path
) -> None:
    capture = captured.write_saxpy(tmp_path / "c", cubin)
    whole = (tmp_path / "c/1.before").read_bytes()
    parameters = [parameter.content for parameter in capture.parameters]
    after = (tmp_path / "c/2.after").read_bytes()
    before = (tmp_path / "c/2.before").read_bytes()
    regions = [(captured.X, whole[:-4], whole[:-4]), (captured.Y, before, after)]
    captured.write(tmp_path / "d", cubin, "saxpy", parameters, regions, grid=(4, 1, 1))
    result = replay(tmp_path / "d", tools, user_cache)
    assert any("past the end of r0" in finding for finding in result.findings)


def test_a_capture_with_a_file_missing_is_refused(
    tmp_path: Path, cubin: bytes, tools: Toolchain
) -> None:
    captured.write_saxpy(tmp_path / "c", cubin)
    (tmp_path / "c/2.after").unlink()
    with pytest.raises(UsageError, match=r"2\.after is missing or cut short"):
        replay(tmp_path / "c", tools, tmp_path)
