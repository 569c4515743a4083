"""Arrays that a kernel reads and writes, and its workspaces, from problem.py to the evidence."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from support import ROOT

from kernelexp import project
from kernelexp.dossier import prepare
from kernelexp.dossier.session import Session
from kernelexp.evidence import build, jobs
from kernelexp.evidence.emulate.emulation_worker import emulate
from kernelexp.judge.verdict import emulated as judge
from kernelexp.model.arm import Arm, EmulatedEvidence
from kernelexp.model.errors import ConfigurationError
from kernelexp.project.problem import consult
from kernelexp.system.process import isolated
from kernelexp.system.process.isolated import TimeLimit
from kernelexp.system.toolchain import Toolchain

# y += factor * x; a CTA that draws a ticket which is none leaves its last element as it is.
STORE = """
__shared__ unsigned ticket;
if (threadIdx.x == 0) ticket = atomicAdd(tickets, 1u);
__syncthreads();
if (ticket >= gridDim.x) return;
for (int j = 0; j < WIDTH; ++j) v.at[j] += y[i].at[j];
y[i] = v;"""
SOURCE = (("y[i] = v;", STORE), ("int count)", "int count, unsigned* tickets)"))
PROBLEM = (
    (
        "def reference(",
        'def workspaces(axes, size):\n    return {"tickets": Array(shape=(1,), dtype="s32", '
        "zero=True)}\n\n\ndef reference(",
    ),
    (
        '"x": torch.randn(size["count"]',
        '"y": torch.ones(size["count"]), "x": torch.randn(size["count"]',
    ),
    ('inputs["x"].double() * FACTOR', 'inputs["x"].double() * FACTOR + inputs["y"]'),
    ("rtol=2**-24, atol=0.0", "rtol=2**-22, atol=2**-22"),
    ("value=count),", 'value=count),\n            Pointer(array="tickets"),'),
)


def edit(path: Path, *edits: tuple[str, str]) -> None:
    for text, instead in edits:
        assert path.read_text().count(text) == 1, text
        path.write_text(path.read_text().replace(text, instead))


@pytest.fixture(scope="module")
def accumulating(
    tmp_path_factory: pytest.TempPathFactory, hashed: Path, tools: Toolchain
) -> tuple[Path, Arm]:
    """The project `scale` with a kernel that adds to y, built."""
    root = tmp_path_factory.mktemp("arrays") / "scale"
    shutil.copytree(ROOT / "tests/projects/scale", root)
    shutil.copytree(hashed, root / build.CACHE)
    edit(root / "variants/scale/scale.cu", *SOURCE)
    edit(root / "variants/scale/problem.py", *PROBLEM)
    loaded = project.load(root)
    variant = loaded.variant("scale", "sm_90a")
    return root, prepare.arm_of(loaded, variant, Session(tools=tools))


def evidence(accumulating: tuple[Path, Arm], *edits: tuple[str, str]) -> EmulatedEvidence:
    """Emulated with edits of its problem.py, in this process."""
    root, arm = accumulating
    problem = root / "variants/scale/problem.py"
    before = problem.read_text()
    edit(problem, *edits)
    try:
        limit = TimeLimit(name="emulation", seconds=60.0)
        job = jobs.emulation(root, arm, "emulated", consult.limit(), limit)
        return emulate(job, isolated.Watch(sys.stderr)).evidence
    finally:
        problem.write_text(before)


def test_an_array_is_read_and_written_and_a_workspace_starts_as_zero(
    accumulating: tuple[Path, Arm],
) -> None:
    result = evidence(accumulating)
    assert judge(result) is None
    assert [array.name for array in result.arrays] == ["y"]
    assert (result.arrays[0].wrong, result.changed) == (0, ())
    assert len(result.schedules) > 1


def test_a_workspace_that_nothing_was_written_to_is_not_to_be_read(
    accumulating: tuple[Path, Arm],
) -> None:
    result = evidence(accumulating, (", zero=True", ""))
    assert {finding.name for finding in result.findings} == {"uninitialised-read"}


@pytest.mark.parametrize(
    ("text", "instead", "words"),
    [
        ('"y": torch.ones(size["count"])', '"y": torch.ones(8)', "y' is read and written, so in"),
        ('"y": torch.ones(size["count"])', '"y": torch.ones(8).int()', r"int32 \[8\], and f32 "),
        ('{"tickets": A', '{"x": A', "'x' is a workspace and an input"),
        (
            "def outputs",
            "def arrange(inputs, axes):\n    return {'y': inputs['y'] * 2}\n\n\ndef outputs",
            r"arrange\(\) changes 'y', which is read and written",
        ),
        ('dtype="f32"', 'dtype="f32", zero=True', r"outputs\(\) says that it starts as zero"),
    ],
)
def test_arrays_of_one_name_that_differ_are_a_fault(
    accumulating: tuple[Path, Arm], text: str, instead: str, words: str
) -> None:
    with pytest.raises(ConfigurationError, match=words):
        evidence(accumulating, (text, instead))
