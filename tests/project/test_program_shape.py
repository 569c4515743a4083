"""How a kernel's program is described in experiments.yaml, and what may be wrong with that."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest
from support import ROOT, edit

from kernelexp import project
from kernelexp.model.errors import ConfigurationError
from kernelexp.model.experiment import Program
from kernelexp.project import parse_variant


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return shutil.copytree(ROOT / "tests/projects/sorting", tmp_path / "sorting")


def test_the_first_figure_judges_and_arguments_name_axes(root: Path) -> None:
    variant = parse_variant(project.load(root), "sorting:seed=2")
    assert variant.program is not None
    assert variant.program.judged == "comparisons"
    assert variant.program.command(variant.axes) == ("2000", "2")


def test_what_an_axis_puts_into_an_argument_is_not_looked_at_again(root: Path) -> None:
    edit(root, "'{seed}'", "'{method}{seed}{}{seed'")
    edit(root, "[insertion, shell, heap]", "[insertion, heap, seed]")
    variant = parse_variant(project.load(root), "sorting:method=seed")
    assert variant.program is not None
    assert variant.program.command(variant.axes) == ("2000", "seed1{}{seed")


def test_another_figure_may_judge(root: Path) -> None:
    edit(root, "      gpu: false", "      gpu: false\n      judge: rate")
    variant = parse_variant(project.load(root), "sorting")
    assert variant.program is not None
    assert variant.program.judged == "rate"


def test_a_record_knows_which_figure_judged_though_it_sorts_them(root: Path) -> None:
    edit(root, "comparisons: {pattern", "work: {pattern")
    edit(root, "printed_comparisons", "printed_work")
    program = parse_variant(project.load(root), "sorting").program
    encoded = msgspec.json.encode(program, order="deterministic")
    assert next(iter(msgspec.json.decode(encoded)["figures"])) == "rate"
    assert msgspec.json.decode(encoded, type=Program).judged == "work"


P = "kernels.sorting.program"


@pytest.mark.parametrize(
    ("text", "instead", "sentence"),
    [
        ("    runner: program\n", "", f"{P}: this is read only where the kernel has runner: pro"),
        ("gpu: false", "gpu: false\n      judge: tim", f"{P}.judge: there is no figure 'tim'; did"),
        (
            "    targets:",
            "    gates: [{expected: right}]\n    targets:",
            "sorting.gates: gates are of",
        ),
        ("unit: ms", "better: more", f"{P}.figures.time.better: less of a time is better: ms is"),
        (", better: more", "", f"{P}.figures.rate: say which way Mkeys/s is better: better: less"),
        ("better: more", "better: up", f"{P}.figures.rate.better: 'up' is not allowed; allowed: l"),
        ("in ([0-9.e-]+) ms", "in ms", f"{P}.figures.time.pattern: this has no group: put the"),
        ("<rate>", "<mkeys>", f"{P}.figures.rate.pattern: this has 2 groups: name the one that"),
        ("in ([0-9.e-]+) ms", "in ([0-9 ms", f"{P}.figures.time.pattern: this is not a regular"),
        ("^sorted: yes$", "sorted (", f"{P}.correct: this is not a regular expression: missing ),"),
        (
            "'{seed}'",
            "'{sed}'",
            f"{P}.arguments[1]: sm_90a has no axis 'sed'; did you mean 'se",
        ),
        (
            "time: {p",
            "TIME: {p",
            f"{P}.figures.TIME: 'TIME' is not allowed: a printed figure is",
        ),
        (
            "arguments: ['2000'",
            'arguments: ["a\\nb"',
            f"{P}.arguments[0]: 'a\\nb' is not allowed: an argum",
        ),
        ("source: sorting.cu", "source: sort.cu", "there is no variants/sorting/sort.cu"),
        (
            "source: sorting.cu",
            "source: sorting.cu\n        config: sorting.cu",
            "sm_90a.config: a program has no problem.py whose limits a config header could state.",
        ),
    ],
)
def test_a_mistake_is_a_sentence_with_its_place(
    root: Path, text: str, instead: str, sentence: str
) -> None:
    edit(root, text, instead)
    with pytest.raises(ConfigurationError) as raised:
        project.load(root)
    assert sentence in str(raised.value)


def test_a_program_without_its_description_is_refused(root: Path) -> None:
    text = (root / "experiments.yaml").read_text()
    start, end = text.index("    program:\n"), text.index("    targets:\n")
    (root / "experiments.yaml").write_text(text[:start] + text[end:])
    with pytest.raises(ConfigurationError, match="'program' is missing: say which figures"):
        project.load(root)
