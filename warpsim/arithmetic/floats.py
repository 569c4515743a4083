"""The four formats that PTX computes in."""

from __future__ import annotations

from warpsim.arithmetic.double import f64
from warpsim.arithmetic.half import bf16, f16
from warpsim.arithmetic.ieee import Float
from warpsim.arithmetic.single import f32

__all__ = ["Float", "bf16", "f16", "f32", "f64"]
