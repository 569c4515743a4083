"""Gates on build evidence: every variant of the project against a committed baseline, both ways."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeAlias
from xml.etree import ElementTree

import msgspec

from kernelexp import errors, examine
from kernelexp.build import Progress
from kernelexp.errors import ConfigurationError, EnvironmentFault
from kernelexp.examine import Judged
from kernelexp.model import BuildEvidence, Status, Variant
from kernelexp.project import Project
from kernelexp.toolchain import Toolchain

FILE = "build-baseline.json"
UPDATE = "kernelexp check --update"

WRONG = (Status.INCORRECT, Status.TIMED_OUT)
"""What an emulation may find."""

Outcome: TypeAlias = Literal["same", "worse", "better", "mixed", "new", "gone", "failed", "wrong"]


class Gate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a variant's build may not exceed. Less is better in each figure."""

    registers: int
    spill_bytes: int
    stack_bytes: int
    smem_bytes: int
    """Static and dynamic."""
    sass_bytes: int


class Baseline(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The committed file."""

    compiler: str
    variants: dict[str, Gate | str]
    """A gate, or the status of a variant that is refused: IMPOSSIBLE."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A variant held against the baseline."""

    variant: str
    outcome: Outcome
    sentence: str
    source: str = ""


def named_variants(project: Project) -> dict[str, Variant]:
    """Every variant that an experiment or the history names, by its label."""
    found: dict[str, Variant] = {}
    for experiment in project.experiments.values():
        baseline, candidates = project.variants(experiment)
        for variant in (baseline, *candidates):
            found[project.label(variant)] = variant
    return dict(sorted(found.items()))


def examine_all(
    project: Project,
    tools: Toolchain,
    emulate: bool,
    on_build: Progress | None = None,
    on_emulate: Progress | None = None,
) -> dict[str, Judged]:
    """Every named variant by its label: built, and with `emulate` executed."""
    named = named_variants(project)
    judged: Mapping[str, Judged] = examine.judge(project, list(named.values()), tools, on_build)
    if emulate:
        judged = examine.emulate(project, judged, on_emulate)
    return {label: judged[examine.key(variant)] for label, variant in named.items()}


def read_baseline(root: Path) -> Baseline | None:
    """The committed baseline; None where there is none yet."""
    try:
        return msgspec.json.decode((root / FILE).read_bytes(), type=Baseline)
    except FileNotFoundError:
        return None
    except (msgspec.DecodeError, OSError) as error:
        raise ConfigurationError(f"{FILE}: {error}. Write it anew with `{UPDATE}`.") from None


def write_baseline(root: Path, compiler: str, judged: Mapping[str, Judged]) -> Path:
    """Writes what the variants are now as the baseline, one line a variant so that a diff reads."""
    lines = []
    for label, each in judged.items():
        gate = _gate(each)
        value = msgspec.json.encode(gate).decode()
        lines.append(f"  {msgspec.json.encode(label).decode()}: {value}")
    body = ",\n".join(lines)
    text = f'{{\n"compiler": "{compiler}",\n"variants": {{\n{body}\n}}\n}}\n'
    path = root / FILE
    temporary = path.with_suffix(".tmp")
    temporary.write_text(text)
    temporary.replace(path)
    return path


def compare(
    baseline: Baseline | None, compiler: str, judged: Mapping[str, Judged]
) -> list[Finding]:
    """A finding for each variant; EnvironmentFault if the baseline is another compiler's."""
    if baseline is None:
        raise ConfigurationError(f"there is no {FILE}: write it with `{UPDATE}` and commit it.")
    if baseline.compiler != compiler:
        raise EnvironmentFault(
            f"{FILE} was made with nvcc {baseline.compiler}, this is {compiler}: their code "
            f"differs. Use that compiler (--nvcc), or write the baseline anew with `{UPDATE}`."
        )
    findings = [_hold(label, each, baseline.variants.get(label)) for label, each in judged.items()]
    findings.extend(
        Finding(
            variant=label,
            outcome="gone",
            sentence=f"in the baseline, but no experiment names it; run `{UPDATE}`.",
        )
        for label in baseline.variants
        if label not in judged
    )
    return findings


def _gate(judged: Judged) -> Gate | str:
    if judged.arm.build is None:
        return judged.refused.status.value if judged.refused else ""
    return _measure(judged.arm.build)


def _measure(build: BuildEvidence) -> Gate:
    used = build.resources
    return Gate(
        registers=used.registers,
        spill_bytes=used.spill_store_bytes + used.spill_load_bytes,
        stack_bytes=used.stack_bytes,
        smem_bytes=used.static_smem_bytes + used.dynamic_smem_bytes,
        sass_bytes=used.sass_bytes,
    )


def _hold(label: str, judged: Judged, gate: Gate | str | None) -> Finding:
    outcome, sentence = _weigh(judged, gate)
    return Finding(variant=label, outcome=outcome, sentence=sentence, source=judged.variant.source)


def _weigh(judged: Judged, gate: Gate | str | None) -> tuple[Outcome, str]:
    now = _gate(judged)
    if judged.refused is not None and judged.refused.status is Status.BUILD_FAILED:
        return "failed", "does not build: " + _first_error(judged.arm.build_log)
    if judged.refused is not None and judged.refused.status in WRONG:
        return "wrong", f"{judged.refused.status}: {judged.refused.sentence}"
    if gate is None:
        return "new", f"not in the baseline; run `{UPDATE}`."
    if isinstance(now, str) or isinstance(gate, str):
        if now == gate:
            return "same", str(now)
        return "worse", f"{_spell(now)}; the baseline has {_spell(gate)}."
    changes = [
        (name, getattr(gate, name), getattr(now, name))
        for name in Gate.__struct_fields__
        if getattr(gate, name) != getattr(now, name)
    ]
    words = ", ".join(f"{name} {was:,} -> {is_:,}" for name, was, is_ in changes)
    worse = any(is_ > was for _, was, is_ in changes)
    better = any(is_ < was for _, was, is_ in changes)
    if worse:
        return ("mixed" if better else "worse"), words
    return ("better", f"{words}; lock it in with `{UPDATE}`.") if better else ("same", "")


def _spell(gate: Gate | str) -> str:
    return gate if isinstance(gate, str) else "a build"


def _first_error(log: str) -> str:
    lines = log.splitlines()
    return next((line for line in lines if "error" in line), lines[0] if lines else "")


def exit_code(findings: Sequence[Finding]) -> int:
    """What `kernelexp check` ends with."""
    outcomes = {finding.outcome for finding in findings}
    if "failed" in outcomes:
        return errors.BUILD
    if "wrong" in outcomes:
        return errors.WRONG_RESULT
    return errors.REGRESSION if outcomes - {"same"} else errors.OK


def to_junit(findings: Sequence[Finding]) -> str:
    """A JUnit test suite: a case for each variant, a failure for each that is not the same."""
    failed = [finding for finding in findings if finding.outcome != "same"]
    suite = ElementTree.Element(
        "testsuite", name="kernelexp check", tests=str(len(findings)), failures=str(len(failed))
    )
    for finding in findings:
        case = ElementTree.SubElement(suite, "testcase", classname="build", name=finding.variant)
        if finding.outcome != "same":
            failure = ElementTree.SubElement(case, "failure", type=finding.outcome)
            failure.set("message", finding.sentence)
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def to_annotations(findings: Sequence[Finding]) -> list[str]:
    """GitHub workflow commands: each shows its sentence on the source of the variant."""
    return [
        f"::error file={finding.source or FILE},title=kernelexp check::"
        f"{_escape(f'{finding.variant}: {finding.sentence}')}"
        for finding in findings
        if finding.outcome != "same"
    ]


def _escape(text: str) -> str:
    """Of a workflow command's message: percent and line ends."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def publish(findings: Sequence[Finding], junit: Path | None, say: Callable[[str], None]) -> None:
    """For a CI server: JUnit XML where a file is named, annotations within GitHub Actions."""
    if junit:
        junit.write_text(to_junit(findings))
    if in_github_actions():
        for annotation in to_annotations(findings):
            say(annotation)


def in_github_actions() -> bool:
    return os.environ.get("GITHUB_ACTIONS") == "true"


def render(findings: Sequence[Finding]) -> list[str]:
    """A line for each variant that is not as the baseline has it, then the count."""
    differing = [finding for finding in findings if finding.outcome != "same"]
    lines = [f"{x.outcome:6}  {x.variant}\n        {x.sentence}" for x in differing]
    held = len(findings) - len(differing)
    return [*lines, f"{held} of {len(findings)} variants are as {FILE} has them."]
