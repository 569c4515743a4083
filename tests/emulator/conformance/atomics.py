"""One entry per atomic or reduction: each thread works on a cell of its own.

So the old value and the new one are determined; what contention gives is a case of memory.cu.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from .values import WIDTH

COUNT = 128
SHARED_CELL = 8


class Atomic(msgspec.Struct, frozen=True, kw_only=True):
    """`atom` or `red` with its space, operation and type."""

    verb: str
    space: str
    operation: str
    type: str
    kind: str
    """Kind of the operand, as in values.py."""

    @property
    def name(self) -> str:
        return f"{self.verb}.{self.space}.{self.operation}.{self.type}"


_KINDS = {
    "add": ("u32", "s32", "u64", "f32", "f64"),
    "add.noftz": ("f16", "f16x2", "bf16", "bf16x2"),
    "min": ("u32", "s32", "u64", "s64"),
    "max": ("u32", "s32", "u64", "s64"),
    "and": ("b32", "b64"),
    "or": ("b32", "b64"),
    "xor": ("b32", "b64"),
    "inc": ("u32",),
    "dec": ("u32",),
    "exch": ("b32", "b64"),
    "cas": ("b16", "b32", "b64"),
}


def atomics() -> list[Atomic]:
    return list(_all())


def _all() -> Iterator[Atomic]:
    for operation, kinds in _KINDS.items():
        for kind in kinds:
            for space in ("global", "shared"):
                yield Atomic(verb="atom", space=space, operation=operation, type=kind, kind=kind)
            if operation not in ("exch", "cas"):
                yield Atomic(verb="red", space="global", operation=operation, type=kind, kind=kind)


def entry_name(index: int) -> str:
    return f"atomic_{index}"


def ptx() -> str:
    header = ".version 9.0\n.target sm_90a\n.address_size 64\n"
    return header + "".join(_entry(i, atomic) for i, atomic in enumerate(atomics()))


def _entry(index: int, atomic: Atomic) -> str:
    name, width = entry_name(index), WIDTH[atomic.kind]
    step = width // 8
    params = ", ".join(f".param .u64 {name}_{letter}" for letter in "mbcd")
    lines = [f".visible .entry {name}({params})", "{"]
    lines += [f"  .reg .b{width} %m, %b, %c, %d;", "  .reg .b32 %i, %s;"]
    lines += ["  .reg .b64 %offset, %pm, %pb, %pc, %pd;"]
    lines += [f"  .shared .align 8 .b8 cells_{index}[{COUNT * SHARED_CELL}];"]
    lines += ["  mov.u32 %i, %tid.x;", f"  mul.wide.u32 %offset, %i, {step};"]
    for letter in "mbcd":
        lines.append(f"  ld.param.u64 %p{letter}, [{name}_{letter}];")
        lines.append(f"  add.s64 %p{letter}, %p{letter}, %offset;")
    lines += [f"  ld.global.b{width} %b, [%pb];", f"  ld.global.b{width} %c, [%pc];"]
    lines += [f"  mov.b{width} %d, %b;"]
    cell = "%pm"
    if atomic.space == "shared":
        lines += [f"  mov.u32 %s, cells_{index};", "  mad.lo.s32 %s, %i, 8, %s;"]
        lines += [f"  ld.global.b{width} %m, [%pm];", f"  st.shared.b{width} [%s], %m;"]
        cell = "%s"
    operands = "%b, %c" if atomic.operation == "cas" else "%b"
    result = "%d, " if atomic.verb == "atom" else ""
    lines.append(f"  {atomic.name} {result}[{cell}], {operands};")
    if atomic.space == "shared":
        lines += [f"  ld.shared.b{width} %m, [%s];", f"  st.global.b{width} [%pm], %m;"]
    lines += [f"  st.global.b{width} [%pd], %d;", "  ret;", "}", ""]
    return "\n".join(lines)
