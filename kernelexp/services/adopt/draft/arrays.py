"""Arrays in a drafted problem.py: their shapes, random inputs, what they should become, and how
exactly: a guess by the types of the outputs, the length of sums and the matrix instructions."""

from __future__ import annotations

import ast
import math
from collections.abc import Collection, Mapping, Sequence

from kernelexp.model.errors import UsageError
from kernelexp.services.adopt import expressions
from kernelexp.services.adopt.answers import Answers, is_size
from kernelexp.services.adopt.entry import KernelParameter
from kernelexp.services.adopt.expressions import of_size
from kernelexp.services.adopt.uses import F16_SUMS, TF32
from warpsim.dtypes import INTEGERS, TORCH_NAMES, DType


def array(parameter: KernelParameter, answers: Answers, names: frozenset[str], zero: bool) -> str:
    """A line of outputs() or of workspaces()."""
    start = ", zero=True" if zero else ""
    extents, kind = shape(parameter, answers, names), dtype(parameter)
    return f'        "{parameter.name}": Array(shape={extents}, dtype={kind}{start}),\n'


def workspaces(values: Sequence[KernelParameter], answers: Answers, names: frozenset[str]) -> str:
    own = [value for value in values if value.name in answers.own]
    if not own:
        return ""
    lines = "".join(
        array(parameter, answers, names, zero=parameter.name in answers.workspaces)
        for parameter in own
    )
    return f"def workspaces(axes, size):\n    return {{\n{lines}    }}\n\n\n"


def inputs(given: Sequence[KernelParameter], answers: Answers, names: frozenset[str]) -> str:
    """The body of inputs()."""
    if not given:
        return "    return {}\n"
    drawn = (
        f'{_caution(parameter)}        "{parameter.name}": {_start(parameter, answers, names)},\n'
        for parameter in given
    )
    generated = any(parameter.name not in answers.before for parameter in given)
    generator = (
        "    import torch\n\n    generator = torch.Generator(device).manual_seed(seed)\n"
        if generated
        else ""
    )
    return f"{generator}    return {{\n{''.join(drawn)}    }}\n"


def _caution(parameter: KernelParameter) -> str:
    """A comment on an array that holds halves among other bits."""
    if not (parameter.mixed and parameter.packed and parameter.dtype in INTEGERS):
        return ""
    return (
        f"        # {parameter.name} has halves in it, and random bits make some infinite: "
        "draw those\n        # as the format has them, as in blocks[:, :2] = "
        "scales.half().view(torch.uint8).\n"
    )


def references(
    outputs: Sequence[KernelParameter],
    values: Sequence[KernelParameter],
    own: Sequence[str],
    answers: Answers,
) -> str:
    """The body of reference()."""
    texts = {output.name: answers.references.get(output.name) for output in outputs}
    used = expressions.names_in(filter(None, texts.values()))
    lines = ["    import torch\n\n"] if "torch" in used else []
    for parameter in values:
        if parameter.name in used and parameter.is_array:
            lines.append(f'    {parameter.name} = inputs["{parameter.name}"].double()\n')
        elif parameter.name in used:
            size = f'size["{parameter.name}"]' if is_size(parameter) else value(parameter, answers)
            lines.append(f"    {parameter.name} = {size}\n")
    lines += [f'    {name} = size["{name}"]\n' for name in own if name in used]
    for output in outputs:
        name, text = output.name, texts[output.name]
        if name in answers.after:
            file = _stored(output, answers.after, shape(output, answers, frozenset()))
            lines.append(f"    {name} = {file}\n")
            text = name if output.dtype in ("s64", "u64") else f"{name}.double()"
        right = text or f'blank("what the kernel should write to {name}, in float64")'
        lines.append(f'    yield Chunk(array="{name}", first=0, values={right})\n')
    return "".join(lines)


def value(parameter: KernelParameter, answers: Answers) -> str:
    """Spells the value of a scalar."""
    if parameter.name in answers.values:
        known = answers.values[parameter.name]
        if not math.isfinite(known):
            return f'float("{known}")'
        return repr(bool(known) if parameter.scalar == "bool" else known)
    return f'blank("the value of {parameter.type} {parameter.name}")'


def shape(parameter: KernelParameter, answers: Answers, names: frozenset[str]) -> str:
    if parameter.name not in answers.shapes:
        return f'blank("the shape of {parameter.name}, a tuple")'
    written, axes = answers.shapes[parameter.name], answers.axes.keys()
    is_own = parameter.name in answers.own
    for name in [] if is_own else sorted(expressions.names_in(written) & axes):
        raise UsageError(
            f"--shape {parameter.name}: {name} is an axis, and an input or output has the same "
            "shape for each of its values: only a --workspace may have it in its shape."
        )
    extents = [of_size(x, f"--shape {parameter.name}", names, axes) for x in written]
    return f"({', '.join(extents)}{',' if len(extents) == 1 else ''})"


def dtype(parameter: KernelParameter) -> str:
    if parameter.dtype is None:
        hint = f"--dtype {parameter.name}=f16 says it"
        return f'blank("the dtype of {parameter.name}{_of_type(parameter)}; {hint}")'
    return f'"{parameter.dtype}"'


def _of_type(parameter: KernelParameter) -> str:
    return f", which is of type {parameter.type}" if parameter.type else ", whose type is unknown"


def _start(parameter: KernelParameter, answers: Answers, names: frozenset[str]) -> str:
    extents = shape(parameter, answers, names)
    if parameter.name in answers.before:
        return _stored(parameter, answers.before, extents, ", device")
    return _draw(parameter, extents)


def _stored(
    parameter: KernelParameter, files: Mapping[str, str], extents: str, device: str = ""
) -> str:
    file = files[parameter.name]
    return f'read_array(__file__, "{file}", {dtype(parameter)}, {extents}{device})'


def _draw(parameter: KernelParameter, extents: str) -> str:
    if parameter.dtype is None:
        return f'blank("random values for {parameter.name}{_of_type(parameter)}")'
    kind = TORCH_NAMES[parameter.dtype]
    if parameter.dtype in INTEGERS:
        if parameter.packed and parameter.dtype != "bool":
            return _every_bit(parameter.dtype, kind, extents)
        end = 2 if parameter.dtype == "bool" else 100
        drawn = f"torch.randint(0, {end}, {extents}, generator=generator, device=device)"
        return f"{drawn}.to(torch.{kind})"
    drawn = f"torch.randn({extents}, generator=generator, device=device)"
    return drawn if parameter.dtype == "f32" else f"{drawn}.to(torch.{kind})"


def _every_bit(dtype: DType, kind: str, extents: str) -> str:
    """All values that the type has: the kernel takes them apart."""
    bits = int(dtype[1:])
    drawn = f"{extents}, generator=generator, device=device"
    if bits == 64:
        every = f"torch.randint(-(2**63), 2**63 - 1, {drawn})"
        return every if dtype == "s64" else f"{every}.view(torch.{kind})"
    low, high = (0, f"2**{bits}") if dtype[0] == "u" else (f"-(2**{bits - 1})", f"2**{bits - 1}")
    return f"torch.randint({low}, {high}, {drawn}).to(torch.{kind})"


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
