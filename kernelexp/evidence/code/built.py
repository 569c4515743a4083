"""A finished build to evidence of kind `build`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from kernelexp.evidence.build import Artefacts
from kernelexp.evidence.code import instructions, resources
from kernelexp.evidence.code.resources import Footprint
from kernelexp.facts.arch import Arch, find
from kernelexp.model.arm import Arm, BuildEvidence, OtherEntry
from kernelexp.model.errors import ConfigurationError
from kernelexp.model.spelling import FULL
from warpsim.launch import Launch, main_launch, of_entries

Launches: TypeAlias = Mapping[str, Sequence[Launch]]
"""What launch() of problem.py gives, by the name of the size."""


def collect(
    arm: Arm, artefacts: Artefacts, exports: dict[str, int], launches: Launches
) -> BuildEvidence:
    """Returns what a built arm's cubin says of the entries that are launched.

    `launches` is empty where launch() could not be called: a source with one entry that exports its
    threads and dynamic shared memory is then judged by those. ConfigurationError where nothing says
    which entry, or how it is launched.
    """
    symbols = resources.entries(artefacts.cubin, artefacts.ptxas_report)
    jobs = [[_named(arm, launch, symbols) for launch in job] for job in _full_first(launches)]
    if jobs:
        main = main_launch(jobs[0])
        entry, footprint = main.entry, _footprint(main, exports)
    else:
        entry, footprint = _only(symbols), _exported(exports)
    used = resources.read(artefacts.cubin, artefacts.sass, artefacts.ptxas_report, entry, footprint)
    opcodes = instructions.count_opcodes(artefacts.sass, entry)
    arch = find(arm.arch)
    return BuildEvidence(
        entry=entry,
        resources=used,
        occupancy=resources.occupancy(arch, used),
        pipes=instructions.count_pipes(artefacts.sass, [entry]),
        opcodes=opcodes,
        exports=exports,
        warnings=resources.warnings(artefacts.ptxas_report),
        others=_others(arch, artefacts, entry, [launch for job in jobs for launch in job]),
    )


def _full_first(launches: Launches) -> list[Sequence[Launch]]:
    return [launches[size] for size in sorted(launches, key=lambda size: size != FULL)]


def _named(arm: Arm, launch: Launch, symbols: Sequence[str]) -> Launch:
    launches_named = of_entries(launch, symbols)
    if launches_named.entry not in symbols:
        raise ConfigurationError(
            f"variants/{arm.kernel}/problem.py: launch() names the entry {launch.entry!r}; "
            f"{arm.source} has {', '.join(symbols) or 'none'}."
        )
    return launches_named


def _others(
    arch: Arch, artefacts: Artefacts, entry: str, launches: Sequence[Launch]
) -> dict[str, OtherEntry]:
    """The other entries that are launched, each as at its first launch."""
    entries: dict[str, OtherEntry] = {}
    for launch in launches:
        if launch.entry != entry and launch.entry not in entries:
            footprint = _footprint(launch, {})
            used = resources.read(
                artefacts.cubin, artefacts.sass, artefacts.ptxas_report, launch.entry, footprint
            )
            entries[launch.entry] = OtherEntry(
                resources=used, occupancy=resources.occupancy(arch, used)
            )
    return entries


def _footprint(launch: Launch, exports: Mapping[str, int]) -> Footprint:
    """Returns the footprint as exported, else as launched."""
    launched = {
        "threads": math.prod(launch.block),
        "dynamic_smem_bytes": launch.dynamic_smem_bytes,
        "cluster": math.prod(launch.cluster),
    }
    return Footprint(**{name: exports.get(name, value) for name, value in launched.items()})


def _exported(exports: Mapping[str, int]) -> Footprint:
    for name in ("threads", "dynamic_smem_bytes"):
        if name not in exports:
            raise ConfigurationError(
                f'the source exports no {name}: add #include "export.cuh" and '
                f"KX_EXPORT({name}, ...)."
            )
    return Footprint(
        threads=exports["threads"],
        dynamic_smem_bytes=exports["dynamic_smem_bytes"],
        cluster=exports.get("cluster", 1),
    )


def _only(symbols: Sequence[str]) -> str:
    if len(symbols) != 1:
        raise ConfigurationError(
            f"the source has {len(symbols)} __global__ functions ({', '.join(symbols)}), and "
            "launch() does not say which one."
        )
    return symbols[0]
