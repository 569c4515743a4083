"""What an emulated launch did wrong, with where and who."""

from __future__ import annotations

import msgspec

from warpsim.machine.core.arrays import Array
from warpsim.machine.core.site import CALLERS, Site, Source


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One mistake of a kernel: what has one cause is counted, and the first is the example."""

    name: str
    """Which check: see NAMES."""
    sentence: str
    source: Source | None = None
    listing: str = ""
    """What `line` is a line of."""
    line: int = 0
    """0 if the mistake belongs to no instruction."""
    launch: str = ""
    """Which of a job of several launches, and its entry."""
    cta: int = -1
    warp: int = -1
    """Warp of the CTA; -1 for an asynchronous engine."""
    count: int = 1
    cause: str = ""
    """What findings of a name have in common to be one: a source line, or what is raced for."""
    later: bool = False
    """Whether it was seen after a fault that ends a launch on a GPU, so that it may follow from
    that one."""
    survived: bool = False
    """Whether a GPU goes on after it, though it is out of bounds: an access to shared memory that
    stays in what the CTA has there."""

    def where(self) -> str:
        """Source line, line of the listing, launch, CTA and warp, as far as they are known."""
        parts = [self.source.place(CALLERS)] if self.source else []
        parts += [f"{self.listing} line {self.line}"] if self.line else []
        parts += [self.launch] if self.launch else []
        parts += [f"CTA {self.cta}"] if self.cta >= 0 else []
        parts += [f"warp {self.warp}"] if self.warp >= 0 else []
        parts += ["after an earlier fault"] if self.later else []
        return ", ".join(parts)


FORMAL: dict[str, str] = {
    "missing-tcgen05-fence": "tensor memory used by two threads without tcgen05.fence around what "
    "synchronises them",
    "early-tmem-read": "a register of a tcgen05.ld read before tcgen05.wait::ld",
    "tmem-quarter": "tensor memory addressed in the first quarter of the lanes by a warp that "
    "reaches another",
    "wgmma-fence-before-write": "registers of a wgmma written behind the wgmma.fence before it, "
    "where a compiler may have put what computes them",
    "missing-acquire": "memory read after a flag was seen, with no acquire and no fence between",
    "exit-with-pending-store": "a CTA ended while a bulk store had yet to read its shared memory",
    "missing-inval": "an mbarrier initialised again, or overwritten, without mbarrier.inval",
    "benign-race": "a race of source lines that are said to race without harm",
    "missing-init-fence": "an mbarrier used by an engine or another CTA without "
    "fence.mbarrier_init since its init",
}
"""What the ISA asks for and no hardware has been seen to need, or a person vouches for:
warnings."""

NAMES: dict[str, str] = {
    "out-of-bounds": "an access outside every array, or outside the CTA's shared memory",
    "misaligned": "an address that is not a multiple of the access size, or of what the copy asks",
    "uninitialised-read": "a load of memory that was never written",
    "read-only": "a store to a parameter or constant",
    "race": "two accesses to a word, one of them a write, with no barrier, or no flag and fence, "
    "between",
    "non-coherent-read": "a load through the non-coherent cache of memory that the kernel writes",
    "missing-proxy-fence": "shared memory written by stores and read by the copy engine or the "
    "tensor core without fence.proxy.async between",
    "overwritten-in-use": "shared memory overwritten while a pending copy or MMA uses it",
    "over-arrival": "more arrivals at an mbarrier than its count",
    "transaction-bytes": "a transaction count that can't return to zero, or out of range",
    "missing-scoreboard-wait": "SASS that uses a register before the instruction that writes or "
    "reads it is through: its control word does not wait for the scoreboard",
    "unwritten-register": "SASS that addresses with a register of the warp that no instruction "
    "writes",
    "mbarrier-misuse": "an mbarrier used before its init, or initialised while in use",
    "tmem-bounds": "tensor memory outside the allocation",
    "tmem-race": "tensor memory read or overwritten while the tensor core, a load or a store "
    "uses it",
    "tmem-lanes": "tensor memory of another warp's lanes",
    "tmem-uninitialised": "a load of tensor memory that nothing wrote",
    "tmem-not-freed": "tensor memory that a CTA did not free",
    "tmem-allocation": "an allocation that the rules of tcgen05.alloc forbid",
    "tensor-descriptor": "an instruction or matrix descriptor that names an impossible operation",
    "scale-factors": "scale factors that are not the same in all quarters of tensor memory's "
    "lanes, or chosen by a selector that has no meaning",
    "sparsity-metadata": "metadata of a sparse matrix for which the behaviour is undefined",
    "divergent-aligned": "an aligned instruction executed by part of a warp",
    "exit-with-pending-copy": "a CTA ended while a copy or an MMA still used its shared memory",
    "remote-cta-exited": "an access to the shared memory of a CTA that has ended, or may have",
    "remote-cta-not-started": "an access to the shared memory of a CTA that may not have begun",
    "setmaxnreg": "a register count that setmaxnreg does not allow",
    "multicast-mask": "a mask that names CTAs beyond the cluster, or none",
    "barrier-number": "a barrier number beyond 15, thread counts that are no multiple of 32 "
    "or differ, or bar.red and bar.sync at one barrier",
    "cluster-barrier": "a barrier.cluster.wait with no arrive before it",
    "shuffle-source": "a value that a shuffle takes from a lane that does not take part in it",
    "member-mask": "a member mask without the lane that executes the instruction",
    "tcgen05-group": "cta_group::1 and cta_group::2 in one kernel",
    "wgmma-registers": "registers of a wgmma in flight written, or its accumulators read",
    "missing-wgmma-fence": "registers of a wgmma written since the last wait, with no wgmma.fence "
    "between",
    "hang": "no warp can go on",
    "trap": "the kernel executed trap",
    "assertion": "an assert() of the kernel failed",
    "stack": "more calls in each other than a thread's stack can hold",
    "heap": "free() of what malloc() did not give",
    "step-limit": "the launch executed more than the allowed number of warp instructions",
}


class Fatal(Exception):
    """A finding after which the launch can't go on."""


class BadLanes(Fatal):
    """A finding about some lanes of an access: without them the launch may go on."""

    def __init__(self, lanes: Array) -> None:
        super().__init__()
        self.lanes = lanes


class Astray(BadLanes):
    """The same of lanes that a GPU lets access what lies there."""

    def __init__(self, lanes: Array, offsets: Array) -> None:
        """offsets: of the arena, where that is."""
        super().__init__(lanes)
        self.offsets = offsets


class Findings:
    """Collects findings: one for each cause, with a count of its repeats."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], Finding] = {}
        self.faulted = False
        """Whether a GPU would have ended the launch by now."""

    def add(
        self,
        name: str,
        sentence: str,
        site: Site | None = None,
        *,
        cta: int = -1,
        warp: int = -1,
        cause: str = "",
        survived: bool = False,
    ) -> None:
        """Notes a mistake; `cause`: what it has in common with others, if not the source line."""
        if not cause and site is not None:
            own = site.source.own() if site.source else None
            cause = f"{own.file}:{own.line}" if own else f"line {site.line}"
        if self.again(name, cause, survived=survived):
            return
        assert name in NAMES or name in FORMAL, name
        self._found[name, cause] = Finding(
            name=name,
            sentence=sentence,
            source=site.source if site else None,
            listing=site.listing if site else "",
            line=site.line if site else 0,
            cta=cta,
            warp=warp,
            cause=cause,
            later=self.faulted,
            survived=survived,
        )

    def again(self, name: str, cause: str, *, survived: bool = False) -> bool:
        """Counts a mistake that was noted before; False if it was not."""
        old = self._found.get((name, cause))
        if old is not None:
            survived = survived and old.survived
            count = old.count + 1
            self._found[name, cause] = msgspec.structs.replace(old, count=count, survived=survived)
        return old is not None

    def any(self) -> bool:
        return bool(self._found)

    def take(self, other: Findings) -> None:
        """Those of another part of the launch too."""
        for key, finding in other._found.items():
            old = self._found.get(key)
            count = finding.count + (old.count if old else 0)
            survived = finding.survived and (old is None or old.survived)
            self._found[key] = msgspec.structs.replace(
                old or finding, count=count, survived=survived
            )
        self.faulted |= other.faulted

    def all(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self._found.values() if finding.name in NAMES)

    def warnings(self) -> tuple[Finding, ...]:
        """What is formally wrong only."""
        return tuple(finding for finding in self._found.values() if finding.name in FORMAL)
