"""A format that is added as docs/evaluate.md says, in a copy of the package."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support import ROOT

PROBLEM = """import torch

SIZES = [7, 100]


def inputs(n):
    return torch.randn(n)


def reference(x):
    return x * 2
"""


@pytest.mark.slow
@pytest.mark.parametrize(("body", "status"), [("x + x", "UNMEASURED"), ("x + 1", "INCORRECT")])
def test_a_fifth_format_is_a_module_and_its_name(tmp_path: Path, body: str, status: str) -> None:
    copy = tmp_path / "site"
    for name in ("kernelexp", "warpsim"):
        shutil.copytree(ROOT / name, copy / name)
    formats = copy / "kernelexp/services/tasks/formats"
    shutil.copy(ROOT / "docs/examples/plain_format.py", formats)
    init = formats / "__init__.py"
    text = init.read_text().replace("import flashinfer,", "import plain_format, flashinfer,")
    init.write_text(text.replace("(gpumode, leetgpu,", "(plain_format, gpumode, leetgpu,"))
    (tmp_path / "plain_problem.py").write_text(PROBLEM)
    (tmp_path / "mine.py").write_text(f"def solve(x):\n    return {body}\n")
    argv = [sys.executable, "-m", "kernelexp", "evaluate", "plain_problem.py", "mine.py"]
    environment = {**os.environ, "PYTHONPATH": str(copy)}
    done = subprocess.run(
        [*argv, "--json", "--no-gpu"], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assessed = json.loads(done.stdout)
    assert (assessed["format"], assessed["status"]) == ("plain", status), assessed["sentence"]
    assert [case["reduced"] for case in assessed["cases"]] == [{}, {"n": [100, 64]}]
