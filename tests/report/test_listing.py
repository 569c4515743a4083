"""`inspect --lines --page`: source beside SASS and PTX in one file."""

from __future__ import annotations

import html
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from support import Kx

from kernelexp.evidence.code import ptx_lines
from kernelexp.model import errors

VARIANTS = ("scale:order=forward", "scale:order=backward")


class Rows(HTMLParser):
    """Ids, links and texts of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.captions: list[str] = []
        self._in = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._in = tag
        values = dict(attrs)
        if "id" in values:
            self.ids.append(str(values["id"]))
        if tag == "a":
            self.links.append(str(values["href"]))

    def handle_data(self, data: str) -> None:
        if self._in == "caption" and data.strip():
            self.captions.append(data.strip())


@pytest.fixture
def page(scale: Path, kx: Kx) -> str:
    result = kx("inspect", *VARIANTS, "--lines", "--page", "listing.html", cwd=scale)
    assert result.exit_code == errors.OK, result.stderr
    return (scale / "listing.html").read_text()


def test_each_line_of_an_instruction_leads_to_the_source(page: str) -> None:
    rows = Rows()
    rows.feed(page)
    assert len(rows.ids) == len(set(rows.ids))
    lines = [link[1:] for link in rows.links if link.startswith("#L")]
    assert lines
    assert set(lines) <= set(rows.ids)
    assert any(re.fullmatch(r"I0-0-\d+", identity) for identity in rows.ids)


def test_source_sass_and_ptx_of_both_variants_are_in_it(page: str) -> None:
    rows = Rows()
    rows.feed(page)
    assert rows.captions[0] == "variants/scale/scale.cu"
    kinds = [caption.split(" of ")[0] for caption in rows.captions[1:]]
    assert kinds == ["SASS", "SASS", "PTX", "PTX"]
    assert "EXIT" in page
    assert re.search(r"<code>ld\.global", page)


def test_it_names_what_counted_its_figures_and_loads_nothing(page: str) -> None:
    assert "instructions (emulated on SASS)" in page
    assert "default-src 'none'" in html.unescape(page)
    assert "http" not in page.replace('http-equiv="Content', "")


def test_a_place_that_cannot_be_written_is_one_sentence(scale: Path, kx: Kx) -> None:
    (scale / "taken").mkdir()
    result = kx("inspect", VARIANTS[0], "--lines", "--page", "taken", cwd=scale)
    assert result.exit_code == errors.USAGE
    assert "--page taken can't be written" in result.stderr


def test_ptx_has_the_line_of_its_latest_directive() -> None:
    ptx = """
.visible .entry one(
    .param .u64 a
)
{
    .reg .b64 %rd<3>;
    .loc 1 7 0
$L__tmp0:
    ld.param.u64 %rd1, [a];
    .loc 2 3 5, function_name $L__info0, inlined_at 1 9 1
    cvta.to.global.u64 %rd2, %rd1;
    ret;
}
    .file 1 "/there/variants/a/a.cu"
    .file 2 "/there/variants/a/b.cuh"
"""
    instructions = ptx_lines.read(ptx, "one")
    assert [(Path(instruction.file).name, instruction.line) for instruction in instructions] == [
        ("a.cu", 7),
        ("b.cuh", 3),
        ("b.cuh", 3),
    ]
    assert instructions[0].text == "ld.param.u64 %rd1, [a]"
    assert ptx_lines.read(ptx, "other") == ()
