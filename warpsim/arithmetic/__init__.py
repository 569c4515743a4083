"""NVIDIA's arithmetic on NumPy arrays, bit for bit.

Every function takes and returns **bit patterns**, never NumPy floats: uint8 for FP8 codes, uint16
for f16 and bf16, uint32 for f32 and for packed pairs (first element in the low half), uint64 for
f64; integers as uint32 or uint64 patterns with the signedness in the function's arguments. A
register file of uint32 needs no conversion, and a NaN keeps its bits: NumPy's own float operations
would change them. Arrays may have any shape and broadcast; nothing is written in place.

Keyword arguments named as PTX names its modifiers, wherever they apply:
`rounding` one of "rn", "rz", "rm", "rp" (and, for an integral result, "rni", "rzi", "rmi", "rpi");
`ftz`: subnormal inputs and results become zeros of their sign; `sat`: clamp to [0, 1], NaN to 0.

f32, f16, bf16, f64: objects with these methods, one true rounding each
    add sub mul            (a, b, *, rounding="rn", ftz=False, sat=False)
    fma                    (a, b, c, *, rounding="rn", ftz=False, sat=False, relu=False)
    div                    (a, b, *, rounding="rn", ftz=False)         f32, f64
    sqrt rcp               (a, *, rounding="rn", ftz=False)            f32, f64
    minimum maximum        (a, b, *, ftz=False, nan=False, xorsign_abs=False)
    neg absolute           (a, *, ftz=False)
    compare                (a, b, op, *, ftz=False) -> bool array; op as in setp: "eq" ... "ltu",
                           "num", "nan"
    copysign               (a, b)  b with the sign of a                f32, f64
    testp                  (a, property) -> bool array                 f32, f64
    f16 and bf16 work on uint16; `packed.packed(f16.fma, a, b, c, ...)` applies such a method to
    both halves of uint32 operands; `packed.packed_bool(f16.compare, a, b, op)` gives (low, high).

convert: cvt
    convert.floating(a, src, dst, *, rounding="rn", ftz=False, sat=False, satfinite=False,
                     relu=False)
        src and dst among "f64" "f32" "tf32" "f16" "bf16" "e4m3" "e5m2"; with "rni" ... the result
        is rounded to an integral value (dst same as src). tf32 is a uint32 f32 pattern.
    convert.float_to_int(a, src, dst, *, rounding="rzi", ftz=False)  dst "s8" ... "u64"; saturates
    convert.int_to_float(a, src, dst, *, rounding="rn", sat=False)
    convert.int_to_int(a, src, dst, *, sat=False)
    convert.pack_x2(high, low, dst, *, rounding="rn", relu=False, satfinite=None)
        two f32 to a pair: cvt.rn.bf16x2.f32 d, high, low; dst "f16" "bf16" -> uint32,
        "e4m3" "e5m2" -> uint16
    convert.pack_fp8x2(a, src, dst, *, relu=False) -> uint16 from uint32 pairs of "f16" or "bf16"
    convert.unpack_fp8x2(a, src, *, relu=False) -> uint32 f16x2 from uint16

fp8: the 256-entry tables behind E4M3 and E5M2
    fp8.as_f16(codes, kind)

approx: ex2 lg2 rcp rsqrt sqrt sin cos tanh (a, *, ftz=False) and div(a, b, *, full=False,
    ftz=False): float64's result rounded, which lies within PTX's bound; special values as PTX
    lists them.

tensor: the tensor core's dot product
    tensor.mma(a, b, c, *, a_type, b_type=None, precision, out=None) -> uint32[M, N]
        a: codes [M, K], b: codes [N, K] (K-major: D = A * B^T + C), c: f32 bits [M, N] or None for
        zeros; types "e4m3" "e5m2" "e2m3" "e3m2" "e2m1" (uint8), "f16" "bf16" (uint16), "tf32"
        (uint32). K is that of one instruction: 32, 16 or 8 values.
        precision one of tensor.TCGEN05, tensor.WGMMA, tensor.WGMMA_FP8, tensor.MMA_SYNC.
    tensor.mma_f16(...)  same with f16 C and D (uint16)
    tensor.mma_sync_fp8(a, b, c, *, a_type, b_type, f16=False)  mma.sync m16n8k32 of FP8 on sm_90
    tensor.mma_int8(a, b, c, *, a_signed, b_signed, satfinite=False) -> uint32[M, N] (s32 bits)

What an H200 made of the same inputs is in tests/emulator/conformance; warpsim/docs/conformance.md
says what was found.
"""

from __future__ import annotations

from warpsim.arithmetic import approx, convert, fp8, packed, tensor
from warpsim.arithmetic.floats import bf16, f16, f32, f64

__all__ = ["approx", "bf16", "convert", "f16", "f32", "f64", "fp8", "packed", "tensor"]
