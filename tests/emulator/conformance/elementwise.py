"""One entry per instruction that works on each thread's own registers: d[i] = op(a[i], b[i], c[i]).

The PTX is written here rather than by nvcc, which folds, fuses and never emits many of the forms.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

from warpsim.arithmetic import approx
from warpsim.arithmetic.floats import Float, bf16, f16, f32, f64
from warpsim.arithmetic.packed import packed

from . import conversions
from .instruction import Op, bind, simple, snippet
from .values import WIDTH

COUNT = 128
"""Elements an instruction is tried on."""


def integer() -> Iterator[Op]:
    for kind in ("s16", "u16", "s32", "u32", "s64", "u64"):
        for name in ("add", "sub", "mul.lo", "min", "max", "mul.hi"):
            yield simple(f"{name}.{kind}", f"{kind} {kind}", kind)
        # The quotient by zero is unspecified.
        one = {"16": "b16", "32": "b32", "64": "b64"}[kind[1:]]
        for name in ("div", "rem"):
            body = f"or.{one} {{b}}, {{b}}, 1; {name}.{kind} {{d}}, {{a}}, {{b}};"
            yield snippet(f"{name}.{kind}", body, f"{kind} {kind}", kind)
        if kind[1:] != "64":
            wide = kind[0] + str(2 * int(kind[1:]))
            yield simple(f"mul.wide.{kind}", f"{kind} {kind}", wide)
            yield simple(f"mad.wide.{kind}", f"{kind} {kind} {wide}", wide)
        for half in ("lo", "hi"):
            yield simple(f"mad.{half}.{kind}", f"{kind} {kind} {kind}", kind)
        yield simple(f"sad.{kind}", f"{kind} {kind} {kind}", kind)
    for kind in ("s16", "s32", "s64"):
        yield simple(f"neg.{kind}", kind, kind)
        yield simple(f"abs.{kind}", kind, kind)
    for name in ("add.sat.s32", "sub.sat.s32", "mul24.lo.s32", "mul24.hi.u32"):
        yield simple(name, "s32 s32", "s32")
    yield simple("mad.hi.sat.s32", "s32 s32 s32", "s32")
    for left, right in itertools.product("su", repeat=2):
        yield simple(f"dp4a.{left}32.{right}32", "u32 u32 u32", "u32")
        yield simple(f"dp2a.lo.{left}32.{right}32", "u32 u32 u32", "u32")
        yield simple(f"dp2a.hi.{left}32.{right}32", "u32 u32 u32", "u32")
    yield simple("vadd.s32.s32.s32", "s32 s32", "s32")
    yield simple("add.u16x2", "b32 b32", "b32")
    yield simple("min.s16x2", "b32 b32", "b32")
    yield simple("max.u16x2", "b32 b32", "b32")
    yield snippet(
        "add.cc.u32",
        "add.cc.u32 {t}, {a}, {b}; addc.cc.u32 {d}, {a}, {c}; addc.u32 {d}, {d}, {t};",
        "u32 u32 u32",
        "u32",
    )
    yield snippet(
        "sub.cc.u32",
        "sub.cc.u32 {t}, {a}, {b}; subc.cc.u32 {d}, {a}, {c}; subc.u32 {d}, {d}, {t};",
        "u32 u32 u32",
        "u32",
    )
    yield snippet(
        "mad.lo.cc.u32",
        "mad.lo.cc.u32 {t}, {a}, {b}, {c}; madc.hi.u32 {d}, {a}, {b}, {t};",
        "u32 u32 u32",
        "u32",
    )


def rare() -> Iterator[Op]:
    """Carries between additions and subtractions, and the SIMD video instructions."""
    for first, then in itertools.product(("add", "sub"), repeat=2):
        yield snippet(
            f"{first}.cc.u32 {then}c",
            f"{first}.cc.u32 {{t}}, {{a}}, {{b}}; {then}c.u32 {{d}}, {{c}}, {{t}};",
            "u32 u32 u32",
            "u32",
        )
    yield snippet(
        "mad.lo.cc.u32 subc",
        "mad.lo.cc.u32 {t}, {a}, {b}, {c}; subc.u32 {d}, {a}, {t};",
        "u32 u32 u32",
        "u32",
    )
    for name, size in itertools.product(("add", "sub", "avrg", "absdiff", "min", "max"), "24"):
        for signs in ("u32.u32.u32", "s32.s32.s32", "s32.u32.s32"):
            for mode in ("", ".sat", ".add"):
                yield simple(f"v{name}{size}.{signs}{mode}", "b32 b32 b32", "b32")


def logic() -> Iterator[Op]:
    for width in ("16", "32", "64"):
        kind = f"b{width}"
        for name in ("and", "or", "xor"):
            yield simple(f"{name}.{kind}", f"{kind} {kind}", kind)
        yield simple(f"not.{kind}", kind, kind)
        yield simple(f"cnot.{kind}", kind, kind)
        yield simple(f"shl.{kind}", f"{kind} shift", kind)
        yield simple(f"shr.u{width}", f"{kind} shift", kind)
        yield simple(f"shr.s{width}", f"{kind} shift", kind)
    for table in (0x00, 0xC0, 0x96, 0xE8, 0x1B, 0xFF):
        yield snippet(
            f"lop3.b32 {table:#x}", f"lop3.b32 {{d}}, {{a}}, {{b}}, {{c}}, {table};",
            "b32 b32 b32", "b32",
        )  # fmt: skip
    for way in ("l", "r"):
        for mode in ("wrap", "clamp"):
            yield simple(f"shf.{way}.{mode}.b32", "b32 b32 shift", "b32")
    yield simple("prmt.b32", "b32 b32 b32", "b32")
    for mode in ("f4e", "b4e", "rc8", "ecl", "ecr", "rc16"):
        yield simple(f"prmt.b32.{mode}", "b32 b32 b32", "b32")
    for width in ("32", "64"):
        kind = f"b{width}"
        yield simple(f"popc.{kind}", kind, "u32")
        yield simple(f"clz.{kind}", kind, "u32")
        yield simple(f"brev.{kind}", kind, kind)
        for sign in "us":
            yield simple(f"bfind.{sign}{width}", kind, "u32")
            yield simple(f"bfind.shiftamt.{sign}{width}", kind, "u32")
            yield simple(f"bfe.{sign}{width}", f"{kind} shift shift", kind)
        body = f"and.b32 {{t}}, {{c}}, 31; bfi.{kind} {{d}}, {{a}}, {{b}}, {{t}}, 9;"
        yield snippet(f"bfi.{kind}", body, f"{kind} {kind} shift", kind)
    yield simple("bmsk.clamp.b32", "shift shift", "b32")
    yield simple("szext.wrap.s32", "b32 shift", "b32")
    yield snippet("mov.b64 pack", "mov.b64 {d}, {{{a}, {b}}};", "b32 b32", "b64")
    yield snippet(
        "mov.b64 unpack", "mov.b64 {{{d}, {t}}}, {a}; xor.b32 {d}, {d}, {t};", "b64", "b32"
    )
    yield snippet("mov.b32 pack", "mov.b32 {d}, {{{a}, {b}}};", "b16 b16", "b32")
    yield simple("slct.s32.s32", "b32 b32 s32", "b32")
    yield simple("slct.u32.f32", "b32 b32 f32", "b32")


def single() -> Iterator[Op]:
    for rounding, ftz in itertools.product(("rn", "rz", "rm", "rp"), (False, True)):
        suffix = f"{rounding}{'.ftz' if ftz else ''}"
        how = {"rounding": rounding, "ftz": ftz}
        yield from _arithmetic("f32", f32, suffix, how)
        yield from _divisions("f32", f32, suffix, how)
    for name, function in (("add", f32.add), ("mul", f32.mul)):
        yield simple(f"{name}.f32", "f32 f32", "f32", function)
        yield simple(f"{name}.sat.f32", "f32 f32", "f32", bind(function, sat=True))
        ftz_sat = bind(function, sat=True, ftz=True)
        yield simple(f"{name}.ftz.sat.f32", "f32 f32", "f32", ftz_sat)
    yield simple("fma.rn.sat.f32", "f32 f32 f32", "f32", bind(f32.fma, sat=True))
    yield from _order("f32", f32, "f32", f32.minimum, f32.maximum, ("", ".ftz", ".NaN"))
    for name, greatest in (("min", f32.minimum), ("max", f32.maximum)):
        reference = bind(greatest, xorsign_abs=True)
        yield simple(f"{name}.xorsign.abs.f32", "f32 f32", "f32", reference)
    yield from _signs("f32", f32)
    yield simple("neg.ftz.f32", "f32", "f32", bind(f32.neg, ftz=True))
    yield simple("abs.ftz.f32", "f32", "f32", bind(f32.absolute, ftz=True))


def double() -> Iterator[Op]:
    for rounding in ("rn", "rz", "rm", "rp"):
        yield from _arithmetic("f64", f64, rounding, {"rounding": rounding})
        yield from _divisions("f64", f64, rounding, {"rounding": rounding})
    yield from _order("f64", f64, "f64", f64.minimum, f64.maximum, ("",))
    yield from _signs("f64", f64)


def _signs(kind: str, number: Float) -> Iterator[Op]:
    yield simple(f"neg.{kind}", kind, kind, number.neg)
    yield simple(f"abs.{kind}", kind, kind, number.absolute)
    yield simple(f"copysign.{kind}", f"{kind} {kind}", kind, number.copysign)
    for property_ in ("finite", "infinite", "number", "notanumber", "normal", "subnormal"):
        body = f"testp.{property_}.{kind} {{p}}, {{a}}; selp.b32 {{d}}, 1, 0, {{p}};"
        reference = _with_property(number, property_)
        yield Op(
            name=f"testp.{property_}.{kind}", body=body, inputs=(kind,), output="pred",
            reference=reference,
        )  # fmt: skip


def _arithmetic(kind: str, number: Float, suffix: str, how: dict[str, Any]) -> Iterator[Op]:
    yield simple(f"add.{suffix}.{kind}", f"{kind} {kind}", kind, bind(number.add, **how))
    yield simple(f"sub.{suffix}.{kind}", f"{kind} {kind}", kind, bind(number.sub, **how))
    yield simple(f"mul.{suffix}.{kind}", f"{kind} {kind}", kind, bind(number.mul, **how))
    yield simple(f"fma.{suffix}.{kind}", f"{kind} {kind} {kind}", kind, bind(number.fma, **how))


def _divisions(kind: str, number: Float, suffix: str, how: dict[str, Any]) -> Iterator[Op]:
    yield simple(f"div.{suffix}.{kind}", f"{kind} {kind}", kind, bind(number.div, **how))
    yield simple(f"sqrt.{suffix}.{kind}", kind, kind, bind(number.sqrt, **how))
    yield simple(f"rcp.{suffix}.{kind}", kind, kind, bind(number.rcp, **how))


def _order(
    kind: str,
    number: Float,
    operand: str,
    least: Callable[..., Any],
    greatest: Callable[..., Any],
    suffixes: tuple[str, ...],
) -> Iterator[Op]:
    for suffix in suffixes:
        how = {"ftz": "ftz" in suffix, "nan": "NaN" in suffix}
        yield simple(f"min{suffix}.{kind}", f"{operand} {operand}", operand, bind(least, **how))
        yield simple(f"max{suffix}.{kind}", f"{operand} {operand}", operand, bind(greatest, **how))


def half() -> Iterator[Op]:
    for name, number in (("f16", f16), ("bf16", bf16)):
        for kind, lift in ((name, _same), (f"{name}x2", _both)):
            two, three = f"{kind} {kind}", f"{kind} {kind} {kind}"
            for op in ("add", "sub", "mul"):
                function = getattr(number, op)
                yield simple(f"{op}.rn.{kind}", two, kind, lift(function))
                if name == "f16":
                    yield simple(f"{op}.ftz.{kind}", two, kind, lift(bind(function, ftz=True)))
                    yield simple(f"{op}.sat.{kind}", two, kind, lift(bind(function, sat=True)))
            yield simple(f"fma.rn.{kind}", three, kind, lift(number.fma))
            yield simple(f"fma.rn.relu.{kind}", three, kind, lift(bind(number.fma, relu=True)))
            if name == "f16":
                yield simple(f"fma.rn.ftz.{kind}", three, kind, lift(bind(number.fma, ftz=True)))
                yield simple(f"fma.rn.sat.{kind}", three, kind, lift(bind(number.fma, sat=True)))
            yield from _order(
                kind, number, kind, lift(number.minimum), lift(number.maximum), ("", ".NaN")
            )
            yield simple(f"neg.{kind}", kind, kind, lift(number.neg))
            yield simple(f"abs.{kind}", kind, kind, lift(number.absolute))


def approximate() -> Iterator[Op]:
    for name in ("ex2", "lg2", "rcp", "rsqrt", "sqrt", "sin", "cos"):
        for ftz in (False, True):
            reference = bind(getattr(approx, name), ftz=ftz)
            suffix = ".ftz" if ftz else ""
            yield simple(f"{name}.approx{suffix}.f32", "f32", "f32", reference, name)
    yield simple("tanh.approx.f32", "f32", "f32", approx.tanh, "tanh")
    for ftz in (False, True):
        suffix = ".ftz" if ftz else ""
        for form in ("approx", "full"):
            reference = bind(approx.div, full=form == "full", ftz=ftz)
            yield simple(f"div.{form}{suffix}.f32", "f32 f32", "f32", reference, "div")


def predicate() -> Iterator[Op]:
    ordered = ("eq", "ne", "lt", "le", "gt", "ge")
    for kind in ("s16", "u16", "s32", "u32", "s64", "u64"):
        names = (*ordered, "lo", "ls", "hi", "hs") if kind[0] == "u" else ordered
        for op in names:
            yield _setp(op, kind, kind)
    for op in ("eq", "ne"):
        for kind in ("b16", "b32", "b64"):
            yield _setp(op, kind, kind)
    unordered = ("equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")
    for kind, number in (("f32", f32), ("f64", f64), ("f16", f16), ("bf16", bf16)):
        for op in (*ordered, *unordered):
            yield _setp(op, kind, kind, _with_op(number, op, False))
            if kind == "f32":
                yield _setp(op, "ftz.f32", kind, _with_op(number, op, True))
    for combine in ("and", "or", "xor"):
        body = (
            "setp.ne.b32 {q}, {c}, 0; "
            f"setp.lt.{combine}.s32 {{p}}|{{q}}, {{a}}, {{b}}, {{q}}; "
            "selp.b32 {d}, 2, 0, {p}; selp.b32 {t}, 1, 0, {q}; or.b32 {d}, {d}, {t};"
        )
        yield snippet(f"setp.lt.{combine}.s32", body, "s32 s32 shift", "b32")
    for name in ("and", "or", "xor"):
        body = (
            "setp.lt.s32 {p}, {a}, {b}; setp.gt.u32 {q}, {a}, {b}; "
            f"{name}.pred {{p}}, {{p}}, {{q}}; not.pred {{p}}, {{p}}; selp.u32 {{d}}, 1, 0, {{p}};"
        )
        yield snippet(f"{name}.pred", body, "s32 s32", "b32")
    yield simple("set.lt.u32.f32", "f32 f32", "b32")
    yield simple("set.geu.f32.f32", "f32 f32", "b32")
    yield simple("set.gt.f32.s32", "s32 s32", "b32")
    guard = (
        "mov.b32 {d}, {a}; setp.lt.f32 {p}, {a}, {b}; "
        "@{p} add.s32 {d}, {d}, 5; @!{p} xor.b32 {d}, {d}, {b};"
    )
    yield snippet("guarded", guard, "f32 f32", "b32")
    for width in ("16", "32", "64"):
        body = f"setp.lt.s32 {{p}}, {{c}}, 32; selp.b{width} {{d}}, {{a}}, {{b}}, {{p}};"
        yield snippet(f"selp.b{width}", body, f"b{width} b{width} shift", f"b{width}")


def _setp(op: str, type_: str, kind: str, reference: Callable[..., Any] | None = None) -> Op:
    return Op(
        name=f"setp.{op}.{type_}",
        body=f"setp.{op}.{type_} {{p}}, {{a}}, {{b}}; selp.b32 {{d}}, 1, 0, {{p}};",
        inputs=(kind, kind),
        output="pred",
        reference=reference,
    )


# References with their modifiers bound


def _with_op(number: Float, op: str, ftz: bool) -> Callable[..., Any]:
    return lambda a, b: number.compare(a, b, op, ftz=ftz)


def _with_property(number: Float, property_: str) -> Callable[..., Any]:
    return lambda a: number.testp(a, property_)


def _same(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


def _both(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *operands, **modifiers: packed(function, *operands, **modifiers)


AREAS: dict[str, Callable[[], Iterator[Op]]] = {
    "integer": integer,
    "logic": logic,
    "single": single,
    "double": double,
    "half": half,
    "float_conversion": conversions.float_conversion,
    "fp8_conversion": conversions.fp8_conversion,
    "integer_conversion": conversions.integer_conversion,
    "approximate": approximate,
    "predicate": predicate,
    "rare": rare,
}


def ops(area: str) -> list[Op]:
    return list(AREAS[area]())


def entry_name(index: int) -> str:
    return f"op_{index}"


def ptx(area: str) -> str:
    """A module with one entry per instruction of the area, in the order of `ops`."""
    header = ".version 9.0\n.target sm_90a\n.address_size 64\n"
    return header + "".join(_entry(i, op) for i, op in enumerate(ops(area)))


def _entry(index: int, op: Op) -> str:
    kinds = [*zip("abc", op.inputs, strict=False), ("d", op.output)]
    params = ", ".join(f".param .u64 {entry_name(index)}_{letter}" for letter, _ in kinds)
    lines = [f".visible .entry {entry_name(index)}({params})", "{"]
    lines += [f"  .reg .b{WIDTH[kind]} %{letter};" for letter, kind in kinds]
    lines += ["  .reg .b32 %i, %n, %t;", "  .reg .b64 %base, %offset;", "  .reg .pred %p, %q;"]
    lines += ["  mov.u32 %i, %ctaid.x;", "  mov.u32 %n, %ntid.x;", "  mov.u32 %t, %tid.x;"]
    lines += ["  mad.lo.s32 %i, %i, %n, %t;"]
    for letter, kind in kinds:
        lines.append(f"  mul.wide.u32 %offset, %i, {WIDTH[kind] // 8};")
        lines.append(f"  ld.param.u64 %base, [{entry_name(index)}_{letter}];")
        lines.append("  add.s64 %base, %base, %offset;")
        if letter != "d":
            lines.append(f"  ld.global.b{WIDTH[kind]} %{letter}, [%base];")
    names = {letter: f"%{letter}" for letter, _ in kinds}
    lines.append("  " + op.body.format(**names, p="%p", q="%q", t="%t"))
    lines.append(f"  st.global.b{WIDTH[op.output]} [%base], %d;")
    lines += ["  ret;", "}", ""]
    return "\n".join(lines)
