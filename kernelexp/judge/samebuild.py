"""Whether a profile is of the build that it is taken for: what ncu and the compiler both know."""

from __future__ import annotations

import math
from collections.abc import Iterator

from kernelexp.model.arm import BuildEvidence, ProfiledEvidence


def doubt(build: BuildEvidence, profiled: ProfiledEvidence) -> str:
    """Spells the differences as the rest of a sentence; empty if there are none, or none known."""
    return " and ".join(
        f"{_spell(now)} {resource} (this variant: {_spell(was)})"
        for resource, was, now in _both(build, profiled)
        if was != now
    )


def _both(build: BuildEvidence, profiled: ProfiledEvidence) -> Iterator[tuple[str, int, int]]:
    used = build.resources
    block = math.prod(profiled.block) if profiled.block else None
    pairs = (
        ("registers per thread", used.registers, profiled.figures.get(_REGISTERS)),
        ("threads per CTA", used.threads, block or profiled.figures.get("launch__block_size")),
        ("B of dynamic shared memory", used.dynamic_smem_bytes, profiled.figures.get(_DYNAMIC)),
        ("B of static shared memory", used.static_smem_bytes, profiled.figures.get(_STATIC)),
    )
    for resource, was, now in pairs:
        if isinstance(now, int | float) and was:
            yield resource, was, int(now)


_REGISTERS = "launch__registers_per_thread"
_DYNAMIC = "launch__shared_mem_per_block_dynamic"
_STATIC = "launch__shared_mem_per_block_static"


def _spell(count: int) -> str:
    return f"{count:,}"
