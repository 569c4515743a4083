"""How strict the emulator's checker is: the share of mutants of kernels that it finds.

    python benchmarks/mutation_rate.py [-n PROCESSES] [--kernel NAME ...] [--schedules 3]
        [--update [FILE]] [--missed] [--expected] [--compile FILE | --compiled FILE]

Mutants are made by rule (tests/mutations/rules.py, rules_of_text.py) of the kernels in
tests/mutations/subjects.py and executed one by one. --update writes tests/mutations/expected.txt,
which the tests compare with, or another file, kernel by kernel as they are finished; --missed lists
what was not found, and what is equivalent or only formally wrong, with the reasons. --expected
executes no mutant: it prints the tables of expected.txt. --compile writes what nvcc makes of the
kernels to a file, for --compiled on a machine that has no nvcc.
"""

from __future__ import annotations

import argparse
import functools
import os
import platform
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import msgspec
from mutations import expected, judging
from mutations.case import OF_SOURCE, Source
from mutations.judging import Answer, Judge
from mutations.small import Small
from mutations.subjects import SUBJECTS
from mutations.texts import TextSubject
from tabulate import tabulate

from kernelexp.evidence import native
from warpsim import compiled
from warpsim.schedule import first_schedules

ROOT = Path(__file__).parents[1]
CHUNK = 8
"""Mutants that a process takes at once: it has to run the kernel itself first."""
_sources: dict[str, Source] = {}


def _begin(sources: dict[str, Source], library: str) -> None:
    _sources.update(sources)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if library:
        compiled.load(Path(library))


@functools.cache
def _judge(kernel: str) -> Judge:
    return Judge(kernel, _sources[kernel])


def _answers(kernel: str, keys: Sequence[str], schedules: int) -> list[Answer]:
    judge = _judge(kernel)
    return [judge.judge(judge.mutants[key], first_schedules(schedules)) for key in keys]


def _keys(kernel: str) -> list[str]:
    return list(_judge(kernel).mutants)


def _run(
    processes: int, sources: dict[str, Source], schedules: int, update: Path | None
) -> list[Answer]:
    """The dearest kernels first; answers are written when all of a kernel's are there."""
    library, kernels, answers = native.library(ROOT), list(sources), {}
    with ProcessPoolExecutor(processes, initializer=_begin, initargs=(sources, library)) as pool:
        keys = dict(zip(kernels, pool.map(_keys, kernels), strict=True))
        futures = {
            pool.submit(_answers, kernel, keys[kernel][at : at + CHUNK], schedules): kernel
            for kernel in reversed(kernels)
            for at in range(0, len(keys[kernel]), CHUNK)
        }
        missing = Counter(futures.values())
        for number, future in enumerate(as_completed(futures), 1):
            kernel, error = futures[future], future.exception()
            if error is not None:  # The other kernels' answers are not lost.
                print(f"{kernel}: {error!r}", file=sys.stderr)
                continue
            answers |= {answer.key: answer for answer in future.result()}
            missing[kernel] -= 1
            if update is not None and not missing[kernel]:
                expected.write([answers[key] for key in keys[kernel]], update)
            if sys.stderr.isatty():
                print(f"\r{number} of {len(futures)} chunks", end="", file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    return [answers[key] for kernel in kernels if not missing[kernel] for key in keys[kernel]]


def _sources_of(kernels: Sequence[str], file: Path | None) -> dict[str, Source]:
    """Compiled now, or as a file has them."""
    if file is None:
        return {kernel: SUBJECTS[kernel].source() for kernel in kernels}
    known = msgspec.msgpack.decode(file.read_bytes(), type=dict[str, Source])
    return {kernel: known[kernel] for kernel in kernels}


def _expected(kernels: Sequence[str]) -> list[Answer]:
    """What expected.txt says."""
    known, answers = expected.read(), []
    result = [kernel for kernel in kernels if not isinstance(SUBJECTS[kernel], TextSubject)]
    _begin(_sources_of(result, None), native.library(ROOT))
    kinds = {key: mutant.kind for k in result for key, mutant in _judge(k).mutants.items()}
    for key, item in known.items():
        if key.split(" | ")[0] in kernels:
            answers.append(Answer(key, kinds.get(key, OF_SOURCE), expected.outcome(item)))
    return answers


def _table(title: str, groups: dict[str, list[Answer]]) -> str:
    rows = []
    everything = [answer for group in groups.values() for answer in group]
    for name, group in (*groups.items(), ("all", everything)):
        counts = Counter(answer.outcome for answer in group)
        rows.append(
            [name, len(group), *(counts[o] or "" for o in judging.OUTCOMES[:8]), _rate(counts)]
        )
    head = [title, "mutants", *judging.OUTCOMES[:8], "rate"]
    return tabulate(rows, head, tablefmt="github")


def _rate(counts: Counter[str]) -> str:
    """Of those that do harm: neither equivalent, nor formal without a warning."""
    seen = sum(counts[outcome] for outcome in judging.SEEN)
    harm = seen + counts[judging.NOT_FOUND]
    return f"{seen / harm:.1%}" if harm else ""


def _grouped(answers: Sequence[Answer], name: Callable[[Answer], str]) -> dict[str, list[Answer]]:
    groups: dict[str, list[Answer]] = {}
    for answer in answers:
        groups.setdefault(name(answer), []).append(answer)
    return groups


def _row(answer: Answer) -> str:
    """The small kernels together, the variants one by one."""
    subject = SUBJECTS[answer.key.split(" | ")[0]]
    if isinstance(subject, Small):
        return "small kernels"
    if isinstance(subject, TextSubject) and isinstance(subject.of, Small):
        return "their sources"
    return subject.name


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-n", type=int, default=1, metavar="PROCESSES")
    parser.add_argument("--kernel", action="append", choices=list(SUBJECTS), default=[])
    parser.add_argument("--schedules", type=int, default=len(judging.SCHEDULES))
    parser.add_argument("--update", type=Path, nargs="?", const=expected.FILE, metavar="FILE")
    parser.add_argument("--missed", action="store_true")
    parser.add_argument("--expected", action="store_true")
    parser.add_argument("--compile", type=Path, metavar="FILE")
    parser.add_argument("--compiled", type=Path, metavar="FILE")
    options = parser.parse_args()
    started = time.perf_counter()
    kernels = options.kernel or list(SUBJECTS)
    if options.compile:
        options.compile.write_bytes(msgspec.msgpack.encode(_sources_of(kernels, None)))
        return
    if options.expected:
        answers = _expected(kernels)
    else:
        sources = _sources_of(kernels, options.compiled)
        answers = _run(options.n, sources, options.schedules, options.update)
    seconds = time.perf_counter() - started
    print(_table("kind of change", _grouped(answers, lambda answer: answer.kind)), end="\n\n")
    print(_table("kernel", _grouped(answers, _row)), end="\n\n")
    print(f"{options.schedules} schedules, {seconds:.0f} s, {options.n} processes, {_machine()}")
    if options.missed:
        for outcome in (judging.NOT_FOUND, judging.ACCUSED, judging.FORMAL, judging.EQUIVALENT):
            for answer in answers:
                if answer.outcome == outcome:
                    print(f"{answer.line()} {answer.sentence}")


def _machine() -> str:
    """The name of the processor."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()


if __name__ == "__main__":
    main()
