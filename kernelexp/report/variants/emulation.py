"""Emulated evidence as text: results, findings, the most expensive lines."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from kernelexp.facts import widths
from kernelexp.facts.counters import EXECUTED, PTX, SECTORS
from kernelexp.judge import verdict
from kernelexp.judge.outputs import describe
from kernelexp.model.arm import AccessWidths, Arm, EmulatedEvidence, EmulatedFinding, EmulatedLine
from kernelexp.model.experiment import form_of
from kernelexp.model.text import printable, shorten
from kernelexp.report.document import figures
from kernelexp.report.document.document import Block, Style, grouped, paragraph, table
from warpsim.launch import full_name, plain_name

_LINES_SHOWN = 2
_OPCODES_SHOWN = 8
_FINDINGS_SHOWN = 5
_PRINTS_SHOWN = 10
_NO_PTX = (
    "A cubin has no PTX, so its SASS was executed: races and reads of memory that nobody wrote are "
    "not looked for."
)
_COSTS = {
    "shared wavefronts": ("memory_l1_wavefronts_shared",),
    "global sectors": SECTORS,
}


def results(arms: Mapping[str, Arm], arguments: Sequence[str]) -> Iterator[Block]:
    """Whether the arms are right: one line for those that are, a line or more for each other.

    `arguments` name them for `kernelexp emulate`.
    """
    right = {name: arm for name, arm in arms.items() if is_right(arm)}
    if right:
        emulated = sum(_judged(arm) is not None for arm in arms.values())
        every = "both arms" if len(arms) == 2 else "all arms"
        if emulated < len(arms):
            every = f"all {emulated} arms that were built"
        whose = f"{every if len(right) == emulated > 1 else ', '.join(right)}: "
        if len(arms) == 1:
            whose = ""
        yield paragraph(f"Emulated: {whose}{_right(list(right.values()))}.")
    for (name, arm), argument in zip(arms.items(), arguments, strict=True):
        if evidence := _judged(arm):
            if name not in right:
                yield from _trouble(name, evidence, argument)
            yield from _remarks(name, evidence)
    yield from _doubts(arms)
    yield from _of_sass(arms)
    yield from _other_widths(arms)
    if any(arm.emulated and form_of(arm.source) == "cubin" for arm in arms.values()):
        yield paragraph(_NO_PTX, style="dim")


def tells_why(arm: Arm) -> bool:
    """Whether results() has what is wrong with it."""
    evidence = _judged(arm)
    if evidence is None:
        return False
    wrong = any(array.wrong for array in evidence.arrays)
    return bool(evidence.findings or evidence.hang or evidence.changed or wrong)


def is_right(arm: Arm) -> bool:
    evidence = _judged(arm)
    return evidence is not None and evidence.is_right


def _judged(arm: Arm) -> EmulatedEvidence | None:
    """Returns the emulation that judges an arm: of its PTX, unless SASS alone was executed."""
    return arm.emulated or arm.emulated_sass


def _of_sass(arms: Mapping[str, Arm]) -> Iterator[Block]:
    """Says, where both were executed, whether the SASS did as the PTX, or why it was not executed;
    arms with the same sentence share it."""
    sentences = grouped(
        (_agreement(arm), name)
        for name, arm in arms.items()
        if arm.emulated and arm.emulated_sass and is_right(arm)
    )
    for (words, style), whose in sentences.items():
        named = f"{', '.join(whose)}: {words}" if len(arms) > 1 else words[0].upper() + words[1:]
        yield paragraph(f"{named}.", style=style)


def _agreement(arm: Arm) -> tuple[str, Style]:
    """The sentence without its stop, and its style."""
    assert arm.emulated_sass
    if why := arm.emulated_sass.unsupported:
        return f"counts are of PTX only, as the SASS can't be executed: {why.rstrip('.')}", "dim"
    if disagreement := verdict.disagreement(arm):
        return disagreement.sentence, "broken" if disagreement.is_wrong else "warn"
    return "PTX and SASS were both executed and give the same bits; counts are of the SASS", ""


def _right(arms: Sequence[Arm]) -> str:
    """The sentence about arms that are right in every element."""
    evidence = [one for one in map(_judged, arms) if one]
    first = evidence[0]
    names = _listed([array.name for array in first.arrays])
    elements = sum(array.elements for array in first.arrays)
    worst = max(array.worst for one in evidence for array in one.arrays)
    every = f"all {elements:,} elements" if elements > 1 else "its one element"
    return (
        f"{names} correct, {every} under {_schedules(first)}, "
        f"with one set of inputs; largest error {100 * worst:.0f}% of the tolerance"
    )


def _listed(names: Sequence[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def _doubts(arms: Mapping[str, Arm]) -> Iterator[Block]:
    """Yields reasons why being right says little, each sentence once with its arms."""
    whose = grouped((words, name) for name, arm in arms.items() for words in _doubts_of(arm))
    for words, every in whose.items():
        yield paragraph(f"{', '.join(every)}, warning: {words}.", style="warn")


def _doubts_of(arm: Arm) -> Iterable[str]:
    if not (evidence := _judged(arm)):
        return ()
    lax = [f"of {array.name}, {array.lax}" for array in evidence.arrays if array.lax]
    return dict.fromkeys((*lax, *evidence.doubts))


def _trouble(name: str, evidence: EmulatedEvidence, argument: str) -> Iterator[Block]:
    if evidence.unsupported:
        yield paragraph(f"{name}: not emulated. {evidence.unsupported}", style="warn")
    for finding in evidence.findings[:_FINDINGS_SHOWN]:
        yield paragraph(f"{name}: {_spell(finding)}", style="broken")
    told = " ".join(finding.sentence for finding in evidence.findings[:_FINDINGS_SHOWN])
    for waiter in evidence.hang[:_FINDINGS_SHOWN]:
        if waiter not in told:
            yield paragraph(f"{name}: {waiter}")
    yield from _after_findings(name, evidence, told)
    wrong = [array for array in evidence.arrays if array.wrong]
    if wrong and _was_cut_off(evidence):
        yield paragraph(f"{name}: it ended there, so that its outputs are not judged.")
        wrong = []
    for array in wrong:
        yield paragraph(f"{name}, emulated: {describe(array)}", style="broken")
    if evidence.changed:
        yield paragraph(f"{name}, emulated: it wrote to its inputs: {', '.join(evidence.changed)}")
    if evidence.failing:
        count, every = len(evidence.failing), len(evidence.schedules)
        if count == every > 1:
            words = f"{name}: found under each of {every} schedules."
        else:
            some = "; ".join(evidence.failing[:_FINDINGS_SHOWN])
            words = f"{name}, failing schedules ({count} of {every}): {some}."
        yield paragraph(
            f"{words} To run one again: kernelexp emulate {shlex.quote(argument)} --schedule "
            f"'{evidence.failing[0]}'"
        )


def _after_findings(name: str, evidence: EmulatedEvidence, told: str) -> Iterator[Block]:
    """Yields remarks on the findings; `told` is the text of those shown."""
    if (more := len(evidence.findings) - _FINDINGS_SHOWN) > 0:
        yield paragraph(f"{name}: and {more} more finding{'s' * (more > 1)}.")
    if "dynamic_smem_bytes" in told:
        yield paragraph(
            f"{name}: launch() in problem.py says dynamic_smem_bytes; adopt drafts it from --smem."
        )
    if _is_right_all_the_same(evidence):
        only = all(
            "orders the two accesses" in one.sentence and "shared 0x" not in one.sentence
            for one in evidence.findings
        )  # in shared memory a barrier is missing
        harmless = " If a race does no harm, BENIGN_RACES in problem.py can say so." * only
        yield paragraph(f"{name}: {_every(evidence)} right all the same.{harmless}")


_ENDING = frozenset(
    {"out-of-bounds", "misaligned", "read-only", "tensor-descriptor", "hang", "trap", "assertion"}
    | {"stack", "step-limit"}
)


def was_cut_off(arm: Arm) -> bool:
    """Whether something ended the launch before its end."""
    evidence = _judged(arm)
    return evidence is not None and _was_cut_off(evidence)


def _was_cut_off(evidence: EmulatedEvidence) -> bool:
    return _ended(evidence) and any(array.unwritten for array in evidence.arrays)


def _ended(evidence: EmulatedEvidence) -> bool:
    return bool(evidence.hang) or any(finding.name in _ENDING for finding in evidence.findings)


def _is_right_all_the_same(evidence: EmulatedEvidence) -> bool:
    """Whether nothing but findings, which end no launch, makes it wrong."""
    wrong = any(array.wrong for array in evidence.arrays)
    other = _ended(evidence) or wrong or evidence.changed or evidence.differing
    return bool(evidence.findings and evidence.arrays and not other)


def _every(evidence: EmulatedEvidence) -> str:
    """`all 96 elements of y are`, with the schedules and inputs that they are so under."""
    elements = sum(array.elements for array in evidence.arrays)
    names = _listed([array.name for array in evidence.arrays])
    how_many = f"all {elements:,} elements of {names} are" if elements > 1 else f"{names} is"
    return f"under {_schedules(evidence)}, with one set of inputs, {how_many}"


def _schedules(evidence: EmulatedEvidence) -> str:
    count = len(evidence.schedules)
    return "one schedule" if count == 1 else f"{count} schedules"


def _spell(finding: EmulatedFinding) -> str:
    return f"{finding.name}: {finding.sentence} ({finding.where}; {finding.count}x)"


def depends(evidence: EmulatedEvidence) -> str:
    """Says of outputs that vary between schedules, as they may, why."""
    return (
        f"{', '.join(evidence.varying)} depends on the order in which atomics or flags meet, which "
        "nothing in the kernel decides."
    )


def _remarks(name: str, evidence: EmulatedEvidence) -> Iterator[Block]:
    """Yields remarks that make no variant wrong."""
    for warning in evidence.warnings[:_FINDINGS_SHOWN]:
        yield paragraph(f"{name}, warning: {_spell(warning)}", style="warn")
    if evidence.varying:
        yield paragraph(f"{name}, at this size: {depends(evidence)}")
    for line in evidence.printed[:_PRINTS_SHOWN]:
        text = printable(line.text.rstrip("\n"))
        yield paragraph(f"{name}, CTA {line.cta} thread {line.thread} printed: {text}")
    if evidence.prints > _PRINTS_SHOWN:
        rest = evidence.prints - _PRINTS_SHOWN
        yield paragraph(f"{name}: {rest:,} more printf() calls.", style="dim")


def _other_widths(arms: Mapping[str, Arm]) -> Iterator[Block]:
    """Warns where counters of PTX can't be the hardware's; arms with the same sentence share it."""
    sentences = grouped(
        (words, name)
        for name, arm in arms.items()
        if is_right(arm) and not arm.counted and (words := widths.summarize(arm.emulated))
    )
    for words, whose in sentences.items():
        yield paragraph(f"{', '.join(whose)}: {words}.", style="warn")


def opcodes(arms: Mapping[str, Arm]) -> Iterator[Block]:
    """Yields the most executed opcodes of each arm whose SASS was executed."""
    for name, arm in arms.items():
        if executed := arm.counted.opcodes if arm.counted else {}:
            most = list(executed.items())[:_OPCODES_SHOWN]
            listed = ", ".join(f"{opcode} {count:,}" for opcode, count in most)
            yield paragraph(f"{name}, most executed of {len(executed)} opcodes: {listed}")


def launches(arms: Mapping[str, Arm], every: bool) -> Iterator[Block]:
    """Yields the counts of each launch of a job of several; with `every` also on PTX, where SASS
    was executed."""
    for name, arm in arms.items():
        judged = arm.emulated if arm.emulated is not arm.counted else None
        known = [evidence for evidence in (arm.counted, judged) if evidence]
        for evidence in known if every else known[:1]:
            if evidence.launches:
                whose = f"{name}, on" if len(arms) > 1 else "on"
                yield from _launches(whose, evidence, every)


def _launches(whose: str, evidence: EmulatedEvidence, every: bool) -> Iterator[Block]:
    """A row for each launch; unless `every`, for each entry where some are launched again."""
    isa, prefix = evidence.isa, _prefix(evidence)
    costs = [("", (EXECUTED[isa],)), *((prefix, names) for names in _COSTS.values())]
    rows = grouped(
        (number if every else launch.entry, launch)
        for number, launch in enumerate(evidence.launches)
    )
    again = len(rows) < len(evidence.launches)
    plain = Counter(plain_name(launches[0].entry) for launches in rows.values())
    yield table(
        (f"{whose} {isa.upper()}", "entry", "CTAs", "instructions", "wavefronts", "sectors"),
        (
            (
                f"{len(launches)}x" if again else f"launch {number}",
                _entry(launches[0].entry, again and plain[plain_name(launches[0].entry)] > 1),
                figures.value(sum(launch.ctas for launch in launches)),
                *(
                    figures.value(sum(_sum(launch.counters, begin, names) for launch in launches))
                    for begin, names in costs
                ),
            )
            for number, launches in enumerate(rows.values(), 1)
        ),
        numbers=range(2, 4 + len(_COSTS)),
    )
    if again:
        count = len(evidence.launches)
        yield paragraph(f"Sums of {count} launches by entry; --verbose: each.", style="dim")


def _entry(symbol: str, whole: bool) -> str:
    """Names an entry, with template arguments where it would not be known without them."""
    return shorten(full_name(symbol), _ENTRY_SHOWN) if whole else plain_name(symbol)


_ENTRY_SHOWN = 40


def _prefix(evidence: EmulatedEvidence) -> str:
    """Returns the prefix of its counters' names, where they are not ncu's own."""
    return PTX if evidence.isa == "ptx" else ""


def _sum(counters: Mapping[str, int], prefix: str, names: Sequence[str]) -> int:
    return sum(counters.get(prefix + name, 0) for name in names)


def dearest(arms: Mapping[str, Arm], end: str = "") -> Iterator[Block]:
    """The source lines with the most wavefronts and sectors, for each arm: of SASS where that was
    executed, else of PTX."""
    for name, arm in arms.items():
        counted = arm.counted or arm.emulated
        prefix = _prefix(counted) if counted else ""
        parts = []
        for words, costs in _COSTS.items():
            every = counted.lines if counted else ()
            spent = [(_sum(line.counters, prefix, costs), line) for line in every]
            dear = sorted((item for item in spent if item[0]), key=lambda item: -item[0])
            most = [f"{_place(line)} {count:,}" for count, line in dear[:_LINES_SHOWN]]
            if most:
                parts.append(f"{words}{' (PTX)' if prefix else ''}: {', '.join(most)}")
        if parts:
            named = f"{name}, most" if len(arms) > 1 else "Most"
            yield paragraph(f"{named} {'; '.join(parts)}{end}")
        if arm.emulated and is_right(arm) and not arm.counted and not end:
            for width in arm.emulated.widths:
                yield paragraph(f"{name}, {_place(width)}: {widths.spell(width)}.")


def _place(line: EmulatedLine | AccessWidths) -> str:
    return f"{line.file.rpartition('/')[2]}:{line.line}"
