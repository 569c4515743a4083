"""Schedules of an emulated launch: what the hardware leaves open, decided by a seed."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from warpsim.errors import UsageError


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """The order of warps, and when asynchronous effects land."""

    seed: int = 0
    """0 keeps warps together as far as it goes (fast); others also part them at random, and stop
    them before strong accesses, atomics and fences."""
    asynchrony: Literal["late", "early"] = "late"
    """late: only when no warp can go on without it. early: at the instruction that starts it."""

    first: bool = False
    """Whether it ends at the first access that would end the launch on a GPU. Otherwise that
    access loads poison or stores nothing, and what is seen later is marked."""

    @property
    def chance_of_stop(self) -> float:
        """Of a warp before each of these: 1/2 for seeds 1 and 2, 1/4 for the next two, and so on
        to 1/256, then again. Few stops reach far into long kernels, many show short ones."""
        return 0.5 ** (1 + (self.seed - 1) // 2 % 8) if self.seed else 0.0

    def __str__(self) -> str:
        first = ", first fault" if self.first else ""
        return f"seed {self.seed}, {self.asynchrony}{first}"


USUAL = 3
"""Schedules under which a variant is executed unless more are asked for."""


def first_schedules(count: int) -> tuple[Schedule, ...]:
    """That many schedules: late in order, then each seed late or early in turn."""
    return tuple(
        Schedule(seed=seed, asynchrony="early" if seed and seed % 2 == 0 else "late")
        for seed in range(count)
    )


def parse(text: str) -> Schedule:
    """A schedule from what str() makes of it: `seed 5, late`."""
    match = re.fullmatch(r"seed (\d{1,9}),? (late|early)(, first fault)?", text.strip())
    if match is None:
        raise UsageError(f"--schedule {text!r} should be like 'seed 5, late' or 'seed 2, early'.")
    fields = {"seed": int(match[1]), "asynchrony": match[2], "first": bool(match[3])}
    return msgspec.convert(fields, Schedule)
