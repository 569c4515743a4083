"""The table of reported faults: where each was reported, what it is, and what the emulator says."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

SOURCES = Path(__file__).parent
TARGETS = {"hopper": "sm_90a", "blackwell": "sm_100a"}
RESULT = "a wrong result"
"""In place of a finding's name."""
NOTHING = "not found"


class Fault(NamedTuple):
    """A kernel that is right, and has the fault if it is compiled with WRONG."""

    name: str
    reports: tuple[str, ...]
    """repository#number"""
    sentence: str
    finding: str
    """One that has to be among those of the wrong kernel."""
    threads: int = 64
    ctas: int = 1
    cluster: int = 1
    takes_map: bool = False


HOPPER = (
    Fault(
        "epilogue_without_a_proxy_fence",
        ("NVIDIA/cudnn-frontend#784", "MoonshotAI/FlashKDA#24"),
        "Threads write the tile that a bulk copy stores: a barrier, no `fence.proxy.async`.",
        "missing-proxy-fence",
    ),
    Fault(
        "fence_only_inside_the_loop",
        ("MoonshotAI/FlashKDA#24",),
        "The fence stands in a loop that an empty sequence never enters.",
        "missing-proxy-fence",
    ),
    Fault(
        "source_reused_before_it_was_read",
        ("flagos-ai/FlagTree#1166",),
        "The buffer of a store is written again before `wait_group.read`.",
        "race",
    ),
    Fault(
        "reduction_source_reused",
        ("hao-ai-lab/FastVideo#735",),
        "The same, of a bulk reduction into global memory.",
        "race",
    ),
    Fault(
        "result_read_before_it_was_stored",
        ("NVIDIA/cutlass#2162",),
        "`wait_group.read` stands where the store has to be complete.",
        "race",
    ),
    Fault(
        "barrier_without_an_init_fence",
        ("MoonshotAI/FlashKDA#24",),
        "A bulk copy signals an mbarrier, and no `fence.mbarrier_init` follows its init.",
        "missing-init-fence",
    ),
    Fault(
        "half_of_the_operands_waited_for",
        ("NVIDIA/cutlass#3643", "facebookexperimental/CUTracer#106"),
        "Two copies signal a barrier each, and one of them is never waited for.",
        "race",
    ),
    Fault(
        "wait_moved_behind_the_use",
        ("facebookexperimental/CUTracer#106",),
        "The wait for a copy stands behind the use of its data.",
        "race",
    ),
    Fault(
        "bytes_expected_of_twice_as_many",
        ("tile-ai/tilelang#2644",),
        "The barrier expects the bytes of twice as many CTAs as copy to it.",
        "hang",
    ),
    Fault(
        "stale_index_of_a_barrier",
        ("tile-ai/tilelang#1828",),
        "The bytes are expected at one barrier, and the copy signals another.",
        "hang",
    ),
    Fault(
        "bytes_expected_without_an_arrival",
        ("tile-ai/tilelang#2566",),
        "A loop of one trip copies linearly: its bytes are expected, and nobody arrives.",
        "hang",
    ),
    Fault(
        "parity_of_the_loop_for_that_of_a_barrier",
        ("tile-ai/tilelang#2927",),
        "Each trip has a barrier of its own, and waits for the parity of the trip.",
        "uninitialised-read",
    ),
    Fault(
        "stage_refilled_while_others_read_it",
        ("tile-ai/tilelang#2613",),
        "A lane refills a stage by TMA, and nothing says that the other lanes have read it.",
        "overwritten-in-use",
    ),
    Fault(
        "stage_refilled_without_a_proxy_fence",
        ("deepseek-ai/DeepGEMM#389",),
        "The same with `__syncwarp()`, without a proxy fence between the reads and the refill.",
        NOTHING,
    ),
    Fault(
        "flag_polled_before_a_copy",
        ("deepseek-ai/DeepEP#642",),
        "A flag is polled, and what it announces is copied by TMA with no proxy fence between.",
        "missing-proxy-fence",
        ctas=2,
    ),
    Fault(
        "map_changed_in_flight",
        ("deepseek-ai/DeepGEMM#343", "NVIDIA/cutlass#2162", "facebookexperimental/triton#680"),
        "A tensor map is changed for the next group while a copy may still read it.",
        "overwritten-in-use",
        takes_map=True,
    ),
    Fault(
        "mailbox_without_an_acknowledgement",
        ("NVlabs/cuda-oxide#1066",),
        "A producer signals that its mailbox is full and never waits until it is empty.",
        "hang",
    ),
    Fault(
        "leader_arrives_before_the_others_have_stored",
        ("triton-lang/triton#9871",),
        "One thread arrives for its warps, with no barrier between their stores and it.",
        "race",
        threads=128,
    ),
    Fault(
        "phase_overwritten_while_others_read_it",
        ("triton-lang/triton#11334",),
        "A thread runs ahead and overwrites the phase that another warp has still to read.",
        "race",
    ),
    Fault(
        "one_named_barrier_for_two_roles",
        ("flashinfer-ai/flashinfer#4533",),
        "Two roles use one named barrier, so that each lets the other go.",
        "race",
        threads=128,
    ),
    Fault(
        "empty_tiles_that_one_role_arrives_at_only",
        ("vllm-project/vllm#26026",),
        "A role with no work arrives at a named barrier and comes to it again before the other.",
        "hang",
    ),
    Fault(
        "scratch_of_a_maximum_used_again",
        ("NVIDIA/cutlass#3597",),
        "Shared memory of a reduction is written by the next one before all warps have read it.",
        "race",
        threads=128,
    ),
    Fault(
        "registers_by_one_warp_of_four",
        ("PTX ISA, setmaxnreg",),
        "`setmaxnreg` by one warp of a warpgroup.",
        "setmaxnreg",
        threads=128,
    ),
    Fault(
        "leader_refills_before_its_peer_has_read",
        ("inclusionAI/humming#56",),
        "A CTA refills by multicast what its peer has still to read.",
        "overwritten-in-use",
        ctas=2,
        cluster=2,
    ),
    Fault(
        "leaves_before_its_peer_has_read",
        ("sgl-project/sglang#32907",),
        "A CTA ends while its peer reads its shared memory.",
        "remote-cta-exited",
        ctas=2,
        cluster=2,
    ),
    Fault(
        "pair_with_different_trips",
        ("deepseek-ai/DeepGEMM#429",),
        "The CTAs of a cluster go through a loop with barriers a different number of times.",
        "hang",
        ctas=2,
        cluster=2,
    ),
    Fault(
        "local_form_of_a_remote_arrival",
        ("apache/tvm#20074",),
        "`mbarrier.arrive.shared::cta` with an address that `mapa` gave.",
        "mbarrier-misuse",
        ctas=2,
        cluster=2,
    ),
    Fault(
        "arrival_of_the_scope_of_a_cta",
        ("NVIDIA/cutlass#3324", "NVIDIA/cutlass#3643"),
        "A CTA arrives at its peer's barrier with `.release.cta`; the peer reads what it wrote.",
        "missing-acquire",
        ctas=2,
        cluster=2,
    ),
    Fault(
        "peers_half_not_waited_for",
        ("NVIDIA/cutlass#3647",),
        "Each CTA of a pair waits for its own copy only, and the leader reads both.",
        "race",
        ctas=2,
        cluster=2,
    ),
    Fault(
        "registers_of_a_reused_in_flight",
        ("deepseek-ai/DeepGEMM#448",),
        "Registers of a `wgmma`'s A are written before the wait.",
        RESULT,
        threads=128,
    ),
    Fault(
        "accumulators_read_before_the_wait",
        ("PTX ISA, wgmma.wait_group",),
        "An accumulator is read between `commit_group` and `wait_group`.",
        RESULT,
        threads=128,
    ),
    Fault(
        "sparse_operand_without_a_proxy_fence",
        ("tile-ai/tilelang#2634",),
        "Threads write an operand of a sparse `wgmma`, with no `fence.proxy.async`.",
        "missing-proxy-fence",
        threads=128,
    ),
    Fault(
        "ring_of_bulk_copies_between_warps",
        ("Dao-AILab/flash-attention, AI/RACECHECK_TMA_HAZARD.md",),
        "A ring of bulk copies between two warps, reported as a false alarm of racecheck; here the "
        "producer does not wait for one stage.",
        "overwritten-in-use",
    ),
    Fault(
        "barrier_dropped_for_48_threads",
        ("tile-ai/tilelang#2556",),
        "A compiler drops a barrier since 48 threads are no multiple of 32.",
        "race",
    ),
    Fault(
        "barrier_hoisted_out_of_a_loop",
        ("tile-ai/tilelang#2612",),
        "A compiler moves a barrier out of a loop, since it stood in a branch of some threads.",
        "race",
    ),
    Fault(
        "loop_without_a_barrier_at_its_end",
        ("tile-ai/tilelang#2613",),
        "Two groups read an operand that all threads write again in the next trip.",
        "race",
    ),
    Fault(
        "fill_of_a_part_that_was_just_copied",
        ("tile-ai/tilelang#2698",),
        "A part of a buffer is filled by other threads than those that have just copied to it.",
        "race",
    ),
    Fault(
        "atomic_without_a_barrier_behind_it",
        ("tile-ai/tilelang#1257",),
        "Shared memory is read with no barrier after the atomics of others.",
        "race",
    ),
)
BLACKWELL = (
    Fault(
        "bulk_clear_before_others_have_read",
        ("tile-ai/tilelang#2699",),
        "`st.bulk` clears what other threads have still to read.",
        "race",
    ),
    Fault(
        "bulk_clear_and_fill",
        ("tile-ai/tilelang#2703",),
        "Threads fill what another clears by `st.bulk`, with no barrier between.",
        "race",
    ),
    Fault(
        "tensor_memory_between_two_partitions",
        ("triton-lang/triton#10043",),
        "One partition loads tensor memory that another stores, with nothing between.",
        "tmem-race",
        threads=256,
    ),
    Fault(
        "tensor_memory_released_while_it_is_loaded",
        ("flashinfer-ai/flashinfer#5334", "NVIDIA/cutlass#3652", "hao-ai-lab/FastVideo#1819"),
        "Columns are given to others with no `tcgen05.wait::ld` after the last load.",
        "tmem-race",
        threads=256,
    ),
    Fault(
        "tensor_memory_overwritten_by_its_alias",
        ("facebookexperimental/triton#2024",),
        "Columns are written under another name while a partition may still load them.",
        "tmem-race",
        threads=256,
    ),
    Fault(
        "pair_allocates_before_its_peer_is_there",
        ("NVIDIA/cutlass#3316",),
        "A CTA allocates tensor memory for its pair, and its peer may not have started.",
        NOTHING,
        ctas=2,
        cluster=2,
    ),
    Fault(
        "address_of_tensor_memory_with_no_tile_to_announce_it",
        ("NVIDIA/cutlass#2835",),
        "A warp frees tensor memory at an address that another stores, with no tile between.",
        "race",
        ctas=2,
    ),
)
FAULTS = {"hopper": HOPPER, "blackwell": BLACKWELL}


def faults() -> Iterator[tuple[str, Fault]]:
    """(source, fault)."""
    for area, rows in FAULTS.items():
        for fault in rows:
            yield area, fault


def _report(name: str) -> str:
    repository, _, number = name.partition("#")
    if not number:
        return name
    short = repository.partition("/")[2]
    return f"[{short} #{number}](https://github.com/{repository}/issues/{number})"


def on_a_card() -> Iterator[tuple[str, str, list[dict[str, Any]]]]:
    """(kernel, "right" or "wrong", its runs: first without a tool, then by tool) on an H100."""
    lines = (SOURCES / "h100.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    for (name, form), runs in itertools.groupby(rows, lambda row: (row["name"], row["form"])):
        yield name, form, list(runs)


def _result(plain: str, right: str) -> str:
    if plain == right:
        return "right"
    kind, _, _ = plain.partition(" ")
    return {"result": "wrong", "error": "error"}.get(kind, kind)


def _tools(runs: list[dict[str, Any]]) -> list[str]:
    return [run["tool"] for run in runs[1:] if run["count"]]


def page() -> str:
    """The table as markdown."""
    seen = {(name, form): runs for name, form, runs in on_a_card()}
    lines = ["| fault | reported | found as | result on an H100 | compute-sanitizer |"]
    lines.append("|---|---|---|---|---|")
    for _, fault in faults():
        shown = fault.finding if fault.finding in (RESULT, NOTHING) else f"`{fault.finding}`"
        reports = ", ".join(_report(name) for name in fault.reports)
        result = tools = "not run"
        if (fault.name, "right") in seen:
            right, wrong = (seen[fault.name, form] for form in ("right", "wrong"))
            result = _result(wrong[0]["printed"], right[0]["printed"])
            tools = ", ".join(_tools(wrong)) or "nothing"
            tools += " (also of the right form)" if _tools(right) else ""
        lines.append(f"| {fault.sentence} | {reports} | {shown} | {result} | {tools} |")
    answer = sum(fault.finding != NOTHING for _, fault in faults())
    lines += ["", f"{answer} of {sum(1 for _ in faults())} are found; no right form is accused."]
    return "\n".join([*lines, "", _of_tools(seen), ""])


def _of_tools(seen: dict[tuple[str, str], list[dict[str, Any]]]) -> str:
    """A sentence on what each tool reported."""
    names = {name for name, _ in seen}
    result = {name for name in names if _tools(seen[name, "wrong"])}
    accused = {name for name in names if _tools(seen[name, "right"])}
    counts = ", ".join(
        f"{tool} in {sum(tool in _tools(seen[name, 'wrong']) for name in names)}"
        for tool in ("racecheck", "synccheck", "memcheck", "initcheck")
    )
    shows = sum(seen[n, "wrong"][0]["printed"] != seen[n, "right"][0]["printed"] for n in names)
    return (
        f"Of the {len(names)} for sm_90a, compute-sanitizer reports something in {len(result)} "
        f"wrong forms ({counts}), and accuses {len(accused)} right form. Run once with no tool, "
        f"{shows} wrong forms show a wrong result, an error or a hang on the card."
    )
