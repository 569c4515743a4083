"""Which tests run in one process: those that share what a process makes only once.

xdist 3.8 marks groups in an attribute of tests that pytest 9.2 no longer reads: `--dist loadgroup`
parts them.
"""

from __future__ import annotations

import functools
import re

from support import ROOT
from xdist.scheduler import LoadScopeScheduling

_MARKED = re.compile(r'xdist_group\("(.+?)"\)')
_SHARING = re.compile(r'scope="(module|session)"|@functools\.cache')


class Together(LoadScopeScheduling):
    """Tests of one group, else those of a file that keeps what it has made, else each by itself.

    The largest of these go first.
    """

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid.partition("::")[0]) or nodeid


@functools.cache
def group_of(file: str) -> str:
    """Empty where any process may run any of its tests."""
    text = (ROOT / file).read_text()
    if marked := _MARKED.search(text):
        return marked[1]
    return file if _SHARING.search(text) else ""
