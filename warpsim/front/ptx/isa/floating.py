"""Single and double precision."""

from __future__ import annotations

from typing import Any

import numpy as np

from warpsim.arithmetic import approx
from warpsim.arithmetic.floats import f32, f64
from warpsim.front.ptx.registry import alu
from warpsim.machine.core.arrays import Array

FORMATS: dict[str, Any] = {"f32": f32, "f64": f64}
_RND = "{rnd:|.rn|.rz|.rm|.rp}"


def rounding(rnd: str) -> str:
    """.rz -> rz; no modifier is round to nearest even."""
    return rnd.lstrip(".") or "rn"


@alu("{o:add|sub|mul}" + _RND + "{ftz:|.ftz}{sat:|.sat}.f32", "f32 f32 f32")
def binary_f32(a: Array, b: Array, o: str, rnd: str, ftz: str, sat: str) -> Array:
    function = getattr(f32, o)
    return function(a, b, rounding=rounding(rnd), ftz=bool(ftz), sat=bool(sat))


@alu("{o:add|sub|mul}" + _RND + ".f64", "f64 f64 f64")
def binary_f64(a: Array, b: Array, o: str, rnd: str) -> Array:
    return getattr(f64, o)(a, b, rounding=rounding(rnd))


@alu("{o:fma|mad}" + _RND + "{ftz:|.ftz}{sat:|.sat}.f32", "f32 f32 f32 f32")
def fma_f32(a: Array, b: Array, c: Array, rnd: str, ftz: str, sat: str) -> Array:
    return f32.fma(a, b, c, rounding=rounding(rnd), ftz=bool(ftz), sat=bool(sat))


@alu("{o:fma|mad}{rnd:.rn|.rz|.rm|.rp}.f64", "f64 f64 f64 f64")
def fma_f64(a: Array, b: Array, c: Array, rnd: str) -> Array:
    return f64.fma(a, b, c, rounding=rounding(rnd))


def _halves(a: Array) -> tuple[Array, Array]:
    return a.astype(np.uint32), (a >> np.uint64(32)).astype(np.uint32)


def _join(low: Array, high: Array) -> Array:
    return low.astype(np.uint64) | high.astype(np.uint64) << np.uint64(32)


@alu("{o:add|sub|mul}" + _RND + "{ftz:|.ftz}.f32x2", "b64 b64 b64")
def binary_f32x2(a: Array, b: Array, o: str, rnd: str, ftz: str) -> Array:
    parts = zip(_halves(a), _halves(b), strict=True)
    return _join(*(binary_f32(x, y, o, rnd, ftz, "") for x, y in parts))


@alu("fma{rnd:.rn|.rz|.rm|.rp}{ftz:|.ftz}.f32x2", "b64 b64 b64 b64")
def fma_f32x2(a: Array, b: Array, c: Array, rnd: str, ftz: str) -> Array:
    parts = zip(_halves(a), _halves(b), _halves(c), strict=True)
    return _join(*(fma_f32(x, y, z, rnd, ftz, "") for x, y, z in parts))


@alu("div{rnd:.rn|.rz|.rm|.rp}{ftz:|.ftz}.f32", "f32 f32 f32")
def div_f32(a: Array, b: Array, rnd: str, ftz: str) -> Array:
    return f32.div(a, b, rounding=rounding(rnd), ftz=bool(ftz))


@alu("div{rnd:.rn|.rz|.rm|.rp}.f64", "f64 f64 f64")
def div_f64(a: Array, b: Array, rnd: str) -> Array:
    return f64.div(a, b, rounding=rounding(rnd))


@alu("div.{k:approx|full}{ftz:|.ftz}.f32", "f32 f32 f32")
def div_approx(a: Array, b: Array, k: str, ftz: str) -> Array:
    """The correctly rounded quotient, which lies within PTX's bound."""
    return approx.div(a, b, full=k == "full", ftz=bool(ftz))


@alu("{o:sqrt|rcp}{rnd:.rn|.rz|.rm|.rp}{ftz:|.ftz}.f32", "f32 f32")
def root_f32(a: Array, o: str, rnd: str, ftz: str) -> Array:
    return getattr(f32, o)(a, rounding=rounding(rnd), ftz=bool(ftz))


@alu("{o:sqrt|rcp}{rnd:.rn|.rz|.rm|.rp}.f64", "f64 f64")
def root_f64(a: Array, o: str, rnd: str) -> Array:
    return getattr(f64, o)(a, rounding=rounding(rnd))


@alu("{o:ex2|lg2|rcp|rsqrt|sqrt|sin|cos}.approx{ftz:|.ftz}.f32", "f32 f32")
def special_f32(a: Array, o: str, ftz: str) -> Array:
    """The correctly rounded result, which lies within PTX's bound; hardware's last bits differ."""
    return getattr(approx, o)(a, ftz=bool(ftz))


@alu("{o:rcp|rsqrt}.approx{ftz:|.ftz}.f64", "f64 f64")
def special_f64(a: Array, o: str) -> Array:
    """The upper half of the rounded result, with zeros in the lower half: within PTX's bound of
    2^-20."""
    # The instruction looks at the upper half of its operand only, subnormals apart.
    root = f64.sqrt(a) if o == "rsqrt" else a
    return f64.rcp(root) & ~np.uint64(0xFFFF_FFFF)


@alu("tanh.approx.f32", "f32 f32")
def tanh_f32(a: Array) -> Array:
    """The correctly rounded result, which lies within PTX's bound."""
    return approx.tanh(a)


@alu("neg{ftz:|.ftz}.f32", "f32 f32")
def neg_f32(a: Array, ftz: str) -> Array:
    return f32.neg(a, ftz=bool(ftz))


@alu("abs{ftz:|.ftz}.f32", "f32 f32")
def abs_f32(a: Array, ftz: str) -> Array:
    return f32.absolute(a, ftz=bool(ftz))


@alu("neg.f64", "f64 f64")
def neg_f64(a: Array) -> Array:
    return f64.neg(a)


@alu("abs.f64", "f64 f64")
def abs_f64(a: Array) -> Array:
    return f64.absolute(a)


@alu("{o:min|max}{ftz:|.ftz}{nan:|.NaN}{xs:|.xorsign.abs}.f32", "f32 f32 f32 f32?")
def extreme_f32(*values: Array, o: str, ftz: str, nan: str, xs: str) -> Array:
    """Of two values, or of three."""
    function = f32.minimum if o == "min" else f32.maximum
    result = values[0]
    for value in values[1:]:
        result = function(result, value, ftz=bool(ftz), nan=bool(nan), xorsign_abs=bool(xs))
    return result


@alu("{o:min|max}.f64", "f64 f64 f64")
def extreme_f64(a: Array, b: Array, o: str) -> Array:
    return (f64.minimum if o == "min" else f64.maximum)(a, b)


@alu("copysign.{t:f32|f64}", "t t t")
def copysign(a: Array, b: Array, t: str) -> Array:
    """b with the sign of a."""
    return FORMATS[t].copysign(a, b)


@alu("testp.{p:finite|infinite|number|notanumber|normal|subnormal}.{t:f32|f64}", "pred t")
def testp(a: Array, p: str, t: str) -> Array:
    return FORMATS[t].testp(a, p)
