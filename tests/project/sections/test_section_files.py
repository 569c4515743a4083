"""A user's section file: what it can say, and a sentence for every mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelexp.model.arm import ProfiledEvidence
from kernelexp.model.errors import ConfigurationError, UsageError
from kernelexp.project import sections
from kernelexp.project.sections.evaluate import evaluate
from kernelexp.project.sections.given import GIVEN

GOOD = """
version: 1
name: occupancy
title: Occupancy
metrics:
  active: {metric: sm__warps_active.avg.per_cycle_active, label: warps, unit: warps}
derived:
  share:
    label: share
    unit: "%"
    formula: 100 * active / 64
    text:
      - {when: share < 25, text: "Only {active} of 64."}
      - text: Enough.
caveats:
  - {without: active, text: Nothing is known.}
"""


def _evidence(**figures: float) -> ProfiledEvidence:
    return ProfiledEvidence(entry="k", figures={**figures}, capability="9.0")


def test_a_users_file_is_a_section_like_any_other(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(GOOD)
    (section,) = sections.find([str(tmp_path / "mine.yaml")])
    evidence = ProfiledEvidence(
        entry="k", figures={"sm__warps_active.avg.per_cycle_active": 12.0}, capability="9.0"
    )

    share = evaluate(section, evidence).values[1]

    assert sections.metrics_to_ask([section], "gh100") == ("sm__warps_active.avg.per_cycle_active",)
    assert (share.value, share.text) == (18.75, "Only 12 warps of 64.")


def test_a_sentence_can_be_for_what_is_not_known() -> None:
    reading = evaluate(sections.parse(GOOD, "mine.yaml"), _evidence())

    assert reading.caveats == ("Nothing is known.",)


def _with(old: str, new: str) -> str:
    assert old in GOOD
    return GOOD.replace(old, new)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (_with("formula: 100 * active / 64", "formula: 100 * activ / 64"),
         "derived.share.formula: no value 'activ'; did you mean 'active'?"),
        (_with("formula: 100 * active / 64", "formula: active ** 99"), "a power"),
        (_with("formula: 100 * active / 64", "formula: []"), "give at least one formula"),
        (_with("when: share < 25", "when: share <"), "'share <' is not a formula"),
        (_with("{active} of", "{actve} of"), "no value 'actve' for {actve}; did you mean 'active'"),
        (_with("without: active", "without: other"), "no value 'other'"),
        (_with("  active: {", "  flops: {"), "flops already means something in formulas"),
        (_with("  share:\n", "  active:\n"), "active is already the name of a value above"),
        (_with("  share:\n", "  Share:\n"), "a name in formulas is lower-case letters"),
        (_with("label: warps,", "labl: warps,"), "unknown key; did you mean 'label'?"),
        (_with("title: Occupancy\n", ""), "'title' is missing"),
        (_with("version: 1", "version: 2"), "2 is not allowed; allowed: 1"),
        (_with("metric: sm__warps_active.avg.per_cycle_active", "metric: a b"), "a name of ncu's"),
        (_with("metric: sm__warps_active.avg.per_cycle_active", "metric: {gh10: a.sum}"),
         "metrics.active.metric.gh10: no chip 'gh10'; did you mean 'gh100'?"),
        (_with("metric: sm__warps_active.avg.per_cycle_active", "metric: {}"),
         "name the metric on at least one chip"),
        ("version: 1\nname: a\ntitle: A\n", "a section has metrics"),
        ("version: [", "this is not YAML"),
        ("- 1\n", "should be a mapping"),
        ("", "is missing"),
    ],
)  # fmt: skip
def test_a_mistake_is_a_sentence_with_its_place(text: str, sentence: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        sections.parse(text, "mine.yaml")

    assert sentence in str(raised.value)
    assert str(raised.value).startswith("mine.yaml:")


def test_all_mistakes_are_said_at_once() -> None:
    text = _with("100 * active / 64", "1 +").replace("{active} of", "{x} of")

    with pytest.raises(ConfigurationError) as raised:
        sections.parse(text, "mine.yaml")

    assert len(raised.value.faults) == 2


def test_a_section_that_does_not_exist_is_named_with_those_that_do() -> None:
    with pytest.raises(UsageError, match=r"no section 'tensr'; did you mean 'tensor'\?"):
        sections.find(["tensr"])


def test_a_file_that_is_not_there_or_no_text_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe")

    with pytest.raises(UsageError, match="can't be opened"):
        sections.find([str(tmp_path / "none.yaml")])
    with pytest.raises(UsageError, match="not UTF-8"):
        sections.find([str(tmp_path / "bytes.yaml")])


def test_the_sections_are_the_nine_of_a_report() -> None:
    assert [item.name for item in sections.find()] == list(sections.NAMES)


def test_the_example_of_the_docs_is_a_section() -> None:
    text = (Path(__file__).parents[3] / "docs/profiling.md").read_text()
    example = text.partition("```yaml\n")[2].partition("```")[0]

    assert sections.parse(example, "docs/profiling.md").name == "occupancy"


def test_the_docs_name_every_section_and_every_given_value() -> None:
    text = (Path(__file__).parents[3] / "docs/profiling.md").read_text()

    assert [name for name in (*sections.NAMES, *GIVEN) if f"`{name}`" not in text] == []
