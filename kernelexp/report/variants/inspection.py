"""Code that the compiler generated for a variant: the page of `kernelexp inspect`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from kernelexp.evidence.code.sass_lines import SassInstruction
from kernelexp.facts import accesses
from kernelexp.judge.expectations import JudgedInstructions
from kernelexp.model.text import shorten
from kernelexp.report.document.document import Block, Heading, Span, grouped, paragraph, table
from kernelexp.report.variants import pipe_mix
from kernelexp.services.inspected import BARRIER_OPCODES, access_counts, loop_line, polls, repeated
from kernelexp.services.inspection import BARRIERS, FullBarriers, Inspection, place
from warpsim.lineinfo import Source
from warpsim.tables import opcodes

_TEXT = 60
"""Columns of a line's text, at most."""


def text_of(inspection: Inspection, source: Source | None) -> str:
    """The line's text; that of its caller where a line is nothing but a barrier."""
    if source is None:
        return ""
    own = source.own()
    text = line_of(inspection, own)
    bare = text in ("__syncthreads();", "__syncwarp();")
    return line_of(inspection, own.caller) if bare and own.caller else text


def line_of(inspection: Inspection, source: Source) -> str:
    text = inspection.texts.get(source.file, {}).get(source.line, "")
    return shorten(" ".join(text.split()), _TEXT)


TOP = 10
_PLACES = 3
_TENSOR = frozenset(
    item
    for item in opcodes.known()
    if item.endswith("MMA") and "tensor" in opcodes.pipes(item, "", 90)
)
_BULK = frozenset(item for item in opcodes.known() if "tma" in opcodes.pipes(item, "", 90))
GROUPS: dict[str, frozenset[str]] = {
    "tensor instructions": _TENSOR,
    "bulk copies": _BULK | {"UTCCP"},
    "exchange between lanes": frozenset("SHFL VOTE VOTEU MATCH REDUX CREDUX ELECT".split()),
    "atomics": frozenset("ATOM ATOMG ATOMS RED REDG REDAS UTCATOMSWS".split()),
}
"""Opcodes whose instructions are shown by mnemonic, by the title of their table."""


def render(inspection: Inspection, top: int = TOP) -> Iterator[Block]:
    """One variant; `top`: how many repeated lines to show, 0 for all."""
    yield Heading(inspection.label)
    if inspection.arm.refused:
        refused = inspection.arm.refused
        yield paragraph(f"{refused.status}. {refused.sentence}", style="warn")
    if inspection.arm.build is None:
        return
    if inspection.arm.emulated and inspection.arm.emulated.unsupported:
        yield paragraph(f"Not emulated. {inspection.arm.emulated.unsupported}", style="warn")
    if inspection.arm.emulated_sass and (why := inspection.arm.emulated_sass.unsupported):
        yield paragraph(f"SASS not executed: {why}", style="dim")
    yield _size(inspection)
    yield from _accesses(inspection)
    for name, group in GROUPS.items():
        yield from _group(inspection, name, group)
    yield from _barriers(inspection)
    yield from _executed(inspection)
    yield from _loops(inspection)
    yield from _repeated(inspection, top)
    yield _pipes(inspection)
    yield from pipe_mix.render(inspection.arm, inspection.profile)


def conditions(judged: Sequence[tuple[str, JudgedInstructions]]) -> Iterator[Block]:
    """Yields the conditions of --expect on each variant, by its label."""
    if not judged:
        return
    several = len({label for label, _ in judged}) > 1
    compared = any(one.before is not None for _, one in judged)
    style = {"met": Span("met", "good"), "missed": Span("missed", "bad")}
    rows = (
        (
            label,
            one.condition,
            "" if one.before is None else f"{one.before:,}",
            f"{one.actual:,}",
            style[one.result],
            one.sentence,
        )
        for label, one in judged
    )
    header = ("variant", "expected", "before", "is", "", "")
    shown = [n for n in range(6) if (n, several) != (0, False) and (n, compared) != (2, False)]
    yield table(header, rows, numbers=(2, 3), shown=shown)


# ---- sections ------------------------------------------------------------------------------------


def _size(inspection: Inspection) -> Block:
    assert inspection.arm.build is not None
    used = inspection.arm.build.resources
    spilled = "unknown" if used.spill_bytes is None else f"{used.spill_bytes:,}"
    counts = Counter(i.opcode for i in inspection.code)
    loads, stores = counts["LDL"], counts["STL"]
    local = f"{loads} LDL and {stores} STL" if loads or stores else "none"
    return paragraph(
        f"{len(inspection.code):,} instructions, {used.sass_bytes:,} B of code; {used.registers} "
        f"registers per thread, {spilled} B spilled, {used.stack_bytes:,} B of stack. "
        f"Accesses to local memory: {local}."
    )


def _accesses(inspection: Inspection) -> Iterator[Block]:
    """Tabulates accesses by kind and width, with PTX's own numbers."""
    result = inspection.ptx_accesses
    every = sorted(
        {*access_counts(inspection.code), *(result or ())},
        key=lambda access: (accesses.KINDS.index(access.kind), access.bits),
    )
    rows = []
    for access in every:
        own = [i for i in inspection.code if accesses.of_sass(i.mnemonic) == access]
        rows.append(
            (
                access.kind,
                f"{access.bits}" if access.bits else "",
                *_counts(inspection, own),
                "" if result is None else _count(result.get(access, 0)),
                *_times(inspection, own),
                ", ".join(dict.fromkeys(i.mnemonic for i in own)),
            )
        )
    if rows:
        header = ("access", "bits", "SASS", "in loops", "PTX", *_head(inspection))
        yield _widening(*header, "SASS instructions", rows=rows)
    if result is None:
        yield paragraph("No PTX to count accesses in, or none that is understood.", style="dim")


def _widening(*header: str, rows: Sequence[tuple[str, ...]]) -> Block:
    """A table whose last column is as wide as it may be; those after the first are of counts."""
    return table(header, rows, numbers=range(1, len(header) - 1), unwrapped=[0])


def _counts(inspection: Inspection, code: Sequence[SassInstruction]) -> tuple[str, str]:
    """How many there are, and how many of them in loops."""
    return _count(len(code)), _count(sum(bool(inspection.loop(i)) for i in code))


def _head(inspection: Inspection) -> tuple[str, ...]:
    """Returns the heading of the column of _times()."""
    return ("executed",) if inspection.costs else ()


def _times(inspection: Inspection, code: Iterable[SassInstruction]) -> tuple[str, ...]:
    """Returns how often warps executed these, where the SASS was executed."""
    return (_count(inspection.times(code)),) if inspection.costs else ()


def _count(number: int) -> str:
    return f"{number:,}" if number else "-"


def _group(inspection: Inspection, name: str, belonging: frozenset[str]) -> Iterator[Block]:
    groups = grouped((i.mnemonic, i) for i in inspection.code if i.opcode in belonging)
    rows = [
        (
            mnemonic,
            *_counts(inspection, group),
            *_times(inspection, group),
            _where(inspection, group),
        )
        for mnemonic, group in sorted(groups.items(), key=lambda item: -len(item[1]))
    ]
    if rows:
        yield _widening(name, "SASS", "in loops", *_head(inspection), "where", rows=rows)


def _where(inspection: Inspection, group: Sequence[SassInstruction]) -> str:
    """The lines that most of them are from; how many only diverged warps come to."""
    counts = Counter(str(i.source.own()) if i.source else "-" for i in group)
    shown = [name for name, _ in counts.most_common(_PLACES)]
    more = f" and {len(counts) - _PLACES} more" if len(counts) > _PLACES else ""
    diverged = sum(i.offset in inspection.flow.diverged for i in group)
    copies = f"; {diverged} in copies for diverged warps" if diverged else ""
    return ", ".join(shown) + more + copies


def _barriers(inspection: Inspection) -> Iterator[Block]:
    """Each instruction on barriers, with its line and its loop."""
    polling = {loop.number: loop for loop in inspection.flow.loops if polls(inspection, loop)}
    groups: dict[tuple[str, str, int], list[tuple[SassInstruction, Source | None]]] = {}
    for instruction in inspection.code:
        if instruction.opcode in BARRIER_OPCODES:
            source, loop = instruction.source, inspection.loop(instruction)
            if loop in polling:  # a wait that goes on where the first try failed
                source, loop = loop_line(inspection, polling[loop]), polling[loop].parent
            groups.setdefault((instruction.mnemonic, place(source), loop), []).append(
                (instruction, source)
            )
    rows = [
        (
            mnemonic,
            f"{len(group)}",
            *_times(inspection, (instruction for instruction, _ in group)),
            f"{loop}" if loop else "-",
            f"{where}  {text_of(inspection, group[0][1])}".rstrip(),
        )
        for (mnemonic, where, loop), group in groups.items()
    ]
    if rows:
        header = ("barriers and fences", "SASS", *_head(inspection), "loop", "line")
        yield table(header, rows, numbers=range(1, len(header) - 1))


def _executed(inspection: Inspection) -> Iterator[Block]:
    """Tabulates how often an emulated launch executes barriers."""
    executed = inspection.executed
    if executed is None or not executed.lines:
        return
    isa = inspection.arm.emulated.isa if inspection.arm.emulated else "ptx"
    groups: dict[tuple[str, str], float] = {}
    for line in executed.lines:
        key = (BARRIERS[line.kind], line.line)
        groups[key] = groups.get(key, 0.0) + line.times
    rows = [
        (barrier, where, *_shares(times, executed.ctas, executed.tiles))
        for (barrier, where), times in sorted(groups.items(), key=lambda item: -item[1])
        if barrier != BARRIERS["warp_barrier"]
    ]
    rows += [
        (f"all {barrier}s", "", *_shares(executed.times(kind), executed.ctas, executed.tiles))
        for kind, barrier in BARRIERS.items()
        if executed.times(kind)
    ]
    yield paragraph(
        f"Barriers that a launch of size {executed.size} with {executed.ctas:,} CTAs executes "
        f"(emulated, counted on {isa.upper()}):"
    )
    header = ("executed", "line", "per CTA", "per tile", "grid")
    yield table(header, rows, numbers=(2, 3, 4))
    if executed.full:
        yield from _full(executed.full)


def _full(full: FullBarriers) -> Iterator[Block]:
    for kind, times in full.times.items():
        yield paragraph(
            f"Full problem: {decimal(times)} {BARRIERS[kind]}s in {full.ctas:,} CTAs, "
            f"{decimal(times / full.ctas)} per CTA ({full.how})."
        )


def _shares(times: float, ctas: int, tiles: int) -> tuple[str, str, str]:
    per_tile = decimal(times / tiles) if tiles else ""
    return decimal(times / ctas), per_tile, decimal(times)


def decimal(value: float) -> str:
    return f"{value:,.2f}".rstrip("0").rstrip(".")


def _loops(inspection: Inspection) -> Iterator[Block]:
    loops = inspection.flow.loops
    polling = [loop for loop in loops if polls(inspection, loop)]
    rows = []
    for loop in loops:
        if loop not in polling:
            inside = [i for i in inspection.code if i.offset in loop.offsets]
            line = loop_line(inspection, loop)
            where = f"{place(line)}  {line_of(inspection, line.own()) if line else ''}".rstrip()
            around = f"{loop.parent}" if loop.parent else "-"
            size = (f"{len(inside):,}", *_times(inspection, inside))
            rows.append((f"{loop.number}", around, where, *size, _contents(inside)))
    if rows:
        header = ("loop", "in", "line", "SASS", *_head(inspection), "of it")
        yield table(header, rows, numbers=(0, 1, *range(3, len(header) - 1)))
    else:
        yield paragraph("No loops.")
    if polling:
        yield paragraph(f"Loops that only poll an mbarrier: {len(polling)}.", style="dim")
    if indirect := inspection.flow.indirect:
        yield paragraph(
            f"Branches whose target is in a register: {len(indirect)}. Which loops go through them "
            "is assumed.",
            style="warn",
        )


def _contents(inside: Sequence[SassInstruction]) -> str:
    """Its tensor instructions, barriers, exchanges and accesses, then its arithmetic."""
    counts = Counter(i.opcode for i in inside)
    kinds = [
        [count for count in counts if count in _TENSOR],
        [item for item in ("BAR", "SYNCS", "SHFL") if item in counts],
        [count for count in counts if accesses.of_sass(count) or count in _BULK],
        [item for item in ("FFMA", "HFMA2", "DFMA", "MUFU") if item in counts],
    ]
    return ", ".join(f"{counts[item]} {item}" for kind in kinds for item in kind)


def _repeated(inspection: Inspection, top: int) -> Iterator[Block]:
    """Lines that have the same instruction several times: mostly unrolled."""
    groups = repeated(inspection)
    shown = groups[: top or None]
    rows = [
        (
            f"{count}",
            mnemonic,
            f"{loop}" if loop else "-",
            f"{place(source)}  {line_of(inspection, source.own())}",
        )
        for (source, mnemonic, loop), count in shown
    ]
    if rows:
        header = ("copies", "instruction", "loop", "line")
        yield table(header, rows, numbers=(0, 2), unwrapped=[1])
        if len(groups) > len(shown):
            more = len(groups) - len(shown)
            yield paragraph(f"{more} more with two copies or more (--top 0).", style="dim")


def _pipes(inspection: Inspection) -> Block:
    groups = grouped((i.pipe, i.opcode) for i in inspection.code)
    rows = [
        (
            pipe,
            f"{len(own):,}",
            f"{100 * len(own) / len(inspection.code):.1f}%",
            ", ".join(f"{name} {count:,}" for name, count in Counter(own).most_common(6)),
        )
        for pipe in opcodes.GROUPS
        if (own := groups.get(pipe))
    ]
    return table(("pipe", "SASS", "of all", "most frequent"), rows, numbers=(1, 2))
