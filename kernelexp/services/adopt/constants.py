"""Numbers that a kernel's source has names for, and sizes of its types, asked of the compiler."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import msgspec

from kernelexp.model.errors import EnvironmentFault
from kernelexp.model.variant import Variant
from kernelexp.services.adopt import adopted, jobs, structures
from kernelexp.services.adopt import answers as answering
from kernelexp.services.adopt.adopted import Compiled
from kernelexp.services.adopt.answers import Answers, LaunchShape
from kernelexp.services.adopt.expressions import names_in
from kernelexp.services.adopt.notation import parse_block, spelled
from kernelexp.system.process.processes import TimedOut
from kernelexp.system.toolchain import Toolchain
from warpsim.launch import full_name


def find(
    root: Path,
    compiled: Compiled,
    answers: Answers,
    axes: Collection[str],
    flags: Sequence[str],
    tools: Toolchain,
) -> dict[str, int]:
    """Returns the values of names that a person wrote in a grid, a block, a shape, ... and that are
    no parameters, sizes or axes; without those that are no constants of the source either."""
    own = [*answering.texts(answers), *compiled.cluster, *jobs.passed(compiled.entries)]
    used = names_in(own)
    known = {value.name for value in jobs.values(compiled.entries)} | answers.values.keys()
    names = sorted(used - known - {*axes})
    if not names or not compiled.source.endswith(".cu"):
        return {}
    variant = Variant(
        kernel=compiled.kernel,
        arch=compiled.arch,
        source=f"variants/{compiled.kernel}/{compiled.source}",
        axes={},
        flags=tuple(dict.fromkeys((*flags, *compiled.flags))),
    )
    spaces = {full_name(x.symbol).partition("<")[0].rpartition("::")[0] for x in compiled.entries}
    return evaluate(root, variant, names, tools, sorted(spaces))


def evaluate(
    root: Path,
    variant: Variant,
    names: Sequence[str],
    tools: Toolchain,
    namespaces: Sequence[str] = (),
) -> dict[str, int]:
    """Returns the values of names at the end of a variant's source; without those that are no
    constants there."""
    using = [f"using namespace {space};" for space in namespaces if space and "(" not in space]
    try:
        together = _evaluate(root, variant, names, using, tools)
        # One that is no constant fails them all.
        return together or {
            name: number
            for single in names
            if len(names) > 1
            for name, number in _evaluate(root, variant, [single], using, tools).items()
        }
    except (EnvironmentFault, TimedOut):
        return {}


def insert(
    compiled: Compiled, answers: Answers, numbers: Mapping[str, int]
) -> tuple[Compiled, Answers]:
    """Replaces the names by the numbers."""
    if not numbers:
        return compiled, answers
    pattern = re.compile(rf"\b({'|'.join(map(re.escape, numbers))})\b")
    compiled, answers = adopted.rewritten(
        compiled, answers, lambda text: pattern.sub(lambda match: str(numbers[match[1]]), text)
    )
    launches = tuple(map(_with_block, answers.launches))
    return compiled, msgspec.structs.replace(answers, launches=launches)


def _with_block(shape: LaunchShape) -> LaunchShape:
    """Turns extents that are all numbers into the block that they are."""
    if not shape.extents or not all(map(str.isdigit, shape.extents)):
        return shape
    block = parse_block(",".join(shape.extents))
    return msgspec.structs.replace(shape, block=block, extents=())


_SOURCE = "kx_values.cu"
_VALUE = re.compile(r"\bkx_value_(\d+)(?: = (-?\d+))?;")


def _evaluate(
    root: Path, variant: Variant, names: Sequence[str], using: Sequence[str], tools: Toolchain
) -> dict[str, int]:
    """Nothing where that does not compile."""
    own = root / variant.source
    source = own.with_name(_SOURCE)
    text = "\n".join([own.read_text("utf-8"), *using, *map(_declared, range(99), names)])
    try:
        source.write_text(text, "utf-8")
        place = source.relative_to(root).as_posix()
        own_variant = msgspec.structs.replace(variant, source=place)
        text = structures.compiled("ptx", root, own_variant, tools).decode()
    finally:
        source.unlink(missing_ok=True)
    return {names[int(match[1])]: int(match[2] or 0) for match in _VALUE.finditer(text)}


def _declared(place: int, name: str) -> str:
    return f"__device__ long long kx_value_{place} = (long long)({spelled(name)});"
