"""Sizes of a problem: by the name that problem.py gives them, or by what they set of the full one.

"small" is a name, "M=1024 N=4096" sets two parameters, and "4096" the only one that there is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import product

from kernelexp.model.errors import UsageError

FULL = "full"
_SETTING = re.compile(r"(?:([A-Za-z_]\w*)=)?(\d{1,18})")


def split(text: str) -> tuple[str, ...]:
    """Splits a command line's `M=1024,2048`: numbers after a comma are of the parameter before."""
    names: list[str] = []
    parameter = ""
    for word in (" ".join(part.split()) for part in text.split(",")):
        match = _SETTING.fullmatch(word)
        parameter = f"{match[1]}=" if match and match[1] else parameter if match else ""
        names.append(f"{parameter}{word}" if match and not match[1] else word)
    if "" in names and text:
        raise UsageError(f"--size {text}: a size is missing beside a comma.")
    return tuple(dict.fromkeys(filter(None, names)))


def spell(written: Sequence[int | str] | Mapping[str, Sequence[int]]) -> tuple[str, ...]:
    """The sizes that an experiment lists, or each combination of its parameters' values."""
    if not isinstance(written, Mapping):
        return tuple(map(str, written))
    combinations = product(*written.values()) if written else ()
    return tuple(
        " ".join(f"{name}={value}" for name, value in zip(written, combination, strict=True))
        for combination in combinations
    )


def settings(name: str) -> dict[str, int] | None:
    """Returns what a size sets, "" for the only parameter; None where it is a name."""
    matches = [_SETTING.fullmatch(word) for word in name.split()]
    result = {match[1] or "": int(match[2]) for match in matches if match}
    if not result or len(result) != len(matches) or ("" in result and len(result) > 1):
        return None
    return result


def resolve(where: str, sizes: Mapping[str, Mapping[str, int]], name: str) -> dict[str, int]:
    """The parameters of a size; UsageError that says which there are."""
    if name in sizes:
        return dict(sizes[name])
    full = dict(sizes.get(FULL, {}))
    changes = settings(name) or {}
    if "" in changes and len(full) == 1:
        changes = {next(iter(full)): changes[""]}
    if changes and "" not in changes and changes.keys() <= full.keys():
        return full | changes
    first = next(iter(full), "N")
    how = f"or set its parameters ({', '.join(full)}), as in {first}={full.get(first, 1024)}"
    raise UsageError(f"{where} has no size {name!r}; known: {', '.join(sizes)}; {how}.")
