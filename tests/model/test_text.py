"""Others' words: nothing of them acts on a terminal or on a markdown document, and they survive."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from kernelexp.model.text import (
    CONTROL,
    markdown,
    markdown_line,
    printable,
    shorten,
    shorten_template,
)

MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])

# Of what markdown gives a meaning to, more often than of what it does not.
MEANINGFUL = st.text(
    st.sampled_from("#->+*_=~`|:<>[]()!&;\\/.019 ab\n\t") | st.characters(), max_size=60
)
WORDS = st.sampled_from(
    [
        *["tile_n", "4*2", "# a", "- b", "1. c", "> d", "---", "===", "```", "~~~", "| a | b |"],
        *["|-|-|", ":-", "<b>", "</b>", "<!-- x -->", "[a](b)", "![a](b)", "[a]: b", "<http://a>"],
        *["`x_y`", "&lt;", "__init__", "**", "*a*", "~~", "~0.7 ms", "a < b", "##", "\\", "  "],
        *["\n", "\n\n"],
    ]
)
TEXT = MEANINGFUL | st.lists(WORDS, max_size=12).map(" ".join) | st.lists(WORDS).map("".join)

PROSE = [
    "tile_n 4*2 stays, a < b <= c, [128, 64] and x[3]; ~0.7 ms against ~0.8 ms (50%).",
    "`[928256, 768] x [768, 768]^T`, FP8 E4M3 in, BF16 out",
    'F3 -> F4: 2 - 1 = 1, #5, C++ and A/B; it\'s "done" & dusted!',
    "First paragraph,\nof two lines.\n\nSecond paragraph.",
]


@given(st.text())
def test_printable_text_has_no_control_characters_and_stays_so(text: str) -> None:
    shown = printable(text)
    assert not CONTROL.search(shown)
    assert printable(shown) == shown
    shown.encode("utf-8")


def test_control_characters_are_spelled_out_and_line_breaks_stay() -> None:
    assert printable("a\x1b[31m\tb\r\nc\x7f\u202e\udcff") == "a\\x1b[31m\tb\nc\\x7f\\u202e\\xff"


@given(st.text(), st.integers(min_value=1, max_value=50))
def test_shortened_text_is_no_longer_than_asked(text: str, most: int) -> None:
    assert len(shorten(text, most)) <= max(most, 0)


@pytest.mark.parametrize("text", PROSE)
def test_ordinary_prose_is_the_same_in_markdown(text: str) -> None:
    assert markdown(text) == text
    assert markdown(markdown(text)) == text


@settings(max_examples=300, deadline=None)
@given(TEXT)
@example("*`0`*")
@example("*a + b* and __global__ void *p")
@example("a | b\n:-")
@example("a\n===\n# b\n\n    code")
@example("1) a\n2) b")
@example("x ``y` z")
@example("[a]\n(b) ![c][d] [e]: f")
def test_markdown_is_paragraphs_with_the_same_words(text: str) -> None:
    tokens = MARKDOWN.parse(markdown(text))
    assert {token.type for token in tokens} <= {"paragraph_open", "inline", "paragraph_close"}
    shown = "".join(words(token) for token in tokens if token.type == "inline")
    assert squeezed(shown) == squeezed(printable(text))


@settings(max_examples=300, deadline=None)
@given(TEXT)
@example("a ##")
@example("#######")
def test_a_line_fits_a_heading_a_list_item_and_a_cell(text: str) -> None:
    line = markdown_line(text)
    document = f"# F1: {line}\n\n1. {line}\n\n| a | b |\n|---|---|\n| {line} | x |\n"
    tokens = MARKDOWN.parse(document)
    counted = [token.type for token in tokens if token.type.endswith("_open")]
    assert counted.count("heading_open") == 1
    assert counted.count("list_item_open") == 1
    assert counted.count("td_open") == 2
    inlines = [token for token in tokens if token.type == "inline"]
    for token in (inlines[0], inlines[1], inlines[-2]):
        assert squeezed(words(token)).endswith(squeezed(printable(text)))
    assert words(inlines[-1]) == "x"


def words(inline: object) -> str:
    """The text of an inline token, all of whose parts must be text or code."""
    children = inline.children or []  # type: ignore[attr-defined]
    assert {child.type for child in children} <= {"text", "softbreak", "code_inline"}
    return "".join(spell(child) for child in children)


def spell(child: object) -> str:
    kind, content = child.type, child.content  # type: ignore[attr-defined]
    return f"`{content}`" if kind == "code_inline" else "\n" if kind == "softbreak" else content


def squeezed(text: str) -> str:
    return re.sub(r"\s+", "", text)


def test_a_name_loses_the_arguments_of_its_innermost_templates_first() -> None:
    name = "gemm<tuple<C<128>, C<64> >, half_t, Tile<tuple<C<1>, C<8> > > >"
    assert shorten_template(name, 200) == name
    assert shorten_template(name, 56) == "gemm<tuple<C<...>, C<...> >, half_t, Tile<tuple<...> > >"
    assert shorten_template(name, 44) == "gemm<tuple<...>, half_t, Tile<...> >"
    assert shorten_template(name, 10) == "gemm<...>"


def test_a_symbol_that_no_demangler_reads_is_shortened_to_its_own_name() -> None:
    symbol = "_Z11gemm_deviceI" + "S0_" * 60
    assert shorten_template(symbol) == "gemm_device<...>"
    assert shorten_template("_Z4gemmIXE") == "_Z4gemmIXE"


def test_a_name_that_is_no_template_ends_in_an_ellipsis() -> None:
    assert shorten_template("abcdefgh", 5) == "abcd…"
