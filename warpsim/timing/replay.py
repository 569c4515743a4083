"""Sends recorded CTAs through the units of their SMs: compiled/replay.cpp."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import msgspec
import numpy as np

from warpsim import compiled
from warpsim.machine.core.arrays import Array
from warpsim.timing import opcodes
from warpsim.timing.chips import TimedChip
from warpsim.timing.errors import NotModelled
from warpsim.timing.recording import Recording

# compiled/timing.hpp has the same names in the same order.
PARAMETERS = (
    "queue_depth global_depth queue_interval return_interval shared_latency "
    "constant_interval constant_latency l1_latency l1_lines store_extra copy_port "
    "request_interval early_read l2_atomic_rate whole_turn part_turn float_turn sms "
    "l2_latency l2_rate l2_read_interval l2_write_rate l2_write_interval write_buffer "
    "dram_latency dram_wait dram_rate dram_write_rate read_latency tma_interval "
    "tma_rate tma_latency barrier_latency barrier_per_warp arrive_latency test_latency "
    "wake_latency branch turnover launch_interval gmma_tail gmma_depth beside_gmma "
    "gmma_port l2_port product_tail pair_tail tmem_operand tmem_latency"
).split()
REASONS = (
    "selected wait short_scoreboard long_scoreboard barrier gmma math_pipe_throttle mio_throttle "
    "not_selected branch_resolve lg_throttle"
).split()
"""ncu's names of why a warp did not issue, in the order of compiled/timing.hpp."""
UNITS = (
    "issue fma fma_lite alu xu tensor uniform fp64 control l1_data l2_reads l2_writes dram tma"
).split()
LIMIT = 1e9
"""Cycles after which a replay is given up."""
CARVE_OUTS = (0, 8, 16, 32, 64, 100, 132, 164, 196, 228)
"""KiB that an SM's shared memory may have: CUDA C++ Programming Guide 13.0, compute capability 9.0
and 10.0."""
_LINE = 128


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """What the launch as a whole decides for its CTAs."""

    from_dram: tuple[float, ...]
    """Of what L2 is asked for by bulk loads, or the first time by an SM's loads, by array."""
    prefetched: tuple[float, ...]
    """The same of what is prefetched to L2."""
    written: tuple[float, ...]
    """Of what L2 is given, what DRAM gets while the launch runs, by array."""
    together: tuple[float, ...]
    """How many SMs bulk copies of the same bytes go to, by array: L2 reads for all at once."""
    sms: int
    """That are in use, and share L2 and DRAM."""
    dram_busy: float = 0.0
    """Part of the time in which DRAM is busy: the busier it is, the longer a read waits."""


class Replayed(msgspec.Struct, frozen=True, kw_only=True):
    """What became of recorded CTAs."""

    ends: tuple[float, ...]
    """Cycles from the start, by CTA."""
    reasons: Array
    """Cycles of warps: [instructions, REASONS]."""
    busy: Array
    """Cycles: [SMs, UNITS]."""
    requested: tuple[float, ...]
    """Bytes that L2 was asked for, by array: of loads each once by each SM, of bulk loads all."""
    prefetched: tuple[float, ...]
    """Bytes that it was to prefetch, by array."""
    written: tuple[float, ...]
    """Bytes that it was given, by array."""
    drained: float
    """When L2 has taken the last of them, in cycles from the start."""
    traced: Array
    """What the warps of the first CTA issued, of TRACED; empty unless it was traced."""
    path: Array
    """Of STEP: the chain of events that the end waited for; empty where it was not looked for, or
    has too many events."""


class _Job(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("sizes", "blocks", "figures")),
        ("code", ctypes.c_void_p),
        ("last_of", ctypes.c_void_p),
        ("parameters", ctypes.c_void_p),
        ("arrays", ctypes.c_void_p),
        ("array_count", ctypes.c_int64),
        ("expected", ctypes.c_void_p),
        ("token_count", ctypes.c_int64),
        ("sm_of", ctypes.c_void_p),
        *((name, ctypes.c_int64) for name in ("ctas", "warps_per_cta", "sms", "slots")),
        ("limit", ctypes.c_double),
    ]


class _Outcome(ctypes.Structure):
    _fields_ = [
        *(
            (name, ctypes.c_void_p)
            for name in "ends reasons busy requested written prefetched drained traced".split()
        ),
        ("traced_limit", ctypes.c_int64),
        ("traced_count", ctypes.c_void_p),
        ("path", ctypes.c_void_p),
        ("path_limit", ctypes.c_int64),
        ("path_count", ctypes.c_void_p),
    ]


TRACED = np.dtype(
    [
        *((name, np.int32) for name in ("warp", "instruction", "reason", "unused")),
        *((name, np.float64) for name in ("since", "at")),
    ]
)
"""An instruction that issued at cycle `at`: its warp, its number in the recording's code, the
number in REASONS of what the warp waited for longest since the one before, at `since`."""


STEP = np.dtype(
    [
        *((name, np.int32) for name in "warp instruction producer reason".split()),
        ("cycles", np.float64),
    ]
)
"""Cycles of the critical path: a warp of its CTA, the number of the instruction that it could not
issue, of the one that it waited for (its own: a unit; -1: the start), the number in REASONS."""
STEPS = 10_000

_ARRAY = np.dtype(
    [
        *((name, np.int64) for name in ("first", "end")),
        *((name, np.float64) for name in ("from_dram", "prefetched", "written", "together")),
    ]
)


def replay(
    recording: Recording,
    chip: TimedChip,
    clock_hz: float,
    sm_of: Sequence[int],
    slots: int,
    share: Share,
    traced: int = 0,
    path: bool = False,
) -> Replayed:
    """Cycles of the recorded CTAs, of which `slots` are resident on an SM at once.

    traced: how many instructions of the first CTA to list; path: whether to look for the critical
    path.
    """
    code = opcodes.table(recording.code, recording.blocks, recording.sm, chip)
    last_of = np.zeros(len(code) + 1, np.int32)
    for first, block in recording.blocks.items():
        last_of[first] = block.last
    arrays = np.array(
        [
            (extent.first // _LINE, -(-extent.end // _LINE), *parts)
            for extent, *parts in zip(
                recording.arrays,
                share.from_dram,
                share.prefetched,
                share.written,
                share.together,
                strict=True,
            )
        ],
        _ARRAY,
    )
    parameters = np.array(
        [_parameter(name, recording, chip, clock_hz, slots, share) for name in PARAMETERS]
    )
    expected = np.array(recording.signals, np.int64)
    streams = (recording.sizes, recording.streams, recording.figures)
    sms, ctas = max(sm_of) + 1, len(recording.ctas)
    places = np.array(sm_of, np.int32)
    ends = np.zeros(ctas)
    reasons = np.zeros((len(code), len(REASONS)), np.int64)
    busy = np.zeros((sms, len(UNITS)))
    requested, written, prefetched = (np.zeros(len(arrays)) for _ in range(3))
    drained = np.zeros(sms)
    job = _Job(
        *(x.ctypes.data for x in streams),
        code.ctypes.data,
        last_of.ctypes.data,
        parameters.ctypes.data,
        arrays.ctypes.data,
        len(arrays),
        expected.ctypes.data,
        len(expected),
        places.ctypes.data,
        ctas,
        recording.warps_per_cta,
        sms,
        slots,
        LIMIT,
    )
    trace, count = np.zeros(traced, TRACED), np.zeros(1, np.int64)
    steps, taken = np.zeros(STEPS if path else 0, STEP), np.zeros(1, np.int64)
    outcome = _Outcome(
        *(x.ctypes.data for x in (ends, reasons, busy, requested, written, prefetched, drained)),
        trace.ctypes.data if traced else None,
        traced,
        count.ctypes.data,
        steps.ctypes.data if path else None,
        len(steps),
        taken.ctypes.data,
    )
    call = compiled.function("kx_replay", ctypes.c_void_p, ctypes.c_void_p)
    ended = call(ctypes.addressof(job), ctypes.addressof(outcome))
    if ended:
        why = "nobody could go on" if ended == 1 else f"no end after {LIMIT:.0e} cycles"
        raise NotModelled(f"the model of time got stuck: {why}.")
    return Replayed(
        ends=tuple(ends.tolist()),
        reasons=reasons,
        busy=busy,
        requested=tuple(requested.tolist()),
        prefetched=tuple(prefetched.tolist()),
        written=tuple(written.tolist()),
        drained=float(drained.max()),
        traced=trace[: int(count[0])],
        path=steps[: max(0, int(taken[0]))],
    )


def _carved(wanted: int) -> int:
    """Bytes that an SM's shared memory takes of L1, where CTAs want so many of them."""
    return next((1024 * size for size in CARVE_OUTS if 1024 * size >= wanted), wanted)


def _parameter(
    name: str, recording: Recording, chip: TimedChip, clock_hz: float, slots: int, share: Share
) -> float:
    if name == "l1_lines":
        return max(0.0, (chip["l1_bytes"] - _carved(slots * recording.shared_bytes)) // _LINE)
    if name == "sms":
        return share.sms
    value = chip.in_cycles(name, clock_hz, share.sms)
    if name == "dram_wait":
        return value * share.dram_busy / (1.5 - share.dram_busy)
    return min(value, chip["l2_port"]) if name == "l2_rate" else value
