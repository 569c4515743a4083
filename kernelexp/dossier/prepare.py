"""Variants to arms: the kernel's rules, the build, the emulation. One that fails stops no other."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeAlias

import msgspec

from kernelexp.dossier.session import Session
from kernelexp.evidence import build
from kernelexp.evidence.build import Artefacts
from kernelexp.evidence.code import built as build_evidence
from kernelexp.evidence.emulate import emulated as emulated_evidence
from kernelexp.evidence.emulate.emulated import EmulationOptions
from kernelexp.facts.chips import find_arch
from kernelexp.judge import verdict
from kernelexp.model import arm
from kernelexp.model.arm import (
    Arm,
    ArmOrFault,
    BuildEvidence,
    EmulatedEvidence,
    Isa,
    Verdict,
    sound,
)
from kernelexp.model.errors import ConfigurationError, KernelexpError, UsageError
from kernelexp.model.experiment import FULL, Placed, Program, Variant, spell_point
from kernelexp.model.limits import Limits
from kernelexp.project import Project
from kernelexp.project.problem import consult
from kernelexp.project.problem.consult import Configured, Facts, configure
from warpsim.launch import Launch

_AS_USUAL = EmulationOptions()


def key(variant: Placed) -> str:
    """A variant's name among others, or an arm's."""
    return f"{variant.kernel}@{variant.arch}: {spell_point(variant.axes)}"


def built(
    project: Project,
    variants: Sequence[Variant],
    session: Session,
    sizes: Collection[tuple[str, str]] = (),
) -> list[ArmOrFault]:
    """Rules, build and build evidence of each variant; what the rules refuse is not built.

    `sizes` are kernels with sizes that their problems must have, or their variants have a fault.
    """
    distinct = {key(item): item for item in variants}
    arms: dict[str, ArmOrFault] = {}
    rules: dict[str, Facts] = {}
    own_sizes: dict[str, Collection[str]] = {}
    for kernel in dict.fromkeys(item.kernel for item in distinct.values()):
        own = {name: item for name, item in distinct.items() if item.kernel == kernel}
        try:
            named = [size for other, size in sizes if other == kernel]
            own_sizes[kernel], facts = _ask(project, own, session.limits, named)
            rules |= facts
        except KernelexpError as error:
            arms |= dict.fromkeys(own, error)
    possible: dict[str, Variant] = {}
    for name, known in rules.items():
        if against := _refused(distinct[name], known):
            arms[name] = msgspec.structs.replace(arm.begin(distinct[name]), refused=against)
        else:
            possible[name] = distinct[name]
    arms |= _build(project, possible, session)
    compiled = {k: x for k in possible if isinstance(x := arms[k], Arm) and not x.refused}
    arms |= _examine(project, compiled, possible, rules, own_sizes, session)
    return [arms[key(variant)] for variant in variants]


def arm_of(project: Project, variant: Variant, session: Session) -> Arm:
    """One variant, built; raises its fault."""
    (arm_or_fault,) = built(project, [variant], session)
    return sound(arm_or_fault)


def refused(project: Project, variants: Sequence[Variant], limits: Limits) -> dict[str, Verdict]:
    """Returns the verdicts that rule out variants of one kernel before any build, by their keys;
    raises the kernel's fault."""
    own = {key(variant): variant for variant in variants}
    _, rules = _ask(project, own, limits)
    verdicts = {name: _refused(own[name], known) for name, known in rules.items()}
    return {name: against for name, against in verdicts.items() if against}


def possible(project: Project, variants: Sequence[Variant], limits: Limits) -> list[Variant]:
    """The distinct variants that no rule forbids; raises a kernel's fault."""
    distinct = {key(variant): variant for variant in variants}
    against: dict[str, Verdict] = {}
    for kernel in dict.fromkeys(variant.kernel for variant in distinct.values()):
        own = [variant for variant in distinct.values() if variant.kernel == kernel]
        against |= refused(project, own, limits)
    return [variant for name, variant in distinct.items() if name not in against]


def refuse_programs(variants: Iterable[Variant], what: str) -> None:
    """UsageError where one is a program; `what` is only done with kernels, as in "an emulation"."""
    for variant in variants:
        if variant.program:
            raise UsageError(
                f"{variant.kernel} is a program with a main of its own: {what} needs a kernel with "
                "a problem.py, which says how it is launched."
            )


def _build(
    project: Project,
    variants: Mapping[str, Variant],
    session: Session,
) -> dict[str, ArmOrFault]:
    arms: dict[str, ArmOrFault] = {}
    for is_program in (False, True):
        some = {
            k: variant for k, variant in variants.items() if bool(variant.program) == is_program
        }
        if some:
            own = build.build(
                project.root,
                list(some.values()),
                session.tools,
                timeout_s=session.limits.build_s,
                on_progress=session.on_progress,
                # A program is linked with what is on the machine that it is run on.
                builder=None if is_program else session.executor.build,
                slots=None if is_program else session.executor.slots,
            )
            arms |= zip(some, own, strict=True)
    return arms


def _refused(variant: Variant, rules: Facts) -> Verdict | None:
    """IMPOSSIBLE where what is known before the build forbids the variant."""
    return verdict.impossible(find_arch(variant.arch), rules.reasons, rules.budget)


def _ask(
    project: Project,
    variants: Mapping[str, Variant],
    limits: Limits,
    sizes: Iterable[str] = (),
) -> tuple[Collection[str], dict[str, Facts]]:
    """Returns the sizes of a kernel's problem, and the rules of problem.py and config headers for
    variants of it, by their keys.

    A program has neither.
    """
    first = next(iter(variants.values()))
    if first.program:
        for size in sizes:
            if size != FULL:
                raise UsageError(
                    f"size {size}: {first.kernel} is a program, which has no problem.py."
                )
        return (), dict.fromkeys(variants, Facts())
    own = list(variants.values())
    answer = consult.consult(project.root, first.kernel, own, timeout_s=limits.problem_s)
    for size in sizes:
        consult.require_size(first.kernel, answer.sizes, size)
    facts = dict(zip(variants, answer.points, strict=True))
    with_config = {name: variant for name, variant in variants.items() if variant.config}
    terms = [facts[name].terms for name in with_config]
    read = configure(project.root, list(with_config.values()), terms)
    for name, configured in zip(with_config, read, strict=True):
        facts[name] = _merge(facts[name], configured)
    return answer.sizes, facts


def _merge(facts: Facts, configured: Configured) -> Facts:
    """problem.py's own budget goes before the header's."""
    if configured.failure:
        return msgspec.structs.replace(facts, failure=configured.failure)
    reasons = (*facts.reasons, *configured.refusals)
    if facts.budget:
        return msgspec.structs.replace(facts, reasons=reasons)
    return msgspec.structs.replace(
        facts,
        reasons=reasons,
        budget=configured.budget(),
        budget_of="the config header, compiled for the host,",
    )


def _examine(
    project: Project,
    compiled: Mapping[str, Arm],
    variants: Mapping[str, Variant],
    rules: Mapping[str, Facts],
    sizes: Mapping[str, Collection[str]],
    session: Session,
) -> dict[str, ArmOrFault]:
    """The arms that the compiler made with what their builds show."""
    arms: dict[str, ArmOrFault] = {}
    code: dict[str, Artefacts] = {}
    exports: dict[str, dict[str, int]] = {}
    for name, one in compiled.items():
        try:
            if program := variants[name].program:
                arms[name] = _linked(project, one, program)
            else:
                code[name] = build.artefacts(project.root, one.identity)
                exports[name] = build_evidence.read_exports(code[name].cubin)
        except KernelexpError as error:
            arms[name] = error
    for name, launches in _launches(project, compiled, exports, sizes, session.limits).items():
        try:
            shown = _with_evidence(compiled[name], code[name], exports[name], rules[name], launches)
        except KernelexpError as error:
            arms[name] = error
        else:
            build.note_alike(project.root, shown, session.tools.version)
            arms[name] = shown
    return arms


def _linked(project: Project, built: Arm, program: Program) -> Arm:
    """The arm of a program with what its build shows."""
    artefacts = build.program(project.root, built.identity)
    return msgspec.structs.replace(
        built, program=build_evidence.collect_program(program, built.arch, artefacts)
    )


def _with_evidence(
    built: Arm, code: Artefacts, exports: dict[str, int], rules: Facts, launches: _Launches
) -> Arm:
    """The arm with what its build shows; raises the fault of a launch() without which nothing can
    be said of it."""
    known = {} if isinstance(launches, KernelexpError) else launches
    try:
        evidence = build_evidence.collect(built, code, exports, known)
    except ConfigurationError as error:
        raise (launches if isinstance(launches, KernelexpError) else error) from None
    refused = (
        verdict.does_not_fit(find_arch(built.arch), evidence)
        or _contradiction(built, rules, evidence)
        or verdict.contradicts_launches(built, known, evidence)
    )
    launch = hashlib.sha256(msgspec.json.encode(known, order="sorted")).hexdigest() if known else ""
    digest = build.code_digest(code.cubin.read_bytes())
    return msgspec.structs.replace(
        built, build=evidence, refused=refused, code=digest, launch=launch
    )


def _contradiction(built: Arm, rules: Facts, evidence: BuildEvidence) -> Verdict | None:
    """BUILD_FAILED where what limits were judged by before the build is not what was built."""
    if rules.failure:
        return verdict.contradiction(
            f"{built.config}: the host compiler can't read it: {rules.failure}"
        )
    return verdict.contradicts_budget(built, rules.budget_of, rules.budget, evidence)


_Launches: TypeAlias = "Mapping[str, Sequence[Launch]] | KernelexpError"
"""What launch() gives by the name of the size, or what it raises."""


def _launches(
    project: Project,
    built: Mapping[str, Arm],
    exports: Mapping[str, dict[str, int]],
    sizes: Mapping[str, Collection[str]],
    limits: Limits,
) -> dict[str, _Launches]:
    """Returns the launches of the arms whose exports are known, by their keys, at each of their
    kernel's sizes."""
    result: dict[str, _Launches] = {}
    for kernel in dict.fromkeys(built[name].kernel for name in exports):
        own = [name for name in exports if built[name].kernel == kernel]
        try:
            answer = consult.consult(
                project.root,
                kernel,
                [built[name] for name in own],
                sizes[kernel],
                timeout_s=limits.problem_s,
                exports=[exports[name] for name in own],
                separately=True,
            )
        except KernelexpError as error:
            result |= dict.fromkeys(own, error)
            continue
        for name, facts in zip(own, answer.points, strict=True):
            fault = next(iter(facts.faults.values()), "")
            known = facts.launches or not fault
            result[name] = facts.launches if known else ConfigurationError(fault)
    return result


def emulated(
    project: Project,
    arms: Sequence[ArmOrFault],
    session: Session,
    how: EmulationOptions = _AS_USUAL,
) -> list[ArmOrFault]:
    """Adds the evidence of emulation to the arms, and refuses those that it rules out.

    PTX decides, if it is executed; what prevents only the SASS from being executed is in its
    evidence.
    """
    built = {key(x): x for x in arms if isinstance(x, Arm) and x.build and not x.refused}
    isas = {
        name: how.isas[:1] if emulated_evidence.is_cubin(entry) else how.isas
        for name, entry in built.items()
    }
    wanted = [(name, isa) for isa in how.isas for name in built if isa in isas[name]]
    taken = emulated_evidence.take(
        project.root,
        [(built[name], isa) for name, isa in wanted],
        how.size,
        session.limits,
        session.on_progress,
        project.label,
        how.schedules,
        session.executor.emulate,
        session.executor.slots,
    )
    by_isa = dict(zip(wanted, taken, strict=True))
    executed: dict[str, ArmOrFault] = {}
    for name, item in built.items():
        try:
            executed[name] = _executed(item, {isa: by_isa[name, isa] for isa in isas[name]}, how)
        except KernelexpError as error:
            executed[name] = error
    return [executed.get(key(x), x) if isinstance(x, Arm) else x for x in arms]


def _executed(
    arm: Arm, taken: Mapping[Isa, EmulatedEvidence | KernelexpError], how: EmulationOptions
) -> Arm:
    """Raises what kept the arm from being judged."""
    judging, *others = taken
    judge, counts = taken[judging], taken["sass"] if "sass" in others else None
    if isinstance(judge, KernelexpError):
        raise judge
    if isinstance(counts, KernelexpError):
        sentence = str(counts).partition("\n")[0]
        counts = EmulatedEvidence(size=how.size, isa="sass", unsupported=sentence)
    return msgspec.structs.replace(
        arm,
        emulated=judge if judging == "ptx" else None,
        emulated_sass=judge if judging == "sass" else counts,
        refused=verdict.emulated(judge, pedantic=how.pedantic),
    )
