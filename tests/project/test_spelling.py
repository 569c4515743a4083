"""What people name reaches a shell and the file system: only harmless names, tokens and paths."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import edit

from kernelexp import project
from kernelexp.model import experiment
from kernelexp.model.errors import ConfigurationError
from kernelexp.system import toolchain


def refuse(root: Path, text: str, instead: str, sentence: str) -> None:
    edit(root, text, instead)
    with pytest.raises(ConfigurationError) as caught:
        project.load(root)
    assert sentence in str(caught.value)


@pytest.mark.parametrize("name", ["../../x", "a/b", ".hidden", "-rf", "a b", "$(x)", "x" * 101, ""])
@pytest.mark.parametrize("place", ["kernels:\n  scale:", "experiments:\n  S1:", "history:\n  aaa"])
def test_a_kernel_or_experiment_has_a_safe_name(scale: Path, place: str, name: str) -> None:
    section = place.partition(":")[0]
    sentence = (
        "characters; at most 100 are allowed" if len(name) > 100 else "is not allowed: a name is"
    )
    edit(scale, "  aaaaaaa:", "  aaa:")
    instead = f"{section}:\n  '{name}':"
    refuse(scale, place if place.endswith(":") else f"{place}:", instead, sentence)


@pytest.mark.parametrize(
    "value",
    [
        *["$(touch PWNED)", "`id`", "a;b", "a b", "a|b", "a>b", "*", "~", "a\\", "a\nb", "'", '"'],
        *["a,b", "a=b", "a:b", "-x", "", "Tile<4>"],
    ],
)
def test_an_axis_has_tokens_of_cxx_as_values(scale: Path, value: str) -> None:
    quoted = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    refuse(scale, "[1, 2, 4]", f'[1, 2, 4, "{quoted}"]', "is not allowed: an axis value")


def test_identifiers_scopes_and_numbers_are_values(scale: Path) -> None:
    values = ["x16", "_a", "ns::Kind::value", "::top", "0x10", "1.5f", "1e-5", "-2.5"]
    listed = ", ".join(f"'{value}'" for value in values)
    edit(scale, "[1, 2, 4]", f"[1, 2, 4, -1, {listed}]")
    axis = project.load(scale).kernels["scale"].targets["sm_90a"].axes["width"]
    assert axis.values == [1, 2, 4, -1, *values]


@given(
    st.from_regex(experiment.TOKEN)
    | st.from_regex(experiment.FLAG)
    | st.from_regex(experiment.SOURCE)
)
def test_what_is_accepted_means_nothing_to_a_shell(text: str) -> None:
    # The two folders that a flag may name are in its place before the compiler sees it.
    flag = text.replace(toolchain.TORCH, "/a").replace(toolchain.PYTHON, "/b")
    assert shlex.quote(flag) == flag
    assert "\n" not in text


@pytest.mark.parametrize("token", ["ns::Kind", "1e-5", "-2.5", "::a"])
def test_a_shell_passes_an_accepted_token_on_as_it_is(token: str) -> None:
    assert re.search(experiment.TOKEN, token)
    result = subprocess.run(["sh", "-c", f"echo -DKX_A={token}"], capture_output=True, text=True)
    assert result.stdout == f"-DKX_A={token}\n"


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("../../../x.cu", "'../../../x.cu' is not allowed: a source is a path in the kernel's"),
        ("/etc/passwd", "is not allowed: a source is a path in the kernel's folder"),
        ("a/../../x.cu", "is not allowed: a source is a path in the kernel's folder"),
        ("scale.cu;id", "is not allowed: a source is a path in the kernel's folder"),
        ("-o.cu", "is not allowed: a source is a path in the kernel's folder"),
        ("nowhere.cu", "there is no variants/scale/nowhere.cu."),
        ("linked.cu", "variants/scale/linked.cu is a link to a file outside of its folder."),
        ("loop.cu", "there is no variants/scale/loop.cu."),
    ],
)
def test_a_source_stays_in_its_folder(scale: Path, source: str, sentence: str) -> None:
    (scale.parent / "outside.cu").write_text("")
    (scale / "variants/scale/linked.cu").symlink_to(scale.parent / "outside.cu")
    (scale / "variants/scale/loop.cu").symlink_to("loop.cu")
    refuse(scale, "source: scale.cu", f"source: '{source}'", sentence)


@pytest.mark.parametrize("flag", ["-DX=$(id)", "-DX=a b", "-DX=;", "-DX=`id`", "-DX='a'", "@file"])
def test_flags_mean_nothing_to_a_shell(scale: Path, flag: str) -> None:
    refuse(
        scale,
        "device: H200",
        f'device: H200\n        flags: [-O3, "{flag}"]',
        "kernels.scale.targets.sm_90a.flags[1]",
    )


@pytest.mark.parametrize(
    "flag",
    [
        *[
            "-o",
            "-o=x",
            "-ox",
            "--output-file=x",
            "-odir",
            "-keep",
            "--options-file",
            "-MF",
            "-run",
        ],
        *["-ccbin=/bin/sh", "-Xcompiler=-o", "-Xcompiler=-O3,-o", "-arch=sm_80", "-dryrun"],
    ],
)
def test_flags_leave_outputs_and_tools_to_the_build(scale: Path, flag: str) -> None:
    flags = f"device: H200\n        flags: [-O3, {flag}]"
    refuse(scale, "device: H200", flags, "is not allowed here: the build chooses outputs and")


def test_ordinary_flags_are_accepted(scale: Path) -> None:
    flags = "-maxrregcount=64, --use_fast_math, -Xptxas=-v, '-DX=1', -opt-info=inline, -Ia/b"
    edit(scale, "device: H200", f"device: H200\n        flags: [{flags}]")
    assert len(project.load(scale).kernels["scale"].targets["sm_90a"].flags) == 6
