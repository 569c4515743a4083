"""What the machine has, and what is said where something is missing."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from support import Kx

from kernelexp.model import errors


def test_what_a_build_needs_is_found_with_its_version(scale: Path, kx: Kx) -> None:
    result = kx("doctor", "--json", cwd=scale)
    assert result.exit_code == errors.OK
    facts = {fact["name"]: fact for fact in json.loads(result.stdout)}
    assert facts["nvcc"]["found"].startswith("13.0.")
    assert all(facts[name]["found"] for name in ("host compiler", "torch"))


def test_a_missing_compiler_ends_with_6_and_says_what_to_do(
    scale: Path, kx: Kx, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(scale))
    result = kx("doctor", cwd=scale)
    assert result.exit_code == errors.ENVIRONMENT
    assert "missing" in result.stdout


def test_a_build_without_a_host_compiler_is_a_sentence(
    scale: Path, kx: Kx, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    monkeypatch.delenv("NVCC_CCBIN", raising=False)
    result = kx("run", "S1", "--no-emulate", cwd=scale)
    assert result.exit_code == errors.ENVIRONMENT
    assert "nvcc needs a host compiler" in result.stderr


def test_a_tool_that_is_no_nvcc_is_a_sentence(scale: Path, kx: Kx) -> None:
    fake = scale / "nvcc"
    fake.write_text("#!/bin/sh\necho hello\n")
    fake.chmod(0o755)
    result = kx("run", "S1", "--no-emulate", "--nvcc", str(fake), cwd=scale)
    assert result.exit_code == errors.ENVIRONMENT
    assert "--version does not answer like nvcc" in result.stderr
