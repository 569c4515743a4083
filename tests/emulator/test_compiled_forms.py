"""Every operation that has a compiled form gives the bits and the counts that Python gives."""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness import marks_at_the_end, ptx
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import warpsim as emulator
from warpsim import compiled
from warpsim.front.ptx.registry import Alu, find
from warpsim.front.ptx.types import width_of
from warpsim.launch import Launch, Pointer
from warpsim.machine.core.forms import ACCESSES, OF_SASS, SYNCHRONISES

THREADS = 32 * 17
"""More warps than compiled code takes at once."""
POOL = 4
"""Registers of each width that an instruction may read."""
LETTER = {1: "p", 8: "h", 16: "h", 32: "r", 64: "d"}
HOW = ("plain", "guarded", "diverged", "in place", "literal")
SPECIAL = [0, 1, 31, 32, 33, 64, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000,
           0xFFFFFFFF, 0x7F, 0x80, 0x3C00, 0x7C01, 0x10001, 0x3F800000, 0x800000, 0x7FFFFF,
           0xFFFFFF, 0x7F800000, 0xFF800000, 0x7F800001, 0xFFC12345, 0x33000000, 0x38800000,
           0x387FE000, 0x477FF000, 0x4F000000, 0xCF000000, 0x4F800000, 0x20000000,
           0x1FFFFFFF]  # fmt: skip


def operations() -> list[str]:
    """The names in the tables of compiled/*.cpp."""
    name_of = compiled.function("kx_operation_name", ctypes.c_int, ctypes.c_char_p, ctypes.c_int)
    names, name = [], ctypes.create_string_buffer(64)
    while name_of(len(names), name, 64):
        names.append(name.value.decode())
    return names


def instruction(name: str, number: int, how: str) -> tuple[str, str, list[str]]:
    """An instruction of an operation, as (declarations, text, registers that it writes)."""
    kind, _, rest = name.partition(".")
    if kind == "pack":
        whole, part = rest.split(".")
        count = width_of(whole) // width_of(part)
        items = [f"%{LETTER[width_of(part)]}{i % POOL}" for i in range(count)]
        return _written(f"mov.{whole}", [whole], ["{" + ", ".join(items) + "}"], number, how)
    if kind == "unpack":
        whole, part = rest.split(".")
        count = width_of(whole) // width_of(part)
        return _written(f"mov.{whole}", [part] * count, [_source(whole, 1)], number, how)
    if kind == "setp":
        type_ = name.rpartition(".")[2]
        sources = [_source(type_, i) for i in (1, 2)]
        if number % 3 == 0:
            return _written(name, ["pred"], sources, number, how)
        combined = ("and", "or", "xor")[number % 4 % 3]
        flip = "!" if number % 2 else ""
        opcode = f"setp.{name.split('.')[1]}.{combined}.{name.split('.', 2)[2]}"
        return _written(opcode, ["pred", "pred"], [*sources, f"{flip}%p3"], number, how)
    if name == "lop3.b32":
        sources = [_source("b32", i) for i in (1, 2, 3)]
        return _written(name, ["b32"], [*sources, str(number * 37 % 256)], number, how)
    if kind == "shfl":
        segments = str(number * 311 % 0x2000)
        return _written(name, ["b32", "pred"], ["%r1", "%r2", segments, "-1"], number, how)
    if kind == "mov":
        return _written(name, [rest], [_source(rest, 1)], number, how)
    entry = find(name)
    assert isinstance(entry, Alu), name
    kinds = [kind for kind in entry.kinds if not kind.endswith("?")]
    sources = [_source(item, i) for i, item in enumerate(kinds[1:], 1)]
    if how == "literal" and len(sources) > 1 and not kinds[-1].startswith(("p", "f", "bf")):
        sources[-1] = str(number % 70)
    return _written(name, [entry.kinds[0]], sources, number, how)


def _source(kind: str, index: int) -> str:
    return f"%{LETTER[width_of(kind)]}{index % POOL}"


def _written(
    opcode: str, kinds: list[str], sources: list[str], number: int, how: str
) -> tuple[str, str, list[str]]:
    declared, targets = [], []
    for index, kind in enumerate(kinds):
        bits = width_of(kind)
        name = f"%o{number}_{index}"
        type_ = "pred" if bits == 1 else f"b{max(bits, 16)}"
        declared.append(f".reg .{type_} {name};")
        first = f"%{LETTER[bits]}1" if how == "in place" else "1" if bits > 1 else "%p1"
        declared.append(f"mov.{type_} {name}, {first};")
        targets.append(name)
    if how == "in place":
        first_of_type = f"%{LETTER[width_of(kinds[0])]}1"
        sources = [targets[0] if source == first_of_type else source for source in sources]
    joined = {"setp": "|", "shfl": "|"}.get(opcode.split(".")[0], ", ").join(targets)
    to = "{" + joined + "}" if len(targets) > 1 and opcode.startswith("mov") else joined
    guard = f"@{'!' if number % 2 else ''}%p2 " if how == "guarded" else ""
    return "\n".join(declared), f"{guard}{opcode} {to}, {', '.join(sources)};", targets


# Copies `from` to `in`, but for the bytes whose bits are set in a thread's word of `holes`.
HOLES = [
    ".reg .b64 %hat, %vat; .reg .b32 %hole;",
    f"mul.lo.u32 %off, %t, {8 * POOL}; cvt.u64.u32 %vat, %off; add.u64 %vat, %vat, %from;",
    "mul.lo.u32 %off, %t, 4; cvt.u64.u32 %hat, %off; add.u64 %hat, %hat, %holes;",
    "ld.global.u32 %hole, [%hat];",
    *(
        f"ld.global.u8 %h5, [%vat+{i}]; and.b32 %off, %hole, {1 << i}; setp.eq.u32 %p7, %off, 0;\n"
        f"@%p7 st.global.u8 [%at+{i}], %h5;"
        for i in range(8 * POOL)
    ),
]


def kernel(names: list[str], how: str) -> str:
    """Executes each operation once, and stores what all of them wrote."""
    rows = [
        instruction(name, number, how)
        for number, name in enumerate(names)
        if not (name.startswith("shfl") and how in ("guarded", "diverged"))  # needs all lanes
    ]
    head = [f"ld.global.u64 %d{i}, [%at+{8 * i}];" for i in range(POOL)]
    for i in range(POOL):
        head.append(f"mov.b64 {{%r{i}, %x{i}}}, %d{i};")
        head.append(f"mov.b32 {{%h{i}, %y{i}}}, %x{i};")
        head.append(f"setp.lt.s16 %p{i}, %y{i}, 0;")
    skip = ("@%p0 bra DONE;", "DONE:") if how == "diverged" else ("", "")
    stores, at = [], 0
    for name in (target for _, _, targets in rows for target in targets):
        declared = next(row for row in rows if name in row[2])[0]
        type_ = next(line for line in declared.splitlines() if f" {name};" in line).split()[1][1:]
        value = name
        if type_ == "pred":
            stores.append(f"selp.b16 %h9, 1, 0, {name};")
            type_, value = "b16", "%h9"
        stores.append(f"st.global.{type_} [%to+{at}], {value};")
        at += 8
    body = [
        f".reg .b64 %at, %to; .reg .b32 %x<{POOL}>; .reg .b16 %y<{POOL}>; .reg .b32 %off;",
        f"mul.lo.u32 %off, %t, {8 * POOL}; cvt.u64.u32 %at, %off; add.u64 %at, %at, %in;",
        f"mul.lo.u32 %off, %t, {at}; cvt.u64.u32 %to, %off; add.u64 %to, %to, %out;",
        *HOLES,
        *head,
        *(row[0] for row in rows),
        skip[0],
        *(row[1] for row in rows),
        skip[1],
        *stores,
    ]
    return ptx("\n".join(body), ["in", "out", "from", "holes"])


@functools.cache
def module(names: tuple[str, ...], how: str) -> emulator.Module:
    return emulator.load(kernel(list(names), how))


@pytest.fixture
def names(library: Path) -> tuple[str, ...]:
    compiled.load(library)
    return tuple(name for name in operations() if name not in ACCESSES | OF_SASS | SYNCHRONISES)


WORD = st.one_of(st.integers(0, 2**32 - 1), st.sampled_from(SPECIAL))


def results(
    names: tuple[str, ...], how: str, values: np.ndarray, holes: np.ndarray
) -> tuple[Any, ...]:
    """All that a launch shows that reads `values` without the bytes named by `holes`."""
    arrays = {"in": np.zeros_like(values), "out": np.zeros(THREADS * 8 * 600, np.uint8),
              "from": values, "holes": holes}  # fmt: skip
    launch = Launch(entry="k", grid=(1, 1, 1), block=(THREADS, 1, 1),
                    arguments=tuple(Pointer(array=name) for name in arrays))  # fmt: skip
    with marks_at_the_end() as marks:
        result = emulator.run(module(names, how), launch, arrays, unwritten=["in"])
    counts = result.counters.instructions
    counted = [(c.executed, c.lanes, c.threads, c.requests) for c in counts]
    return result.findings, arrays["out"].tobytes(), counted, marks


@settings(max_examples=5, deadline=None,
          suppress_health_check=[HealthCheck.function_scoped_fixture])  # fmt: skip
@given(how=st.sampled_from(HOW), words=st.lists(WORD, min_size=16, max_size=64),
       seed=st.integers(0, 2**32))  # fmt: skip
def test_an_operation_on_any_bits(
    library: Path, names: tuple[str, ...], how: str, words: list[int], seed: int
) -> None:
    random = np.random.default_rng(seed)
    values = random.choice(np.array([*words, *SPECIAL], np.uint32), THREADS * POOL * 2)
    given_ = names, how, values, np.zeros(THREADS, np.uint32)
    compiled.unload()
    python = results(*given_)
    assert not python[0]
    compiled.load(library)
    assert results(*given_) == python


@settings(max_examples=5, deadline=None,
          suppress_health_check=[HealthCheck.function_scoped_fixture])  # fmt: skip
@given(how=st.sampled_from(HOW), seed=st.integers(0, 2**32),
       bytes_=st.integers(1, 2**32 - 1), lanes=st.sampled_from([0.002, 0.1, 1]))  # fmt: skip
def test_an_operation_on_bits_that_nobody_wrote(
    library: Path, names: tuple[str, ...], how: str, seed: int, bytes_: int, lanes: float
) -> None:
    random = np.random.default_rng(seed)
    values = random.choice(np.array(SPECIAL, np.uint32), THREADS * POOL * 2)
    holes = random.integers(0, 2**32, THREADS, np.uint32) & np.uint32(bytes_)
    holes[random.random(THREADS) > lanes] = 0
    compiled.unload()
    python = results(names, how, values, holes)
    compiled.load(library)
    assert results(names, how, values, holes) == python


@pytest.mark.parametrize("how", HOW)
def test_every_operation_is_one_that_instructions_have(names: tuple[str, ...], how: str) -> None:
    program = module(names, how).entries["k"]
    blocks = program.blocks.values()
    used = {form.operation for block in blocks for form in block.forms if form is not None}
    assert {name for name in names if not name.startswith("shfl")} <= used
    assert how != "plain" or set(names) <= used
    left = {
        program.sites[number].opcode
        for block in blocks
        for number, known in zip(block.numbers, program.code(block.first).compiled, strict=True)
        if not known
    }
    assert not left
