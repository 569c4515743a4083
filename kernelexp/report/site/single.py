"""A report as one file that holds every page and shows one of them, without any script.

The page that holds the address's fragment is shown (CSS `:target`), else the first one. Links
between pages become fragments, and ids are prefixed with the name of their page.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator
from urllib.parse import quote, unquote

import msgspec
from markupsafe import Markup, escape

from kernelexp.report.site import rendering
from kernelexp.report.site.site import INDEX, LOG, ProjectSite

MARK = b"Rendered by kernelexp"
"""In every file that this writes."""
_TAG = re.compile(r"<[^>]*>")  # in text and attributes > is escaped
_LINK = re.compile(r' (id|href)="([^"]*)"')
_PARTS = re.compile(r"<header>(.*?)</header>\s*<main[^>]*>(.*)</main>", re.DOTALL)


class SinglePage(msgspec.Struct, frozen=True, kw_only=True):
    """A page inside the file."""

    name: str
    header: Markup
    content: Markup


def render(site: ProjectSite) -> bytes:
    """The whole site but for its figures as JSON."""
    pages = dict(_pages(site))
    names = {path: _name(path) for path in pages}
    return rendering.render(
        "single.html",
        live=False,
        title=site.title,
        root="",
        pages=[_page(path, text, names) for path, text in pages.items()],
    )


def _pages(site: ProjectSite) -> Iterator[tuple[str, str]]:
    """Pages by path, the first one first; sources are known once others are rendered."""
    rendered = {LOG}
    while fresh := [path for path in site.paths() if path not in rendered]:
        for path in fresh:
            rendered.add(path)
            if (content := site.render(path)) is not None:
                yield path, content.decode()


def _name(path: str) -> str:
    """index, experiments/F3, ... as an id."""
    return path.removesuffix(".html").replace("/", "-")


def _page(path: str, text: str, names: dict[str, str]) -> SinglePage:
    parts = _PARTS.search(text)
    assert parts is not None, "base.html has both"
    header, content = (_rewritten(part, path, names) for part in parts.groups())
    return SinglePage(name=names[path], header=header, content=content)


def _rewritten(text: str, path: str, names: dict[str, str]) -> Markup:
    """Its ids and links as they are inside the file."""
    rewrite = _rewriter(path, names)
    return Markup(_TAG.sub(lambda tag: _LINK.sub(rewrite, tag[0]), text))


def _rewriter(path: str, names: dict[str, str]) -> Callable[[re.Match[str]], str]:
    """The first page's own ids stay, which its script looks for."""
    prefix = "" if path == INDEX else f"{names[path]}--"

    def rewrite(attribute: re.Match[str]) -> str:
        kind, value = attribute.groups()
        if kind == "id":
            return f' id="{prefix}{value}"'
        target, _, fragment = value.partition("#")
        other = posixpath.normpath(posixpath.join(posixpath.dirname(path), unquote(target)))
        if not target:
            return f' href="#{prefix}{fragment}"'
        if other not in names:
            return attribute[0] if ":" in target else ""
        inside = "" if other == INDEX else f"{names[other]}--"
        return f' href="#{escape(f"{inside}{fragment}" if fragment else quote(names[other]))}"'

    return rewrite
