"""The repository's own web pages, rendered once."""

from __future__ import annotations

from pathlib import Path

import pytest
from site_project import build
from support import ROOT


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tests that use these are of one group of xdist's."""
    return build(ROOT, tmp_path_factory.mktemp("pages"))
