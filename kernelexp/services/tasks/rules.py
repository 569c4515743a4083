"""Rules before anything is executed: they refuse a text that can't be a solution, or that changes
what it is judged by."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from kernelexp.services.tasks.assessment import Feedback
from kernelexp.services.tasks.task import Solution

LONGEST = 4 << 20
"""Characters of a solution's files."""
_FOREIGN = ("torch", "time", "sys", "os", "gc", "inspect", "builtins", "subprocess", "triton")
"""Modules whose members a solution has no reason to replace."""
_ALLOWED = ("torch.backends", "torch.manual_seed")
"""Settings: what they change is the solution's own process."""


_NOT_EXECUTED = {"cutlass": "the CuTe DSL", "tilelang": "TileLang", "cuda.tile": "cuTile"}
"""What a solution may import of languages whose compilers hand their kernels to a driver."""


def unexecuted(solution: Solution) -> str:
    """Says why it can't be executed without a GPU, by what it imports; empty: it can."""
    for name, text in solution.files.items():
        if not name.endswith(".py"):
            continue
        try:
            modules = _imported(ast.parse(text)).values()
        except (SyntaxError, ValueError):
            continue
        for module, language in _NOT_EXECUTED.items():
            if any(f"{one}.".startswith(f"{module}.") for one in modules):
                return f"{name} is written in {language}, which is not executed: it needs a driver."
    return solution.refused


def faults(solution: Solution) -> list[Feedback]:
    """Returns the faults of a solution, by line."""
    if sum(map(len, solution.files.values())) > LONGEST:
        return [Feedback(name="too_long", sentence=f"more than {LONGEST:,} characters.")]
    if solution.language == "cuda":
        return _of_cuda(solution)
    feedbacks = []
    for name, text in solution.files.items():
        if name.endswith(".py"):
            feedbacks += _of_python(name, text, solution.entry if name == solution.main else "")
    return feedbacks


def _of_cuda(solution: Solution) -> list[Feedback]:
    if solution.entry in solution.files[solution.main]:
        return []
    sentence = f'the file does not define extern "C" {solution.entry}().'
    return [Feedback(name="no_entry", sentence=sentence, file=solution.main)]


def _of_python(name: str, text: str, entry: str) -> list[Feedback]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", 0) or 0
        words = f"{getattr(error, 'msg', error)}."
        return [Feedback(name="syntax", sentence=words, file=name, line=line)]
    feedbacks = [
        Feedback(name="patches", sentence=f"it replaces {what}.", file=name, line=line)
        for what, line in _replaced(tree)
    ]
    if entry and entry not in _defined(tree):
        feedbacks.append(
            Feedback(name="no_entry", sentence=f"it does not define {entry}.", file=name)
        )
    return feedbacks


def _defined(tree: ast.Module) -> set[str]:
    """Names at the top of a module, also those within its conditions."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.alias):
            names.add(node.asname or node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return names


def _replaced(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Members of other modules that are assigned to, by their dotted names."""
    modules = _imported(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Attribute):
                    yield from _foreign(_dotted(target, modules), node.lineno)
        elif isinstance(node, ast.Call) and _dotted(node.func, {}) in ("setattr", "delattr"):
            if node.args:
                yield from _foreign(f"{_dotted(node.args[0], modules)}.", node.lineno)


def _foreign(name: str, line: int) -> Iterator[tuple[str, int]]:
    if name.split(".")[0] in _FOREIGN and "." in name and not name.startswith(_ALLOWED):
        yield name.rstrip("."), line


def _imported(tree: ast.Module) -> dict[str, str]:
    """Names of a module's own for other modules and their members."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                whole = alias.name if alias.asname else alias.name.split(".")[0]
                names[alias.asname or whole] = whole
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def _dotted(node: ast.expr, modules: dict[str, str]) -> str:
    if isinstance(node, ast.Name):
        return modules.get(node.id, "" if modules else node.id)
    if isinstance(node, ast.Attribute):
        before = _dotted(node.value, modules)
        return f"{before}.{node.attr}" if before else ""
    return ""
