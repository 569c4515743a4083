"""The project's files as they are now, and what of an arm has changed since it was made.

A record says what was read, not what was looked for in vain: a header that was added since, beside
the file that includes it or in the project's folder of headers, is found first, and so is a module
beside problem.py.

A record keeps a digest of the machine code that it was made with, as early ones do not;
logs/compiled has it of sources, then and now, by their content. Where it is the same, a change of
the text alone leaves the record as it is.
"""

from __future__ import annotations

import contextlib
import filecmp
import functools
import hashlib
import importlib.machinery
import os
import re
import site
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from kernelexp.evidence import build
from kernelexp.judge import consistency
from kernelexp.logs import decisions, sources
from kernelexp.logs.decisions import Decision
from kernelexp.logs.records import Unreadable
from kernelexp.model.arm import Arm
from kernelexp.model.experiment import Variant
from kernelexp.model.record import Candidate, Record
from kernelexp.project.problem import files
from kernelexp.system import disk, toolchain
from kernelexp.system.toolchain import HEADERS

_INCLUDES = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*(["<])([^">\n]+)[">]', re.M)
_IMPORTS = re.compile(rb"^[ \t]*(?:from|import)[ \t]+([^#\n]+)", re.M)
_LONGEST = 8 << 20
_RIGHT = ".kernelexp/judged"
"""Empty files, each named by the hash of a record whose samples give what it says."""


class Shadows:
    """Files that shadow others in a project as it is now; each file is looked at once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._included: dict[str, tuple[tuple[str, bool], ...]] = {}
        self._modules: dict[str, dict[str, str]] = {}
        self._there: dict[str, bool] = {}

    def of(self, read: Iterable[str]) -> Iterator[tuple[str, str]]:
        """The new file and what it would be taken for, of a record that read these."""
        known = set(read)
        for path in known:
            for name, quoted in self._names(path):
                yield from self._headers(path, name, quoted, known)
            if path.endswith("/problem.py"):
                yield from self._beside(os.path.dirname(path), known)

    def _headers(
        self, path: str, name: str, quoted: bool, known: set[str]
    ) -> Iterator[tuple[str, str]]:
        own = any(item.endswith(f"/{name}") for item in known)
        if not own and not _is_header(name):
            return
        beside = os.path.normpath(os.path.join(os.path.dirname(path), name))
        if quoted and beside not in known and self._is_there(beside):
            yield beside, name
        shared = f"{toolchain.INCLUDE}/{name}"
        if not own and self._is_there(shared):
            if not filecmp.cmp(self._root / shared, HEADERS / name, shallow=False):
                yield shared, name

    def _beside(self, folder: str, known: set[str]) -> Iterator[tuple[str, str]]:
        """New modules of a kernel's folder, which is first on the path of its problem.py."""
        for path, name in self._importable(folder).items():
            if path in known:
                continue
            elsewhere = any(item.endswith(f"/{name}.py") for item in known)
            if elsewhere or self._is_imported(name, known) or _is_installed(name):
                yield path, name

    def _importable(self, folder: str) -> dict[str, str]:
        """The names of modules and packages by their paths."""
        if folder not in self._modules:
            self._modules[folder] = {}
            with contextlib.suppress(OSError):
                for entry in sorted(os.listdir(self._root / folder)):
                    path = f"{folder}/{entry}"
                    if self._is_there(f"{path}/__init__.py"):
                        self._modules[folder][f"{path}/__init__.py"] = entry
                    elif entry.endswith(_SUFFIXES) and self._is_there(path):
                        self._modules[folder][path] = entry.partition(".")[0]
        return self._modules[folder]

    def _is_imported(self, name: str, known: set[str]) -> bool:
        word = re.compile(rb"\b" + re.escape(name.encode(errors="surrogateescape")) + rb"\b")
        return any(
            word.search(line)
            for path in known
            if path.endswith(".py")
            for line in _IMPORTS.findall(self._text(path))
        )

    def _names(self, path: str) -> tuple[tuple[str, bool], ...]:
        """Returns the names that a file includes, and whether by quotes."""
        if path not in self._included:
            self._included[path] = tuple(
                (os.fsdecode(name), sign == b'"')
                for sign, name in _INCLUDES.findall(self._text(path))
            )
        return self._included[path]

    def _text(self, path: str) -> bytes:
        file = self._root / path
        if not self._is_there(path) or file.stat().st_size > _LONGEST:
            return b""
        return file.read_bytes()

    def _is_there(self, path: str) -> bool:
        if path not in self._there:
            own = disk.is_own(self._root, path)
            self._there[path] = own and os.path.isfile(self._root / path)
        return self._there[path]


@functools.cache
def _is_header(name: str) -> bool:
    """Whether the package has a header of this name."""
    return (HEADERS / name).is_file()


_SUFFIXES = tuple(importlib.machinery.all_suffixes())


def _is_installed(name: str) -> bool:
    """Whether a problem.py would find a module of this name elsewhere, if not for the new one: not
    what this process has on its own path."""
    if name in sys.builtin_module_names or name.startswith("__"):  # which no file shadows
        return False
    if name in sys.stdlib_module_names or name in ("kernelexp", "warpsim"):
        return True
    folders = [*site.getsitepackages(), site.getusersitepackages()]
    return name.isidentifier() and bool(importlib.machinery.PathFinder.find_spec(name, folders))


def same_code_words(rewritten: Iterable[str]) -> str:
    """Says that figures are current although these sources have changed."""
    return (
        f"sources changed since ({', '.join(dict.fromkeys(rewritten))}), the machine code did not"
    )


class KnownCode:
    """The machine code of a project's variants as it is known; files are read when asked for."""

    def __init__(self, root: Path, is_current: Callable[[Variant, Arm], bool]) -> None:
        """`is_current`: whether an arm was compiled from what its variant is made of now."""
        self._root = root
        self._is_current = is_current
        self._now: dict[tuple[str, str, str], frozenset[str]] = {}

    @property
    def unreadable(self) -> tuple[Unreadable, ...]:
        """The files of logs/compiled that are not to be believed."""
        return self._kept[1]

    def is_same(self, variant: Variant, arm: Arm, compiler: str) -> bool:
        """Whether a variant's code is now what it was when `compiler` made that of `arm`."""
        code = self.then(arm, compiler)
        return bool(code) and code in self.now(variant)

    def then(self, arm: Arm, compiler: str) -> str:
        """The digest of an arm's code; empty where it is not known."""
        if arm.code or not self._kept[0]:
            return arm.code
        return self._by_state.get(
            (sources.compiled_state(arm, compiler), sources.spell_axes(arm.axes)), ""
        )

    def now(self, variant: Variant) -> frozenset[str]:
        """The digests of a variant's code as compilers make it now; none where it is not known."""
        name = (variant.kernel, variant.arch, sources.spell_axes(variant.axes))
        if name not in self._now:
            self._now[name] = frozenset(
                arm.code
                for arm, _ in self._kept[0]
                if name == (arm.kernel, arm.arch, sources.spell_axes(arm.axes))
                and self._is_current(variant, arm)
            )
        return self._now[name]

    @functools.cached_property
    def _kept(self) -> tuple[tuple[tuple[Arm, str], ...], tuple[Unreadable, ...]]:
        """The arms that are kept, each with its compiler's version."""
        states, unreadable = sources.read_compiled(self._root)
        arms = ((arm, one.compiler) for one in states for arm in one.arms)
        return tuple(arms), tuple(unreadable)

    @functools.cached_property
    def _by_state(self) -> dict[tuple[str, str], str]:
        return {
            (sources.compiled_state(arm, compiler), sources.spell_axes(arm.axes)): arm.code
            for arm, compiler in self._kept[0]
        }


class Tree:
    """The project's files as they are now: each is hashed once, and decisions are read once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._hashes: dict[str, str] = {}
        self.environment: dict[str, str] = {}
        """Digests of the environment variables that records name."""
        self.shadows = Shadows(root)
        self.code = KnownCode(root, lambda one, arm: not any(arm_changes(one, arm, {}, self)))

    @functools.cached_property
    def decided(self) -> tuple[list[Decision], list[Unreadable]]:
        """People's decisions, oldest first, and the files that are none."""
        return decisions.read_all(self._root)

    def sha256(self, path: str) -> str:
        """Returns the SHA-256 of a file by its path from the root; empty where there is none.

        The path may come from somebody else's record: only regular files below the root, or in the
        repository around it, are read, in pieces.
        """
        if path not in self._hashes:
            is_own = disk.is_own(self._root, path.removesuffix("/"))
            self._hashes[path] = self._hash(path) if is_own else ""
        return self._hashes[path]

    def header(self, name: str) -> str:
        """Returns the SHA-256 of one of kernelexp's own headers; empty where there is none."""
        path = os.path.normpath(HEADERS / name)
        return self._hash(path) if Path(path).is_relative_to(HEADERS) else ""

    def variable(self, name: str) -> str:
        """The digest of an environment variable's value."""
        if name not in self.environment:
            self.environment[name] = files.value_digest(name)
        return self.environment[name]

    @property
    def leaves_root(self) -> bool:
        """Whether files were looked at that are not below the project's root."""
        return any(path.startswith(("..", "/")) for path in self._hashes)

    def doubts(self, record: Record, candidate: Candidate) -> tuple[str, ...]:
        """Returns the reasons why a record can't be relied on."""
        if record.edited:
            return (consistency.EDITED,)
        return self.sample_doubts(record, candidate)

    def sample_doubts(self, record: Record, candidate: Candidate) -> tuple[str, ...]:
        """Returns what a record says that its samples do not support.

        Judging one again takes 7 ms: records that were found right are remembered by their content.
        """
        if record.measurement is None:
            return ()
        content = msgspec.json.encode((consistency.VERSION, candidate.arm.axes, record))
        mark = self._root / _RIGHT / hashlib.sha256(content).hexdigest()[:32]
        if mark.exists():
            return ()
        result = tuple(consistency.doubts(record, candidate))
        if not result:
            with contextlib.suppress(OSError):
                mark.parent.mkdir(parents=True, exist_ok=True)
                mark.touch()
        return result

    def _hash(self, path: str) -> str:
        if path.endswith("/"):  # what a problem.py listed
            return files.names_digest(os.fspath(self._root / path))
        try:
            descriptor = os.open(self._root / path, os.O_RDONLY | os.O_NONBLOCK)
            with open(descriptor, "rb") as file:
                if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                    return ""
                return hashlib.file_digest(file, "sha256").hexdigest()
        except (OSError, ValueError):  # ValueError: a null byte
            return ""


def arm_changes(
    variant: Variant, arm: Arm, others: Mapping[str, str], tree: Tree, compiler: str = ""
) -> Iterator[str]:
    """Yields what has changed since `arm` was made, in `others` too, files that went into it; with
    `compiler`, its version, not what it was compiled from, where its machine code is the same."""
    added = [axis for axis in variant.axes if axis not in arm.axes]
    yield from (f"axis {axis} is new" for axis in added)
    if compiler and tree.code.is_same(variant, arm, compiler):
        arm = Arm(program=arm.program)
    if arm.source and arm.source != variant.source:
        yield f"source {variant.source} (was {arm.source})"
    if arm.flags and arm.flags != build.compiler_flags(variant):
        yield "the compiler's flags"
    if arm.program and arm.program.spec != variant.program:
        yield "how the program is run or read"
    for path, digest in sorted({**others, **arm.files}.items()):
        current = tree.sha256(path)
        if current != digest and path.endswith("/"):
            yield f"{path} (is a folder that holds other files)"
        elif current != digest:
            yield path if current and digest else f"{path} (is {'new' if current else 'gone'})"
    for name, digest in (arm.headers or {}).items():
        if tree.header(name) != digest:
            yield f"{name}, which comes with kernelexp"
    for path, name in sorted(tree.shadows.of({**others, **arm.files})):
        yield f"{path} is read for {name}"
