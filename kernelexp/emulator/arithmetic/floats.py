"""The four formats that PTX computes in."""

from __future__ import annotations

from kernelexp.emulator.arithmetic.double import f64
from kernelexp.emulator.arithmetic.half import bf16, f16
from kernelexp.emulator.arithmetic.ieee import Float
from kernelexp.emulator.arithmetic.single import f32

__all__ = ["Float", "bf16", "f16", "f32", "f64"]
