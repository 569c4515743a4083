"""Mutants that do no harm, or only a formal one, and why.

Equivalent: the mutant does what the kernel does, on all hardware and by the PTX ISA. Formal: the
ISA forbids it, and no hardware has been seen to do anything else than with the kernel.
"""

from __future__ import annotations

import re

from mutations import reviewed_texts
from mutations.case import TextMutant
from mutations.reviewed import Harmless, equivalent, formal
from mutations.rules import Mutant
from warpsim.front.ptx.cfg import targets
from warpsim.front.ptx.syntax import Function, Immediate

# Decided by rule


def _last_barrier(mutant: Mutant, function: Function) -> Harmless | None:
    """No access to shared memory can follow a barrier before the end."""
    if not re.match(r"bar\.sync", mutant.instruction.opcode) or mutant.kind == "count":
        return None
    if mutant.change.name == "moved before the access":
        return None
    seen: set[int] = set()
    waiting = [mutant.at + 1]
    while waiting:
        at = waiting.pop()
        if at in seen or at >= len(function.instructions):
            continue
        seen.add(at)
        ins = function.instructions[at]
        if re.match(
            r"(?!ld\.param|st\.global|ld\.global|ld\.const)(ld|st|atom|red|bar|cp|mb|wg|tc)",
            ins.opcode,
        ):
            return None
        jumps = re.match(r"bra|brx", ins.opcode)
        if jumps:
            waiting += targets(function, ins)
        if not jumps or ins.guard is not None:
            if not re.match(r"ret|exit", ins.opcode):
                waiting.append(at + 1)
    return Harmless(False, "nothing follows that the barrier would order")


def _leading_offset(mutant: Mutant, function: Function) -> Harmless | None:
    """A K-major operand in a swizzled layout is one swizzle wide."""
    if not mutant.change.name.endswith("leading offset"):
        return None
    opcode, last = mutant.instruction.opcode, mutant.instruction.operands[-2:]
    if re.match(r"wgmma.*f16$", opcode):
        # These end in whether A and B are transposed; only B, if A is in registers.
        transposed = last[-1] if mutant.change.name.startswith("B") else last[0]
        if isinstance(transposed, Immediate) and transposed.value:
            return None
    return Harmless(False, "a swizzled operand whose rows lie along K has no leading offset")


_LATER = re.compile(r"after (mbarrier\.try_wait|bar\.sync|barrier\.cluster\.wait)")


def _stricter(mutant: Mutant, function: Function) -> Harmless | None:
    """An arrival that comes after a wait promises more than before it."""
    arrives = re.match(
        r"bar\.arrive|mbarrier\.arrive|cp\.async\.(bulk\.)?commit", mutant.instruction.opcode
    )
    if arrives and _LATER.match(mutant.change.name):
        return Harmless(False, "an arrival after a wait comes later, and covers more")
    return None


RULES = (_last_barrier, _leading_offset, _stricter)

# Reviewed: a sentence each

_ENGINES = (
    "only engines signal the barrier, and their own completion carries their data: the wait is one "
    "instruction, relaxed or not"
)
_ISSUER = (
    "the thread that issues the copy or the MMA makes the fence itself, after the barrier: it is "
    "on the way from the stores to the engine, which is all that the ISA asks"
)
_TOGETHER = (
    "the lanes are together here in all that ptxas makes of the kernel, so that what one of them "
    "signals comes after what all have done"
)
_SEEN = (
    "the acquiring half of a flag: loads are not speculated, so that they come after the flag that "
    "decided the branch"
)
_SCOPE = (
    "the wider wait differs by emptying the first-level cache, and what is handed over here is "
    "shared memory"
)

REVIEWED = (
    equivalent(
        r".* \| tcgen05\.relinquish_alloc_permit \d+ \| dropped",
        "no other CTA of the SM waits to allocate",
    ),
    equivalent(
        r".* \| cp\.async\.bulk\.wait_group \d+ \| read only",
        "the kernel reads nothing of what the copy writes, and its end completes the write",
    ),
    equivalent(
        r".* \| mbarrier\.arrive\.expect_tx \d+ \| relaxed",
        "the thread has written nothing that those who wait will read",
    ),
    equivalent(r".* \| fence\.proxy\.async \d+ \| after bar\.(warp\.)?sync", _ISSUER),
    equivalent(
        r".* \| tcgen05\.wait::ld \d+ \| after tcgen05\.fence::before_thread_sync",
        "the fence orders the loads, whether they are complete or not",
    ),
    equivalent(
        r"multiply \| bar\.sync 2 \| (dropped|of the warp only)",
        "a wgmma group is the warpgroup's: who has waited for it knows that all of it is complete",
    ),
    equivalent(
        r"multiply \| wgmma\.wait_group 1 \| after bar\.sync",
        "a wgmma group is the warpgroup's: who has waited for it knows that all of it is complete",
    ),
    equivalent(
        r"staged_multiply \| bar\.sync 1 \| after wgmma\.fence",
        "the fence is about registers, which the barrier does not touch",
    ),
    equivalent(
        r"flash_attention_hopper \| bar\.sync 2 \| (dropped|of the warp only|after wgmma\.fence"
        r"|arrives only)",
        "the barrier says which warpgroup multiplies first, and hands over no data",
    ),
    equivalent(
        r"flash_attention_hopper \| wgmma\.mma_async \d+ \| B: leading offset",
        "V's 64 columns are one swizzle wide",
    ),
    equivalent(
        r"flash_attention_hopper \| wgmma\.fence 3 \| dropped",
        "no register has been written since the fence before the product of Q and K",
    ),
    equivalent(
        r"patch_embed_gemm@sm_100a \| tcgen05\.fence::before_thread_sync 3 \| "
        r"moved before the access",
        "the access is to shared memory, and the fence is about tensor memory",
    ),
    equivalent(
        r"patch_embed_gemm@sm_90a \| mapa 4 \| the other CTA",
        "lanes 0 and 1 each arrive at one of the two CTAs, and change places",
    ),
    equivalent(
        r"(flash_attention_hopper|patch_embed_gemm@\w+) \| shfl 1 \| lane \+ 1",
        "the value is the warp's number: all lanes hold the same",
    ),
    equivalent(
        r"scan \| bar\.sync 2 \| moved after the access",
        "the access is a load of the thread's own word",
    ),
    equivalent(
        r"barrier_votes \| bar\.red 2 \| predicate inverted",
        "some threads vote for and some against, so that either way one does",
    ),
    equivalent(
        r"copies_arrive \| bar\.sync 1 \| moved after the access",
        "the copy does not use the mbarrier; what arrives there for it still comes after",
    ),
    equivalent(
        r"last_adds \| membar 1 \| after bar\.sync",
        "the fence of the thread that takes the ticket covers what the barrier has shown it",
    ),
    equivalent(
        r"cluster_exchange \| barrier\.cluster\.arrive 2 \| moved before the access",
        "the access is a load of the CTA's own memory",
    ),
    equivalent(
        r"ring_of_tma \| bar\.sync [23] \| number \+ 1",
        "the same threads meet at a barrier that nobody else uses",
    ),
    equivalent(
        r"remote_stores \| barrier\.cluster\.(arrive 2 \| moved before the access"
        r"|wait 2 \| dropped)",
        "each CTA has waited for all that others do to its memory",
    ),
    equivalent(
        r"remote_stores \| fence\.mbarrier_init 1 \| after mbarrier\.arrive\.expect_tx",
        "the arrival is the same thread's, and the fence still comes before the cluster's barrier",
    ),
    equivalent(
        r"(multicast|remote_stores|patch_embed.*) \| barrier\.cluster\.arrive 1 \| relaxed",
        "fence.mbarrier_init lets relaxed operations carry the inits, and there is nothing else",
    ),
    equivalent(
        r"remote_stores \| fence\.mbarrier_init 1 \| (dropped|a generic fence)",
        "the cluster's barrier releases and acquires all that threads have done, their inits too; "
        "threads send here, and the fence is for relaxed barriers and the asynchronous proxy",
    ),
    formal(
        r"cluster_exchange \| barrier\.cluster\.arrive 2 \| relaxed",
        "PTX lets the load of the other CTA's word come after a relaxed arrival; hardware has its "
        "value by then",
    ),
    equivalent(
        r".* \| barrier\.cluster\.arrive 2 \| relaxed",
        "the last barrier keeps the CTAs alive; it hands over no data",
    ),
    equivalent(
        r"five_tiles \| mbarrier\.arrive 1 \| relaxed",
        "tcgen05.fence::before_thread_sync orders the loads before an arrival of any kind",
    ),
    formal(r".* \| mbarrier\.try_wait \d+ \| relaxed", _ENGINES),
    formal(
        r"patch_embed_gemm@sm_100a \| (tcgen05\.fence::after_thread_sync 7 \| .*"
        r"|barrier\.cluster\.wait 2 \| after tcgen05\.fence::after_thread_sync)",
        "what follows frees columns of which all uses have been waited for",
    ),
    formal(r".* \| mbarrier\.(try_wait|arrive) \d+ \| for the CTA only", _SCOPE),
    formal(r".* \| bar\.warp\.sync \d+ \| .*", _TOGETHER),
    formal(r"(grid_barrier|last_adds) \| membar 2 \| .*", _SEEN),
    formal(r"look_back \| ld\.acquire 1 \| relaxed", _SEEN),
    formal(r"spin_lock \| membar 1 \| .*", _SEEN),
    formal(
        r".* \| setmaxnreg\.\w+ \d+ \| (dropped|8 (more|fewer))",
        "ptxas, not PTX, says how many registers the code needs",
    ),
    formal(
        r".* \| tcgen05\.fence::before_thread_sync \d+ \| after "
        r"(mbarrier\.arrive|barrier\.cluster\.arrive|bar\.warp\.sync)",
        "the loads have been waited for, so that they are over",
    ),
)
"""In order: the first pattern that matches counts."""


def harmless(mutant: Mutant | TextMutant, function: Function) -> Harmless | None:
    """Why a mutant need not be found; None if it must."""
    if isinstance(mutant, Mutant):
        for decide in RULES:
            if result := decide(mutant, function):
                return result
    for item in (*REVIEWED, *reviewed_texts.REVIEWED):
        if re.fullmatch(item.pattern, mutant.key):
            return item.harmless
    return None
