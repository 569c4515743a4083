"""Links of a page to files of the repository, which the site does not have."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from docutils import nodes
from sphinx import addnodes

PAGES = {"README.md": "index", "kernelexp/model/problem.py": "reference/problem"}
"""Files of the repository whose content is a page."""


def settle(srcdir: str | Path, page: str, tree: nodes.document, included: Iterable[str]) -> None:
    """Makes links to files outside of docs/ their text, as code.

    included: files that the page includes, from `srcdir`; links may start from their folders too.
    A link to what does not exist stays, and fails the build.
    """
    source = Path(srcdir).resolve()
    folders = [(source / page).parent, *((source / item).resolve().parent for item in included)]
    for node in [*tree.findall(addnodes.pending_xref), *tree.findall(addnodes.download_reference)]:
        target, _, anchor = str(node["reftarget"]).partition("#")
        is_page = node.get("refdomain") == "doc"  # the path from srcdir then, without its suffix
        name = f"{target}.md" if is_page else target
        paths = [(folder / name).resolve() for folder in ([source] if is_page else folders)]
        path = next((path for path in paths if path.exists()), source)
        if not target or path.is_relative_to(source):
            continue
        name = path.relative_to(source.parent).as_posix()
        if name in PAGES:
            _redirect(node, page, PAGES[name], anchor)
        else:
            node.replace_self(nodes.literal(name, name))


def _redirect(node: nodes.Element, page: str, target: str, anchor: str) -> None:
    to = addnodes.pending_xref(
        refdomain="doc",
        reftarget=target,
        reftargetid=anchor or None,
        refdoc=page,
        reftype="myst",
        refexplicit=True,
    )
    to.extend(node.children)
    node.replace_self(to)
