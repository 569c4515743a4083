"""action.yml: the step of GitHub Actions that runs `kernelexp exec`."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
import yaml
from support import ROOT

from kernelexp.model import errors

ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
INSTALL, RUN = ACTION["runs"]["steps"]
PAGE = (ROOT / "docs/programs.md").read_text()

pytestmark = pytest.mark.xdist_group("exec")


def filled(text: str, given: dict[str, str]) -> str:
    """With each ${{ inputs.NAME }} replaced as a runner does."""

    def value(match: re.Match[str]) -> str:
        return given.get(match[1]) or str(ACTION["inputs"][match[1]]["default"])

    return re.sub(r"\$\{\{ inputs\.(\w+) \}\}", value, text)


def run_step(step: dict[str, Any], given: dict[str, str], cwd: Path, **variables: str) -> int:
    """As `shell: bash` runs it: bash --noprofile --norc -eo pipefail."""
    step_variables = {name: filled(text, given) for name, text in step["env"].items()}
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **step_variables, **variables}
    argv = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    return subprocess.run(argv, cwd=cwd, env=environment, check=False).returncode


def test_its_step_writes_both_files_and_ends_as_exec_does(tmp_path: Path) -> None:
    tools = tmp_path / "temp/kernelexp/bin"
    tools.mkdir(parents=True)
    (tools / "kernelexp").write_text(f'#!/bin/sh\nexec {sys.executable} -m kernelexp "$@"\n')
    (tools / "kernelexp").chmod(0o755)
    (tmp_path / "my reverse.cu").write_text((ROOT / "docs/examples/reverse.cu").read_text())
    given = {"program": "'my reverse.cu' --flags=-O1", "junit": "tests of exec.xml"}
    returncode = run_step(RUN, given, tmp_path, RUNNER_TEMP=str(tmp_path / "temp"))
    assert returncode == errors.WRONG_RESULT
    (result,) = json.loads((tmp_path / "kernelexp.sarif").read_text())["runs"][0]["results"]
    location = result["locations"][0]["physicalLocation"]
    assert location["artifactLocation"]["uri"].endswith("reverse.cu")
    assert ET.parse(tmp_path / "tests of exec.xml").getroot().findall(".//failure")


def test_what_the_page_passes_are_its_inputs() -> None:
    (text,) = re.findall(r"^```yaml\n(on:.*?)^```$", PAGE, re.M | re.S)
    (job,) = yaml.safe_load(text)["jobs"].values()
    (step,) = (step for step in job["steps"] if "kernelexp@" in step.get("uses", ""))
    assert set(step["with"]) <= set(ACTION["inputs"])
    required = {name for name, value in ACTION["inputs"].items() if value.get("required")}
    assert required <= set(step["with"])
    upload = job["steps"][-1]
    assert upload["with"]["sarif_file"] == ACTION["inputs"]["sarif"]["default"]


def test_every_input_is_used() -> None:
    text = json.dumps(ACTION["runs"])
    assert set(re.findall(r"inputs\.(\w+)", text)) == set(ACTION["inputs"])
