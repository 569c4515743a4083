"""Which variants a change since a revision touches, by its files."""

from __future__ import annotations

from pathlib import Path

import pytest
from repositories import git, repository

from kernelexp import project
from kernelexp.services.check import affected, gates

HEADER = "variants/include/vector.cuh"
SOURCE = "variants/scale/scale.cu"


def touched(root: Path, change: str, text: str) -> int:
    """How many of the three variants a change of one file touches."""
    repository(root)
    with (root / change).open("a") as file:
        file.write(text)
    loaded = project.load(root)
    head = git(root, "rev-parse", "HEAD")
    return len(affected.since(loaded, head, gates.named_variants(loaded)))


@pytest.mark.parametrize(
    ("change", "text", "count"),
    [
        (SOURCE, "// a comment\n", 3),
        (HEADER, "// a comment\n", 3),
        ("variants/scale/problem.py", "# a comment\n", 3),
        ("variants/include/other.cuh", "// nobody includes it\n", 0),
        ("variants/scale/README.md", "words\n", 0),
        ("other.py", "# not of a kernel\n", 0),
    ],
)
def test_a_file_counts_if_it_goes_into_a_variant(
    cold: Path, change: str, text: str, count: int
) -> None:
    assert touched(cold, change, text) == count


def test_where_a_macro_names_an_include_every_file_of_the_kernels_counts(cold: Path) -> None:
    with (cold / SOURCE).open("a") as file:
        file.write("#include OTHER\n")
    assert touched(cold, "variants/include/other.cuh", "// perhaps\n") == 3


@pytest.mark.parametrize("follows", [True, False])
def test_a_header_that_was_renamed_counts(cold: Path, follows: bool) -> None:
    repository(cold)
    git(cold, "mv", HEADER, "variants/include/wide.cuh")
    if follows:
        source = cold / SOURCE
        source.write_text(source.read_text().replace("vector.cuh", "wide.cuh"))
    loaded = project.load(cold)
    head = git(cold, "rev-parse", "HEAD")
    assert len(affected.since(loaded, head, gates.named_variants(loaded))) == 3
