"""What a record holds of the files of a problem.py."""

from __future__ import annotations

from pathlib import Path

from kernelexp.project.problem import files, loader

COUNTS = """
SIZES = {"larger": {"count": 8192}}


def loads(axes, size):
    return size["count"] // 64
"""


def test_what_counts_are_scaled_by_is_in_no_record_but_in_the_key_of_emulations(
    scale: Path,
) -> None:
    before, key = files.digests(scale, "scale"), files.key(scale, "scale")
    counts = scale / "variants/scale/counts.py"
    counts.write_text(COUNTS)
    assert files.digests(scale, "scale") == before
    assert files.key(scale, "scale") != key


def test_counts_beside_a_problem_add_sizes_and_loads(scale: Path) -> None:
    (scale / "variants/scale/counts.py").write_text(COUNTS)
    problem = loader.load(scale, "scale")
    assert problem.sizes["larger"] == {"count": 8192}
    assert problem.sizes["emulated"] == {"count": 4096}
    assert problem.loads({}, problem.sizes["larger"], {}) == 128
