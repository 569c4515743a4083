"""Entries are added to experiments.yaml, and every line that is there stays as it is."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given, strategies
from support import ROOT

from kernelexp.model.errors import ConfigurationError
from kernelexp.project import editing

ENTRY = {"title": "a # b: c", "baseline": {}, "candidate": {"stages": 4}, "hypothesis": "Faster."}
HEAD = "version: 1\nkernels: {}\n"
GAPS = strategies.lists(strategies.sampled_from(["\n", "# margin\n", "  # inside\n", "   \n"]))


@pytest.mark.parametrize("section", ["experiments", "history"])
def test_all_other_lines_of_our_own_file_stay(section: str) -> None:
    text = (ROOT / "experiments.yaml").read_text()
    longer = editing.insert(text, section, {"N1": ENTRY})  # type: ignore[arg-type]
    before, after = text.splitlines(), iter(longer.splitlines())
    assert all(line in after for line in before)
    assert list(yaml.safe_load(longer)[section])[-1] == "N1"
    assert (
        len(longer.splitlines()) == len(before) + 1 + len(editing.to_yaml(ENTRY).splitlines()) + 1
    )


@given(GAPS, GAPS, GAPS, strategies.sampled_from(["", "history: {}\n", "# end\nhistory:\n"]))
def test_an_entry_is_added_between_any_comments(
    first: list[str], second: list[str], third: list[str], rest: str
) -> None:
    entries = f"  E1:{'':3}# mine\n    title: one\n{''.join(second)}  E2: {{title: 'two'}}\n"
    text = f"{HEAD}experiments:\n{''.join(first)}{entries}{''.join(third)}{rest}"
    longer = editing.insert(text, "experiments", {"E3": ENTRY})
    experiments = yaml.safe_load(longer)["experiments"]
    assert experiments == {"E1": {"title": "one"}, "E2": {"title": "two"}, "E3": ENTRY}
    after = iter(longer.splitlines())
    assert all(line in after for line in text.splitlines())


@pytest.mark.parametrize(
    "empty", ["", "experiments:\n", "experiments: {}\n", "experiments:  # none\n"]
)
def test_a_section_without_entries_gets_its_first(empty: str) -> None:
    text = f"{HEAD}{empty}"
    assert yaml.safe_load(editing.insert(text, "experiments", {"E1": ENTRY})) == {
        **yaml.safe_load(HEAD),
        "experiments": {"E1": ENTRY},
    }


def test_a_file_without_a_last_newline_is_extended() -> None:
    text = f"{HEAD}experiments:\n  E1: {{title: one}}"
    assert "E2" in yaml.safe_load(editing.insert(text, "experiments", {"E2": ENTRY}))["experiments"]


@pytest.mark.parametrize("rest", ["", "experiments: {}\n", "experiments:\n  E1: {title: one}"])
def test_lines_end_as_those_of_the_file_do(rest: str) -> None:
    text = f"{HEAD}{rest}".replace("\n", "\r\n")
    longer = editing.insert(text, "experiments", {"E2": ENTRY})
    assert longer.count("\n") == longer.count("\r\n") > text.count("\n")
    shorter = editing.remove(longer, "experiments", [*yaml.safe_load(longer)["experiments"]])
    assert shorter.count("\n") == shorter.count("\r\n")


def test_an_entry_goes_before_a_comment_behind_the_last_one_and_after_a_comment_in_it() -> None:
    text = f"{HEAD}experiments:\n  E1:\n    title: one\n    # in it\n\n  # behind it\n"
    longer = editing.insert(text, "experiments", {"E2": {"title": "two"}})
    assert longer.endswith("    # in it\n\n  E2: {title: two}\n\n  # behind it\n")


def test_an_indent_of_four_is_kept() -> None:
    text = f"{HEAD}experiments:\n    E1: {{title: one}}\n"
    assert "\n    E2:\n      title:" in editing.insert(text, "experiments", {"E2": ENTRY})


@pytest.mark.parametrize(
    "text",
    [
        f"{HEAD}experiments: {{E1: {{title: one}}}}\n",
        "{version: 1, kernels: {}, experiments: {E1: {title: one}}}\n",
    ],
)
def test_a_section_in_braces_is_a_sentence(text: str) -> None:
    with pytest.raises(ConfigurationError, match="experiments is written so that no entry can be"):
        editing.insert(text, "experiments", {"E2": ENTRY})
