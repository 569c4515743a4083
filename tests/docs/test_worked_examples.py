"""The worked examples: kernels of other tools, as their pages show them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from support import ROOT


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "package"),
    [("torch-extension.md", "torch"), ("cutlass.md", "cutlass_library"), ("triton.md", "triton")],
)
def test_a_worked_example_prints_what_its_page_shows(page: str, package: str) -> None:
    pytest.importorskip(package, reason="pip install -e '.[examples]'")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "cogapp",
            "--check",
            "--diff",
            "-I",
            "tests",
            f"docs/examples/{page}",
        ],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
