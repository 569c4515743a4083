"""Variants to cubin, PTX and SASS: a ninja graph, each variant built once for its identity."""

from __future__ import annotations

import hashlib
import re
import shlex
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import filelock
import msgspec

from kernelexp import toolchain
from kernelexp.errors import ConfigurationError
from kernelexp.model import Variant
from kernelexp.toolchain import Toolchain

CACHE = ".kernelexp"
INCLUDE = "variants/include"

# -lineinfo costs no code: it is what ties PTX, counters and profiles to the lines of the source.
NVCC_FLAGS = ("-std=c++17", "-O3", "-lineinfo")
PTXAS_FLAGS = ("-O3", "--generate-line-info", "-v")

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)

Progress = Callable[[int, int], None]
"""Called with the steps that are done and the steps that there are."""


class Built(msgspec.Struct, frozen=True, kw_only=True):
    """A variant and the folder that its build left."""

    variant: Variant
    identity: str
    files: dict[str, str]
    """SHA-256 of source and headers, by path from the project's root."""
    flags: tuple[str, ...]
    folder: Path
    cached: bool
    """Nothing had to be compiled."""

    @property
    def ok(self) -> bool:
        return (self.folder / "complete").is_file()

    @property
    def cubin(self) -> Path:
        return self.folder / "kernel.cubin"

    @property
    def ptx(self) -> Path:
        return self.folder / "kernel.ptx"

    @property
    def dump(self) -> str:
        """Resource usage and SASS, as cuobjdump prints them."""
        return (self.folder / "kernel.dump").read_text()

    @property
    def ptxas_report(self) -> str:
        return (self.folder / "ptxas.log").read_text()

    @property
    def failure(self) -> str:
        """What the tool that failed said, in its own words."""
        for log in ("nvcc.log", "ptxas.log", "cuobjdump.log"):
            path = self.folder / log
            if path.is_file() and not self.ok:
                said = path.read_text().strip()
                if "error" in said or "fatal" in said or log == "cuobjdump.log":
                    return said
        return "" if self.ok else "the compiler ended without a word."


def build(
    root: Path, variants: Sequence[Variant], tools: Toolchain, on_progress: Progress | None = None
) -> list[Built]:
    """Builds what is not built yet, in parallel; one that fails is `not ok`, the rest go on."""
    folder = root / CACHE / "build"
    folder.mkdir(parents=True, exist_ok=True)
    (root / CACHE / ".gitignore").write_text("*\n")
    plans = [_plan(root, folder, variant, tools) for variant in variants]
    missing = {plan.identity: plan for plan in plans if not plan.cached}
    if missing:
        # One build at a time in a project: a second run waits here and then finds the files.
        with filelock.FileLock(folder / "lock"):
            _run_ninja(root, folder, [p for p in missing.values() if not p.ok], tools, on_progress)
    return plans


def _plan(root: Path, folder: Path, variant: Variant, tools: Toolchain) -> Built:
    files = _hash_files(root, variant.source)
    flags = (*NVCC_FLAGS, *_gencode(variant.arch), *variant.flags)
    parts = (tools.version, variant.source, *flags, *PTXAS_FLAGS, *sorted(variant.defines))
    hashes = (f"{path}={digest}" for path, digest in sorted(files.items()))
    identity = hashlib.sha256("\0".join((*parts, *hashes)).encode()).hexdigest()[:16]
    plan = Built(
        variant=variant,
        identity=identity,
        files=files,
        flags=flags,
        folder=folder / identity,
        cached=False,
    )
    return msgspec.structs.replace(plan, cached=plan.ok)


def _gencode(arch: str) -> tuple[str, ...]:
    # PTX of the same architecture-specific target: sm_100a features exist in no other.
    return ("-gencode", f"arch={arch.replace('sm_', 'compute_')},code={arch}")


def _hash_files(root: Path, source: str) -> dict[str, str]:
    """The source and, transitively, what it includes with quotes; <...> belongs to the compiler.

    An include behind an #if counts too: at worst a variant is built once more than it had to be.
    """
    hashes: dict[str, str] = {}
    waiting = [root / source]
    while waiting:
        path = waiting.pop()
        name = path.relative_to(root).as_posix()
        if name in hashes:
            continue
        try:
            text = path.read_bytes()
        except OSError as error:
            raise ConfigurationError(f"{name} can't be read: {error.strerror}.") from None
        hashes[name] = hashlib.sha256(text).hexdigest()
        waiting.extend(_included(root, path, text.decode(errors="replace")))
    return hashes


def _included(root: Path, path: Path, text: str) -> Iterator[Path]:
    for name in _INCLUDE.findall(text):
        for folder in (path.parent, root / INCLUDE):
            candidate = (folder / name).resolve()
            if candidate.is_file() and candidate.is_relative_to(root):
                yield candidate
                break


def _run_ninja(
    root: Path, folder: Path, plans: list[Built], tools: Toolchain, on_progress: Progress | None
) -> None:
    if not plans:
        return
    toolchain.require_host_compiler()
    for plan in plans:
        # What an interrupted or failed build left is not trusted.
        shutil.rmtree(plan.folder, ignore_errors=True)
        plan.folder.mkdir()
    graph = folder / "build.ninja"
    graph.write_text("".join(_edges(root, plans, tools)))
    total = 3 * len(plans)

    def on_line(line: str) -> None:
        done, mark, _ = line.partition("@")
        if on_progress and mark and done.isdigit():
            on_progress(int(done), total)

    # -k 0: a variant that does not compile must not stop the others.
    argv = [tools.ninja, "-f", graph.relative_to(root).as_posix(), "-k", "0"]
    toolchain.run(argv, cwd=root, env={"NINJA_STATUS": "%f@"}, on_line=on_line)


def _edges(root: Path, plans: list[Built], tools: Toolchain) -> Iterator[str]:
    """Paths are relative to the root, so that its own name may hold any character."""
    yield f"builddir = {CACHE}/build\n"
    yield "rule step\n  command = $command\n  description = $out\n"
    for plan in plans:
        where = plan.folder.relative_to(root).as_posix()
        ptx, cubin, complete = f"{where}/kernel.ptx", f"{where}/kernel.cubin", f"{where}/complete"
        compile_ = (
            [tools.nvcc, *plan.flags, "-I", INCLUDE]
            + [f"-D{define}" for define in plan.variant.defines]
            + ["-ptx", plan.variant.source, "-o", ptx]
        )
        assemble = [tools.ptxas, *PTXAS_FLAGS, f"-arch={plan.variant.arch}", ptx, "-o", cubin]
        dump = [tools.cuobjdump, "-res-usage", "-sass", cubin]
        yield _edge(ptx, list(plan.files), f"{shlex.join(compile_)} > {where}/nvcc.log 2>&1")
        yield _edge(cubin, [ptx], f"{shlex.join(assemble)} > {where}/ptxas.log 2>&1")
        # `complete` comes last: a folder that has it is whole.
        dumped = f"{shlex.join(dump)} > {where}/kernel.dump 2> {where}/cuobjdump.log"
        yield _edge(complete, [cubin], f"{dumped} && touch {complete}")


def _edge(output: str, inputs: list[str], command: str) -> str:
    names = " ".join(_escape(name) for name in inputs)
    escaped = command.replace("$", "$$")
    return f"build {_escape(output)}: step {names}\n  command = {escaped}\n"


def _escape(path: str) -> str:
    return path.replace("$", "$$").replace(" ", "$ ").replace(":", "$:")
