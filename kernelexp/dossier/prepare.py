"""Variants to arms: the kernel's rules, the build, the emulation. One that fails stops no other."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeAlias

import msgspec

from kernelexp.dossier.session import Session
from kernelexp.evidence import build
from kernelexp.evidence.build import Built
from kernelexp.evidence.code import built as build_evidence
from kernelexp.evidence.code import linked, resources
from kernelexp.evidence.emulate import emulated as emulated_evidence
from kernelexp.evidence.emulate.emulated import EmulationOptions
from kernelexp.evidence.executor import Local
from kernelexp.evidence.measure.measured import SIZE
from kernelexp.facts import arch
from kernelexp.judge import contradiction, verdict
from kernelexp.model import arm
from kernelexp.model.arm import Arm, BuildEvidence, EmulatedEvidence, Isa, Verdict
from kernelexp.model.axes import spell_point
from kernelexp.model.errors import OK, ConfigurationError, KernelexpError, UsageError
from kernelexp.model.limits import Limits
from kernelexp.model.problem import Budget
from kernelexp.model.variant import Variant
from kernelexp.project import Project
from kernelexp.project.problem import consult
from kernelexp.project.problem.config import Configured, configure
from kernelexp.project.problem.consult import Facts, Point
from warpsim.launch import Launch

_AS_USUAL = EmulationOptions()
_HERE = Local()


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """Arms by the key of their variant; a variant that could not be examined has a fault instead.

    A fault is the machine's or the project's: it says nothing of the variant.
    """

    arms: Mapping[str, Arm]
    faults: Mapping[str, KernelexpError]

    def arm(self, variant: Variant) -> Arm:
        """Raises the variant's fault if it has one."""
        if fault := self.fault(variant):
            raise fault
        return self.arms[key(variant)]

    def fault(self, variant: Variant) -> KernelexpError | None:
        return self.faults.get(key(variant))

    def named(self, variants: Iterable[Variant]) -> list[tuple[Variant, Arm]]:
        """Those of the variants that have an arm."""
        return [
            (variant, self.arms[key(variant)]) for variant in variants if key(variant) in self.arms
        ]

    def errors(self) -> list[str]:
        """Returns the reasons why variants have no arm, each sentence once."""
        return list(dict.fromkeys(map(str, self.faults.values())))

    def exit_code(self) -> int:
        """The exit code of the first fault."""
        return next((fault.exit_code for fault in self.faults.values()), OK)


def key(variant: Variant) -> str:
    """A variant's name among others."""
    return f"{variant.kernel}@{variant.arch}: {spell_point(variant.axes)}"


def built(
    project: Project,
    variants: Sequence[Variant],
    session: Session,
    sizes: Collection[tuple[str, str]] = (),
) -> Prepared:
    """Rules, build and build evidence of each variant; what the rules refuse is not built.

    `sizes` are kernels with sizes that their problems must have, or their variants have a fault.
    """
    distinct = {key(item): item for item in variants}
    arms: dict[str, Arm] = {}
    faults: dict[str, KernelexpError] = {}
    rules: dict[str, _Rules] = {}
    for kernel in dict.fromkeys(item.kernel for item in distinct.values()):
        own = [item for item in distinct.values() if item.kernel == kernel]
        try:
            named = [size for other, size in sizes if other == kernel]
            rules |= _ask(project, kernel, own, session.limits, named)
        except KernelexpError as error:
            faults.update({key(item): error for item in own})
    possible = []
    for name, known in rules.items():
        variant = distinct[name]
        if against := known.refused(variant):
            arms[name] = msgspec.structs.replace(arm.begin(variant), refused=against)
        else:
            possible.append(variant)
    builds = _build(project, possible, session)
    launching = [item for item in builds if item.ok and not item.variant.program]
    launches = _launches(project, launching, rules, session.limits)
    for variant, one in zip(possible, builds, strict=True):
        name = key(variant)
        try:
            arms[name] = _examine(project, one, rules[name], launches.get(name))
            build.alike.note(project.root, arms[name], session.tools.version)
        except KernelexpError as error:
            faults[name] = error
    return Prepared(arms=arms, faults=faults)


def refused(project: Project, variants: Sequence[Variant], limits: Limits) -> dict[str, Verdict]:
    """Returns the verdicts that rule out variants of one kernel before any build, by their keys;
    raises the kernel's fault."""
    rules = _ask(project, variants[0].kernel, variants, limits)
    verdicts = {key(variant): rules[key(variant)].refused(variant) for variant in variants}
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
    variants: Sequence[Variant],
    session: Session,
) -> list[Built]:
    builts: dict[str, Built] = {}
    for is_program in (False, True):
        some = [variant for variant in variants if bool(variant.program) == is_program]
        if some:
            own = build.build(
                project.root,
                some,
                session.tools,
                timeout_s=session.limits.build_s,
                on_progress=session.on_progress,
                # A program is linked with what is on the machine that it is run on.
                builder=None if is_program else session.executor.build,
                slots=None if is_program else session.executor.slots,
            )
            builts.update(zip(map(key, some), own, strict=True))
    return [builts[key(variant)] for variant in variants]


class _Rules(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about a variant that are known before it is built."""

    reasons: tuple[str, ...]
    """Sentences of the kernel's own rules that it breaks."""
    budget: Budget | None
    where: str
    """Where the budget comes from."""
    sizes: tuple[str, ...]
    """The names of the problem's sizes."""
    failure: str = ""
    """Why the host compiler could not read the kernel's config header."""

    def refused(self, variant: Variant) -> Verdict | None:
        """IMPOSSIBLE where they forbid the variant."""
        return verdict.impossible(arch.find(variant.arch), self.reasons, self.budget)


def _ask(
    project: Project,
    kernel: str,
    variants: Sequence[Variant],
    limits: Limits,
    sizes: Iterable[str] = (),
) -> dict[str, _Rules]:
    """Returns the rules of problem.py and config headers for a kernel's variants, by their keys.

    A program has neither.
    """
    if variants[0].program:
        for size in sizes:
            if size != SIZE:
                raise UsageError(f"size {size}: {kernel} is a program, which has no problem.py.")
        return {
            key(variant): _Rules(reasons=(), budget=None, where="", sizes=())
            for variant in variants
        }
    points = [Point(axes=variant.axes, arch=variant.arch) for variant in variants]
    answer = consult.consult(project.root, kernel, points, timeout_s=limits.problem_s)
    for size in sizes:
        consult.require_size(kernel, answer.sizes, size)
    facts = dict(zip(map(key, variants), answer.points, strict=True))
    with_config = [variant for variant in variants if variant.config]
    terms = [facts[key(variant)].terms for variant in with_config]
    read = configure(project.root, with_config, terms)
    configured = dict(zip(map(key, with_config), read, strict=True))
    every = tuple(answer.sizes)
    return {name: _merge(item, configured.get(name), every) for name, item in facts.items()}


def _merge(facts: Facts, configured: Configured | None, sizes: tuple[str, ...]) -> _Rules:
    """problem.py's own budget goes before the header's."""
    if configured is None or configured.failure:
        failure = configured.failure if configured else ""
        reasons, budget = facts.reasons, facts.budget
        return _Rules(
            reasons=reasons, budget=budget, where="budget()", sizes=sizes, failure=failure
        )
    return _Rules(
        reasons=(*facts.reasons, *configured.refusals),
        budget=facts.budget or configured.budget(),
        sizes=sizes,
        where="budget()" if facts.budget else "the config header, compiled for the host,",
    )


def _examine(project: Project, one: Built, rules: _Rules, launches: _Launches | None) -> Arm:
    """Raises the fault of a machine that could not build the variant, or of a launch() without
    which nothing can be said of the build."""
    if one.fault:
        raise one.fault
    variant = one.variant
    begun = msgspec.structs.replace(
        arm.begin(variant),
        identity=one.identity,
        flags=one.flags,
        files=one.files,
        headers=one.headers,
    )
    if not one.ok:
        return msgspec.structs.replace(begun, build_log=one.log, refused=verdict.build_failed())
    if variant.program:
        program_artefacts = build.program(project.root, one.identity)
        return msgspec.structs.replace(
            begun, program=linked.collect(variant.program, variant.arch, program_artefacts)
        )
    known = {} if launches is None or isinstance(launches, KernelexpError) else launches
    try:
        evidence = build_evidence.collect(
            variant, build.artefacts(project.root, one.identity), known
        )
    except ConfigurationError as error:
        raise (launches if isinstance(launches, KernelexpError) else error) from None
    refused = (
        verdict.does_not_fit(arch.find(variant.arch), evidence)
        or _contradiction(variant, rules, evidence)
        or contradiction.of_launches(variant, known, evidence)
    )
    launch = hashlib.sha256(msgspec.json.encode(known, order="sorted")).hexdigest() if known else ""
    return msgspec.structs.replace(begun, build=evidence, refused=refused, launch=launch)


def _contradiction(variant: Variant, rules: _Rules, evidence: BuildEvidence) -> Verdict | None:
    """BUILD_FAILED where what limits were judged by before the build is not what was built."""
    if rules.failure:
        return contradiction.verdict(
            f"{variant.config}: the host compiler can't read it: {rules.failure}"
        )
    return contradiction.of_budget(variant, rules.where, rules.budget, evidence)


_Launches: TypeAlias = "Mapping[str, Sequence[Launch]] | KernelexpError"
"""What launch() gives by the name of the size, or what it raises."""


def _launches(
    project: Project, builds: Sequence[Built], rules: Mapping[str, _Rules], limits: Limits
) -> dict[str, _Launches]:
    """Returns the launches of the variants that were built, by their keys."""
    result: dict[str, _Launches] = {}
    points: dict[str, dict[str, Point]] = {}
    for item in builds:
        try:
            points.setdefault(item.variant.kernel, {})[key(item.variant)] = _point(project, item)
        except KernelexpError as error:
            result[key(item.variant)] = error
    for kernel, group in points.items():
        sizes, outcome = rules[next(iter(group))].sizes, list(group.values())
        try:
            answer = consult.consult(
                project.root, kernel, outcome, sizes, timeout_s=limits.problem_s, separately=True
            )
        except KernelexpError as error:
            result |= dict.fromkeys(group, error)
            continue
        for name, facts in zip(group, answer.points, strict=True):
            fault = next(iter(facts.faults.values()), "")
            known = facts.launches or not fault
            result[name] = facts.launches if known else ConfigurationError(fault)
    return result


def _point(project: Project, one: Built) -> Point:
    exports = resources.read_exports(build.artefacts(project.root, one.identity).cubin)
    return Point(axes=one.variant.axes, arch=one.variant.arch, exports=exports)


def emulated(
    project: Project,
    prepared: Prepared,
    session: Session,
    how: EmulationOptions = _AS_USUAL,
) -> Prepared:
    """Adds the evidence of emulation to the arms, and refuses those that it rules out.

    PTX decides, if it is executed; what prevents only the SASS from being executed is in its
    evidence.
    """
    built = {k: entry for k, entry in prepared.arms.items() if entry.build and not entry.refused}
    isas = {
        name: how.isas[:1] if emulated_evidence.is_cubin(entry) else how.isas
        for name, entry in built.items()
    }
    wanted = [(name, isa) for isa in how.isas for name in built if isa in isas[name]]
    taken = emulated_evidence.take_each(
        project.root,
        [emulated_evidence.want(built[name], isa, how.size, how.schedules) for name, isa in wanted],
        session.limits,
        session.on_progress,
        project.label,
        session.executor.emulate,
        session.executor.slots,
    )
    by_isa = dict(zip(wanted, taken, strict=True))
    arms, faults = dict(prepared.arms), dict(prepared.faults)
    for name, item in built.items():
        try:
            arms[name] = _executed(item, {isa: by_isa[name, isa] for isa in isas[name]}, how)
        except KernelexpError as error:
            del arms[name]
            faults[name] = error
    return Prepared(arms=arms, faults=faults)


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
