"""Special registers that don't change while a kernel runs, for every resident warp."""

from __future__ import annotations

import numpy as np

from warpsim.errors import UsageError
from warpsim.machine.core.arrays import Array
from warpsim.machine.memory.layout import RESERVED_FOR_KERNELS, SHARED_RESERVED
from warpsim.machine.memory.residents import Residents

CLOCKS = frozenset({"clock", "clock_hi", "clock64", "globaltimer", "globaltimer_lo"})
"""These change: what reads them asks the machine."""

RESERVED_USED = frozenset({"reserved_smem_offset_0", "reserved_smem_offset_1"})
"""Where cooperative groups of several warps keep their barriers: who reads these uses the
reserved shared memory."""


def special(residents: Residents, name: str) -> Array:
    """Values of special register "tid.x", "laneid", ..., int64 [warps, 32]."""
    launch, count = residents.execution.launch, residents.execution.warps
    places = np.arange(count)
    warp, cta = places // residents.resident, places % residents.resident
    lanes = np.arange(32, dtype=np.int64)[None, :]
    shape = (count, 32)
    stem, _, axis = name.partition(".")
    if axis:
        return np.broadcast_to(_vector(residents, stem, "xyz".index(axis), warp, cta, lanes), shape)
    simple = {
        "laneid": lanes,
        "warpid": warp[:, None],
        "nwarpid": residents.warps_per_cta,
        "smid": cta[:, None],
        "nsmid": residents.resident,
        "gridid": 0,
        "cluster_ctarank": cta[:, None] % residents.cluster_size,
        "cluster_nctarank": residents.cluster_size,
        "is_explicit_cluster": int(residents.cluster_size > 1),
        "lanemask_eq": np.left_shift(1, lanes),
        "lanemask_lt": np.left_shift(1, lanes) - 1,
        "lanemask_le": np.left_shift(2, lanes) - 1,
        "lanemask_gt": 0xFFFF_FFFF - (np.left_shift(2, lanes) - 1),
        "lanemask_ge": 0xFFFF_FFFF - (np.left_shift(1, lanes) - 1),
        "dynamic_smem_size": launch.dynamic_smem_bytes,
        # Where the driver tells a cooperative launch of its workspace: high word, low word.
        "envreg1": residents.execution.world.workspace >> 32,
        "envreg2": residents.execution.world.workspace & 0xFFFF_FFFF,
        "reserved_smem_offset_begin": 0,
        "reserved_smem_offset_end": SHARED_RESERVED,
        "reserved_smem_offset_cap": SHARED_RESERVED,
        "reserved_smem_offset_0": 0,
        "reserved_smem_offset_1": RESERVED_FOR_KERNELS,
        "total_smem_size": residents.layout.static_bytes + launch.dynamic_smem_bytes,
    }
    if name in CLOCKS or (stem.startswith("envreg") and stem not in simple):
        return np.zeros(shape, np.int64)
    if stem not in simple:
        raise UsageError(f"the emulator does not have special register %{name}.")
    return np.broadcast_to(np.asarray(simple[stem], np.int64), shape)


def _vector(
    residents: Residents, stem: str, axis: int, warp: Array, cta: Array, lanes: Array
) -> Array:
    launch = residents.execution.launch
    block, grid, cluster = launch.block, launch.grid, launch.cluster
    if stem == "tid":
        thread = warp[:, None] * 32 + lanes
        divisor = (1, block[0], block[0] * block[1])[axis]
        return np.asarray(thread // divisor % block[axis])
    sizes = {"ntid": block, "nctaid": grid, "cluster_nctaid": cluster}
    if stem in sizes:
        return np.asarray(sizes[stem][axis])
    if stem == "nclusterid":
        return np.asarray(grid[axis] // cluster[axis])
    index = [c.index[axis] for c in residents.ctas]
    index += [0] * (residents.resident - len(index))
    own = np.array(index)[cta][:, None]
    if stem == "ctaid":
        return own
    if stem == "clusterid":
        return np.asarray(own // cluster[axis])
    return np.asarray(own % cluster[axis])
