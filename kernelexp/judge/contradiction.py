"""Comparison of what problem.py says of a variant with what its build exports: BUILD_FAILED where
they contradict each other."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from kernelexp.model.arm import Arm, BuildEvidence, Status, Verdict
from kernelexp.model.problem import Budget
from warpsim.launch import Launch, main_launch


def of_budget(
    arm: Arm, where: str, budget: Budget | None, evidence: BuildEvidence
) -> Verdict | None:
    """`where` is what the budget comes from, for the sentence."""
    for name in ("threads", "dynamic_smem_bytes", "cluster", "tmem_columns"):
        predicted = getattr(budget, name, None)
        computed = evidence.exports.get(name, predicted)
        if predicted is not None and predicted != computed:
            return verdict(
                f"variants/{arm.kernel}: {where} says {predicted:,} {name}, "
                f"{arm.source} exports {computed:,}: correct the one that is wrong."
            )
    return None


def of_launches(
    arm: Arm, launches: Mapping[str, Sequence[Launch]], evidence: BuildEvidence
) -> Verdict | None:
    """The launches by the name of their size."""
    for size, job in launches.items():
        for name, item, exported in _pairs(main_launch(job), evidence.exports):
            if item != exported:
                return verdict(
                    f"variants/{arm.kernel}/problem.py: launch() asks for {item:,} {name} at "
                    f"size {size!r}, {arm.source} exports {exported:,}: correct the one that "
                    "is wrong."
                )
    return None


def _pairs(launch: Launch, exports: Mapping[str, int]) -> Iterator[tuple[str, int, int]]:
    """Name, the launch's figure, the build's, of what the source exports."""
    for name, words, item in (
        ("threads", "threads", math.prod(launch.block)),
        ("dynamic_smem_bytes", "dynamic_smem_bytes", launch.dynamic_smem_bytes),
        ("cluster", "CTAs per cluster", math.prod(launch.cluster)),
    ):
        if name in exports:
            yield words, item, exports[name]


def verdict(sentence: str) -> Verdict:
    return Verdict(status=Status.BUILD_FAILED, reason="contradiction", sentence=sentence)
