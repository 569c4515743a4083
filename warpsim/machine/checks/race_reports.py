"""What findings say of a race: both accesses, with their lines and threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from warpsim.machine.core.arrays import Array, first_true
from warpsim.machine.core.asynchronous import Issuer
from warpsim.machine.core.clocks import SITE, THREAD, THREAD_BITS, Clocks
from warpsim.machine.core.site import Site
from warpsim.machine.memory.residents import Residents

_UNORDERED = "and the issuing thread did not wait for it"
_ENGINES = {
    "race": ("read by {}", "wrote", _UNORDERED),
    "missing-proxy-fence": (
        "read by the async proxy",
        "wrote",
        "with no fence.proxy.async between the two",
    ),
    "overwritten-in-use": ("overwritten by a copy", "used", _UNORDERED),
}


class Conflict(NamedTuple):
    """Accesses that nothing orders before others."""

    before: str
    """What they were: "wrote" or "read"."""
    units: Array
    thread: Array
    """Of the others."""
    epochs: Array
    bad: Array
    """Which they are."""


class RaceReports:
    """Findings about the accesses to one memory."""

    def __init__(
        self,
        residents: Residents,
        clocks: Clocks,
        name_of: Callable[[int, int], str],
        object_of: Callable[[int], str],
    ) -> None:
        self._residents = residents
        self._clocks = clocks
        self.name = name_of
        """What lies at an arena offset, as an element of that many bytes."""
        self._object_of = object_of
        """The variable at an arena offset: races for one variable are one finding."""
        self._issuers: dict[tuple[int, int], dict[int, None]] = {}
        """Threads that issued a copy, by its instruction and their CTA."""

    def race(
        self,
        kind: str,
        now: str,
        before: str,
        offset: int,
        thread: int,
        epoch: int,
        site: Site,
    ) -> None:
        """A race of an access by a thread (place * 32 + lane) with the one of an epoch; `kind`:
        the finding's name."""
        cause = f"{self._object_of(offset)} {now}, {before}"
        if self._residents.execution.findings.again(kind, cause):
            return
        name, who = self.name(offset, site.element), self._residents.thread_name(thread)
        if epoch & THREAD == thread:  # only a copy goes on beside its own thread
            self._residents.report(
                kind,
                f"{name} is {now} here by a copy of {who}, which {before} it"
                f"{self._at(epoch, site)}, and had not waited for the copy.",
                site,
                thread >> 5,
                cause=cause,
            )
            return
        why = "and nothing orders the two accesses"
        if (epoch & THREAD) >> 5 == self._clocks.launched:
            why = "and no griddepcontrol.wait comes between"
        self._residents.report(
            kind,
            f"{name} is {now} here by {who}; {self._who(epoch, thread >> 5)} {before} it"
            f"{self._at(epoch, site)}, {why}.",
            site,
            thread >> 5,
            cause=cause,
        )

    def issued(self, issuer: Issuer) -> None:
        """A thread issued a copy: the last one of those that are known."""
        threads = self._issued_as(issuer)
        threads.pop(issuer.thread, None)
        threads[issuer.thread] = None

    def _issued_as(self, issuer: Issuer) -> dict[int, None]:
        key = issuer.site.number, issuer.place % self._residents.resident
        return self._issuers.setdefault(key, {})

    def engine(self, name: str, offset: int, epoch: int, issuer: Issuer, agent: int) -> None:
        """A race of what an engine does for an issuer with the access of an epoch."""
        now, before, tail = _ENGINES[name]
        words = (
            f"{now.format(self._agent(agent))}; {self._who(epoch, -1)} {before} it"
            f"{self._at(epoch, issuer.site)}, {tail}"
        )
        if name == "overwritten-in-use" and self._is_copy_of(epoch, issuer.site):
            words = "overwritten by a copy, and an earlier one of this instruction"
            if len(threads := list(self._issued_as(issuer))) > 1:
                names = self._residents.thread_name
                one, other = names(threads[-2], threads[-1] >> 5), names(threads[-1])
                words = f"overwritten by a copy that {one} and {other} both issue, and the first"
            words += " may still be on its way, as nobody waited for it"
        self._residents.report(
            name,
            f"{self.name(offset, 0)} is {words}.",
            issuer.site,
            issuer.place,
            cause=f"{self._object_of(offset)} {now}, {before}",
        )

    def missing_acquire(self, offset: int, place: int, site: Site) -> None:
        """A read of what a flag has announced that nobody acquired."""
        why = "with no acquire and no fence between: an old value may still lie in the cache."
        if self._clocks.narrow:
            why = "and another CTA's arrival there released it in the scope of its own CTA only."
        self._residents.report(
            "missing-acquire",
            f"{self.name(offset, site.element)} is read after a flag was seen, {why}",
            site,
            place,
        )

    def stale(self, offset: int, place: int, site: Site) -> None:
        """A load through the non-coherent cache of what the kernel writes."""
        self._residents.report(
            "non-coherent-read",
            f"{self.name(offset, site.element)} is read by a non-coherent load, and the kernel "
            "writes it.",
            site,
            place,
        )

    def writer(self, epoch: int, site: Site) -> str:
        """Who accessed a word at an epoch, and where."""
        return f"{self._who(epoch, -1)}{self._at(epoch, site)}"

    def _is_copy_of(self, epoch: int, site: Site) -> bool:
        """Whether an epoch is of an engine, for an instruction."""
        is_engine = self._clocks.warps <= (epoch & THREAD) >> 5 < self._clocks.earlier
        return is_engine and (epoch >> THREAD_BITS & SITE) - 1 == site.number

    def _at(self, epoch: int, site: Site) -> str:
        """` at k.cu:7, PTX line 12`: where the access of an epoch stands, if that is known."""
        number = (epoch >> THREAD_BITS & SITE) - 1
        sites = self._residents.execution.sites
        if not 0 <= number < len(sites):
            return ""
        other = sites[number]
        return " by the same instruction" if other is site else f" at {other.where()}"

    def _who(self, epoch: int, beside: int) -> str:
        agent = (epoch & THREAD) >> 5
        if agent < self._clocks.warps:
            return self._residents.thread_name(epoch & THREAD, beside)
        return self._agent(agent)

    def _agent(self, agent: int) -> str:
        if agent < self._clocks.warps:
            return self._residents.warp_name(agent)
        if agent == self._clocks.earlier:
            return "a CTA of an earlier wave"
        if agent == self._clocks.launched:
            return "the launch before"
        in_tensor = self._clocks.tensor <= agent < self._clocks.store
        return "the tensor core" if in_tensor else "the copy engine"


def first_of(bad: Array, *arrays: Array) -> list[int]:
    """What arrays hold where `bad` is first true."""
    index = first_true(bad)
    return [int(np.broadcast_to(array, bad.shape)[index]) for array in arrays]
