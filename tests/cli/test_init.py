"""kernelexp init: a project that runs at once, and that destroys nothing."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import jsonschema
import kept
import pytest
import yaml
from support import Kx

from kernelexp import project
from kernelexp.cli.app import SUMMARIES
from kernelexp.evidence import build
from kernelexp.model import errors
from kernelexp.project import scaffold
from kernelexp.system.toolchain import HEADERS

WORKFLOW = ".github/workflows/kernelexp.yml"
GPU_WORKFLOW = ".github/workflows/kernelexp-gpu.yml"


@pytest.fixture
def started(tmp_path: Path, hashed: Path, kx: Kx) -> Path:
    """A new project, with the compiler hashed already."""
    root = tmp_path / "new"
    assert kx("init", "new", "--arch", "sm_90a", cwd=tmp_path).exit_code == errors.OK
    shutil.copytree(hashed, root / build.CACHE)
    kept.share_builds(root)
    return root


def test_it_ends_with_the_next_command(tmp_path: Path, kx: Kx) -> None:
    result = kx("init", "my kernels", cwd=tmp_path)
    assert result.stdout.splitlines()[-1] == "next: cd 'my kernels' && kernelexp run E1"
    assert kx("init", cwd=tmp_path).stdout.splitlines()[-1] == "next: kernelexp run E1"


def test_the_log_of_a_project_without_experiments_says_so(tmp_path: Path, kx: Kx) -> None:
    kx("init", "new", "--empty", cwd=tmp_path)
    result = kx("log", cwd=tmp_path / "new")
    assert "there are no experiments yet" in result.stderr
    assert result.stdout == ""


def test_an_empty_project_awaits_a_kernel(tmp_path: Path, kx: Kx) -> None:
    result = kx("init", "new", "--empty", cwd=tmp_path)
    assert result.stdout.splitlines()[-1] == "next: cd new && kernelexp adopt FILE.cu"
    loaded = project.load(tmp_path / "new")
    assert not loaded.kernels
    assert not loaded.experiments
    assert not (tmp_path / "new/variants").exists()
    listed = kx("list", cwd=tmp_path / "new").stdout
    assert listed == "No kernels yet: kernelexp adopt FILE.cu adds one.\n"


def test_an_empty_project_is_for_an_architecture_once_it_has_a_kernel(
    tmp_path: Path, kx: Kx
) -> None:
    result = kx("init", "new", "--empty", "--arch", "sm_100a", cwd=tmp_path)
    assert result.exit_code == errors.OK, result.stderr
    assert result.stdout.endswith("kernelexp adopt FILE.cu --arch sm_100a\n")
    assert "B200" in (tmp_path / "new/.github/workflows/kernelexp-gpu.yml").read_text()
    result = kx("init", "other", "--empty", "--arch", "sm_1", cwd=tmp_path)
    assert result.exit_code == errors.USAGE


def test_every_file_that_it_writes_is_named(tmp_path: Path, kx: Kx) -> None:
    result = kx("init", "new", cwd=tmp_path)
    named = {line.split(" ", 1)[1] for line in result.stdout.splitlines()[:-1]}
    files = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert named == files


@pytest.mark.slow
def test_its_experiment_is_right_and_shows_the_planted_conflicts(started: Path, kx: Kx) -> None:
    result = kx("run", "E1", "--no-gpu", "--json", cwd=started)
    assert result.exit_code == errors.OK, result.stderr
    (ran,) = json.loads(result.stdout)
    record = ran["record"]
    arms = [record["baseline"], record["candidates"][0]["arm"]]
    name = "ptx__l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld"
    conflicts = [arm["emulated"]["counters"].get(name, 0) for arm in arms]
    assert conflicts[0] > 100
    assert conflicts[1] == 0
    assert [arm["emulated"]["arrays"][0]["wrong"] for arm in arms] == [0, 0]


def test_its_counts_are_scaled_to_the_full_problem(started: Path, kx: Kx) -> None:
    page = " ".join(kx("explain", "row_softmax", cwd=started).stdout.split())
    assert "for the full problem solved from sizes 'emulated' and" in page
    assert "issue slots is nearer, 100.0%, and bounds" in page


def test_its_kernel_builds_with_the_headers_of_the_package(started: Path, kx: Kx) -> None:
    values = json.loads(kx("build", "row_softmax", "--json", cwd=started).stdout)
    (arm,) = values.values()
    assert arm["build"]["exports"] == {"dynamic_smem_bytes": 0, "threads": 256}
    assert not (started / "variants/include").exists()
    digest = hashlib.sha256((HEADERS / "export.cuh").read_bytes()).hexdigest()
    assert arm["headers"] == {"export.cuh": digest}


def test_a_line_of_the_package_s_headers_is_named_from_the_package(started: Path, kx: Kx) -> None:
    source = started / "variants/row_softmax/row_softmax.cu"
    text = source.read_text().replace("words[thread] = value;", "words[thread] = value + first();")
    user = '#include "ldst.cuh"\n__device__ float first() { uint32_t r; kx::ld_shared<1>(&r, 0); '
    source.write_text(text.replace("struct Max", f"{user}return r; }}\nstruct Max"))
    values = json.loads(kx("build", "row_softmax", "--json", cwd=started).stdout)
    (arm,) = values.values()
    ptx = build.artefacts(started, arm["identity"]).ptx.read_text()
    assert '"kernelexp/include/ldst.cuh"' in ptx
    assert str(HEADERS) not in ptx
    assert str(HEADERS.resolve()) not in ptx


def test_a_header_of_the_project_goes_before_the_package_s(started: Path, kx: Kx) -> None:
    own = started / "variants/include/export.cuh"
    own.parent.mkdir()
    own.write_text('#error "the project has its own"\n')
    result = kx("build", "row_softmax", cwd=started)
    assert result.exit_code == errors.BUILD
    assert "the project has its own" in result.stdout + result.stderr


def test_an_architecture_is_written_with_its_card(tmp_path: Path, kx: Kx) -> None:
    kx("init", "--arch", "sm_89", cwd=tmp_path)
    (target,) = project.load(tmp_path).kernel("row_softmax").targets.items()
    assert (target[0], target[1].device) == ("sm_89", "L40S")


def test_an_architecture_that_does_not_exist_is_a_mistake(tmp_path: Path, kx: Kx) -> None:
    result = kx("init", "--arch", "sm_91", cwd=tmp_path)
    assert result.exit_code == errors.USAGE
    assert "there is no architecture 'sm_91'; did you mean" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_there_is_a_mistake_and_nothing_is_written(tmp_path: Path, kx: Kx) -> None:
    (tmp_path / "experiments.yaml").write_text("mine\n")
    result = kx("init", cwd=tmp_path)
    assert result.exit_code == errors.USAGE
    assert "experiments.yaml is there already, and init overwrites nothing" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["experiments.yaml"]
    assert (tmp_path / "experiments.yaml").read_text() == "mine\n"


def test_a_file_in_place_of_the_folder_is_a_mistake(tmp_path: Path, kx: Kx) -> None:
    (tmp_path / "file").touch()
    result = kx("init", "file", cwd=tmp_path)
    assert result.exit_code == errors.USAGE
    assert result.stderr == "error: file is a file: name a folder for the project.\n"


def test_a_folder_that_can_not_be_made_is_named(kx: Kx) -> None:
    result = kx("init", "/proc/kx")
    assert result.exit_code == errors.ENVIRONMENT
    assert result.stderr == "error: /proc/kx can't be made: No such file or directory.\n"


def test_a_gitignore_keeps_its_bytes(tmp_path: Path, kx: Kx) -> None:
    before = "*.o\r\nzwölf/\r\n".encode("latin-1")
    (tmp_path / ".gitignore").write_bytes(before)
    assert kx("init", str(tmp_path), cwd=tmp_path).exit_code == errors.OK
    after = (tmp_path / ".gitignore").read_bytes()
    assert after.startswith(before)
    assert after.count(b"\n") == after.count(b"\r\n") > 2


def test_a_gitignore_keeps_its_lines(tmp_path: Path, kx: Kx) -> None:
    (tmp_path / ".gitignore").write_text("*.o\n__pycache__/")
    kx("init", cwd=tmp_path)
    lines = (tmp_path / ".gitignore").read_text().splitlines()
    assert lines[:2] == ["*.o", "__pycache__/"]
    assert ".kernelexp/" in lines
    assert lines.count("__pycache__/") == 1


def test_the_workflow_of_a_project_in_a_repository_is_at_its_top(tmp_path: Path, kx: Kx) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    kx("init", "gpu/kernels", cwd=tmp_path)
    workflow = yaml.safe_load((tmp_path / WORKFLOW).read_text())
    assert workflow["defaults"]["run"]["working-directory"] == "gpu/kernels"
    assert not (tmp_path / "gpu/kernels/.github").exists()


@pytest.mark.parametrize("name", [WORKFLOW, GPU_WORKFLOW])
def test_a_workflow_installs_kernelexp_and_runs_commands_that_it_has(
    started: Path, kx: Kx, name: str
) -> None:
    (job,) = yaml.safe_load((started / name).read_text())["jobs"].values()
    commands = [step["run"] for step in job["steps"] if "run" in step]
    assert any(f'install "{scaffold.requirement()}"' in command for command in commands)
    own = [re.split(r"[|]", command)[0] for command in commands if command.startswith("kernelexp ")]
    assert len(own) >= 2
    for item in own:
        words = shlex.split(re.sub(r"\$\{BASE:\+(.*?)\}", r"\1", item))
        assert kx(*words[1:], "--help").exit_code == errors.OK


def test_experiments_yaml_is_of_the_schema_that_its_first_line_names(started: Path) -> None:
    text = (started / "experiments.yaml").read_text()
    line = text.splitlines()[0]
    assert line.startswith("# yaml-language-server: $schema=")
    schema = json.loads((started / line.partition("=")[2]).read_text())
    jsonschema.validate(yaml.safe_load(text), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(yaml.safe_load(text.replace("title:", "titel:")), schema)


def test_a_project_has_a_page_for_agents_whose_commands_exist(tmp_path: Path, kx: Kx) -> None:
    assert kx("init", "project", cwd=tmp_path).exit_code == errors.OK
    text = (tmp_path / "project/SKILL.md").read_text()
    named = set(re.findall(r"`kernelexp (\w+)", text))
    assert {"emulate", "time", "explain"} <= named <= set(SUMMARIES)
