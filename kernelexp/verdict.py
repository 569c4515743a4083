"""Evidence to verdict: pure functions, each a rule."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kernelexp.arch import Arch
from kernelexp.model import BuildEvidence, Status, Verdict
from kernelexp.problem import Budget


def impossible(arch: Arch, reasons: Sequence[str], budget: Budget) -> Verdict | None:
    """IMPOSSIBLE where the kernel's rules or the architecture forbid a variant, else None."""
    limits = list(exceeded(arch, budget))
    if not reasons and not limits:
        return None
    code = "hardware_limit" if limits else "constraint"
    return Verdict(
        status=Status.IMPOSSIBLE, reason=code, sentence=" ".join([*limits, *map(_end, reasons)])
    )


def exceeded(arch: Arch, budget: Budget) -> Iterator[str]:
    """A sentence for each limit of the architecture that a CTA's budget exceeds."""
    registers = budget.registers_per_thread * budget.threads
    asked = (
        (
            "tmem_columns",
            "tensor memory",
            "columns",
            budget.tmem_columns,
            arch.tmem_columns,
            "an SM",
        ),
        (
            "dynamic_smem_bytes",
            "shared memory",
            "bytes",
            budget.dynamic_smem_bytes,
            arch.smem_per_cta_bytes,
            "a CTA",
        ),
        ("threads", "threads", "threads", budget.threads, arch.threads_per_cta, "a CTA"),
        ("cluster", "cluster", "CTAs", budget.cluster, arch.cluster_size, "a cluster"),
        (
            "registers_per_thread",
            "registers",
            "registers",
            registers,
            arch.registers_per_sm,
            "an SM",
        ),
    )
    for field, what, unit, wants, limit, whose in asked:
        if wants > limit:
            term = f" ({budget.terms[field]})" if field in budget.terms else ""
            yield (
                f"{what.capitalize()}: {wants:,} {unit} needed{term}, "
                f"{limit:,} is the most that {arch.name} has for {whose}."
            )
    if budget.registers_per_thread > arch.registers_per_thread:
        yield (
            f"Registers: {budget.registers_per_thread} a thread needed, "
            f"{arch.registers_per_thread} is the most that {arch.name} has for one."
        )


def _end(sentence: str) -> str:
    return sentence if sentence.endswith(".") else f"{sentence}."


def does_not_fit(arch: Arch, evidence: BuildEvidence) -> Verdict | None:
    """IMPOSSIBLE where the build turned out so that not one CTA fits an SM, else None."""
    if evidence.occupancy.ctas_per_sm > 0:
        return None
    limits = " and ".join(evidence.occupancy.limited_by)
    sentence = f"Not one CTA fits an SM of {arch.name}: {limits} do not suffice."
    return Verdict(status=Status.IMPOSSIBLE, reason="does_not_fit", sentence=sentence)


def build_failed() -> Verdict:
    return Verdict(
        status=Status.BUILD_FAILED,
        reason="compiler",
        sentence="It does not build; the compiler's words are in the record.",
    )


def unmeasured(arch: Arch) -> Verdict:
    return Verdict(
        status=Status.UNMEASURED,
        reason="no_gpu",
        sentence=f"Built, not timed: a time for {arch.name} needs a GPU of that architecture "
        f"({arch.card}).",
    )
