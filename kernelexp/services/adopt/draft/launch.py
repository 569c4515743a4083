"""Launches in a drafted problem.py: grid, block and arguments."""

from __future__ import annotations

import ast
import contextlib
import itertools
import math
import textwrap
from collections.abc import Collection, Iterator, Sequence

import msgspec

from kernelexp.services.adopt.answers import Answers, LaunchShape, is_size
from kernelexp.services.adopt.draft.arrays import value
from kernelexp.services.adopt.entry import KernelEntry, KernelParameter
from kernelexp.services.adopt.expressions import names_in, of_size
from warpsim.dtypes import SIZES
from warpsim.launch import Dim3


def launches(entries: Sequence[KernelEntry], answers: Answers, names: frozenset[str]) -> str:
    """Spells the return value of launch(): one launch, or a list of several."""
    shapes = answers.launches
    texts = [
        _launch(entry, shape, answers, names) for entry, shape in zip(entries, shapes, strict=True)
    ]
    if len(texts) == 1:
        return texts[0]
    every = "".join(f"{textwrap.indent(text, '    ')},\n" for text in texts)
    return f"[\n{every}]"


def block(entry: KernelEntry, shape: LaunchShape) -> Dim3 | None:
    """Returns the block: as said, or the only one that it was compiled for, or else the largest."""
    return shape.block or entry.block or ((entry.threads, 1, 1) if entry.threads else None)


def tiles(answers: Answers, names: frozenset[str]) -> str:
    """tiles(), by which counts of small sizes are scaled: one for each CTA of the grid, times the
    length of its loop where one size says that.

    Nothing where a CTA has more to do at full size in another way: the counts would be taken for
    those of another loop.
    """
    grid = answers.launches[0].grid
    loop = looped(answers, names)
    if not grid or (loop is None and _others(answers, names)):
        return ""
    extents = [_extent("the grid", item, answers, names) for item in grid]
    factors = [extent for extent in extents if extent != "1"]
    if len(factors) > 1:
        factors = [factor if factor.isalnum() else f"({factor})" for factor in factors]
    first = " of the first launch" * (len(answers.launches) > 1)
    words = f"One for each CTA{first}; more where a CTA has several pieces of the work in turn."
    if loop:
        factors = [*factors, f'(size["{loop.name}"] // {loop.once})']
        words = f"A CTA's loop{first} is taken to be as long as {loop.name} says."
    return f"def tiles(axes, size):\n    # {words}\n    return {' * '.join(factors) or '1'}\n\n\n"


class Loop(msgspec.Struct, frozen=True, kw_only=True):
    """A CTA's loop that is as long as one size says."""

    name: str
    once: int
    """Of the size, what counts as one turn."""
    full: int
    is_whole: bool
    """Whether the emulated size is a whole number of turns."""


def looped(answers: Answers, names: frozenset[str]) -> Loop | None:
    """The one size by which a CTA has more to do in the full problem; None where there is none,
    several are, or no number of turns suits full and small sizes."""
    others = _others(answers, names)
    if len(others) != 1:
        return None
    ((name, (full, small)),) = others.items()
    if not (isinstance(full, int) and isinstance(small, int)) or small < 1 or full <= small:
        return None
    if _is_of_later_launches(name, answers):
        return None
    once = small if full % small == 0 else _turn(full, small)
    if not once and full < _MANY * small:
        return None
    return Loop(name=name, once=once or small, full=full, is_whole=small % (once or small) == 0)


def _is_of_later_launches(name: str, answers: Answers) -> bool:
    """Whether a size is in the grid of a later launch, so that more of it is more CTAs there and
    not a longer loop in the first, whose CTAs tiles() counts."""
    return any(name in names_in(shape.grid) for shape in answers.launches[1:])


def _turn(full: int, small: int) -> int:
    """A divisor of a full size that is near to a small one, of whole warps if there is any; 0
    without one by eight of which the full size is longer than what it is solved from."""
    fits = [x for x in range(8, min(full // 8, 4 * small) + 1) if full % x == 0 and 8 * x < full]
    whole = {x: min(x & -x, _WARP) for x in fits if x % 8 == 0}
    return min(whole, key=lambda x: (-whole[x], abs(math.log(x / small))), default=0)


_MANY, _WARP = 64, 32


def untold(answers: Answers, names: frozenset[str]) -> str:
    """Why there is no tiles(), as a clause; empty where there is one, or a blank is in its way."""
    others = _others(answers, names)
    known = {x: pair for x, pair in others.items() if None not in pair}
    if not answers.launches[0].grid or not others or known != others or tiles(answers, names):
        return ""
    if len(others) > 1:
        *first, last = sorted(others)  # not as a set has them
        every = "all" if len(first) > 1 else "both"
        return f"{', '.join(first)} and {last} {every} say how much a CTA has to do"
    ((name, (full, small)),) = others.items()
    if _is_of_later_launches(name, answers):
        return f"{name} says how many CTAs a later launch has"
    if isinstance(full, int) and isinstance(small, int) and full < small:
        return f"{name}={full} is less than the emulated {small}"
    return f"{name}={full} is no multiple of the emulated {small}, or of a number near it"


def widened(answers: Answers, names: frozenset[str]) -> list[dict[str, int]]:
    """Another small grid, twice as large in the first of its sizes that the full problem has more
    of, with all that are as long at both; empty where tiles() can't be told or there is none.

    Where two of the grid's grow so, a third, four times as large: what grows with neither, with
    one and with both is three unknowns (a border's share was +2.2% of a blur for +0.2%).
    """
    if not tiles(answers, names):
        return []
    pairs, grid = _pairs(answers, names), answers.launches[0].grid
    for text in grid:
        for name in sorted(names_in([text]) & pairs.keys()):
            full, small = pairs[name]
            if isinstance(full, int) and isinstance(small, int) and 0 < 2 * small < full:
                together = [x for x, pair in pairs.items() if pair == pairs[name]]
                several = len(names_in(grid) & {*together}) > 1
                lengths = _lengths(small, math.lcm(*_tiles(grid, {*together}, answers)), several)
                return [dict.fromkeys(together, x) for x in lengths if x < full]
    return []


def _lengths(small: int, tile: int, several: bool) -> list[int]:
    """Twice the small size, and four times it if `several` grow; whole tiles where it has none."""
    if small % tile == 0 or tile > _MOST_TILE * small:
        return [2 * small, 4 * small][: 1 + several]
    whole = tile * -(-2 * small // tile)
    return [whole, 2 * whole, 4 * whole][: 2 + several]


_MOST_TILE = 4
"""Small sizes up to which whole tiles of all values of an axis are worth their emulation."""


def _tiles(grid: Sequence[str], sizes: Collection[str], answers: Answers) -> Iterator[int]:
    """Yields what these sizes are divided by in a grid, for every value of each axis."""
    axes = answers.axes
    for node in (node for text in grid for node in ast.walk(ast.parse(text, mode="eval"))):
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Div):
            continue
        divisor = ast.unparse(node.right)
        used = sorted(names_in([divisor]))
        if names_in([ast.unparse(node.left)]) & {*sizes} and axes.keys() >= {*used}:
            for point in itertools.product(*(axes[name].values for name in used)):
                # Arithmetic of whole numbers: parse_expressions() let nothing else through.
                known = dict(zip(used, point, strict=True))
                with contextlib.suppress(ZeroDivisionError):
                    number = eval(divisor, {"__builtins__": {}}, known)
                    yield max(1, int(number))


def _pairs(answers: Answers, names: frozenset[str]) -> dict[str, tuple[object, object]]:
    """Returns each size in full and small."""
    return {
        x: (answers.values.get(x), answers.emulated.get(x, answers.values.get(x))) for x in names
    }


def _others(answers: Answers, names: frozenset[str]) -> dict[str, tuple[object, object]]:
    """Returns the sizes that are not the grid's, in full and small, unless the same at both, or as
    one of the grid's is, as a stride may be; the length of a sum never is one."""
    pairs = _pairs(answers, names)
    of_grid = names_in(answers.launches[0].grid)
    follows = {pairs[name] for name in of_grid & pairs.keys()}
    return {
        name: (full, small)
        for name, (full, small) in pairs.items()
        if name not in of_grid
        and (full is None or full != small)
        and (full is None or name in _summed(answers) or (full, small) not in follows)
    }


def _summed(answers: Answers) -> set[str]:
    """Sizes that inputs have and outputs lack, such as a product's K."""
    written = [answers.shapes[name] for name in answers.references if name in answers.shapes]
    read = [shape for name, shape in answers.shapes.items() if name not in answers.references]
    if not written:
        return set()
    kept = names_in(extent for shape in written for extent in shape)
    return names_in(extent for shape in read for extent in shape) - kept


def _launch(entry: KernelEntry, shape: LaunchShape, answers: Answers, names: frozenset[str]) -> str:
    unknown = 'blank("the bytes of dynamic shared memory")' if entry.dynamic_smem else ""
    smem = _extent("dynamic shared memory", shape.smem, answers, names) if shape.smem else unknown
    threads = _extents(shape, answers, names) or str(
        block(entry, shape) or 'blank("the threads of a CTA, as (x, y, z)")'
    )
    clusters = [_extent("the cluster", item, answers, names) for item in shape.cluster]
    cluster = f"({', '.join(clusters)})" if clusters else str(entry.cluster)
    lines = [
        f'    entry="{entry.name or entry.symbol}",\n',
        f"    grid={_grid(shape, answers, names)},\n",
        f"    block={threads},\n",
        f"    cluster={cluster},\n" * (cluster != "(1, 1, 1)"),
        f"    dynamic_smem_bytes={smem},\n" if smem else "",
        "    arguments=(\n",
        *(f"        {_argument(parameter, answers, names)},\n" for parameter in entry.parameters),
        "    ),\n",
    ]
    return f"Launch(\n{''.join(lines)})"


def _grid(shape: LaunchShape, answers: Answers, names: frozenset[str]) -> str:
    if not shape.grid:
        return 'blank("how many CTAs, as (x, y, z)")'
    extents = [_extent("the grid", item, answers, names) for item in shape.grid]
    return f"({', '.join([*extents, '1', '1'][:3])})"


def _extents(shape: LaunchShape, answers: Answers, names: frozenset[str]) -> str:
    """Spells the extents of the block, where an axis has a say in them."""
    extents = [_extent("the block", extent, answers, names) for extent in shape.extents]
    return f"({', '.join(extents)})" if extents else ""


def _extent(role: str, expression: str, answers: Answers, names: frozenset[str]) -> str:
    return of_size(expression, role, names, answers.axes)


def _argument(parameter: KernelParameter, answers: Answers, names: frozenset[str]) -> str:
    if parameter.ignored:
        is_scalar = parameter.size in (1, 2, 4, 8)
        zero = f'Scalar(type="u{8 * parameter.size}", value=0)'
        return zero if is_scalar else f"StructValue(size={parameter.size})"
    if parameter.passed:
        number = _extent("--entry: argument", parameter.passed, answers, names)
        return f'Scalar(type="{parameter.scalar}", value={number})'
    if parameter.is_pointer and not parameter.is_tensor_map:
        return f'Pointer(array="{parameter.alias or parameter.name}")'
    if parameter.members:
        return _structure(parameter, answers, names)
    if parameter.is_tensor_map:
        return _tensor_map(parameter, answers, names)
    if parameter.name in answers.raw:
        return f'StructValue(data=bytes.fromhex("{answers.raw[parameter.name].hex()}"))'
    if parameter.scalar is None:
        role = f"{parameter.size} bytes, a ctypes.Structure or a NumPy record"
        return f'StructValue(data=blank("{parameter.type or "?"} {parameter.name}: {role}"))'
    number = f'size["{parameter.name}"]' if is_size(parameter) else value(parameter, answers)
    return f'Scalar(type="{parameter.scalar}", value={number})'


def _structure(parameter: KernelParameter, answers: Answers, names: frozenset[str]) -> str:
    fields = "".join(
        f"        Field(offset={member.offset}, value={_argument(member, answers, names)}),\n"
        for member in parameter.members
        if not (member.is_tensor_map and member.ignored)
    )
    inside = textwrap.indent(fields, " " * 8)
    raw = answers.raw.get(parameter.name)
    content = f'data=bytes.fromhex("{raw.hex()}")' if raw else f"size={parameter.size}"
    return (
        f"StructValue(  # {parameter.type} {parameter.name}\n"
        f"            {content},\n"
        f"            fields=(\n{inside}            ),\n        )"
    )


def _tensor_map(parameter: KernelParameter, answers: Answers, names: frozenset[str]) -> str:
    """Spells what is known of a descriptor, and blanks for the rest."""
    name, layout = parameter.name, answers.maps.get(parameter.name)
    shape = strides = None
    if layout and layout.extents:
        shape, strides = (
            _tuple([of_size(text, "--tensor-map", names) for text in texts])
            for texts in (layout.extents, layout.strides)
        )
    elif name in answers.shapes and parameter.dtype:
        extents = [of_size(item, "--shape", names) for item in reversed(answers.shapes[name])]
        shape = _tuple(extents)
        size = SIZES[parameter.dtype]
        products = [" * ".join([*extents[: i + 1], str(size)]) for i in range(len(extents) - 1)]
        strides = _tuple(products)
    box = _tuple([_extent("a box", x, answers, names) for x in layout.box]) if layout else ""
    memory = {"in_memory": "True"} if parameter.is_pointer else {}
    inside = {
        "array": f'"{parameter.alias or name}"',
        "element": f'"{layout.element}"' if layout else 'blank("the type of its elements: f16")',
        "shape": shape or 'blank("elements along each dimension, innermost first")',
        "strides_bytes": strides or 'blank("bytes from one index to the next, after the first")',
        "box": box or 'blank("elements that one copy takes, likewise")',
        "swizzle": f'"{layout.swizzle}"' if layout else 'blank("none, 32B, 64B or 128B")',
        **memory,
    }
    lines = "".join(f"            {key}={value},\n" for key, value in inside.items())
    return f"TensorMap(\n{lines}        )"


def _tuple(texts: Sequence[str]) -> str:
    return f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"
