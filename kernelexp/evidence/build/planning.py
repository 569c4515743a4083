"""Inputs of a variant's build, with their hash: compiler, arguments, environment.

nvcc is asked what it would run (--dryrun), so that wrapper scripts, -ccbin and the environment need
no rules of ours. Contents are hashed once and remembered by the file's status, because a compiler
has 200 MB.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from kernelexp.evidence.build import store
from kernelexp.evidence.build.diagnosis import first_error, quote
from kernelexp.evidence.build.store import Files
from kernelexp.model.errors import ConfigurationError, EnvironmentFault
from kernelexp.model.experiment import Variant, spell, spell_point
from kernelexp.model.text import not_utf8
from kernelexp.system import toolchain
from kernelexp.system.disk import decode
from kernelexp.system.process import processes
from kernelexp.system.toolchain import Toolchain

FILE = "compilers.json"
# A file that was changed so recently may change again within the same tick of its time stamp.
SETTLED_NS = 2_000_000_000

# What nvcc, its profile and the host's preprocessor read besides their arguments: NVIDIA CUDA
# Compiler Driver, "NVCC Environment Variables" and nvcc.profile; GCC, "Environment Variables
# Affecting GCC"; clang, "CCC_OVERRIDE_OPTIONS".
VARIABLES = (
    "NVCC_PREPEND_FLAGS",
    "NVCC_APPEND_FLAGS",
    "NVCC_CCBIN",
    "INCLUDES",
    "SYSTEM_INCLUDES",
    "CUDAFE_FLAGS",
    "PTXAS_FLAGS",
    "CPATH",
    "C_INCLUDE_PATH",
    "CPLUS_INCLUDE_PATH",
    "COMPILER_PATH",
    "GCC_EXEC_PREFIX",
    "SOURCE_DATE_EPOCH",
    "CCC_OVERRIDE_OPTIONS",
    "LD_PRELOAD",
)

_VARIABLE = re.compile(r"^#\$ (\w+)=(.*)$")
_COMMAND = re.compile(r"^#\$ (?!--|\w+=|rm )(.+)$")


class Compiler(msgspec.Struct, frozen=True, kw_only=True):
    """All that compiles a variant with certain flags."""

    digest: str
    """Of the programs' contents, wherever they are."""
    toolkit: str
    """The folder of nvcc's own headers and programs."""


class _Content(msgspec.Struct, frozen=True, kw_only=True):
    """A file's hash, and its status when it had that."""

    status: tuple[int, ...]
    sha256: str


class _Programs(msgspec.Struct, frozen=True, kw_only=True):
    """The programs and files of its own that nvcc runs and reads."""

    path: str
    """Where it looks for programs."""
    words: dict[str, str]
    """The programs that it starts by name, and which files they were."""
    files: list[str]
    toolkit: str


class _Known(msgspec.Struct, kw_only=True):
    """The file in the cache."""

    contents: dict[str, _Content] = {}
    programs: dict[str, _Programs] = {}


# By device and status, whatever the project: a new one has nothing in its cache.
_hashed: dict[tuple[int, ...], str] = {}


def environment() -> dict[str, str]:
    """The variables that change what is compiled, those that are set."""
    return {name: value for name in VARIABLES if (value := os.environ.get(name)) is not None}


def identify_compiler(root: Path, cache: Path, tools: Toolchain, flags: Sequence[str]) -> Compiler:
    """The compiler that `tools` is with these flags; EnvironmentFault if nvcc does not tell."""
    known = _read(cache)
    before = msgspec.json.encode(known)
    key = _key_of_programs(known, tools, flags)
    programs = known.programs.get(key)
    if programs is None or not _is_current(programs):
        programs = known.programs[key] = _discover(root, cache, tools, flags)
    # Sorted and each once: which of them lie at one place, or are links, is no matter.
    contents = {_hash_of_file(known, file) for file in (*programs.files, *programs.words.values())}
    digest = hashlib.sha256("".join(sorted(contents)).encode())
    if msgspec.json.encode(known) != before:
        _write(cache, known)
    return Compiler(digest=digest.hexdigest(), toolkit=programs.toolkit)


def _key_of_programs(known: _Known, tools: Toolchain, flags: Sequence[str]) -> str:
    paths = [tools.nvcc, tools.ptxas, tools.cuobjdump]
    parts = [*paths, _hash_of_file(known, tools.nvcc), *flags, os.environ.get("PATH", "")]
    parts += [f"{name}={value}" for name, value in environment().items()]
    return hashlib.sha256("\0".join(parts).encode(errors="surrogateescape")).hexdigest()


def _is_current(programs: _Programs) -> bool:
    """Whether the same files would be started now, and are all there."""
    return all(_find(word, programs.path) == file for word, file in programs.words.items()) and all(
        Path(file).is_file() for file in programs.files
    )


def _find(word: str, path: str) -> str:
    result = shutil.which(word, path=path)
    return os.path.realpath(result) if result else ""


def _discover(root: Path, cache: Path, tools: Toolchain, flags: Sequence[str]) -> _Programs:
    argv = [tools.nvcc, "--dryrun", *flags, "-ptx", "x.cu", "-o", "x.ptx"]
    env = {"LC_ALL": "C", "TMPDIR": os.path.relpath(cache, root)}
    completed = processes.run(argv, cwd=root, env=env, timeout_s=60)
    if completed.returncode != 0:
        if flags and first_error(completed.stderr):
            return _discover(root, cache, tools, ())  # flags that it refuses: the build will say so
        _explain(tools, completed)
    lines = completed.stderr.splitlines()
    variables = {m[1]: m[2].strip() for line in lines if (m := _VARIABLE.match(line))}
    path = variables.get("PATH", "")
    words: dict[str, str] = {}
    for line in lines:
        if command := _COMMAND.match(line):
            word = _first_word(command[1], variables)
            words[word] = _find(word, path)
    here = variables.get("_HERE_")
    if here is None or not all(words.values()):
        missing = ", ".join(word for word, file in words.items() if not file)
        raise EnvironmentFault(
            f"{tools.nvcc} --dryrun does not answer like nvcc"
            + (f": it names {missing}, which can't be run." if missing else ".")
        )
    top = os.path.realpath(variables.get("TOP", f"{here}/.."))
    files = [*_own_files(tools, here, variables), *_passes(root, list(words), path)]
    return _Programs(path=path, words=words, files=files, toolkit=top)


def _explain(tools: Toolchain, completed: processes.Completed) -> None:
    toolchain.host_compiler()
    raise EnvironmentFault(
        f"{tools.nvcc} --dryrun failed: {quote(completed.stderr + completed.stdout)}"
    )


def _first_word(command: str, variables: dict[str, str]) -> str:
    """The program of a shell command, with nvcc's own variables in their places."""
    for name, value in variables.items():
        command = command.replace(f"${name}/", f"{value}/")
    try:
        return shlex.split(command)[0]
    except (ValueError, IndexError):
        return command.split()[0]


def _own_files(tools: Toolchain, here: str, variables: dict[str, str]) -> Iterator[str]:
    """The programs that are started by their path, and what they read."""
    folder, device = Path(here), Path(variables.get("NVVMIR_LIBRARY_DIR", here))
    beside = Path(tools.cuobjdump).with_name("nvdisasm")
    optional = (folder / "nvcc", folder / "nvcc.profile", folder / "cudafe++", beside)
    yield from (tools.nvcc, tools.ptxas, tools.cuobjdump)
    yield from (str(file) for file in (*optional, *sorted(device.glob("*.bc"))) if file.is_file())


def _passes(root: Path, words: Sequence[str], path: str) -> Iterator[str]:
    """The program that preprocesses for gcc; clang does so itself."""
    for word in words:
        program = shutil.which(word, path=path)
        if program and re.search(r"(gcc|g\+\+|\bcc|c\+\+)(-[\d.]+)?$", program):
            argv = [program, "-print-prog-name=cc1plus"]
            output = processes.run(argv, cwd=root, timeout_s=60).stdout.strip()
            if os.path.isabs(output) and os.path.isfile(output):
                yield os.path.realpath(output)


def _hash_of_file(known: _Known, file: str) -> str:
    try:
        status = os.stat(file)
        seen = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
        remembered = known.contents.get(file)
        if remembered and remembered.status == seen:
            return remembered.sha256
        sha256 = _hashed.get((status.st_dev, *seen)) or _digest(file)
    except OSError as error:
        raise EnvironmentFault(f"{file} can't be read: {error.strerror}.") from None
    if time.time_ns() - max(status.st_mtime_ns, status.st_ctime_ns) > SETTLED_NS:
        known.contents[file] = _Content(status=seen, sha256=sha256)
        _hashed[status.st_dev, *seen] = sha256
    return sha256


def _digest(file: str) -> str:
    with open(file, "rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _read(cache: Path) -> _Known:
    try:
        return decode(store.kept(cache, FILE) or b"", _Known)
    except msgspec.DecodeError:
        return _Known()


def _write(cache: Path, known: _Known) -> None:
    try:
        store.keep(cache, FILE, msgspec.json.encode(known))
    except OSError:
        pass  # a cache that can't be written costs time, nothing else


# Part of each identity: another layout of the artefacts is another build.
LAYOUT = "1"
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
    def toolkit(self) -> str:
        """The compiler's folder as in the paths of the files that it reads: from the root if it is
        below it, as with an environment in the project."""
        return store.tidy(str(self.root), self.compiler.toolkit)

    @property
    def arguments(self) -> tuple[str, ...]:
        """nvcc's, but for what it is to write and for the package's headers: where these are is a
        matter of the machine, and those that are read count by their content."""
        if self.variant.form != "source":
            return (*self.flags, self.variant.source)
        defines = (f"-D{define}" for define in sorted(self.variant.defines))
        return (*self.flags, "-I", toolchain.INCLUDE, *defines, self.variant.source)

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
            compilers[of_nvcc] = identify_compiler(root, root / store.CACHE, tools, of_nvcc)
        plan = Plan(
            root=root,
            variant=variant,
            tools=tools,
            compiler=compilers[of_nvcc],
            flags=flags,
            environment=environment(),
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
    variables = [f"{name}={value}" for name, value in plan.environment.items()]
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
        *(item.replace(root, ".") for item in variables),
        *store.content_of_arguments(plan.root, files, words),
    )
    return _hash(parts)


def identify(plan: Plan, read: Mapping[str, str], preprocessed: str) -> str:
    """The name of a build.

    Files outside the project by their last name: where they are is a matter of the machine.
    """
    files = (
        f"{path if store.belongs_to_project(path) else os.path.basename(path)}={sha256}"
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
