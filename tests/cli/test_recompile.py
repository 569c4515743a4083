"""Records whose sources have changed: they stand where the machine code is known to be the same."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import msgspec
import pytest
from support import Kx, edit

from kernelexp import project
from kernelexp.dossier import standing
from kernelexp.dossier.standing import Standing
from kernelexp.dossier.tree import Tree
from kernelexp.logs import records, sources
from kernelexp.logs.documents import sealed
from kernelexp.model.arm import Arm
from kernelexp.report import outputs

SOURCE = "variants/scale/scale.cu"
PROBLEM = "variants/scale/problem.py"


@pytest.fixture
def ran(scale: Path, kx: Kx) -> Path:
    """A project with a run of S1 that nothing was timed in."""
    kx("run", "S1", "--no-gpu", "--json", cwd=scale)
    return scale


def append(root: Path, name: str, text: str = "\n// changed\n") -> None:
    (root / name).write_text((root / name).read_text() + text)


def stands(root: Path) -> Standing:
    (candidate,) = standing.of_experiment(project.load(root), "S1", Tree(root)).candidates
    return candidate


def arms(root: Path) -> list[Arm]:
    (path,) = (root / "logs/runs/S1").glob("*.json")
    return list(records.read_file(path).arms)


def note_present(root: Path, **instead: object) -> None:
    """Notes that the present sources compile to the recorded code, or to something else."""
    files = {
        name: hashlib.sha256((root / name).read_bytes()).hexdigest()
        for name in present_sources(root)
    }
    for arm in arms(root):
        sources.add_compiled(root, msgspec.structs.replace(arm, files=files, **instead), "13.0.88")


def present_sources(root: Path) -> list[str]:
    return [name for name in arms(root)[0].files if (root / name).is_file()]


def test_a_record_keeps_a_digest_of_each_arm_s_code(ran: Path) -> None:
    one, other = arms(ran)
    assert len(one.code) == len(other.code) == 64
    assert one.code != other.code


def test_a_changed_text_makes_a_record_one_of_before_until_its_code_is_known(ran: Path) -> None:
    append(ran, SOURCE)
    assert stands(ran).changed == (SOURCE,)
    note_present(ran)
    assert (stands(ran).changed, stands(ran).rewritten) == ((), (SOURCE,))


def test_a_code_of_other_sources_than_the_present_ones_says_nothing(ran: Path) -> None:
    append(ran, SOURCE)
    note_present(ran)
    append(ran, SOURCE)
    assert stands(ran).changed == (SOURCE,)


def test_another_code_of_the_present_sources_makes_a_record_one_of_before(ran: Path) -> None:
    append(ran, SOURCE)
    note_present(ran, code="0" * 64)
    assert stands(ran).changed == (SOURCE,)


@pytest.mark.parametrize("changed", ["baseline", "candidate"])
def test_both_arms_must_have_their_code(ran: Path, changed: str) -> None:
    append(ran, SOURCE)
    note_present(ran)
    arm = arms(ran)[changed == "candidate"]
    digest = hashlib.sha256((ran / SOURCE).read_bytes()).hexdigest()
    other = msgspec.structs.replace(arm, files={**arm.files, SOURCE: digest}, code="0" * 64)
    sources.add_compiled(ran, other, "13.0.88")
    assert stands(ran).changed == (SOURCE,)


def test_the_same_code_excuses_no_other_problem(ran: Path) -> None:
    append(ran, SOURCE)
    append(ran, PROBLEM)
    note_present(ran)
    assert stands(ran).changed == (PROBLEM,)


def test_the_same_code_excuses_no_source_that_problem_py_reads(ran: Path) -> None:
    (path,) = (ran / "logs/runs/S1").glob("*.json")
    values = json.loads(path.read_text())
    values.pop("digest")
    values["host_files"][SOURCE] = values["baseline"]["files"][SOURCE]
    path.write_text(sealed(json.dumps(values)))
    append(ran, SOURCE)
    note_present(ran)
    assert SOURCE in stands(ran).changed


def test_an_edited_file_of_codes_is_not_believed(ran: Path) -> None:
    append(ran, SOURCE)
    note_present(ran)
    for path in (ran / sources.COMPILED).iterdir():
        path.write_text(path.read_text().replace('"scale"', '"scale" '))
    assert stands(ran).changed == (SOURCE,)


def test_a_header_that_would_be_read_instead_is_not_excused(ran: Path) -> None:
    append(ran, SOURCE)
    note_present(ran)
    (ran / "variants/scale/export.cuh").write_text("// mine\n")
    assert SOURCE in stands(ran).changed


def test_code_moved_to_a_header_is_compiled_and_the_record_stands(ran: Path, kx: Kx) -> None:
    source = ran / SOURCE
    line = "constexpr int THREADS = 256;\n"
    (ran / "variants/scale/threads.cuh").write_text(f"#pragma once\n{line}")
    source.write_text(f'#include "threads.cuh"\n{source.read_text().replace(line, "")}')
    result = kx("log", "--recompile", cwd=ran)
    words = "the same machine code as recorded: baseline, candidate."
    assert words in " ".join(result.stdout.split())
    shown = " ".join(kx("show", "S1", cwd=ran).stdout.split())
    assert f"width=4: sources changed since ({SOURCE}), the machine code did not." in shown
    words = f"S1: sources changed since ({SOURCE}), the machine code did not."
    assert words in (ran / "logs/EXPERIMENTS.md").read_text()


def test_a_changed_code_is_not_the_recorded_one(ran: Path, kx: Kx) -> None:
    source = ran / SOURCE
    source.write_text(source.read_text().replace("(THREADS)\n", "(THREADS, 2)\n"))
    result = " ".join(kx("log", "--recompile", cwd=ran).stdout.split())
    assert "baseline, candidate: its sources compile to other machine code now." in result
    assert stands(ran).changed == (SOURCE,)


def test_flags_that_change_nothing_are_excused(ran: Path, kx: Kx) -> None:
    edit(ran, "source: scale.cu\n", "source: scale.cu\n        flags: [-DX]\n")
    assert stands(ran).changed == ("the compiler's flags",)
    (answer,) = json.loads(kx("log", "--recompile", "--json", cwd=ran).stdout)
    msgspec.convert([answer], outputs.types()["recompile"])
    assert answer["same"] == ["baseline", "candidate"]
    assert (stands(ran).changed, stands(ran).rewritten) == ((), ("the compiler's flags",))


def test_an_early_record_is_compiled_again_from_its_own_sources(ran: Path, kx: Kx) -> None:
    (path,) = (ran / "logs/runs/S1").glob("*.json")
    values = json.loads(path.read_text())
    values.pop("digest")
    for arm in (values["baseline"], values["candidates"][0]["arm"]):
        arm.pop("code")
    path.write_text(sealed(json.dumps(values)))
    append(ran, SOURCE)
    kx("log", "--recompile", cwd=ran)
    assert (stands(ran).changed, stands(ran).rewritten) == ((), (SOURCE,))


def test_variables_that_change_what_the_compiler_does_are_refused(
    ran: Path, kx: Kx, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(ran, SOURCE)
    monkeypatch.setenv("CPATH", "/usr/include")
    result = " ".join(kx("log", "--recompile", cwd=ran).stdout.split())
    assert "its code depends on more than the files of the project: CPATH." in result
    assert stands(ran).changed == (SOURCE,)


def test_json_says_that_a_record_stands_by_its_machine_code(ran: Path, kx: Kx) -> None:
    append(ran, SOURCE)
    note_present(ran)
    for command in ("log", "show S1", "show", "explain S1 --no-emulate"):
        text = kx(*command.split(), "--json", cwd=ran).stdout
        assert f'"same_code_since":["{SOURCE}"]' in "".join(text.split()), command
    assert "same_code_since" in kx("log", "--csv", cwd=ran).stdout
