"""Kernels that come as PTX or as a cubin: what another compiler made is a variant too."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from compilers import build_each
from support import Kx, edit

from kernelexp import project
from kernelexp.evidence import build
from kernelexp.model import errors
from kernelexp.model.errors import ConfigurationError
from kernelexp.system.toolchain import Toolchain

ORDER = "          order: {values: [forward, backward], default: forward}\n"
Precompile = Callable[[str], Path]


@pytest.fixture
def precompile(tmp_path: Path, warm: Path, usual_tools: Toolchain) -> Precompile:
    """Makes the project `scale` one of files, as nvcc left them: one for each width, no source."""

    def make(form: str) -> Path:
        root = tmp_path / form
        here = Path(__file__).parents[2] / "projects/scale"
        shutil.copytree(here, root)
        shutil.copytree(warm, root / build.CACHE)
        loaded, folder = project.load(root), root / "variants/scale"
        for width in (1, 2, 4):
            variant = loaded.variant("scale", None, {"width": width})
            (built,) = build_each(root, [variant], usual_tools)
            artefacts = build.artefacts(root, built.identity)
            shutil.copy(getattr(artefacts, form), folder / f"scale-{width}.{form}")
        edit(root, "source: scale.cu", f"source: scale-{{width}}.{form}")
        edit(root, ORDER, "")
        problem = folder / "problem.py"
        text = re.sub(r"def constraints.*?(?=def budget)", "", problem.read_text(), flags=re.S)
        problem.write_text(text)
        (folder / "scale.cu").unlink()
        return root

    return make


def test_ptx_is_assembled_executed_and_compared(precompile: Precompile, kx: Kx) -> None:
    result = kx("run", "S1", "--verbose", cwd=precompile("ptx"))
    assert result.exit_code == errors.OK, result.stderr
    assert "FMUL 1 → 4" in result.stdout
    assert "both arms: y correct, all 4,096 elements under 3 schedules" in result.stdout
    assert "ptx__inst_executed" in result.stdout


@pytest.mark.slow
def test_of_a_cubin_the_sass_is_executed(precompile: Precompile, kx: Kx) -> None:
    root = precompile("cubin")
    result = kx("run", "S1", cwd=root)
    assert result.exit_code == errors.OK, result.stderr
    assert "both arms: y correct, all 4,096 elements" in result.stdout
    assert re.search(r"instructions executed +\d", result.stdout)
    assert "A cubin has no PTX, so its SASS was executed" in result.stdout
    (record,) = (root / "logs/runs/S1").glob("*.json")
    again = kx("run", "--record", record.name.partition(".")[0], cwd=root)
    assert "All built and emulated figures equal those" in again.stdout


@pytest.mark.slow
def test_the_figures_of_a_cubin_are_those_of_its_source(
    precompile: Precompile, scale: Path, kx: Kx
) -> None:
    built, compiled = kx("build", "scale", cwd=precompile("cubin")), kx("build", "scale", cwd=scale)
    assert built.stdout == compiled.stdout


@pytest.mark.slow
def test_a_cubin_for_other_cards_and_half_of_one_do_not_build(
    precompile: Precompile, tools: Toolchain
) -> None:
    root = precompile("cubin")
    edit(root, "sm_90a:", "sm_100a:")
    for _ in range(3):
        edit(root, "arch: sm_90a", "arch: sm_100a")
    loaded = project.load(root)
    half = root / "variants/scale/scale-2.cubin"
    half.write_bytes(half.read_bytes()[:1000])
    variants = [loaded.variant("scale", None, {"width": width}) for width in (1, 2)]
    other, cut = build_each(root, variants, tools)
    assert "scale-1.cubin: error: this cubin is for sm_90a, not sm_100a." in other.log
    assert "scale-2.cubin: error: this is not a cubin, or not all of one." in cut.log


@pytest.mark.parametrize(
    ("text", "instead", "sentence"),
    [
        ("scale-{width}.ptx", "scale-{wide}.ptx", "there is no axis 'wide'; did you mean 'width'?"),
        ("values: [1, 2, 4]", "values: [1, 2, 8]", "there is no variants/scale/scale-8.ptx."),
        ("scale-{width}.ptx", "scale.cubin\n        flags: [-O1]", "leave out the flags."),
    ],
)
def test_a_source_by_axes_names_axes_and_files_that_exist(
    precompile: Precompile, text: str, instead: str, sentence: str
) -> None:
    root = precompile("ptx")
    edit(root, text, instead)
    with pytest.raises(ConfigurationError) as raised:
        project.load(root)
    assert sentence in str(raised.value)
