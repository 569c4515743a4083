"""Templates to pages: everything escaped, and a policy that runs the page's own script alone.

What people wrote reaches a page as text only: Jinja escapes it, control characters are spelled out,
and the policy names the hashes of the one script and the one style sheet, both inside the page, so
that nothing else runs, is loaded, or is sent anywhere.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import re
from collections.abc import Sequence
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from kernelexp import __version__
from kernelexp.model.experiment import spell_point
from kernelexp.model.text import printable
from kernelexp.report.document import figures
from kernelexp.report.document.document import Cell, text_of
from kernelexp.report.site import svg

_SCRIPTS = (
    ("index.html", "script.js"),
    ("single.html", "script.js"),
    ("listing.html", "listing.js"),
)
_CODE = re.compile(r"`([^`\n]+)`([.,;:)]*)")


def render(template: str, live: bool, **values: Any) -> bytes:
    """A page; `live` adds the script that shows what runs, and the page again when it is newer."""
    scripts = [asset(script) for page, script in _SCRIPTS if page == template]
    scripts += [asset("live.js")] if live else []
    page = environment().get_template(template)
    text = page.render(
        policy=policy(scripts, live),
        scripts=[Markup(script) for script in scripts],
        style=Markup(_style()),
        version=__version__,
        live=live,
        **values,
    )
    return text.encode("utf-8", "replace")


def policy(scripts: list[str], live: bool) -> str:
    """The Content-Security-Policy of a page with these scripts."""
    allowed = " ".join(map(_hash, scripts)) or "'none'"
    connect = "'self'" if live else "'none'"
    return (
        f"default-src 'none'; script-src {allowed}; style-src {_hash(_style())}; "
        f"connect-src {connect}; base-uri 'none'; form-action 'none'"
    )


def _style() -> str:
    return asset("style.css") + asset("plot.css")


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"


@functools.cache
def asset(name: str) -> str:
    """A file beside the templates."""
    source = resources.files(__package__) / "templates" / name
    return source.read_text(encoding="utf-8")


@functools.cache
def environment() -> Environment:
    """Returns the environment that all templates are rendered with; it escapes whatever they are
    given."""
    environment = Environment(
        loader=PackageLoader(__package__ or "", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_spell,
    )
    environment.filters.update(
        kind=lambda block: type(block).__name__,
        cell=_cell,
        prose=_prose,
        figure=figures.value,
        point=spell_point,
        shade=svg.shade,
        fields=_fields,
        differing=_differing,
        word=text_of,
        drawings=lambda plot: (svg.draw(plot), svg.draw(plot, svg.NARROW)),
    )
    return environment


def _cell(cell: Cell) -> Markup:
    """A text in its style. Macros for these would take half of a large project's time."""
    if isinstance(cell, str):
        return _prose(cell)
    return Markup(f'<span class="{cell.style}">{_prose(cell.text)}</span>')


def _code(found: re.Match[str]) -> str:
    code = f"<code>{found[1]}</code>"
    return f'<span class="unit">{code}{found[2]}</span>' if found[2] else code


def _prose(text: str) -> Markup:
    """A text with what is between backticks as code, which a stop after it stays with."""
    escaped = escape(printable(text).removesuffix("`.") + "`" * text.endswith("`."))
    if "`" not in escaped:
        return escaped
    return Markup(_CODE.sub(_code, str(escaped)))  # parts of Markup escape again


def _fields(
    row: Sequence[Cell], numbers: frozenset[int], header: Sequence[str] | None = None
) -> Markup:
    """Renders a row; given the header, cells say on a phone what they are: a row is a paragraph."""
    labels = header or [""] * len(row)
    cells = enumerate(zip(row, labels, strict=True))
    return Markup("".join(_field(cell, place, numbers, label) for place, (cell, label) in cells))


@functools.lru_cache(maxsize=1 << 14)
def _field(cell: Cell, column: int, numbers: frozenset[int], label: str) -> Markup:
    """A cell of a table; that of its first column names the row."""
    attributes = ' class="n"' if column in numbers else ""
    if column and label not in _PLAIN and text_of(cell):
        attributes += f' data-label="{escape(label)}"'
    tag, scope = ("td", "") if column or not text_of(cell) else ("th", ' scope="row"')
    words = _cell(cell)
    if column in numbers and _WITH_UNIT.fullmatch(text_of(cell)):
        words = words.replace(" ", "\N{NO-BREAK SPACE}")
    return Markup(f"<{tag}{scope}{attributes}>{words}</{tag}>")


_WITH_UNIT = re.compile(r"[-+]?[\d.,]+ [a-zA-Z]+")
"""A figure that a narrow column does not part from its unit."""

_PLAIN = ("", "variant", "verdict")
"""Columns whose cells need no name."""


_SIGNS = {"+": "add", "-": "del", "@": "hunk"}


def _differing(lines: Sequence[str]) -> Markup:
    """The lines of a unified difference, each in its style."""
    return Markup(
        "".join(
            f'<span class="{_SIGNS.get(line[:1], "")}">{escape(printable(line))}\n</span>'
            for line in lines
        )
    )


def _spell(value: Any) -> Any:
    """No character of a text moves, hides or ends another."""
    return printable(value) if type(value) is str else value
