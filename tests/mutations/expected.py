"""expected.txt: what became of each mutant when the file was last written.

A line each: kernel | instruction and which of its kind | change | outcome and names of findings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from mutations.judging import OUTCOMES, Answer

FILE = Path(__file__).with_name("expected.txt")


def read() -> Mapping[str, str]:
    """Outcomes by key."""
    lines = (line.rpartition(" | ") for line in FILE.read_text().splitlines())
    return {key: item for key, _, item in lines}


def outcome(said: str) -> str:
    """The outcome at the beginning of what a line says."""
    return next(item for item in OUTCOMES if said.startswith(item))


def write(answers: Iterable[Answer], file: Path = FILE) -> None:
    """Replaces the lines of these mutants' kernels; those of other kernels stay."""
    answers = list(answers)
    kernels = {_kernel(answer.key) for answer in answers}
    kept = file.read_text().splitlines() if file.exists() else []
    lines = [line for line in kept if _kernel(line) not in kernels]
    lines += [answer.line() for answer in answers]
    file.write_text("\n".join(sorted(lines)) + "\n")


def _kernel(key: str) -> str:
    return key.split(" | ")[0]
