"""Clocks and mbarriers of a wave as compiled code changes them, and what Python hears of it."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np

from warpsim.machine.core.clocks import FENCES
from warpsim.machine.core.native_layout import ProxyFencesLayout, SynchronisationLayout
from warpsim.machine.memory.arena import SCRATCH_BYTES
from warpsim.machine.sync.gates import Fragment
from warpsim.machine.wave.machine import Machine

_PROXIES = "shared", "global"


class Synchronisation:
    """What compiled/synchronisation.cpp works on."""

    def __init__(self, machine: Machine) -> None:
        clocks = machine.clocks
        self._machine = machine
        self._waits = np.zeros((clocks.warps, 2), np.int64)
        fences = [clocks.proxy[space] for space in _PROXIES]
        self.layout = SynchronisationLayout(
            seen=clocks.seen.ctypes.data,
            warps=clocks.warps,
            agents=clocks.agents,
            wide=clocks.wide.ctypes.data,
            fenced_init=clocks.fenced_init.ctypes.data,
            proxies=(ProxyFencesLayout * 2)(
                *(
                    ProxyFencesLayout(each.times.ctypes.data, each.seen.ctypes.data)
                    for each in fences
                )
            ),
            kept=FENCES,
            ordered=clocks.ordered,
            resident=machine.resident,
            cluster_size=machine.cluster_size,
            stride=machine.shared_stride,
            scratch=SCRATCH_BYTES,
            ended=machine.ended.ctypes.data,
            used=machine.neighbours.last.ctypes.data,
            waits=self._waits.ctypes.data,
        )
        self.address = ctypes.addressof(self.layout)

    def prepare(self) -> None:
        """Before compiled code runs: where mbarriers are, once there are any."""
        table = self._machine.mbarriers.table
        if table is not None and not self.layout.mbarriers:
            self.layout.mbarriers = table.ctypes.data

    def take_up(self, fragments: Sequence[Fragment]) -> None:
        """After it has run these: tells who waits, and what they have waited for last."""
        layout, machine = self.layout, self._machine
        if layout.changed_count:
            every = machine.mbarriers.every
            machine.changed += [every[n] for n in layout.changed[: layout.changed_count]]
            layout.changed_count = 0
        if layout.fences:
            for index, space in enumerate(_PROXIES):
                if layout.fences >> index & 1:
                    machine.clocks.proxy[space].forget()
            layout.fences = 0
        if layout.waited:
            every, layout.waited = machine.mbarriers.every, 0
            waits = self._waits[: len(fragments)].tolist()
            for fragment, (number, wanted) in zip(fragments, waits, strict=True):
                fragment.phases = ((every[number], wanted, fragment.mask),)
