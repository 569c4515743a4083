"""What the documentation's pages take from the package itself, and how their links become a site.

Loaded by Sphinx (conf.py). A page names what is to be generated in a comment of its own line,
<!-- generated: commands -->, so that it is Markdown like any other where it is not built.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from kxdocs import cheats, commands, emulator, problem, schema
from kxdocs.links import settle

GENERATED: Mapping[str, Callable[[], str]] = {
    "commands": commands.commands,
    "earlier names": commands.earlier_names,
    "exit codes": commands.exit_codes,
    "experiments.yaml": schema.tables,
    "problem.py": problem.functions,
    "types of problem.py": problem.types,
    "types of a launch": problem.launch_types,
    "cheats": cheats.stopped,
    "cheats with a clock": cheats.stopped_by_the_clock,
    "PTX instructions": emulator.ptx,
    "SASS opcodes": emulator.opcodes,
    "correct kernels": emulator.correct_kernels,
    "reported faults": emulator.reported_faults,
    "pairs": emulator.pairs,
}
_MARK = re.compile(r"^<!-- generated: (.+) -->$", re.MULTILINE)


def fill(text: str) -> str:
    """A page with what it names; KeyError for a name that generates nothing."""
    return _MARK.sub(lambda match: GENERATED[match[1]](), text)


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""

    def begin(app: Any, name: str, source: list[str]) -> None:
        source[0] = fill(source[0])

    def end(app: Any, tree: Any) -> None:
        name = app.env.docname
        settle(app.srcdir, name, tree, map(str, app.env.dependencies[name]))

    app.connect("source-read", begin)
    app.connect("doctree-read", end)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
