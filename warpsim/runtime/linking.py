"""Device code of several files (nvcc -rdc=true), linked: what one declares, another defines."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from warpsim.front.ptx.parser import parse
from warpsim.front.ptx.syntax import PtxModule
from warpsim.launch import plain_name
from warpsim.machine.core.image import Variable

_LOCAL = re.compile(
    r"^\.(?:(?:global|const|shared)\b[^;={]*?|func\s+(?:\([^)]*\)\s*)?)([A-Za-z_$][\w$]*)\s*[\[(=;{]",
    re.M,
)
"""A definition of a module that has no linkage: it is the file's own."""

_ELSEWHERE = re.compile(
    r"^\.extern\s+\.(?:(?:global|const)\b[^;]*?|func\s+(?:\([^)]*\)\s*)?)([A-Za-z_$][\w$]*)\s*[\[(;]",
    re.M,
)
_SYSTEM = {"vprintf", "malloc", "free", "__assertfail"}
"""Functions that every file calls as another's."""


def link(texts: Sequence[str]) -> PtxModule:
    """One module of all; the file's own names are told apart where several files have them."""
    names = [set(_LOCAL.findall(text)) for text in texts]
    counts = Counter(name for own in names for name in own)
    modules = []
    for number, (text, own) in enumerate(zip(texts, names, strict=True)):
        for name in sorted(name for name in own if counts[name] > 1):
            text = re.sub(rf"(?<![\w$%.]){re.escape(name)}(?![\w$])", f"{name}${number}", text)
        modules.append(parse(text))
    linked = PtxModule(version=modules[0].version, target=modules[0].target)
    variables: dict[str, Variable] = {}
    for module in modules:
        for name, function in module.functions.items():
            linked.functions.setdefault(name, function)
        for variable in module.variables:
            known = variables.get(variable.name)
            if known is None or _defines(variable) > _defines(known):
                variables[variable.name] = variable
    linked.variables = list(variables.values())
    return linked


def defines(text: str, entry: str) -> bool:
    """Whether a file has a kernel."""
    return re.search(rf"\.entry\s+{re.escape(entry)}\b", text) is not None


def others(text: str) -> list[str]:
    """What a file declares and leaves to another to define, by its plain name."""
    return [plain_name(name) for name in _ELSEWHERE.findall(text) if name not in _SYSTEM]


def _defines(variable: Variable) -> tuple[bool, int]:
    """More for a definition than for a declaration, which has no value and may have no size."""
    return bool(variable.data or variable.addresses), variable.size
