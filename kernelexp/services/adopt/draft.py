"""The files of a kernel's folder for an entry of a foreign source: what is not known is blank."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from kernelexp.model.errors import UsageError, suggest
from kernelexp.project import scaffold
from kernelexp.services.adopt import expressions, tolerance
from kernelexp.services.adopt.entry import KernelEntry, KernelParameter
from kernelexp.services.adopt.expressions import of_size
from warpsim.dtypes import INTEGERS, TORCH_NAMES, DType
from warpsim.launch import Dim3, Element, Swizzle


class DraftAxis(msgspec.Struct, frozen=True, kw_only=True):
    """An axis that a kernel gets with its draft."""

    values: tuple[int, ...]
    default: int
    about: str


class MapLayout(msgspec.Struct, frozen=True, kw_only=True):
    """A tensor map over a whole array whose rows lie one behind the other."""

    element: Element
    box: tuple[int, ...]
    """Innermost first."""
    swizzle: Swizzle


class Answers(msgspec.Struct, frozen=True, kw_only=True):
    """What a compiled kernel does not tell, as far as a person has said it."""

    block: Dim3 | None = None
    grid: tuple[str, ...] = ()
    """Expressions in the names of integers: parameters, and others that have a value. A quotient
    is rounded up."""
    smem_bytes: int = 0
    """Dynamic shared memory."""
    shapes: dict[str, tuple[str, ...]] = {}
    """Of arrays, by name, in the same notation."""
    workspaces: tuple[str, ...] = ()
    """Arrays that are the kernel's own: all zero before a launch, and no result."""
    zeros: tuple[str, ...] = ()
    """Outputs that are all zero before a launch."""
    values: dict[str, int | float] = {}
    """Of scalars, and of sizes that are no parameters, by name."""
    emulated: dict[str, int] = {}
    """Of those that are sizes, the values on the CPU where they differ."""
    references: dict[str, str] = {}
    """Of outputs, by name: torch expressions in the names of inputs (in float64) and scalars."""
    cluster: Dim3 = (1, 1, 1)
    axes: dict[str, DraftAxis] = {}
    """By name, which may occur in the grid."""
    extents: tuple[str, ...] = ()
    """Of the block, in the same notation as the grid: where these depend on an axis."""
    before: dict[str, str] = {}
    """Of arrays, by name: the file (kernelexp.model.stored) of what they hold before a launch."""
    after: dict[str, str] = {}
    """Of outputs, by name: the file of what they should hold after it."""
    maps: dict[str, MapLayout] = {}
    """Of tensor maps, by name."""
    raw: dict[str, bytes] = {}
    """Of structures whose members are not known, by name: their bytes."""


def wrapper(entry: str, template: str, include: str, origin: str) -> str:
    """The source that is compiled: the copy, and the instance of a template."""
    instance = f"\n[[maybe_unused]] static auto* const kx_instance = &{template};\n"
    return (
        f"// {entry} of {origin}, copied by kernelexp new.\n"
        f'#include "{include}"\n'
        f"{instance if template else ''}"
    )


def problem(entry: KernelEntry, name: str, origin: str, answers: Answers) -> str:
    """problem.py; UsageError for answers about parameters that there are not."""
    _check(entry, answers)
    outputs = _outputs(entry, answers)
    workspaces = [value for value in entry.values if value.name in answers.workspaces]
    own_start = (*answers.workspaces, *answers.zeros)
    given = [
        value
        for value in entry.values
        if value.name in answers.before or (is_input(value) and value.name not in own_start)
    ]
    sizes = [value for value in entry.values if is_size(value)]
    own = _own_sizes(entry, answers)
    names = frozenset((*(size.name for size in sizes), *own))
    arguments = (
        f"            {_argument(parameter, answers, names)},\n" for parameter in entry.parameters
    )
    unknown = 'blank("the bytes of dynamic shared memory")' if entry.dynamic_smem else ""
    smem = answers.smem_bytes or unknown
    values = {
        "ABOUT": _AS_LAUNCHED if answers.before or answers.after else _ANY_SIZE,
        "FULL": _sizes(sizes, own, answers),
        "EMULATED": _sizes(
            sizes, own, msgspec.structs.replace(answers, values=answers.values | answers.emulated)
        ),
        "OUTPUTS": "".join(
            _array(output, answers, names, output.name in answers.zeros) for output in outputs
        ),
        "WORKSPACES": _workspaces(workspaces, answers, names),
        "INPUTS": _inputs(given, answers, names),
        "REFERENCE": _references(outputs, entry, answers),
        "TOLERANCE": tolerance.guess(outputs, given, answers.shapes, names),
        "ENTRY": name,
        "TILES": _tiles(answers, names),
        "GRID": _grid(answers, names),
        "BLOCK": _extents(answers, names)
        or str(block(entry, answers) or 'blank("the threads of a CTA, as (x, y, z)")'),
        "CLUSTER": f"        cluster={answers.cluster},\n" * (answers.cluster != (1, 1, 1)),
        "SMEM": f"        dynamic_smem_bytes={smem},\n" if smem else "",
        "ARGUMENTS": "".join(arguments),
    }
    body = scaffold.fill((scaffold.TEMPLATES / "kernel/problem.txt").read_text("utf-8"), values)
    return f'"""{entry.signature}, from {origin}."""\n\n{_imports(body)}\n{body}'


_ANY_SIZE = (
    '# "emulated" is executed on the CPU, "full" is timed on a GPU: make it as large as your '
    "problem."
)
_AS_LAUNCHED = "# As it was launched: the arrays are stored beside this file, and have these sizes."


def block(entry: KernelEntry, answers: Answers) -> Dim3 | None:
    """As said, or the only one that it was compiled for, or else the largest."""
    return answers.block or entry.block or ((entry.threads, 1, 1) if entry.threads else None)


def _outputs(entry: KernelEntry, answers: Answers) -> list[KernelParameter]:
    """What it writes and is not its own."""
    written = (value for value in entry.values if value.is_array and value.written)
    return [each for each in written if each.name not in answers.workspaces]


def read_and_written(entry: KernelEntry, answers: Answers) -> Iterator[str]:
    """Names of arrays that the kernel reads and writes, unless it is said what they start as."""
    said = {
        *answers.workspaces,
        *answers.zeros,
        *answers.before,
        *expressions.names_in(answers.references.values()),
    }
    for value in entry.values:
        if value.is_array and value.read and value.written and value.name not in said:
            yield value.name


def _array(parameter: KernelParameter, answers: Answers, names: frozenset[str], zero: bool) -> str:
    """A line of outputs() or of workspaces()."""
    start = ", zero=True" if zero else ""
    shape, dtype = _shape(parameter, answers, names), _dtype(parameter)
    return f'        "{parameter.name}": Array(shape={shape}, dtype={dtype}{start}),\n'


def _workspaces(
    workspaces: Sequence[KernelParameter], answers: Answers, names: frozenset[str]
) -> str:
    if not workspaces:
        return ""
    lines = "".join(_array(workspace, answers, names, zero=True) for workspace in workspaces)
    return f"def workspaces(axes, size):\n    return {{\n{lines}    }}\n\n\n"


def _inputs(given: Sequence[KernelParameter], answers: Answers, names: frozenset[str]) -> str:
    """The body of inputs()."""
    if not given:
        return "    return {}\n"
    drawn = (
        f'        "{parameter.name}": {_start(parameter, answers, names)},\n' for parameter in given
    )
    generated = any(parameter.name not in answers.before for parameter in given)
    generator = (
        "    import torch\n\n    generator = torch.Generator(device).manual_seed(seed)\n"
        if generated
        else ""
    )
    return f"{generator}    return {{\n{''.join(drawn)}    }}\n"


def _start(parameter: KernelParameter, answers: Answers, names: frozenset[str]) -> str:
    shape = _shape(parameter, answers, names)
    if parameter.name in answers.before:
        return _stored(parameter, answers.before, shape, ", device")
    return _draw(parameter, shape)


def _stored(
    parameter: KernelParameter, files: Mapping[str, str], shape: str, device: str = ""
) -> str:
    file, dtype = files[parameter.name], _dtype(parameter)
    return f'read_array(__file__, "{file}", {dtype}, {shape}{device})'


def _imports(body: str) -> str:
    used = [name for name in _IMPORTED if f"{name}(" in body]
    return f"from kernelexp import {', '.join(used)}\n"


_IMPORTED = (
    *(
        "Array",
        "Chunk",
        "Field",
        "Launch",
        "Pointer",
        "Scalar",
        "StructValue",
        "TensorMap",
        "Tolerance",
    ),
    *("blank", "read_array"),
)


def _sizes(sizes: Sequence[KernelParameter], own: Sequence[str], answers: Answers) -> str:
    pairs = {size.name: _value(size, answers) for size in sizes}
    pairs |= {name: repr(answers.values[name]) for name in own}
    return ", ".join(f'"{name}": {value}' for name, value in pairs.items())


def _own_sizes(entry: KernelEntry, answers: Answers) -> list[str]:
    """Names with a value that are no parameters, but occur in the grid or in a shape: sizes that
    the kernel learns from its grid, or has as constants."""
    known = {each.name for each in entry.values}
    texts = (*answers.grid, *(extent for shape in answers.shapes.values() for extent in shape))
    used = expressions.names_in(texts)
    return [
        name
        for name, value in answers.values.items()
        if name in used - known and isinstance(value, int)
    ]


def blanks(text: str) -> Iterator[tuple[int, str]]:
    """Line and words of each blank of a drafted problem.py."""
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    for call in sorted(calls, key=lambda call: call.lineno):
        if getattr(call.func, "id", "") == "blank":
            yield call.lineno, ast.literal_eval(call.args[0])


def is_size(parameter: KernelParameter) -> bool:
    """Whether it is an integer: a size of the problem, as far as anybody can tell."""
    return parameter.scalar is not None and parameter.scalar[0] in "us"


def is_input(parameter: KernelParameter) -> bool:
    """Whether it is an array that the kernel reads: what is written as well is an output too."""
    return parameter.is_array and (parameter.read or not parameter.written)


def _check(entry: KernelEntry, answers: Answers) -> None:
    """UsageError for what no parameter has, and for parameters that launch() can't pass."""
    pointers = [value.name for value in entry.values if value.is_array]
    scalars = [value.name for value in entry.values if not value.is_array]
    own = _own_sizes(entry, answers)
    sizes = [*(value.name for value in entry.values if is_size(value)), *own]
    outputs = [output.name for output in _outputs(entry, answers)]
    for option, said, known, what in (
        ("--shape", answers.shapes, pointers, "pointer"),
        ("--workspace", answers.workspaces, pointers, "pointer"),
        ("--zero", answers.zeros, outputs, "output"),
        ("--value", answers.values, [*scalars, *own], "scalar"),
        ("--emulated", answers.emulated, sizes, "integer"),
        ("--reference", answers.references, outputs, "output"),
    ):
        for name in said:
            if name not in known:
                raise UsageError(
                    f"{option}: {name!r} is no {what} of the kernel{suggest(name, known)}."
                )
    names = [*(value.name for value in entry.values), *own]
    for expression in answers.references.values():
        for name in sorted(expressions.free_names(expression) - {*names, "torch"}):
            raise UsageError(
                f"--reference: {name!r} is no parameter of the kernel{suggest(name, names)}; "
                f"functions of PyTorch begin with torch, as in torch.{name}."
            )
    for value in entry.values:
        if value.is_structure and value.name in answers.values:
            raise UsageError(
                f"--value: {value.name} is a structure of {value.size} bytes ({value.type}): its "
                "bytes are for problem.py to say."
            )
    if not outputs:
        arrays = ", ".join(pointers) or "none"
        raise UsageError(
            f"{entry.signature} writes no array, so nothing could be verified. If it does, say "
            f"which with --output NAME; its arrays: {arrays}."
        )


def _value(parameter: KernelParameter, answers: Answers) -> str:
    if parameter.name in answers.values:
        value = answers.values[parameter.name]
        if not math.isfinite(value):
            return f'float("{value}")'
        return repr(bool(value) if parameter.scalar == "bool" else value)
    return f'blank("the value of {parameter.type} {parameter.name}")'


def _shape(parameter: KernelParameter, answers: Answers, names: frozenset[str]) -> str:
    if parameter.name not in answers.shapes:
        return f'blank("the shape of {parameter.name}, a tuple")'
    extents = [of_size(shape, names) for shape in answers.shapes[parameter.name]]
    return f"({', '.join(extents)}{',' if len(extents) == 1 else ''})"


def _grid(answers: Answers, names: frozenset[str]) -> str:
    if not answers.grid:
        return 'blank("how many CTAs, as (x, y, z)")'
    extents = [_extent(each, answers, names) for each in answers.grid]
    return f"({', '.join([*extents, '1', '1'][:3])})"


def _extents(answers: Answers, names: frozenset[str]) -> str:
    """Of the block, where an axis has a say in them."""
    extents = [_extent(each, answers, names) for each in answers.extents]
    return f"({', '.join(extents)})" if extents else ""


def _extent(expression: str, answers: Answers, names: frozenset[str]) -> str:
    text = of_size(expression, names | answers.axes.keys())
    for name in answers.axes:
        text = text.replace(f'size["{name}"]', f'axes["{name}"]')
    return text


def _tiles(answers: Answers, names: frozenset[str]) -> str:
    """tiles(), by which counts of the small size are scaled: a tile for each CTA of the grid."""
    if not answers.grid:
        return ""
    extents = [_extent(each, answers, names) for each in answers.grid]
    factors = [each for each in extents if each != "1"]
    if len(factors) > 1:
        factors = [each if each.isalnum() else f"({each})" for each in factors]
    return (
        "def tiles(axes, size):\n"
        "    # One for each CTA; more where a CTA has several pieces of the work in turn.\n"
        f"    return {' * '.join(factors) or '1'}\n\n\n"
    )


def _dtype(parameter: KernelParameter) -> str:
    if parameter.dtype is None:
        return f'blank("the dtype of {parameter.name}{_of_type(parameter)}")'
    return f'"{parameter.dtype}"'


def _of_type(parameter: KernelParameter) -> str:
    return f", which is of type {parameter.type}" if parameter.type else ", whose type is unknown"


def _draw(parameter: KernelParameter, shape: str) -> str:
    if parameter.dtype is None:
        return f'blank("random values for {parameter.name}{_of_type(parameter)}")'
    kind = TORCH_NAMES[parameter.dtype]
    if parameter.dtype in INTEGERS:
        if parameter.packed and parameter.dtype != "bool":
            return _every_bit(parameter.dtype, kind, shape)
        end = 2 if parameter.dtype == "bool" else 100
        values = f"torch.randint(0, {end}, {shape}, generator=generator, device=device)"
        return f"{values}.to(torch.{kind})"
    values = f"torch.randn({shape}, generator=generator, device=device)"
    return values if parameter.dtype == "f32" else f"{values}.to(torch.{kind})"


def _every_bit(dtype: DType, kind: str, shape: str) -> str:
    """All values that the type has: the kernel takes them apart."""
    bits = int(dtype[1:])
    drawn = f"{shape}, generator=generator, device=device"
    if bits == 64:
        every = f"torch.randint(-(2**63), 2**63 - 1, {drawn})"
        return every if dtype == "s64" else f"{every}.view(torch.{kind})"
    low, high = (0, f"2**{bits}") if dtype[0] == "u" else (f"-(2**{bits - 1})", f"2**{bits - 1}")
    return f"torch.randint({low}, {high}, {drawn}).to(torch.{kind})"


def _references(outputs: Sequence[KernelParameter], entry: KernelEntry, answers: Answers) -> str:
    """The body of reference()."""
    texts = {output.name: answers.references.get(output.name) for output in outputs}
    used = expressions.names_in(filter(None, texts.values()))
    lines = ["    import torch\n\n"] if "torch" in used else []
    for each in entry.values:
        if each.name in used and each.is_array:
            lines.append(f'    {each.name} = inputs["{each.name}"].double()\n')
        elif each.name in used:
            value = f'size["{each.name}"]' if is_size(each) else _value(each, answers)
            lines.append(f"    {each.name} = {value}\n")
    lines += [
        f'    {name} = size["{name}"]\n' for name in _own_sizes(entry, answers) if name in used
    ]
    for output in outputs:
        name, text = output.name, texts[output.name]
        if name in answers.after:
            file = _stored(output, answers.after, _shape(output, answers, frozenset()))
            lines.append(f"    {name} = {file}\n")
            text = name if output.dtype in ("s64", "u64") else f"{name}.double()"
        values = text or f'blank("what the kernel should write to {name}, in float64")'
        lines.append(f'    yield Chunk(array="{name}", first=0, values={values})\n')
    return "".join(lines)


def _tensor_map(parameter: KernelParameter, answers: Answers, names: frozenset[str]) -> str:
    """What is known of a descriptor, and blanks for the rest."""
    name, layout = parameter.name, answers.maps.get(parameter.name)
    shape = strides = None
    if name in answers.shapes and parameter.dtype:
        extents = [of_size(each, names) for each in reversed(answers.shapes[name])]
        shape = _tuple(extents)
        size = int(re.sub(r"\D", "", parameter.dtype)) // 8
        products = [" * ".join([*extents[: i + 1], str(size)]) for i in range(len(extents) - 1)]
        strides = _tuple(products)
    inside = {
        "array": f'"{name}"',
        "element": f'"{layout.element}"' if layout else 'blank("the type of its elements: f16")',
        "shape": shape or 'blank("elements along each dimension, innermost first")',
        "strides_bytes": strides or 'blank("bytes from one index to the next, after the first")',
        "box": str(layout.box) if layout else 'blank("elements that one copy takes, likewise")',
        "swizzle": f'"{layout.swizzle}"' if layout else 'blank("none, 32B, 64B or 128B")',
    }
    lines = "".join(f"                {key}={value},\n" for key, value in inside.items())
    return f"TensorMap(\n{lines}            )"


def _tuple(texts: Sequence[str]) -> str:
    return f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"


def _argument(parameter: KernelParameter, answers: Answers, names: frozenset[str]) -> str:
    if parameter.ignored:
        is_scalar = parameter.size in (1, 2, 4, 8)
        value = f'Scalar(type="u{8 * parameter.size}", value=0)'
        return value if is_scalar else f"StructValue(size={parameter.size})"
    if parameter.is_pointer:
        return f'Pointer(array="{parameter.alias or parameter.name}")'
    if parameter.members:
        indent = " " * 20
        inside = "".join(
            f"{indent}Field(offset={member.offset}, value={_argument(member, answers, names)}),\n"
            for member in parameter.members
        )
        return (
            f"StructValue(  # {parameter.type} {parameter.name}\n"
            f"                size={parameter.size},\n"
            f"                fields=(\n{inside}                ),\n            )"
        )
    if parameter.is_tensor_map:
        return _tensor_map(parameter, answers, names)
    if parameter.name in answers.raw:
        return f'StructValue(data=bytes.fromhex("{answers.raw[parameter.name].hex()}"))'
    if parameter.scalar is None:
        what = f"{parameter.size} bytes, a ctypes.Structure or a NumPy record"
        return f'StructValue(data=blank("{parameter.type or "?"} {parameter.name}: {what}"))'
    value = f'size["{parameter.name}"]' if is_size(parameter) else _value(parameter, answers)
    return f'Scalar(type="{parameter.scalar}", value={value})'


def kernel(
    title: str,
    source: str,
    arch: str,
    card: str,
    flags: Sequence[str],
    own: Mapping[str, DraftAxis] = {},
) -> Mapping[str, object]:
    """The kernel's entry in experiments.yaml."""
    axes = {
        name: {"values": list(axis.values), "default": axis.default, "about": axis.about}
        for name, axis in own.items()
    }
    target: dict[str, object] = {"source": source, "device": card, "axes": axes}
    if flags:
        target["flags"] = list(flags)
    return {"title": title, "problem": title, "targets": {arch: target}}
