"""The tolerance in a drafted problem.py: a guess of what roundings come to, by the types of the
outputs, the length of sums and the kernel's matrix instructions."""

from __future__ import annotations

import ast
import math
from collections.abc import Collection, Mapping, Sequence

from kernelexp.services.adopt.answers import Answers
from kernelexp.services.adopt.entry import KernelParameter
from kernelexp.services.adopt.expressions import of_size
from kernelexp.services.adopt.uses import F16_SUMS, TF32
from warpsim.dtypes import INTEGERS

# Of a result: many roundings of its type, in units of the result.
_ROUNDING: dict[str, float] = {
    **{"f32": 1e-5, "f16": 4e-3, "bf16": 3e-2, "e4m3": 0.25, "e5m2": 0.5, "f64": 1e-13},
    **dict.fromkeys(INTEGERS, 0.0),
}
_TF32_ROUNDING = 4e-3
"""As of f16: a TF32 operand has as many bits of mantissa."""
# Of a sum of n terms, times sqrt(n): roundings of its type add up as a random walk does.
_OF_SUM = {"f32": 2e-7, "f64": 4e-16}
_OF_F16_SUM = 2.5e-4
"""Per root of n where a matrix instruction adds to f16, a rounding for 16 terms: a right GEMM of
K = 4096 was off by 0.014 of the RMS at most."""
_FEW = 4
"""Elements whose RMS may be far below what they are sums of."""


def tolerance(
    outputs: Sequence[KernelParameter],
    given: Sequence[KernelParameter],
    answers: Answers,
    names: Collection[str],
    arithmetic: Collection[str] = (),
) -> str:
    """The arguments of a guess, which scales with the outputs: roundings of a result, and those of
    sums over the extents that inputs have and outputs lack."""
    types = [parameter.dtype or "f32" for parameter in outputs]
    coarsest = max(types, key=lambda dtype: _ROUNDING.get(dtype, _ROUNDING["f32"]))
    rounding = _ROUNDING.get(coarsest, _ROUNDING["f32"])
    if not rounding:
        return 'rtol=0, why="a guess: integers are exact"'
    of = f"of {coarsest}"
    if TF32 in arithmetic and rounding < _TF32_ROUNDING:
        of, rounding = "of f32 operands to TF32 in MMAs", _TF32_ROUNDING
    why = f"a guess: roundings {of}, relative to each value and to the RMS of all"
    summed = _summed(outputs, given, answers.shapes)
    term = max(_OF_SUM.get(kind, 0.0) for kind in types)
    if F16_SUMS in arithmetic:
        term = _OF_F16_SUM
    if not term or not summed:
        return f'\n        rtol={rounding},\n        of_rms={rounding},\n        why="{why}",\n    '
    extents = [of_size(item, "--shape", names) for item in summed]
    terms = extents[0] if len(extents) == 1 else f"max({', '.join(extents)})"
    why += f", and of sums of {', '.join(summed)} terms{' in f16' * (F16_SUMS in arithmetic)}"
    atol = ""
    if _may_cancel(outputs, answers):
        atol = f"        atol={rounding} * ({terms}) ** 0.5 + {term} * ({terms}),\n"
        why += ", which may cancel: relative to sqrt(terms), as inputs are normally distributed"
    return (
        f"\n        rtol={rounding},\n{atol}"
        f"        of_rms={rounding} + {term} * ({terms}) ** 0.5,\n"
        f'        why="{why}",\n    '
    )


def _summed(
    outputs: Sequence[KernelParameter],
    given: Sequence[KernelParameter],
    shapes: Mapping[str, Sequence[str]],
) -> list[str]:
    """The extents that inputs have and an output lacks."""
    return list(
        dict.fromkeys(
            extent
            for output in outputs
            for parameter in given
            for extent in shapes.get(parameter.name, ())
            if output.name in shapes and extent not in shapes[output.name]
        )
    )


def _may_cancel(outputs: Sequence[KernelParameter], answers: Answers) -> bool:
    """Whether the outputs are so few sums of drawn values that all may be near zero, and nothing
    but sums."""
    shapes = [answers.shapes.get(output.name, ("",)) for output in outputs]
    return (
        not answers.before
        and all(extent.isdigit() for shape in shapes for extent in shape)
        and sum(math.prod(map(int, shape)) for shape in shapes) <= _FEW
        and all(_is_sum(answers.references.get(output.name, "")) for output in outputs)
    )


_SUMS = frozenset({"sum", "dot", "mv", "mm", "matmul", "inner", "vdot"})
_SHAPING = frozenset({"reshape", "view", "flatten", "squeeze", "unsqueeze", "double", "float", "t"})


def _is_sum(text: str) -> bool:
    """Whether a reference is made of sums and products, so that its size is that of its terms."""
    nodes = list(ast.walk(ast.parse(text or "0", mode="eval")))
    called = {getattr(node.func, "attr", "") for node in nodes if isinstance(node, ast.Call)}
    operators = {type(node.op) for node in nodes if isinstance(node, ast.BinOp)}
    sums = bool(called & _SUMS) or ast.MatMult in operators
    return sums and called <= _SUMS | _SHAPING and operators <= {ast.MatMult, ast.Mult, ast.Add}
