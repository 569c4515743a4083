"""experiments.yaml: a mistake is a sentence with file, line, column, key and what is allowed."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from support import ROOT, Kx, edit

from kernelexp import project
from kernelexp.model.errors import ConfigurationError, UsageError
from kernelexp.project.yamlfile import Document

# Text of the file, what takes its place, and the sentence that follows.
MISTAKES = {
    "unknown key": (
        "    why: Not known yet.",
        "    reason: Not known yet.",
        "experiments.yaml:24:5: experiments.S1.reason: unknown key; known: kernel, arch, title, "
        "baseline, candidate, hypothesis, size, sizes, weights, expect, changes, why, decision, "
        "notes.",
    ),
    "expectation of no figure": (
        "    why: Not known yet.",
        "    expect: {time_sm: -30%}",
        "experiments.yaml:24:14: experiments.S1.expect.time_sm: no figure is called 'time_sm'; "
        "did you mean 'time_ms'?",
    ),
    "expectation without a sign": (
        "    why: Not known yet.",
        "    expect: {time_ms: 30%}",
        "experiments.yaml:24:14: experiments.S1.expect.time_ms: '30%': a change has a sign, as in "
        "+5% or -5%.",
    ),
    "expectation of a change's change": (
        "    why: Not known yet.",
        "    expect: {change_percent: -30%}",
        "experiments.yaml:24:14: experiments.S1.expect.change_percent: change_percent is a change "
        "itself: expect one of time_ms, as in time_ms: -30%.",
    ),
    "expectations of more candidates than there are": (
        "    why: Not known yet.",
        "    expect: [{time_ms: -30%}, {time_ms: -40%}]",
        "experiments.yaml:24:5: experiments.S1.expect: this has 2 items: write one for "
        "each candidate (1).",
    ),
    "expectation that is a list": (
        "    why: Not known yet.",
        "    expect: {time_ms: [-30%]}",
        "experiments.yaml:24:14: experiments.S1.expect.time_ms: this should be text, not a list.",
    ),
    "misspelt key": (
        "    hypothesis: Either",
        "    hypotesis: Either",
        "experiments.yaml:33:5: experiments.S2.hypotesis: unknown key; did you mean 'hypothesis'?",
    ),
    "missing key": (
        "    hypothesis: Either is better.\n",
        "",
        "experiments.yaml:25:3: experiments.S2: 'hypothesis' is missing.",
    ),
    "wrong type": (
        "    changes: [one 16-byte access instead of four]",
        "    changes: one 16-byte access instead of four",
        "experiments.yaml:23:5: experiments.S1.changes: this should be a list, not text.",
    ),
    "wrong type of a candidate": (
        "    candidate: {width: 4}",
        "    candidate: 4",
        "experiments.yaml:21:5: experiments.S1.candidate: this should be a mapping or a list, "
        "not a whole number.",
    ),
    "unknown version": (
        "version: 1",
        "version: 2",
        "experiments.yaml:1:1: version: 2 is not allowed; allowed: 1.",
    ),
    "unknown axis": (
        "    candidate: {width: 4}",
        "    candidate: {widht: 4}",
        "experiments.yaml:21:17: experiments.S1.candidate.widht: unknown axis 'widht'; "
        "did you mean 'width'? Known: width, order.",
    ),
    "unknown value": (
        "    candidate: {width: 4}",
        "    candidate: {width: 8}",
        "experiments.yaml:21:17: experiments.S1.candidate.width: axis 'width' has no value '8'; "
        "known: 1, 2, 4.",
    ),
    "value of another type": (
        "    candidate: {width: 4}",
        "    candidate: {width: true}",
        "experiments.yaml:21:17: experiments.S1.candidate.width: axis 'width' has no value 'true'; "
        "known: 1, 2, 4.",
    ),
    "text for a number": (
        "    candidate: {width: 4}",
        '    candidate: {width: "4"}',
        "experiments.yaml:21:17: experiments.S1.candidate.width: axis 'width' takes the number 4, "
        "but this is the text: write it without quotes.",
    ),
    "number near another": (
        "    candidate: {width: 4}",
        "    candidate: {width: 44}",
        "axis 'width' has no value '44'; known: 1, 2, 4.",
    ),
    "default that is text": (
        "default: 1,",
        'default: "1",',
        "the default, the text 1, is not among the values 1, 2, 4.",
    ),
    "second candidate wrong": (
        "      - {width: 4}",
        "      - {order: forwards}",
        "experiments.yaml:32:10: experiments.S2.candidate[1].order: axis 'order' has no value "
        "'forwards'; did you mean 'forward'? Known: forward, backward.",
    ),
    "missing candidate": (
        "    baseline: {}\n    candidate: {width: 4}",
        "    baseline: {}",
        "experiments.yaml:16:3: experiments.S1: 'candidate' is missing.",
    ),
    "candidate that changes nothing": (
        "    candidate: {width: 4}",
        "    candidate: {width: 1}",
        "experiments.yaml:21:5: experiments.S1.candidate: this is identical to the baseline.",
    ),
    "duplicate id": (
        "  S2:\n",
        "  S1:\n",
        "experiments.yaml:25:3: experiments.S1: this key is already on line 16; "
        "keep one of the two.",
    ),
    "duplicate key": (
        "    why: Not known yet.",
        "    title: Another",
        "experiments.yaml:24:5: experiments.S1.title: this key is already on line 19; "
        "keep one of the two.",
    ),
    "id of a step that an experiment has": (
        "  aaaaaaa:",
        "  S1:",
        "experiments.yaml:36:3: history.S1: experiments.yaml:16 defines S1 already; "
        "ids are unique.",
    ),
    "reference to no kernel": (
        "  S1:\n    kernel: scale",
        "  S1:\n    kernel: scales",
        "experiments.yaml:17:5: experiments.S1.kernel: there is no kernel 'scales'; "
        "did you mean 'scale'? Known: scale.",
    ),
    "reference to no target": (
        "    arch: sm_90a\n    title: Four",
        "    arch: sm_100a\n    title: Four",
        "experiments.yaml:18:5: experiments.S1.arch: kernel scale has no target 'sm_100a'",
    ),
    "reference to no source": (
        "source: scale.cu",
        "source: scales.cu",
        "experiments.yaml:9:9: kernels.scale.targets.sm_90a.source: "
        "there is no variants/scale/scales.cu.",
    ),
    "unknown architecture": (
        "      sm_90a:\n",
        "      sm_90:\n",
        "experiments.yaml:8:7: kernels.scale.targets.sm_90: unknown architecture; "
        "did you mean 'sm_90a'?",
    ),
    "default that is not a value": (
        "default: 1,",
        "default: 3,",
        "experiments.yaml:12:11: kernels.scale.targets.sm_90a.axes.width: "
        "the default, 3, is not among the values 1, 2, 4.",
    ),
    "syntax": (
        "    baseline: {}\n    candidate: {width: 4}",
        "    baseline: {\n    candidate: {width: 4}",
        "experiments.yaml:22:5: this is not YAML: while parsing a flow mapping did not find "
        "expected ',' or '}'.",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_a_sentence_with_its_place(name: str, scale: Path) -> None:
    text, instead, sentence = MISTAKES[name]
    edit(scale, text, instead)
    with pytest.raises(ConfigurationError) as caught:
        project.load(scale)
    assert sentence in str(caught.value)


def test_all_mistakes_are_reported_at_once_in_the_order_of_the_file(scale: Path) -> None:
    edit(scale, "    why: Not known yet.", "    reason: x")
    edit(scale, "      - {width: 4}", "      - {width: 3}")
    edit(scale, "default: 1,", "default: 3,")
    with pytest.raises(ConfigurationError) as caught:
        project.load(scale)
    lines = [int(fault.split(":")[1]) for fault in caught.value.faults]
    assert lines == [12, 24, 32]


def test_a_mistake_ends_a_command_with_code_2_and_no_traceback(scale: Path, kx: Kx) -> None:
    edit(scale, "version: 1", "version: 2")
    result = kx("list", cwd=scale)
    assert result.exit_code == 2
    assert result.stderr == "error: experiments.yaml:1:1: version: 2 is not allowed; allowed: 1.\n"


def test_a_commit_of_digits_is_a_name_without_quotes(scale: Path) -> None:
    edit(scale, "  aaaaaaa:", "  6319928:")
    assert project.load(scale).history == ("6319928",)


def test_merge_keys_share_a_baseline(scale: Path) -> None:
    edit(
        scale,
        "    baseline: {}\n    candidate: {width: 4}",
        "    baseline: &b {width: 2}\n    candidate: {<<: *b, width: 4}",
    )
    assert project.load(scale).experiments["S1"].candidates == [{"width": 4}]


def test_a_project_is_found_from_a_folder_below_it(scale: Path) -> None:
    assert project.load(scale / "variants/scale").root == scale


def test_outside_a_project_the_sentence_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match="name one with --project, or start one with kernelexp init"
    ):
        project.load(tmp_path)


def test_an_unknown_experiment_is_answered_with_the_nearest(kx: Kx) -> None:
    result = kx("show", "F33")
    assert result.exit_code == 2
    assert "there is no experiment 'F33'; did you mean 'F3'? kernelexp show" in result.stderr
    assert "did you mean 'transpose'?" in kx("show", "transpos").stderr


def test_the_schema_accepts_the_repository_s_own_file(kx: Kx) -> None:
    import jsonschema

    schema = msgspec.json.decode(kx("show", "--schema", "project").stdout)
    value = Document((ROOT / "experiments.yaml").read_text(), "experiments.yaml").value
    jsonschema.validate(value, schema)


def test_a_kernel_s_name_is_told_from_an_experiment_s(kx: Kx) -> None:
    result = kx("run", "transpose")
    assert result.exit_code == 2
    assert "transpose is a kernel, not an experiment: kernelexp emulate transpose" in result.stderr
