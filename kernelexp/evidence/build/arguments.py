"""Characters that no argument of nvcc may have, because nvcc passes its arguments to a shell."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from kernelexp.model.axes import spell
from kernelexp.model.text import not_utf8
from kernelexp.model.variant import Variant

_QUOTED = re.compile(r"[`$\"\\\x00-\x1f\x7f]")
"""nvcc puts defines, folders and sources into double quotes."""
_BARE = re.compile(r"[`$\"'\\;&|<>(){}*?\[\]~\x00-\x1f\x7f]|(?:^|\s)#")
_IN_FOLDER = re.compile(r"[`\"\\\x00-\x1f\x7f]|\$[({]")
_IN_QUOTES = ("-D", "-U", "-I", "--define-macro", "--undefine-macro", "--include-path")


def faults(variant: Variant) -> Iterator[str]:
    """A sentence for each axis value, flag and path that a shell would take apart."""
    where = f"{variant.kernel}@{variant.arch}"
    for axis, value in variant.axes.items():
        if bad := _QUOTED.search(spell(value)):
            yield f"{where}: axis {axis} has {_name(bad[0])} in {spell(value)!r}, {_WHY}"
    for flag, quoted in _flags(variant.flags):
        if bad := (_QUOTED if quoted else _BARE).search(flag):
            yield f"{where}: the flag {flag!r} has {_name(bad[0])}, {_WHY}"
    if bad := _QUOTED.search(variant.source):
        yield f"{where}: the source {variant.source!r} has {_name(bad[0])}, {_WHY}"


def faults_of_root(root: str) -> Iterator[str]:
    """Yields what nvcc can't take in the project's folder, which its debug information names."""
    if bad := _IN_FOLDER.search(root):
        yield f"the project's folder {root!r} has {_name(bad[0])}, {_WHY}"
    if re.search("[\ud800-\udfff]", root):
        yield not_utf8(root)


_WHY = "which nvcc would pass on to a shell: leave it out."


def _flags(flags: Sequence[str]) -> Iterator[tuple[str, bool]]:
    before = ""
    for flag in flags:
        yield flag, flag.startswith(_IN_QUOTES) or before in _IN_QUOTES
        before = flag


def _name(character: str) -> str:
    return repr(character.strip() or character)
