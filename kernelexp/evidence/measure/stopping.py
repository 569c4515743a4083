"""Timing of looks at a measurement's samples, and of its end: pure functions."""

from __future__ import annotations

from collections.abc import Sequence

from kernelexp.model.measurement import EARLY_LOOKS, LOOKS_MAX, Measurement, Options

# Looks at the interval after the first: each costs confidence, so not after every process.
PROCESSES_BETWEEN_LOOKS = 2
PROCESSES_MIN = 3
"""Of a kernel's measurement: an interval of two is 11 times as wide as one of three."""
# What a process costs by itself (context, warm-up) is about what it costs for so many arms.
ARMS_OF_A_PROCESS = 10


def is_hopeless(so_far: Measurement) -> bool:
    """Whether more processes could not lead to a verdict on any candidate."""
    failed = {failure.arm for failure in so_far.failures}
    roles = [arm.role for arm in so_far.arms if arm.name not in failed]
    nothing_left = "baseline" not in roles or "candidate" not in roles
    return bool(so_far.invalid) or "" in failed or nothing_left


def is_budget_spent(
    elapsed_s: float,
    turns_s: Sequence[float],
    budget_s: float,
    next_share: float = 1.0,
    least: int = 2,
) -> bool:
    """Whether another process, which takes `next_share` of the last one's time, would end after the
    budget.

    So many as `least` are taken in any case: one says nothing of another. What the first takes
    longer than any other is not counted: on a fresh H200 machine the first one's imports and peers
    that compile themselves took all of 30 s.
    """
    if len(turns_s) < least:
        return False
    starting_up = max(0.0, turns_s[0] - max(turns_s[1:]))
    return elapsed_s - starting_up + next_share * turns_s[-1] > budget_s


def is_look_due(so_far: Measurement) -> bool:
    """Whether the interval is to be looked at now: after the first processes, then every second; in
    a race early too."""
    done, first = len(so_far.workers), so_far.options.processes
    if so_far.options.race and done in EARLY_LOOKS and done < first:
        return done not in so_far.looks
    at_a_look = done >= first and (done - first) % PROCESSES_BETWEEN_LOOKS == 0
    return at_a_look and done not in so_far.looks


def looks_max(options: Options) -> int:
    """Returns the number of looks that share the risk."""
    return LOOKS_MAX + (len(EARLY_LOOKS) if options.race else 0)


def next_share(so_far: Measurement, left_out: int) -> float:
    """Returns the next process's time over that of the last one, which left out so many arms."""
    arms = len(so_far.arms) + ARMS_OF_A_PROCESS
    return (arms - len(so_far.excluded)) / (arms - left_out)
