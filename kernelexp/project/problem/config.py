"""Figures that a kernel's config header computes, read with the host compiler in 0.1 s.

A header that a target names as its `config` holds sizes (KX_EXPORT) and rules (static_assert) in
plain C++. The host compiler evaluates both, so that a variant which can't exist is refused before
nvcc has compiled anything, in the sources' own words, and nobody types the arithmetic twice.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import shlex
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from kernelexp.model.errors import EnvironmentFault
from kernelexp.model.experiment import Variant
from kernelexp.model.problem import Budget
from kernelexp.system import disk, toolchain
from kernelexp.system.disk import decode
from kernelexp.system.process import processes

FOLDER = ".kernelexp/config"
INCLUDE = "variants/include"
TIMEOUT_S = 60.0
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
        *("-I", ".", "-I", INCLUDE, "-I", str(toolchain.HEADERS), "-c", "-"),
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
