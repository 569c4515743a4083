"""Half precision and bfloat16, single and packed."""

from __future__ import annotations

from typing import Any

from warpsim.arithmetic import approx, convert
from warpsim.arithmetic.floats import bf16, f16
from warpsim.arithmetic.packed import packed
from warpsim.front.ptx.registry import alu
from warpsim.machine.core.arrays import Array

_FORMATS: dict[str, Any] = {"f16": f16, "bf16": bf16}
_F16 = "{ftz:|.ftz}{sat:|.sat}.{t:f16|f16x2}"


def _apply(name: str, t: str, *operands: Array, **modifiers: Any) -> Array:
    function = getattr(_FORMATS[t.removesuffix("x2")], name)
    result: Array = (
        packed(function, *operands, **modifiers)
        if t.endswith("x2")
        else function(*operands, **modifiers)
    )
    return result


@alu("{o:add|sub|mul}{rnd:|.rn}" + _F16, "t t t")
def binary_f16(a: Array, b: Array, o: str, t: str, ftz: str, sat: str) -> Array:
    return _apply(o, t, a, b, ftz=bool(ftz), sat=bool(sat))


@alu("{o:add|sub|mul}{rnd:|.rn}.{t:bf16|bf16x2}", "t t t")
def binary_bf16(a: Array, b: Array, o: str, t: str) -> Array:
    return _apply(o, t, a, b)


@alu("fma.rn" + _F16, "t t t t")
def fma_f16(a: Array, b: Array, c: Array, t: str, ftz: str, sat: str) -> Array:
    return _apply("fma", t, a, b, c, ftz=bool(ftz), sat=bool(sat))


@alu("fma.rn{ftz:|.ftz}.relu.{t:f16|f16x2}", "t t t t")
def fma_f16_relu(a: Array, b: Array, c: Array, t: str, ftz: str) -> Array:
    return _apply("fma", t, a, b, c, ftz=bool(ftz), relu=True)


@alu("fma.rn{relu:|.relu}.{t:bf16|bf16x2}", "t t t t")
def fma_bf16(a: Array, b: Array, c: Array, t: str, relu: str) -> Array:
    return _apply("fma", t, a, b, c, relu=bool(relu))


@alu("{o:min|max}{ftz:|.ftz}{nan:|.NaN}{xs:|.xorsign.abs}.{t:f16|f16x2}", "t t t")
def extreme_f16(a: Array, b: Array, o: str, t: str, ftz: str, nan: str, xs: str) -> Array:
    name = "minimum" if o == "min" else "maximum"
    return _apply(name, t, a, b, ftz=bool(ftz), nan=bool(nan), xorsign_abs=bool(xs))


@alu("{o:min|max}{nan:|.NaN}{xs:|.xorsign.abs}.{t:bf16|bf16x2}", "t t t")
def extreme_bf16(a: Array, b: Array, o: str, t: str, nan: str, xs: str) -> Array:
    name = "minimum" if o == "min" else "maximum"
    return _apply(name, t, a, b, nan=bool(nan), xorsign_abs=bool(xs))


@alu("{o:neg|abs}{ftz:|.ftz}.{t:f16|f16x2}", "t t")
def sign_f16(a: Array, o: str, t: str, ftz: str) -> Array:
    return _apply("neg" if o == "neg" else "absolute", t, a, ftz=bool(ftz))


@alu("{o:neg|abs}.{t:bf16|bf16x2}", "t t")
def sign_bf16(a: Array, o: str, t: str) -> Array:
    return _apply("neg" if o == "neg" else "absolute", t, a)


@alu("{o:ex2|tanh}.approx{ftz:|.ftz}.{t:f16|f16x2|bf16|bf16x2}", "t t")
def special_half(a: Array, o: str, t: str) -> Array:
    """Through f32 and rounded once more: within PTX's bound."""
    kind = t.removesuffix("x2")
    function = approx.tanh if o == "tanh" else approx.ex2

    def one(half: Array) -> Array:
        return convert.floating(function(convert.floating(half, kind, "f32")), "f32", kind)

    return packed(one, a) if t.endswith("x2") else one(a)
