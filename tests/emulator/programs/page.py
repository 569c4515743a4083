"""The table of whole programs: what the emulator says of each one's fault."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

SOURCES = Path(__file__).parent
RACE, UNWRITTEN, OUT, HANG = "race", "uninitialised-read", "out-of-bounds", "hang"
AREAS = {
    "one block": {
        "layernorm": RACE,
        "warp_histogram": RACE,
        "bitonic": RACE,
        "scan": RACE,
        "partition": RACE,
        "compact": RACE,
        "volatile_warp": "",
        "gemm_bf16": RACE,
        "ticket": RACE,
        "int4_pack": RACE,
        "cub_temp": RACE,
    },
    "several blocks": {
        "last_block": RACE,
        "lookback": RACE,
        "streamk": RACE,
        "bias_splitk": RACE,
        "gridbarrier": RACE,
        "inplace_blur": RACE,
        "bfs": RACE,
        "unlock": RACE,
        "cg_jacobi": RACE,
        "message": RACE,
        "residency": HANG,
        "two_locks": HANG,
    },
    "clusters": {
        "dsmem_histogram": RACE,
        "cluster_softmax": RACE,
        "st_async": "mbarrier-misuse",
        "cluster_relaxed": RACE,
        "dsmem_bulk": "overwritten-in-use",
    },
    "copies": {
        "cp_async_stages": RACE,
        "cp_async_others": RACE,
        "cuda_pipeline": RACE,
        "cg_memcpy": RACE,
        "expect_bytes": UNWRITTEN,
        "proxy_fence": "missing-proxy-fence",
        "bulk_reuse": RACE,
        "tma_phase": UNWRITTEN,
        "tma_flag": RACE,
        "cp_async_tail": OUT,
        "noinc": HANG,
    },
    "barriers and lanes": {
        "warp_trips": "",
        "named_count": RACE,
        "barrier_id": RACE,
        "empty_parity": HANG,
        "arrive_and_drop": HANG,
        "tile_subset": "",
        "shuffle_branch": "member-mask",
    },
    "tensor cores": {
        "wgmma_wait": "exit-with-pending-copy",
        "wgmma_reuse": "overwritten-in-use",
        "wgmma_proxy": "missing-proxy-fence",
        "tcgen05_wait_ld": "early-tmem-read",
        "tcgen05_commit": "tmem-race",
    },
    "addresses and values": {
        "halo": OUT,
        "vector_tail": OUT,
        "topk": OUT,
        "pitch": OUT,
        "overflow": OUT,
        "surface": "misaligned",
        "misaligned": "misaligned",
        "uninit_shared": UNWRITTEN,
        "uninit_counter": UNWRITTEN,
        "memcpy_bytes": UNWRITTEN,
    },
    "streams and the host": {
        "two_streams": "stream-race",
        "free_async": "stream-race",
        "managed": "host-race",
        "graph": "stream-race",
        "launch_error": "unseen-error",
        "staging": "host-race",
        "pdl": "stream-race",
    },
}
"""Programs and the finding that names the fault under one schedule, at a line that ends in //@;
none: see below."""
FINDINGS = {name: finding for area in AREAS.values() for name, finding in area.items()}
IN_HELPERS = {
    "cp_async_tail": "ptx.cuh:34",
    "tcgen05_wait_ld": "tcgen05.cuh:24",
    "tcgen05_commit": "tcgen05.cuh:24",
}
"""Where the line is one of a helper."""
RARE = ("volatile_warp",)
"""Found under three schedules."""
BY_RESULT = ("warp_trips",)
"""Found by the result only."""
NO_FAULT = ("tile_subset",)
"""Half of a tile calls a collective, and the other half exits: PTX's `redux.sync` does not wait for
lanes that have exited."""


def source(name: str) -> Path:
    return SOURCES / f"{name}.cu"


def fault(name: str) -> str:
    """What it is, in a sentence."""
    first = source(name).read_text().partition("\n")[0]
    return first.partition(": ")[2]


def lines(name: str) -> list[int]:
    """Where a finding is to point."""
    text = source(name).read_text().splitlines()
    return [number for number, line in enumerate(text, 1) if "//@" in line]


def unit(names: Sequence[str]) -> str:
    """One source of them all, whose main() runs the one that its argument names."""
    texts = [source(name).read_text() for name in names]
    headers = dict.fromkeys(line for text in texts for line in re.findall(r"#include <.*>", text))
    parts = [*headers, "#include <string>", '#include "tma.h"', '#include "tcgen05.cuh"']
    for name in names:
        parts += [f"namespace program_{name} {{", "#define main run"]
        parts += [f'#include "{name}.cu"', "#undef main", "}"]
    parts += ["int main(int, char** arguments) {", "  const std::string name = arguments[1];"]
    parts += [f'  if (name == "{name}") return program_{name}::run();' for name in names]
    return "\n".join([*parts, "  return 3;", "}", ""])
