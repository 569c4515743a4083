"""A source as two variants see it: what #if leaves out, what axes stand for, what has code."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelexp.report.site import seen

SOURCE = """\
#ifndef KX_STORE
#error "KX_STORE is missing"
#endif
#if KX_STAGES > 2 && !defined(__CUDA_ARCH__)
one;
#elif KX_STAGES == 2
two;
#else
three;
#endif
int stages = KX_STAGES;  // KX_STAGES of them
"""


def see(text: str, **defines: str) -> list[str | None]:
    return list(seen.lines(text.splitlines(), defines, defines.keys()))


def test_branches_that_defines_decide_are_left_out() -> None:
    kept = see(SOURCE.replace(" && !defined(__CUDA_ARCH__)", ""), KX_STAGES="2", KX_STORE="tma")
    assert [item for item in kept if item] == [
        "#ifndef KX_STORE",
        "#endif",
        "#if KX_STAGES > 2",
        "#elif KX_STAGES == 2",
        "two;",
        "#else",
        "#endif",
        "int stages = 2;  // KX_STAGES of them",
    ]


def test_branches_that_something_else_decides_stay() -> None:
    kept = see(SOURCE, KX_STAGES="4", KX_STORE="tma")
    assert [item for item in kept if item and item.endswith("e;")] == ["one;", "three;"]


@pytest.mark.parametrize(
    "text", ["#if KX_A\nx", "x\n#endif", "#else\nx\n#endif", "#if 1\n#elif 0\n#endif\n#endif"]
)
def test_conditions_without_their_ends_leave_nothing_out(text: str) -> None:
    assert see(text, KX_A="0") == text.splitlines()


@pytest.mark.parametrize(
    "condition",
    [
        *("KX_A + other", "1 << 99999999999", "(" * 900, "-" * 1000 + "1", "9 ** 9 ** 9", "1 / 0"),
        *("1 +", "1u < 2", "1 2", ") 1", "", "KX_A \\", "'a' == 97", "__has_include(<x>)"),
        "9" * 5000,
    ],
)
def test_a_condition_that_can_not_be_decided_leaves_both_branches(condition: str) -> None:
    text = f"#if {condition}\na\n#else\nb\n#endif"
    assert see(text, KX_A="1") == text.splitlines()


_COMPARED = r"(?:==|!=|<|>=)"
_CHAINED = re.compile(rf"{_COMPARED}.*{_COMPARED}")
conditions = st.recursive(
    st.sampled_from(["KX_A", "KX_B", "0", "1", "7L", "0x10", "defined(KX_A)", "defined KX_B"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("&& || == != < >= + - * / %".split()), inner).map(
            " ".join
        ),
        st.tuples(st.sampled_from(["!({})", "-({})", "({})", "!{}"]), inner).map(
            lambda item: item[0].format(item[1])
        ),
    ),
    max_leaves=6,
)
"""Their % may be of 0, which no compiler accepts."""


@pytest.mark.slow
@given(st.lists(conditions, min_size=3, max_size=3), st.integers(0, 9), st.integers(1, 9))
@settings(max_examples=60, deadline=None)
def test_what_is_left_is_what_the_compiler_keeps(several: list[str], a: int, b: int) -> None:
    one, two, three = several
    text = f"#if {one}\np\n#if {two}\nq\n#else\nr\n#endif\n#elif {three}\ns\n#else\nt\n#endif\n"
    argv = ["g++", "-E", "-P", f"-DKX_A={a}", f"-DKX_B={b}", "-x", "c++", "-"]
    done = subprocess.run(argv, input=text, capture_output=True, text=True)
    if done.returncode != 0:
        return  # a division by zero
    defines = {"KX_A": str(a), "KX_B": str(b)}
    kept = [item for item in see(text, **defines) if item and item[0] != "#"]
    if all(_CHAINED.search(condition) is None for condition in several):
        assert kept == done.stdout.split()
    else:  # `a == b == c`, which Python means otherwise, is not decided: its branches stay
        assert set(kept) >= set(done.stdout.split())


def test_a_difference_names_its_lines_and_shows_what_only_one_has() -> None:
    text = "a\nb\nc\nd\nint n = KX_N;\n#if KX_N > 1\nmany\n#endif".splitlines()
    before, after = (seen.lines(text, {"KX_N": value}, {"KX_N"}) for value in "12")
    before, after = seen.without_others(before, after, {1, 2}, {2, 3})
    assert list(seen.difference(before, after)) == [
        "@@ line 1 @@",
        "-a",
        " b",
        "+c",
        " d",
        "-int n = 1;",
        "+int n = 2;",
        " #if KX_N > 1",
        "+many",
        " #endif",
    ]


def test_alike_sources_have_no_difference() -> None:
    assert list(seen.difference(["a", None], ["a", None])) == []


def test_strings_and_comments_keep_their_words() -> None:
    assert see('f("KX_A", KX_A); // KX_A', KX_A="7") == ['f("KX_A", 7); // KX_A']


def test_sources_of_the_repository_are_read(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    for path in sorted((root / "variants").rglob("*.cu*")):
        text = path.read_text().splitlines()
        kept = seen.lines(text, {"KX_STAGES": "4"}, {"KX_STAGES"})
        assert len(kept) == len(text)
