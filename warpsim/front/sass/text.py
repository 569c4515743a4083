"""The listing that `cuobjdump -sass` prints of a cubin, as instructions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from warpsim.front.sass import word as words
from warpsim.front.sass.faults import SassSyntaxError
from warpsim.front.sass.syntax import (
    ZERO,
    ConstantOperand,
    Described,
    File,
    LiteralOperand,
    MachineInstruction,
    MemoryOperand,
    Operand,
    Other,
    RegisterOperand,
    SpecialOperand,
)
from warpsim.machine.core.site import Source

_HEADER = re.compile(r"^\s*Function : (\S+)\s*$", re.M)
_INSTRUCTION = re.compile(
    r"^\s+/\*(?P<address>[0-9a-f]{4,})\*/\s+(?P<text>.*?)\s*;\s+/\* 0x(?P<low>[0-9a-f]{16}) \*/"
)
_HIGH = re.compile(r"^\s+/\* 0x([0-9a-f]{16}) \*/")
_PARTS = re.compile(r"(?:@(?P<guard>!?U?P\w+)\s+)?(?P<opcode>[A-Z][\w.]*)\s*(?P<operands>.*)")
_REGISTER = re.compile(r"(?P<file>UR|UP|UB|SB|R|P|B)(?P<index>\d+|Z|T)(?P<parts>(?:\.\w+)*)")
_CONSTANT = re.compile(r"c\[(0x[0-9a-f]+)\]\[(?:(U?R\w+)\+?)?(-?0x[0-9a-f]+)?\]")
_ADDRESS = re.compile(r"(?:desc\[(?P<descriptor>UR\w+)\])?\[(?P<inner>[^\[\]]*)\]")
_DESCRIBED = re.compile(
    r"(?P<kind>gdesc|tmem|idesc|desc)\[(?P<register>UR\w+)?\+?(?P<offset>-?0x[0-9a-f]+)?\]"
    r"(?P<parts>(?:\.\w+)*)"
)
_INTEGER = re.compile(r"-?0x[0-9a-f]+")
_FLOAT = re.compile(r"[+-]?(?:\d+(?:\.\d*)?(?:e[+-]?\d+)?|INF|QNAN|SNAN)")
_COMMA = re.compile(r",\s*(?![^{\[]*[}\]])")
_RETURN = re.compile(r"(U?R\w+) (-?0x[0-9a-f]+)")
_FILES: dict[str, File] = {
    "R": "R", "UR": "UR", "P": "P", "UP": "UP", "B": "B", "UB": "UB", "SB": "SB"
}  # fmt: skip
_MASK = 0xFFFF_FFFF
_ALWAYS = 7


def read(
    listing: str, function: str, sources: Mapping[int, Source] | None = None
) -> list[MachineInstruction]:
    """The instructions of a function; `sources` are lines by address."""
    lines = _body(listing, function)
    instructions: list[MachineInstruction] = []
    for number, line in lines:
        match = _INSTRUCTION.match(line)
        if match is None:
            continue
        high = _HIGH.match(next(lines, (0, ""))[1])
        if high is None or int(match["address"], 16) != words.BYTES * len(instructions):
            raise SassSyntaxError(
                f"SASS line {number}: `{line.strip()}` is not one of cuobjdump's."
            )
        word = int(match["low"], 16) | int(high[1], 16) << 64
        instructions.append(_instruction(match, word, number, len(instructions), sources or {}))
    if not instructions:
        raise SassSyntaxError(f"the listing has no function {function}.")
    return instructions


def _body(listing: str, function: str) -> Iterator[tuple[int, str]]:
    """The lines of a function, with their numbers."""
    header = re.search(rf"^\s*Function : {re.escape(function)}\s*$", listing, re.M)
    if header is None:
        return
    following = _HEADER.search(listing, header.end())
    body = listing[header.end() : following.start() if following else len(listing)]
    yield from enumerate(body.splitlines(), listing.count("\n", 0, header.end()) + 1)


def _instruction(
    match: re.Match[str], word: int, line: int, number: int, sources: Mapping[int, Source]
) -> MachineInstruction:
    text, address = match["text"], int(match["address"], 16)
    parts = _PARTS.fullmatch(text)
    if parts is None:
        raise SassSyntaxError(f"SASS line {line}: `{text}` is not an instruction.")
    guard = _register(parts["guard"]) if parts["guard"] else None
    if words.guard(word) != _spelled(guard):
        raise SassSyntaxError(f"SASS line {line}: the guard of `{text}` is not its word's.")
    always = guard is not None and guard.index == ZERO and not guard.negated
    return MachineInstruction(
        number=number,
        address=address,
        opcode=parts["opcode"],
        operands=tuple(_operands(parts["operands"], word)),
        guard=None if always else guard,
        line=line,
        source=sources.get(address),
        text=text,
        word=word,
    )


def _spelled(guard: RegisterOperand | None) -> tuple[int, bool]:
    """A guard as the word has it."""
    if guard is None:
        return _ALWAYS, False
    return _ALWAYS if guard.index == ZERO else guard.index, guard.negated


def _operands(text: str, word: int) -> Iterator[Operand]:
    if not text:
        return
    for part in _COMMA.split(text):
        pair = _RETURN.fullmatch(part)
        for group in pair.groups() if pair else (part,):
            yield operand(group.strip(), word)


def operand(text: str, word: int) -> Operand:
    """One operand; what is not known is Other."""
    if _INTEGER.fullmatch(text):
        return LiteralOperand(int(text, 16) & _MASK)
    if _FLOAT.fullmatch(text):
        return LiteralOperand(words.immediate(word), floating=True)
    if text.startswith("SR"):
        return SpecialOperand(text)
    address = _ADDRESS.fullmatch(text)
    if address:
        return _address(address) or Other(text)
    return _register(text) or _constant(text) or _described(text) or Other(text)


def _signs(text: str) -> tuple[str, bool, bool, bool]:
    """What is left without signs; minus, tilde, bars."""
    negated, inverted = text[:1] in ("-", "!"), text[:1] == "~"
    text = text[1:] if negated or inverted else text
    absolute = text[:1] == "|"
    if absolute:  # what follows the second bar is a hint to the register cache
        text = text[1:].replace("|", "", 1)
    return text, negated, inverted, absolute


def _register(text: str) -> RegisterOperand | None:
    text, negated, inverted, absolute = _signs(text)
    match = _REGISTER.fullmatch(text)
    if match is None:
        return None
    parts = [part for part in match["parts"].split(".") if part and part != "reuse"]
    return RegisterOperand(
        file=_FILES[match["file"]],
        index=int(match["index"]) if match["index"].isdigit() else ZERO,
        negated=negated,
        inverted=inverted,
        absolute=absolute,
        part=".".join(parts),
    )


def _constant(text: str) -> ConstantOperand | None:
    text, negated, inverted, absolute = _signs(text)
    match = _CONSTANT.fullmatch(text)
    if match is None:
        return None
    return ConstantOperand(
        bank=int(match[1], 16),
        offset=int(match[3] or "0", 16),
        register=_register(match[2]) if match[2] else None,
        negated=negated,
        inverted=inverted,
        absolute=absolute,
    )


def _described(text: str) -> Described | None:
    match = _DESCRIBED.fullmatch(text)
    register = _register(match["register"] or "URZ") if match else None
    if match is None or register is None:
        return None
    return Described(
        kind=match["kind"],
        register=register,
        offset=int(match["offset"] or "0", 16),
        parts=tuple(part for part in match["parts"].split(".") if part),
    )


def _address(match: re.Match[str]) -> MemoryOperand | None:
    base = uniform = None
    offset = 0
    for part in match["inner"].split("+"):
        if _INTEGER.fullmatch(part):
            offset += int(part, 16)
            continue
        register = _register(part)
        if register is None or register.negated:
            return None
        if register.file == "UR" and uniform is None:
            uniform = register
        elif register.file == "R" and base is None:
            base = register
        else:
            return None
    descriptor = _register(match["descriptor"]) if match["descriptor"] else None
    return MemoryOperand(base=base, uniform=uniform, offset=offset, descriptor=descriptor)
