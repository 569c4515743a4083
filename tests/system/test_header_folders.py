"""Folders of headers that a project's file names without saying where they are."""

from __future__ import annotations

import importlib.util
import re
import sysconfig

import pytest

from kernelexp.model import experiment
from kernelexp.system import toolchain


def test_flags_name_the_folders_of_this_machine() -> None:
    python = sysconfig.get_path("include")
    assert toolchain.expanded(("-O3", "-I{python}")) == ("-O3", f"-I{python}")


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")
def test_pytorchs_headers_are_those_of_the_one_that_is_installed() -> None:
    (flag,) = toolchain.expanded(("-I{torch}/torch/csrc/api/include",))
    assert flag == f"-I{toolchain.torch_headers()}/torch/csrc/api/include"


@pytest.mark.parametrize(
    ("flag", "allowed"),
    [("-I{torch}/torch", True), ("-I{python}", True), ("-I{home}", False), ("-I{", False)],
)
def test_a_project_s_file_may_have_these_folders_in_its_flags(flag: str, allowed: bool) -> None:
    assert bool(re.search(experiment.FLAG, flag)) is allowed
