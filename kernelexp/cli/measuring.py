"""Measuring in run, time and sweep, from the options that they share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelexp.cli.arguments import parse_limits, parse_seconds
from kernelexp.cli.options import L2State

if TYPE_CHECKING:
    from kernelexp.evidence.measure.measured import Measuring


def parse_measuring(
    gpu: bool,
    limit: list[str] | None,
    *,
    margin: float,
    size: str,
    budget: str | None,
    default_budget_s: float | None = None,
    processes: int = 4,
    l2: L2State = L2State.cold,
    peers: bool,
    shared_gpu: bool,
    sanitize: bool = False,
) -> Measuring | None:
    """Parses --margin, --size, --budget and the like; None with --no-gpu."""
    from kernelexp.evidence.measure.measured import Measuring
    from kernelexp.model.measurement import Options

    limits = parse_limits(limit)
    options = Options(
        processes=processes,
        l2=l2.value,
        peers=peers,
        shared_gpu=shared_gpu,
        sanitize=sanitize,
        problem_timeout_s=limits.problem_s,
    )
    budget_s = parse_seconds(budget, "--budget") if budget else default_budget_s
    if not gpu:
        return None
    return Measuring(options=options, margin=margin / 100, size=size, budget_s=budget_s)
