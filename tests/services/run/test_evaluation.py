"""A source that replaces a variant's own: its verdict, and what it can't reach if hostile."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from schemas import validate
from support import Kx

from kernelexp import api
from kernelexp.dossier.session import Session
from kernelexp.model import errors
from kernelexp.model.arm import Status
from kernelexp.model.experiment import Program
from kernelexp.model.limits import Limits
from kernelexp.services import evaluation
from kernelexp.services.run.conclusion import RunSettings
from kernelexp.system import confined
from kernelexp.system.process import confine
from kernelexp.system.toolchain import Toolchain

pytestmark = pytest.mark.usefixtures("shared_builds")

SOURCE = Path("variants/scale/scale.cu")
WRONG = "each *= factor + 1.0f"
VARIANT = "scale:width=4"


def text_of(root: Path) -> str:
    return (root / SOURCE).read_text()


def hostile(root: Path, text: str, limits: Limits | None = None) -> evaluation.Evaluation:
    loaded = api.load(root)
    return api.evaluate(
        loaded, VARIANT, text, hostile=True, emulate=False, gpu=False, limits=limits
    )


def test_a_wrong_text_is_incorrect_and_leaves_nothing_behind(scale: Path, kx: Kx) -> None:
    before = {path for path in scale.rglob("*") if ".kernelexp" not in path.parts}
    (scale.parent / "wrong.cu").write_text(text_of(scale).replace("each *= factor", WRONG))
    words = ("--source", str(scale.parent / "wrong.cu"), "--no-gpu", "--hostile", "--json")
    result = kx("time", "--peers", VARIANT, *words, cwd=scale)
    assert result.exit_code == errors.WRONG_RESULT
    output = validate("time", result.stdout)
    assert output["verdict"]["status"] == "INCORRECT"
    assert output["record"]["candidates"][0]["arm"]["emulated"]["arrays"][0]["wrong"] > 0
    assert "refused" not in output["record"]["baseline"]
    assert {path for path in scale.rglob("*") if ".kernelexp" not in path.parts} == before
    assert not list(scale.glob(".kernelexp/evaluation-*"))


def test_what_a_killed_evaluation_left_is_removed_after_a_day(scale: Path) -> None:
    kept, old = (
        scale / ".kernelexp/evaluation-1",
        scale / ".kernelexp/evaluation-2",
    )
    for folder in (kept, old):
        folder.mkdir()
        (folder / "link").symlink_to(scale / "variants")
    os.utime(old, (0, 0))
    api.evaluate(api.load(scale), VARIANT, emulate=False, gpu=False)
    assert (kept.exists(), old.exists()) == (True, False)
    assert (scale / SOURCE).is_file()


def test_the_projects_own_text_is_right_and_the_same_code(scale: Path) -> None:
    result = api.evaluate(api.load(scale), VARIANT, text_of(scale), gpu=False)
    assert result.verdict.status is Status.UNMEASURED
    assert result.arm.identity == result.record.baseline.identity
    assert result.arm.emulated
    assert not any(array.wrong for array in result.arm.emulated.arrays)


@pytest.mark.slow
def test_without_a_text_a_variant_is_compared_with_the_defaults(scale: Path) -> None:
    result = api.evaluate(api.load(scale), VARIANT, emulate=False, gpu=False)
    assert (result.record.baseline.axes["width"], result.arm.axes["width"]) == (1, 4)


def test_what_does_not_compile_says_why(scale: Path) -> None:
    result = hostile(scale, text_of(scale) + "int broken = nothing;\n")
    assert result.verdict.status is Status.BUILD_FAILED
    assert 'identifier "nothing" is undefined' in result.arm.build_log


@pytest.mark.parametrize(
    "text",
    [
        '#define FILE "{secret}"\n#include FILE',
        *(
            pytest.param(text, marks=pytest.mark.slow)
            for text in (
                '#include "{secret}"',
                "#in\\\nclude <{secret}>",
                '#ifdef __CUDA_ARCH__\nconst char* all =\n#include "{secret}"\n;\n#endif',
                '#include "../../../../{secret}"',
            )
        ),
    ],
)
def test_a_hostile_text_includes_nothing_from_outside(
    scale: Path, tmp_path: Path, text: str
) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("swordfish_is_the_password")
    result = hostile(scale, text.replace("{secret}", str(secret)) + "\n" + text_of(scale))
    assert result.verdict.status is Status.BUILD_FAILED
    assert b"swordfish" not in api.encode("time", result)


@pytest.mark.slow
def test_a_link_in_the_project_leads_a_hostile_text_nowhere(scale: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("swordfish_is_the_password")
    (scale / "harmless").symlink_to(tmp_path)
    result = hostile(scale, '#include "../../harmless/secret.txt"\n' + text_of(scale))
    assert result.verdict.status is Status.BUILD_FAILED
    assert b"swordfish" not in api.encode("time", result)


@pytest.mark.slow
def test_a_build_that_was_not_confined_is_none_for_a_hostile_text(
    scale: Path, tmp_path: Path
) -> None:
    (tmp_path / "value.h").write_text("constexpr float SECRET = 42.0f;")
    text = f'#include "{tmp_path}/value.h"\n' + text_of(scale)
    loaded = api.load(scale)
    trusted = api.evaluate(loaded, VARIANT, text, emulate=False, gpu=False)
    assert trusted.verdict.status is Status.UNMEASURED
    assert hostile(scale, text).verdict.status is Status.BUILD_FAILED


@pytest.mark.slow
def test_a_text_that_compiles_for_too_long_is_a_failed_build(scale: Path) -> None:
    text = text_of(scale) + "template <class... T> struct L {};\n"
    text += "template <int N, class... T> struct M : M<N - 1, T..., T..., L<T...>> {};\n"
    text += "template <class... T> struct M<0, T...> {};\nM<40, int, int> m;\n"
    result = hostile(scale, text, Limits(build_s=4.0))
    assert result.verdict.status is Status.BUILD_FAILED
    assert "under the limits" in result.arm.build_log or "past the limit" in result.arm.build_log


def test_a_text_that_is_too_long_is_refused(scale: Path) -> None:
    with pytest.raises(errors.UsageError, match="at most 4,194,304 are evaluated"):
        hostile(scale, " " * (evaluation.LONGEST_BYTES + 1))


def test_a_confined_program_meets_its_limits(tmp_path: Path) -> None:
    order = {
        "read": ["/usr", "/bin", "/lib", "/lib64", "/etc/ld.so.cache"],
        "write": [str(tmp_path), "/dev/null"],
        "output": [],
        "limits": {"file_bytes": 1000, "files": 64},
    }
    script = "ulimit -n; cat /etc/passwd; echo no > ../out; head -c 5000 $0 > big; echo end"
    done = subprocess.run(
        [sys.executable, "-I", "-S", confine.__file__, json.dumps(order), "/bin/sh", "-c", script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.stdout.splitlines() == ["64", "end"]
    assert done.stderr.count("Permission denied") >= 2
    assert not (tmp_path.parent / "out").exists()
    assert (tmp_path / "big").stat().st_size <= 1000


def test_what_a_confined_program_prints_is_limited(
    tmp_path: Path, tools: Toolchain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(confined, "FILE_BYTES", 5000)
    there = confined.tools(tools, tmp_path)
    script = ["/bin/sh", "-c", "echo said >&2; while true; do echo yes; done"]
    done = confined.run(script, there, tmp_path, cwd=tmp_path, env={}, timeout_s=60)
    assert (done.returncode != 0, done.stderr, len(done.output)) == (True, "said\n", 5000)
    assert list(tmp_path.iterdir()) == []


def test_without_landlock_a_hostile_text_is_refused(
    scale: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(confined.confine, "version", lambda: 0)
    with pytest.raises(errors.EnvironmentFault, match="needs a kernel with Landlock"):
        hostile(scale, text_of(scale))


def test_an_emulation_can_allocate_no_more_than_its_limit() -> None:
    code = """
from kernelexp.system.process import confine
confine.limit_growth(32 << 20)
kept = bytearray(8 << 20)
try:
    bytearray(64 << 20)
except MemoryError:
    print("refused")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "refused\n", done.stderr


@pytest.mark.slow
def test_a_line_that_names_another_file_shows_nothing_of_it(scale: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("swordfish_is_the_password\n" * 50)
    text = (
        text_of(scale)
        .replace('extern "C"', f'#line 1 "{tmp_path}/secret.txt"\nextern "C"')
        .replace("y[i] = v;", 'y[i] = v; asm volatile("bad.instruction;");')
    )
    result = hostile(scale, text)
    assert result.verdict.status is Status.BUILD_FAILED
    assert b"swordfish" not in api.encode("time", result)


@pytest.mark.slow
def test_a_hostile_text_that_knows_the_usual_inputs_is_found_out(scale: Path) -> None:
    loaded = api.load(scale)
    shows = 'if (i == 0) printf("%.9g", x[0].at[0]); y[i] = v;'
    text = "#include <cstdio>\n" + text_of(scale)
    arm = api.evaluate(loaded, VARIANT, text.replace("y[i] = v;", shows), gpu=False).arm
    assert arm.emulated
    first = arm.emulated.printed[0].text
    cheats = f"if (x[0].at[0] == {first}f) y[i] = v; else y[i] = x[i];"
    text = text_of(scale).replace("y[i] = v;", cheats)
    assert api.evaluate(loaded, VARIANT, text, gpu=False).verdict.status is Status.UNMEASURED
    result = api.evaluate(loaded, VARIANT, text, gpu=False, hostile=True)
    assert result.verdict.status is Status.INCORRECT


def test_a_program_is_never_taken_as_hostile(cold: Path, tools: Toolchain) -> None:
    loaded = api.load(cold)
    variant = loaded.variant("scale", None)
    program = msgspec.structs.replace(variant, program=Program(figures={}))
    with pytest.raises(errors.UsageError, match="scale is a program"):
        evaluation.evaluate(
            loaded,
            program,
            b"",
            Session(tools=tools, emulate=True),
            settings=RunSettings(),
            hostile=True,
        )


@pytest.mark.parametrize(
    ("text", "instead", "status"),
    [
        ('#include "export.cuh"', '#include "export.cuh"\n#define scale other', "INCORRECT"),
        ("KX_EXPORT(threads, THREADS);", "", "INCORRECT"),
        ("KX_EXPORT(threads, THREADS);", "KX_EXPORT(threads, 0);", "INCORRECT"),
    ],
)
def test_a_text_that_does_not_fit_its_problem_is_judged(
    scale: Path, text: str, instead: str, status: str
) -> None:
    source = (scale / "variants/scale/scale.cu").read_text()
    assert text in source
    result = api.evaluate(api.load(scale), "scale", source.replace(text, instead), gpu=False)
    assert result.verdict.status == status
    assert result.verdict.sentence
