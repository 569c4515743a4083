"""Whole programs, each right and with a fault: `kernelexp exec` finds the fault and its line, and
does not accuse the right one."""

from __future__ import annotations

import functools
import re
import tempfile
from collections.abc import Callable
from pathlib import Path

import kept
import pytest
from programs.page import BY_RESULT, FINDINGS, IN_HELPERS, NO_FAULT, RARE, SOURCES, lines, unit
from support import ROOT

from kernelexp.services import execution
from kernelexp.services.execution import ExecRequest, Executed
from kernelexp.system.toolchain import Toolchain

TAUGHT = ("free_async", "graph", "managed", "pdl")
"""Those whose fault was not found at first."""
FOUND = [name for name, finding in FINDINGS.items() if finding]
pytestmark = pytest.mark.xdist_group("programs")

Run = Callable[..., tuple[Executed, str]]


def parameters(names: list[str]) -> list[object]:
    return [
        pytest.param(name, marks=[pytest.mark.slow] * (name not in TAUGHT), id=name)
        for name in names
    ]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, usual_tools: Toolchain) -> Run:
    folder = tmp_path_factory.mktemp("programs")

    @functools.cache
    def compiled(names: tuple[str, ...], arch: str, fault: bool) -> Path:
        text = folder / f"{names[0]}-and-others.cu"
        text.write_text(unit(names))
        flags = ["-DFAULT"] * fault
        return kept.program([text], usual_tools, *flags, arch=arch, include=[SOURCES])

    def run(name: str, *, fault: bool, schedules: int = 1) -> tuple[Executed, str]:
        blackwell = name.startswith("tcgen05")
        beside = [each for each in FINDINGS if each.startswith("tcgen05") == blackwell]
        names = TAUGHT if name in TAUGHT else tuple(beside)
        path = compiled(names, "sm_100a" if blackwell else "sm_90a", fault)
        device = "B200" if blackwell else "H200"
        request = ExecRequest(argv=(str(path), name), device=device, schedules=schedules)
        with tempfile.TemporaryFile() as output:
            executed = execution.execute(request, usual_tools, ROOT, output=output.fileno())
            output.seek(0)
            return executed, output.read().decode()

    return run


@pytest.mark.parametrize("name", parameters([*FINDINGS]))
def test_a_right_program_is_right_and_not_accused(name: str, run: Run) -> None:
    executed, output = run(name, fault=False)
    findings = [mistake for mistake in executed.mistakes if mistake.level != "note"]
    assert (findings, output, executed.returncode) == ([], "ok\n", 0)


@pytest.mark.parametrize("name", parameters(FOUND))
def test_a_fault_is_found_by_its_name_at_its_line(name: str, run: Run) -> None:
    executed, _ = run(name, fault=True)
    numbers = "|".join(map(str, lines(name)))
    places = re.compile(rf"\b({name}\.cu:({numbers})|{IN_HELPERS.get(name, '-')})\b")
    assert FINDINGS[name] in [
        mistake.name
        for mistake in executed.mistakes
        if places.search(f"{mistake.where} {mistake.sentence}")
    ]


@pytest.mark.parametrize("name", parameters([*RARE]))
def test_a_rare_fault_is_found_under_three_schedules(name: str, run: Run) -> None:
    assert run(name, fault=True)[0].findings == ()
    assert run(name, fault=True, schedules=3)[0].findings


@pytest.mark.parametrize("name", parameters([*BY_RESULT, *NO_FAULT]))
def test_what_no_check_names_shows_in_the_result_if_it_is_a_fault(name: str, run: Run) -> None:
    executed, output = run(name, fault=True)
    assert (executed.findings, output) == ((), "ok\n" if name in NO_FAULT else "WRONG\n")
