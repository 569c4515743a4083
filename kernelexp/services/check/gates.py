"""Gates on builds and emulations: every variant compared with a committed baseline, both ways."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from kernelexp.evidence.build import Diagnostic, first_error
from kernelexp.facts import metrics
from kernelexp.judge.verdict import WRONG
from kernelexp.model import errors
from kernelexp.model.arm import Arm, Status
from kernelexp.model.errors import ConfigurationError, KernelexpError
from kernelexp.model.experiment import Variant
from kernelexp.project import Project
from kernelexp.system import disk
from kernelexp.system.disk import decode

FILE = "build-baseline.json"
UPDATE = "kernelexp check --update"
_AGAIN = f"Remove it, then write it again with `{UPDATE}`."

Outcome: TypeAlias = Literal[
    "same",
    "worse",
    "better",
    "mixed",
    "new",
    "gone",
    "failed",
    "wrong",
    "unchecked",
    "missed",
    "skipped",
    "undecided",
    "compiler",
]
PASSED: frozenset[Outcome] = frozenset({"same", "skipped"})
Gate: TypeAlias = dict[str, int | str] | str
"""The figures of metrics.BUILD_SUMMARY and of what gates compare with them, or the status of a
variant that is refused: IMPOSSIBLE."""
Extras: TypeAlias = Mapping[str, Mapping[str, int | str]]
"""What gates compare with the baseline beside its five figures, by variant and name."""


Change: TypeAlias = tuple[str, int, int]
"""A figure's name, what it was and what it is."""


class Baseline(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The committed file."""

    compiler: str
    variants: dict[str, Gate]


class GateFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A variant compared with the baseline."""

    variant: str
    outcome: Outcome
    sentence: str
    source: str = ""
    line: int = 0
    """Of `source`, where the compiler named one; else 0."""
    gate: str = ""
    """The condition of experiments.yaml that this is about; empty for the committed baseline."""


def named_variants(project: Project, kernels: Collection[str] = ()) -> dict[str, Variant]:
    """Every variant of these kernels, or of all, that an experiment or the history names."""
    named: dict[str, Variant] = {}
    for experiment in project.experiments.values():
        if kernels and experiment.kernel not in kernels:
            continue
        baseline, candidates = project.variants(experiment)
        for variant in (baseline, *candidates):
            named[project.label(variant)] = variant
    return dict(sorted(named.items()))


def read_baseline(root: Path, kernels: Collection[str] = ()) -> Baseline:
    """The committed baseline, of these kernels or of all; ConfigurationError without one."""
    try:
        baseline = decode((root / FILE).read_bytes(), Baseline)
    except FileNotFoundError:
        raise ConfigurationError(
            f"there is no {FILE}: write it with `{UPDATE}` and commit it."
        ) from None
    except (msgspec.DecodeError, ValueError, RecursionError, OSError) as error:
        raise ConfigurationError(f"{FILE}: {error}. {_AGAIN}") from None
    for label, gate in baseline.variants.items():
        if not isinstance(gate, str) and any(
            not isinstance(gate.get(name), int) for name in metrics.BUILD_SUMMARY
        ):
            names = ", ".join(metrics.BUILD_SUMMARY)
            raise ConfigurationError(f"{FILE}: {label} should have {names}. {_AGAIN}")
    wanted = {
        label: gate
        for label, gate in baseline.variants.items()
        if not kernels or label.partition("@")[0] in kernels
    }
    return msgspec.structs.replace(baseline, variants=wanted)


def write_baseline(
    root: Path, compiler: str, arms: Mapping[str, Arm], extras: Extras | None = None
) -> Path:
    """Writes what the variants are now as the baseline, one line each so that a diff reads.

    ConfigurationError where one does not build: no later check could pass.
    """
    broken = [
        label
        for label, arm in arms.items()
        if arm.refused and arm.refused.status is Status.BUILD_FAILED
    ]
    if broken:
        more = f" (nor do {len(broken) - 1} more)" if len(broken) > 1 else ""
        raise ConfigurationError(
            f"{broken[0]} does not build{more}: a baseline of it could never be met."
        )

    def spell(value: object) -> str:
        return msgspec.json.encode(value).decode()

    lines = [
        f"  {spell(label)}: {spell(_gate(arm, (extras or {}).get(label, {})))}"
        for label, arm in arms.items()
    ]
    body = ",\n".join(lines)
    text = f'{{\n"compiler": {spell(compiler)},\n"variants": {{\n{body}\n}}\n}}\n'
    return disk.write(root / FILE, text.encode())


def compare(
    baseline: Baseline,
    compiler: str,
    arms: Mapping[str, Arm],
    faults: Mapping[str, KernelexpError],
    *,
    emulated: bool,
) -> list[GateFinding]:
    """A finding for each variant by its label; `faults` are those that could not be examined.

    With `emulated`, a variant that builds and was not emulated is no pass. Another compiler than
    the baseline's is a finding of its own, whatever it changed.
    """
    findings = []
    if baseline.compiler != compiler:
        findings.append(_another_compiler(baseline.compiler, compiler))
    findings += [
        _compare(label, arm, baseline.variants.get(label), emulated) for label, arm in arms.items()
    ]
    findings += [
        GateFinding(variant=label, outcome="unchecked", sentence=f"could not be examined: {error}")
        for label, error in faults.items()
    ]
    findings += [
        GateFinding(
            variant=label,
            outcome="gone",
            sentence=f"in the baseline, but no experiment names it; run `{UPDATE}`.",
        )
        for label in baseline.variants
        if label not in arms and label not in faults
    ]
    return findings


def _another_compiler(before: str, now: str) -> GateFinding:
    sentence = (
        f"{FILE} was made with nvcc {before}, this is {now}; what follows is what that changed. "
        f"Use that compiler (--nvcc), or accept the changes with `{UPDATE}`."
    )
    return GateFinding(variant=f"nvcc {now}", outcome="compiler", sentence=sentence)


def _gate(arm: Arm, extra: Mapping[str, int | str] | None = None) -> Gate:
    if not arm.is_built:
        return arm.refused.status.value if arm.refused else ""
    return {**metrics.summarize(arm), **(extra or {})}


def _compare(label: str, arm: Arm, gate: Gate | None, emulated: bool) -> GateFinding:
    outcome, sentence = _weigh(arm, gate, emulated)
    source, line = arm.source, 0
    if outcome == "failed" and (error := _first_error(arm)).file:
        source, line = error.file, error.line
    return GateFinding(variant=label, outcome=outcome, sentence=sentence, source=source, line=line)


def _weigh(arm: Arm, gate: Gate | None, emulated: bool) -> tuple[Outcome, str]:
    now = _gate(arm)
    if arm.refused and arm.refused.status is Status.BUILD_FAILED:
        if not arm.build_log:
            return "failed", arm.refused.sentence
        error = _first_error(arm)
        place = f"{error.file}({error.line}): " if error.file else ""
        return "failed", f"does not build: {place}{error.message}"
    if arm.refused and arm.refused.status in WRONG:
        return "wrong", f"{arm.refused.status}: {arm.refused.sentence}"
    if emulated and arm.build and (arm.emulated is None or arm.emulated.unsupported):
        why = arm.emulated.unsupported if arm.emulated else "it was not executed"
        return "unchecked", f"could not be emulated: {why}"
    if gate is None:
        return "new", f"not in the baseline; run `{UPDATE}`."
    if isinstance(now, str) or isinstance(gate, str):
        if now == gate:
            return "same", str(now)
        return "worse", f"{_spell(now)}; the baseline has {_spell(gate)}."
    changes = list(_changes(gate, now))
    words = ", ".join(f"{name} {was:,} -> {is_:,}" for name, was, is_ in changes)
    worse = any(is_ > was for _, was, is_ in changes)
    better = any(is_ < was for _, was, is_ in changes)
    if worse:
        return ("mixed" if better else "worse"), words
    return ("better", f"{words}; lock it in with `{UPDATE}`.") if better else ("same", "")


def _changes(before: Mapping[str, int | str], now: Mapping[str, int | str]) -> Iterator[Change]:
    """Yields those of the five figures that differ."""
    for name in metrics.BUILD_SUMMARY:
        was, is_ = before[name], now[name]
        if isinstance(was, int) and isinstance(is_, int) and was != is_:
            yield name, was, is_


def _spell(gate: Gate) -> str:
    return gate if isinstance(gate, str) else "a build"


def _first_error(arm: Arm) -> Diagnostic:
    """The compiler's first error; the whole of its words where it named none."""
    return first_error(arm.build_log) or Diagnostic(file="", line=0, message=arm.build_log)


def exit_code(findings: Sequence[GateFinding]) -> int:
    """Returns the exit code of `kernelexp check`."""
    outcomes = {finding.outcome for finding in findings}
    if "failed" in outcomes:
        return errors.BUILD
    if "wrong" in outcomes:
        return errors.WRONG_RESULT
    if "unchecked" in outcomes:
        return errors.ENVIRONMENT
    if outcomes - PASSED - {"undecided"}:
        return errors.REGRESSION
    return errors.INCONCLUSIVE if "undecided" in outcomes else errors.OK
