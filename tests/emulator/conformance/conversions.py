"""cvt: between floating-point types, from and to FP8, from and to integers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from warpsim.arithmetic import convert

from .instruction import Op, bind, simple


def float_conversion() -> Iterator[Op]:
    for rounding in ("rn", "rz", "rm", "rp"):
        yield _cvt(f"cvt.{rounding}.f32.f64", "f64", "f32", rounding=rounding)
    yield _cvt("cvt.rn.ftz.f32.f64", "f64", "f32", ftz=True)
    yield _cvt("cvt.rn.sat.f32.f64", "f64", "f32", sat=True)
    yield _cvt("cvt.f64.f32", "f32", "f64")
    yield _cvt("cvt.ftz.f64.f32", "f32", "f64", ftz=True)
    yield _cvt("cvt.sat.f32.f32", "f32", "f32", sat=True)
    yield _cvt("cvt.ftz.sat.f32.f32", "f32", "f32", sat=True, ftz=True)
    for name in ("f16", "bf16"):
        yield _cvt(f"cvt.f32.{name}", name, "f32")
        yield _cvt(f"cvt.f64.{name}", name, "f64")
        yield _cvt(f"cvt.rn.{name}.f32", "f32", name)
        yield _cvt(f"cvt.rz.{name}.f32", "f32", name, rounding="rz")
        yield _cvt(f"cvt.rn.relu.{name}.f32", "f32", name, relu=True)
        yield _cvt(f"cvt.rn.{name}.f64", "f64", name)
        for modifiers in ("rn", "rz", "rn.relu", "rz.relu"):
            reference = bind(
                _pack, dst=name, rounding=modifiers[:2], relu=modifiers.endswith("relu")
            )
            yield simple(f"cvt.{modifiers}.{name}x2.f32", "f32 f32", f"{name}x2", reference)
    yield _cvt("cvt.rn.bf16.f16", "f16", "bf16")
    yield _cvt("cvt.rn.f16.bf16", "bf16", "f16")
    for rounding in ("rna", "rn", "rz"):
        yield _cvt(f"cvt.{rounding}.tf32.f32", "f32", "tf32", "f32", rounding=rounding)
    yield _cvt("cvt.rn.relu.tf32.f32", "f32", "tf32", "f32", relu=True)
    for kind, rounding in itertools.product(("f32", "f64", "f16"), ("rni", "rzi", "rmi", "rpi")):
        yield _cvt(f"cvt.{rounding}.{kind}.{kind}", kind, kind, rounding=rounding)
    yield _cvt("cvt.rni.ftz.f32.f32", "f32", "f32", rounding="rni", ftz=True)


def fp8_conversion() -> Iterator[Op]:
    for fp8 in ("e4m3", "e5m2"):
        for relu in (False, True):
            suffix = ".relu" if relu else ""
            reference = bind(_pack, dst=fp8, relu=relu)
            yield simple(f"cvt.rn.satfinite{suffix}.{fp8}x2.f32", "f32 f32", f"{fp8}x2", reference)
            reference = bind(_pack_fp8, dst=fp8, relu=relu)
            yield simple(f"cvt.rn.satfinite{suffix}.{fp8}x2.f16x2", "f16x2", f"{fp8}x2", reference)
            reference = bind(_unpack_fp8, src=fp8, relu=relu)
            yield simple(f"cvt.rn{suffix}.f16x2.{fp8}x2", f"{fp8}x2", "f16x2", reference)


def integer_conversion() -> Iterator[Op]:
    integers = ("s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64")
    for src, dst in itertools.product(("f32", "f64", "f16"), integers):
        for rounding in ("rni", "rzi", "rmi", "rpi") if dst in ("s32", "u64") else ("rzi",):
            reference = bind(_to_int, src=src, dst=dst, rounding=rounding)
            yield simple(f"cvt.{rounding}.{dst}.{src}", src, dst, reference)
    for dst in ("s32", "u32", "s64", "u64"):
        reference = bind(_to_int, src="bf16", dst=dst, rounding="rzi")
        yield simple(f"cvt.rzi.{dst}.bf16", "bf16", dst, reference)
    for src, dst in itertools.product(integers, ("f32", "f64", "f16", "bf16")):
        if dst == "bf16" and src in ("s8", "u8"):
            continue  # ptxas knows no such form
        for rounding in ("rn", "rz", "rm", "rp") if dst == "f32" else ("rn",):
            reference = bind(_from_int, src=src, dst=dst, rounding=rounding)
            yield simple(f"cvt.{rounding}.{dst}.{src}", src, dst, reference)
    for src, dst in itertools.product(integers, integers):
        if src != dst:
            reference = bind(_int_to_int, src=src, dst=dst)
            yield simple(f"cvt.{dst}.{src}", src, dst, reference)
            if not _contains(dst, src):
                reference = bind(_int_to_int, src=src, dst=dst, sat=True)
                yield simple(f"cvt.sat.{dst}.{src}", src, dst, reference)


def _contains(wide: str, narrow: str) -> bool:
    """Whether every value of one integer type is one of the other: .sat is not allowed then."""
    (low, high), (least, most) = convert.limits(wide), convert.limits(narrow)
    return low <= least and most <= high


def _cvt(name: str, src: str, dst: str, output: str | None = None, **modifiers: Any) -> Op:
    return simple(name, src, output or dst, bind(convert.floating, src=src, dst=dst, **modifiers))


def _pack(high: Any, low: Any, **modifiers: Any) -> Any:
    return convert.pack_x2(high, low, **modifiers)


def _pack_fp8(a: Any, **modifiers: Any) -> Any:
    return convert.pack_fp8x2(a, "f16", **modifiers)


def _unpack_fp8(a: Any, **modifiers: Any) -> Any:
    return convert.unpack_fp8x2(a, **modifiers)


def _to_int(a: Any, **modifiers: Any) -> Any:
    return convert.float_to_int(a, **modifiers)


def _from_int(a: Any, **modifiers: Any) -> Any:
    return convert.int_to_float(a, **modifiers)


def _int_to_int(a: Any, **modifiers: Any) -> Any:
    return convert.int_to_int(a, **modifiers)
