"""Inputs of a variant's build: compiler, arguments and environment, with their hash."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from kernelexp.evidence.build import compiler, dependencies, store
from kernelexp.evidence.build.compiler import Compiler
from kernelexp.evidence.build.dependencies import Files
from kernelexp.model.errors import ConfigurationError
from kernelexp.model.experiment import Variant
from kernelexp.model.spelling import spell, spell_point
from kernelexp.model.text import not_utf8
from kernelexp.system import toolchain
from kernelexp.system.toolchain import Toolchain

# Part of each identity: another layout of the artefacts is another build.
LAYOUT = "1"
INCLUDE = "variants/include"
# -lineinfo costs no code: it is what ties PTX, counters and profiles to the lines of the source.
NVCC_FLAGS = ("-std=c++17", "-O3", "-lineinfo")
PTXAS_FLAGS = ("-O3", "--generate-line-info", "-v")


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """All that is needed to build one variant."""

    root: Path
    variant: Variant
    tools: Toolchain
    compiler: Compiler
    flags: tuple[str, ...]
    environment: dict[str, str]
    """The variables that the compiler reads."""
    key: str
    """Hash of compiler, arguments and environment: of all but the files that it reads."""
    timeout_s: float

    @property
    def label(self) -> str:
        return f"{self.variant.kernel}@{self.variant.arch}: {spell_point(self.variant.axes)}"

    @property
    def arguments(self) -> tuple[str, ...]:
        """nvcc's, but for what it is to write and for the package's headers: where these are is a
        matter of the machine, and those that are read count by their content."""
        if self.variant.form != "source":
            return (*self.flags, self.variant.source)
        defines = (f"-D{define}" for define in sorted(self.variant.defines))
        return (*self.flags, "-I", INCLUDE, *defines, self.variant.source)

    @property
    def command(self) -> tuple[str, ...]:
        """The command line without its outputs."""
        return (self.tools.nvcc, *self.arguments, "-I", str(toolchain.HEADERS), *self._libraries)

    @property
    def _libraries(self) -> tuple[str, ...]:
        """nvcc looks in lib64 for what a program is linked with; its wheels have that in lib."""
        folder = Path(self.compiler.toolkit) / "lib"
        return ("-L", str(folder)) if self.variant.program and folder.is_dir() else ()


def refuse(root: Path, variants: Sequence[Variant]) -> None:
    """ConfigurationError for sources that can't be read and arguments that nvcc can't be given."""
    faults = [*faults_of_root(str(root))]
    for variant in variants:
        faults += faults_of_variant(variant)
        try:
            (root / variant.source).open("rb").close()
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            faults.append(f"{variant.source} can't be read: {why}.")
    if faults:
        raise ConfigurationError(*dict.fromkeys(faults))


def make(root: Path, variants: Sequence[Variant], tools: Toolchain, timeout_s: float) -> list[Plan]:
    """A plan for each variant, in their order. EnvironmentFault if there is no compiler."""
    compilers: dict[tuple[str, ...], Compiler] = {}
    files = Files(root)
    plans = []
    for variant in variants:
        flags = compiler_flags(variant)
        of_nvcc = flags if variant.form == "source" else ()
        if of_nvcc not in compilers:
            compilers[of_nvcc] = compiler.identify(root, root / store.CACHE, tools, of_nvcc)
        plan = Plan(
            root=root,
            variant=variant,
            tools=tools,
            compiler=compilers[of_nvcc],
            flags=flags,
            environment=compiler.environment(),
            key="",
            timeout_s=timeout_s,
        )
        plans.append(msgspec.structs.replace(plan, key=_key(plan, files)))
    return plans


def compiler_flags(variant: Variant) -> tuple[str, ...]:
    """Returns nvcc's flags, without folders and defines, or those of ptxas where it is the
    compiler; the target's own flags last."""
    if variant.form == "cubin":
        return ()
    if variant.form == "ptx":
        return (*PTXAS_FLAGS, f"-arch={variant.arch}", *variant.flags)
    # PTX of the same architecture-specific target: sm_100a features exist in no other.
    target = f"arch={variant.arch.replace('sm_', 'compute_')},code={variant.arch}"
    return (*NVCC_FLAGS, "-gencode", target, *toolchain.expanded(variant.flags))


def _key(plan: Plan, files: Files) -> str:
    root = str(plan.root)
    environment = [f"{name}={value}" for name, value in plan.environment.items()]
    words = [*plan.flags, *" ".join(plan.environment.values()).split()]
    parts = (
        LAYOUT,
        plan.compiler.digest,
        *plan.arguments,
        *PTXAS_FLAGS,
        # What was built unconfined may hold what no confined build could read.
        *(["confined"] if plan.tools.confined_to else []),
        *(("program",) if plan.variant.program else ()),
        # The root's own name says nothing of what is compiled.
        *(item.replace(root, ".") for item in environment),
        *dependencies.content_of_arguments(plan.root, files, words),
    )
    return _hash(parts)


def identify(plan: Plan, read: Mapping[str, str], preprocessed: str) -> str:
    """The name of a build.

    Files outside the project by their last name: where they are is a matter of the machine.
    """
    files = (
        f"{path if dependencies.belongs_to_project(path) else os.path.basename(path)}={sha256}"
        for path, sha256 in read.items()
    )
    return _hash((plan.key, *files, preprocessed))[:16]


def _hash(parts: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode(errors="surrogateescape")).hexdigest()


_QUOTED = re.compile(r"[`$\"\\\x00-\x1f\x7f]")
"""nvcc puts defines, folders and sources into double quotes."""
_BARE = re.compile(r"[`$\"'\\;&|<>(){}*?\[\]~\x00-\x1f\x7f]|(?:^|\s)#")
_IN_FOLDER = re.compile(r"[`\"\\\x00-\x1f\x7f]|\$[({]")
_IN_QUOTES = ("-D", "-U", "-I", "--define-macro", "--undefine-macro", "--include-path")


def faults_of_variant(variant: Variant) -> Iterator[str]:
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
