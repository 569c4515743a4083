"""Identity of a solution, whatever its text looks like: machine code and Python's syntax.

Programs that write kernels hand in the same one again, with other names and comments. Its verdict
is known.
"""

from __future__ import annotations

import ast
import functools
import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from kernelexp.services.tasks.task import Task
from kernelexp.system.process import processes
from kernelexp.system.toolchain import Toolchain

_HOST_SECTIONS = (".text", ".rodata")
_LONG = 200
"""Characters of a text in Python from which on it is taken for a source, which was compiled."""
LIMIT_S = 600.0


def key(task: Task, how: str, libraries: Sequence[Path], tools: Toolchain, folder: Path) -> str:
    """Returns a digest of the problem, its sizes, how it is judged, the solution's machine code and
    its Python."""
    digest = hashlib.sha256(repr((task.format, task.name, task.cases, task.options, how)).encode())
    digest.update(repr(sorted(task.files.items())).encode())
    digest.update(_judge())
    for part in sorted(hashlib.sha256(p).digest() for p in _code(libraries, tools, folder)):
        digest.update(part)
    for name, text in sorted(task.solution.files.items()):
        if name.endswith(".py"):
            digest.update(_syntax(text, sources=bool(libraries)).encode())
    return digest.hexdigest()


@functools.cache
def _judge() -> bytes:
    """Another judge, another verdict. Read once: sources that change under a process that runs are
    not those that it runs."""
    sources = sorted(Path(__file__).parent.rglob("*.py"))
    return hashlib.sha256(b"".join(source.read_bytes() for source in sources)).digest()


def _code(libraries: Sequence[Path], tools: Toolchain, folder: Path) -> Iterator[bytes]:
    for number, library in enumerate(libraries):
        yield from _sections(library, _HOST_SECTIONS)
        place = folder / f"cubins-{number}"
        place.mkdir(exist_ok=True)
        argv = [tools.cuobjdump, "-xelf", "all", str(library)]
        done = processes.run(argv, cwd=place, timeout_s=LIMIT_S)
        cubins = sorted(place.glob("*.cubin"))
        if done.returncode or not cubins:
            yield library.read_bytes()  # what machine code it has is somewhere in it
        for cubin in cubins:
            yield from _sections(cubin, (".text.", ".nv.constant", ".nv.shared", ".nv.info."))


def _sections(path: Path, prefixes: tuple[str, ...]) -> Iterator[bytes]:
    from elftools.elf.elffile import ELFFile

    with path.open("rb") as file:
        for section in ELFFile(file).iter_sections():
            if section.name.startswith(prefixes) and section["sh_type"] != "SHT_NOBITS":
                yield section.data()


def _syntax(text: str, *, sources: bool) -> str:
    """Strips comments, docstrings and layout; and the texts that were compiled."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if sources and len(node.value) > _LONG:
                node.value = ""
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and _is_text(body[0]):
            node.body = body[1:]  # type: ignore[attr-defined]
    return ast.dump(tree)


def _is_text(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
