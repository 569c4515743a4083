"""What a kernel's own rules say of sizes and variants: its problem.py, and its config header.

problem.py runs in a process of its own. A header that a target names as its `config` holds sizes
(KX_EXPORT) and rules (static_assert) in plain C++. The host compiler evaluates both in 0.1 s, so
that a variant which can't exist is refused before nvcc has compiled anything, in the sources' own
words, and nobody types the arithmetic twice.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import re
import shlex
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from kernelexp.model.errors import ConfigurationError, EnvironmentFault
from kernelexp.model.experiment import AxisValue, Placed, Variant, resolve_size, settings_of_size
from kernelexp.model.problem import Budget, Work
from kernelexp.project.problem import files
from kernelexp.project.problem.files import Used
from kernelexp.system import disk, toolchain
from kernelexp.system.disk import decode
from kernelexp.system.process import isolated, processes
from kernelexp.system.process.isolated import TimeLimit
from warpsim.launch import Launch

TIMEOUT_S = 60.0


def limit(seconds: float = TIMEOUT_S) -> TimeLimit:
    """Returns the time limit for each stage of a problem.py."""
    return TimeLimit(name="problem", seconds=seconds)


class VariantQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """One variant in a question, by its place; one that is built has exports."""

    axes: dict[str, AxisValue]
    arch: str
    exports: dict[str, int] | None = None


class ProblemQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """All that a command wants to know of one problem.py."""

    root: str
    kernel: str
    points: tuple[VariantQuestion, ...]
    launches_of: tuple[str, ...]
    separately: bool
    """Whether launches of a size that can't be had are left out, with why, instead of ending the
    whole answer."""
    limit: TimeLimit


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """The answers of problem.py for one variant: rules before the build, with those of its config
    header, and launches after it."""

    reasons: tuple[str, ...] = ()
    budget: Budget | None = None
    budget_of: str = "budget()"
    """Where the budget comes from."""
    failure: str = ""
    """Why the host compiler could not read the kernel's config header."""
    terms: dict[str, str] = {}
    """How its exports come about: see TERMS in kernelexp.model.problem."""
    launches: dict[str, tuple[Launch, ...]] = {}
    """By the name of the size: those of a job in their order."""
    tiles: dict[str, int] = {}
    loads: dict[str, int] = {}
    blocks: dict[str, int] = {}
    """Tiles that load what others keep, where the problem says so."""
    faults: dict[str, str] = {}
    """Why those of a size can't be had, by its name."""

    def launch_of(self, size: str) -> tuple[Launch, ...]:
        """ConfigurationError where there is none of this size."""
        if size not in self.launches:
            raise ConfigurationError(self.faults.get(size, f"there is no launch of size {size!r}."))
        return self.launches[size]


class Consulted(msgspec.Struct, frozen=True, kw_only=True):
    """The answers of one problem.py; `points` in the order of the question."""

    kernel: str
    sizes: dict[str, dict[str, int]]
    peers: tuple[str, ...]
    work: dict[str, Work]
    """By the name of the size; empty where the problem does not say."""
    points: tuple[Facts, ...]
    used: Used = Used()


def consult(
    root: Path,
    kernel: str,
    variants: Sequence[Placed] = (),
    launches_of: Iterable[str] = (),
    timeout_s: float = TIMEOUT_S,
    *,
    exports: Sequence[dict[str, int]] | None = None,
    separately: bool = False,
) -> Consulted:
    """Reasons against and budget of each variant; or, with the `exports` of each, which its build
    has, its launches of the sizes `launches_of`, and their tiles.

    ConfigurationError for a fault of problem.py, but for one of a variant's launches where they are
    to be had `separately`; UsageError for a size that it does not have. What was answered before in
    this process is not asked again while all that problem.py depends on is the same.
    """
    every: Sequence[dict[str, int] | None] = exports or [None] * len(variants)
    question = ProblemQuestion(
        root=str(root),
        kernel=kernel,
        points=tuple(
            VariantQuestion(axes=dict(variant.axes), arch=variant.arch, exports=figures)
            for variant, figures in zip(variants, every, strict=True)
        ),
        launches_of=tuple(launches_of),
        separately=separately,
        limit=limit(timeout_s),
    )
    key = _key(root, kernel)
    known = _answered(root, kernel, key)
    if (earlier := known.find(question)) is not None:
        return earlier
    name = f"variants/{kernel}/problem.py"
    worker = "kernelexp.project.problem.worker"
    answer = isolated.call(worker, question, Consulted, name, (question.limit,))
    files.note(root, kernel, answer.used)
    if key and _key(root, kernel) == key:  # nothing changed meanwhile, and nothing new was read
        known.keep(question, answer)
    return answer


def _key(root: Path, kernel: str) -> str:
    """Empty where a file can't be read, of which the process that loads it has a sentence."""
    try:
        return files.key(root, kernel)
    except OSError:
        return ""


class _Answers:
    """The answers of one problem.py so far, by what each depends on: sizes that are not its own by
    the question's, each point's facts by the point and how its launches were asked for.
    """

    def __init__(self) -> None:
        self._all: dict[tuple[str, ...], Consulted] = {}
        self._facts: dict[bytes, Facts] = {}

    def keep(self, question: ProblemQuestion, answer: Consulted) -> None:
        self._all[_further_sizes(question)] = answer
        self._facts.update(zip(_keys(question), answer.points, strict=True))

    def find(self, question: ProblemQuestion) -> Consulted | None:
        answer = self._all.get(_further_sizes(question))
        points = [self._facts.get(key) for key in _keys(question)]
        facts = tuple(point for point in points if point is not None)
        if answer is None or len(facts) < len(points):
            return None
        return msgspec.structs.replace(answer, points=facts)


def _further_sizes(question: ProblemQuestion) -> tuple[str, ...]:
    return tuple(name for name in question.launches_of if settings_of_size(name) is not None)


def _keys(question: ProblemQuestion) -> list[bytes]:
    how = (question.launches_of, question.separately)
    return [
        msgspec.json.encode((point, None if point.exports is None else how))
        for point in question.points
    ]


@functools.lru_cache(maxsize=32)
def _answered(_root: Path, _kernel: str, _key: str) -> _Answers:
    return _Answers()


def require_size(kernel: str, known: Mapping[str, Mapping[str, int]], size: str) -> dict[str, int]:
    """The parameters of a size of a kernel, by its name or by what it sets of the full one."""
    return resolve_size(f"variants/{kernel}/problem.py", known, size)


FOLDER = ".kernelexp/config"


_TERM = "kx__term_"
# CUDA's words for a compiler that doesn't know them.
WORDS = ("-D__device__=", "-D__host__=", "-D__forceinline__=inline")
FLAGS = ("-x", "c++", "-std=c++17", "-w", *WORDS)
_ASSERTION = re.compile(r"^(.*?): error: static assertion failed(?: due to[^:]*)?(?:: (.*))?$")
_EXPRESSION = re.compile(r"\{([^{}]+)\}")


class Configured(msgspec.Struct, frozen=True, kw_only=True):
    """The exports and refusals of a header for one variant."""

    exports: dict[str, int] = {}
    refusals: tuple[str, ...] = ()
    """The sentences of the static_asserts that do not hold."""
    terms: dict[str, str] = {}
    """How an exported figure comes about: {"tmem_columns": "256 columns x 2 accumulators"}."""
    failure: str = ""
    """The compiler's words where it can't read the header; nothing else is filled then."""

    def budget(self) -> Budget:
        """Returns what a CTA asks of its SM, from the exports that say so."""
        names = ("threads", "dynamic_smem_bytes", "tmem_columns", "cluster", "registers_per_thread")
        given = {name: self.exports[name] for name in names if name in self.exports}
        return Budget(**{"threads": 0, "dynamic_smem_bytes": 0, **given}, terms=self.terms)


class _Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A file of the cache: good while the files that were read are as they were."""

    files: dict[str, str]
    """SHA-256 by path."""
    configured: Configured


def configure(
    root: Path, variants: Sequence[Variant], terms: Sequence[Mapping[str, str]]
) -> list[Configured]:
    """Evaluates each variant (whose `config` names a header), with the terms of its architecture.

    A term is a text with C++ expressions of the header in braces: "{Config::STAGES} stages". A
    summand in which one of them is 0 is left out. Raises EnvironmentFault without a host compiler.
    """
    pairs = list(zip(variants, terms, strict=True))
    return processes.parallel(lambda pair: _configure(root, *pair), pairs)


def _configure(root: Path, variant: Variant, terms: Mapping[str, str]) -> Configured:
    text = f'#include "{variant.config}"\n'
    expressions = list(dict.fromkeys(_EXPRESSION.findall(" ".join(terms.values()))))
    for number, expression in enumerate(expressions):
        text += f'extern "C" const unsigned {_TERM}{number} = ({expression});\n'
    argv = [
        toolchain.host_compiler(),
        *FLAGS,
        *(flag for flag in variant.flags if flag.startswith(("-D", "-std="))),
        *(f"-D{define}" for define in variant.defines),
        *("-I", ".", "-I", toolchain.INCLUDE, "-I", str(toolchain.HEADERS), "-c", "-"),
    ]
    identity = "\0".join((*argv, text, *terms, *terms.values()))
    kept = root / FOLDER / f"{hashlib.sha256(identity.encode()).hexdigest()[:24]}.json"
    try:
        entry = decode(kept.read_bytes(), _Entry)
        if entry.files == _hashes(root, entry.files):
            return entry.configured
    except (OSError, msgspec.DecodeError):
        pass
    configured, files = _read(root, argv, text, terms, expressions)
    if not files:
        return configured
    entry = _Entry(files=_hashes(root, files), configured=configured)
    with contextlib.suppress(OSError):  # a disk that is full or read-only
        disk.write(kept, msgspec.json.encode(entry), durable=False)
    return configured


def _read(
    root: Path, argv: list[str], text: str, terms: Mapping[str, str], expressions: Sequence[str]
) -> tuple[Configured, list[str]]:
    """Returns what the compiler reads from the text, and the files that it opened."""
    with tempfile.TemporaryDirectory(prefix="kernelexp-") as folder:
        out, dependencies = Path(folder) / "config.o", Path(folder) / "config.d"
        argv = [*argv, "-o", str(out), "-MMD", "-MF", str(dependencies)]
        done = _compile(root, argv, text)
        refusals = tuple(dict.fromkeys(_assertions(done.stderr)))
        if refusals:  # once more without them: a limit's sentence shows what was asked for
            done = _compile(root, [*argv, "-Dstatic_assert(...)="], text)
        files = _dependencies(dependencies)
        if done.returncode != 0:
            failure = "" if refusals else _first_error(done.stderr)
            return Configured(refusals=refusals, failure=failure), files
        figures = toolchain.exports_of(out)
    values = {expression: figures.pop(f"_term_{i}") for i, expression in enumerate(expressions)}
    return (
        Configured(
            exports=figures,
            refusals=refusals,
            terms={name: fill(term, values) for name, term in terms.items()},
        ),
        files,
    )


def _compile(root: Path, argv: list[str], text: str) -> processes.Completed:
    """EnvironmentFault where the compiler was killed, or failed at anything but the text."""
    done = processes.run(argv, cwd=root, env={"LC_ALL": "C"}, stdin=text, timeout_s=TIMEOUT_S)
    if done.killed_by or (done.returncode and " error: " not in done.stderr):
        last = (done.stderr.strip().splitlines() or ["no word"])[-1]
        raise EnvironmentFault(f"{argv[0]} could not read a config header: {last}")
    return done


def _assertions(stderr: str) -> Iterable[str]:
    for line in stderr.splitlines():
        if match := _ASSERTION.search(line):
            yield match.group(2) or f"The static_assert at {match.group(1)} does not hold"


def _first_error(stderr: str) -> str:
    lines = stderr.splitlines()
    line = next((line for line in lines if "error:" in line), lines[0] if lines else "no word")
    return f"in TERMS of problem.py, {line}" if line.startswith("<stdin>") else line


def _dependencies(path: Path) -> list[str]:
    """The files of a dependency file of make; none where the compiler wrote none."""
    try:
        text = path.read_text().replace("\\\n", " ").replace("$$", "$")
        words = shlex.split(text, comments=False)
    except (OSError, ValueError):
        return []
    return sorted({word for word in words[1:] if word != "-"})


def _hashes(root: Path, files: Iterable[str]) -> dict[str, str]:
    return {file: hashlib.sha256((root / file).read_bytes()).hexdigest() for file in files}


def fill(term: str, values: Mapping[str, int]) -> str:
    """A term with its values, without the summands that have a 0 among them."""
    summands = [
        _EXPRESSION.sub(lambda match: f"{values[match.group(1)]:,}", summand)
        for summand in term.split(" + ")
        if all(values[name] for name in _EXPRESSION.findall(summand))
    ]
    return " + ".join(summands)
