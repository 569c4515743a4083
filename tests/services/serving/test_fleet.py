"""Workers elsewhere: what docs/examples/fleet has, and Slurm by submitit."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from service_load import KERNELEXP, job
from support import ROOT, wait_until
from typer.testing import CliRunner

from kernelexp.cli import app
from kernelexp.model.errors import UsageError
from kernelexp.services.serving import slurm
from kernelexp.services.serving.queue import Queue

pytestmark = pytest.mark.xdist_group("serving")

FLEET = ROOT / "docs/examples/fleet"


def options_of_serve() -> set[str]:
    text = CliRunner().invoke(app, ["serve", "--help"], env={"COLUMNS": "200"}).stdout
    return set(re.findall(r"--[a-z-]+", text))


@pytest.mark.parametrize(
    "path", [*sorted(FLEET.glob("*.*")), FLEET / "Containerfile"], ids=lambda path: path.name
)
def test_an_example_has_options_that_there_are(path: Path) -> None:
    text = path.read_text()
    word = "CMD" if path.name == "Containerfile" else "--until-empty"
    lines = [line for line in text.splitlines() if word in line and "serve" in line]
    assert lines
    assert set(re.findall(r"--[a-z-]+", " ".join(lines))) <= options_of_serve()


def test_the_slurm_script_is_one_of_bash_s() -> None:
    subprocess.run(["bash", "-n", FLEET / "slurm.sh"], check=True)


def test_the_slurm_script_s_worker_empties_a_queue(tmp_path: Path) -> None:
    queue = Queue(tmp_path / "queue")
    queue.put("1", msgspec.json.encode(job(1)), "one", 1)
    commands = tmp_path / "bin"
    commands.mkdir()
    for name, words in (("srun", ["exec", '"$@"']), ("kernelexp", ["exec", *KERNELEXP, '"$@"'])):
        (commands / name).write_text("#!/bin/bash\n" + " ".join(words) + "\n")
        (commands / name).chmod(0o755)
    environment = {
        "PATH": f"{commands}:/usr/bin:/bin",
        "PYTHONPATH": str(ROOT),
        "KERNELEXP_QUEUE": str(tmp_path / "queue"),
        "TMPDIR": str(tmp_path),
    }
    subprocess.run(["bash", FLEET / "slurm.sh"], env=environment, check=True, cwd=tmp_path)
    assert queue.counts() == {"done": 1}


def test_the_kubernetes_job_has_its_token_and_ends_with_the_queue() -> None:
    values: Any = yaml.safe_load((FLEET / "kubernetes.yaml").read_text())
    (container,) = values["spec"]["template"]["spec"]["containers"]
    assert values["kind"] == "Job"
    assert container["args"][:2] == ["serve", "--worker"]
    assert "--until-empty" in container["args"]
    assert container["env"][0]["name"] == "KERNELEXP_TOKEN"


def test_the_workflow_and_the_function_are_well_formed() -> None:
    workflow: Any = yaml.safe_load((FLEET / "actions.yml").read_text())
    assert len(workflow["jobs"]["worker"]["steps"]) == 2
    ast.parse((FLEET / "modal_worker.py").read_text())


def test_the_modal_function_is_one_of_modal_s() -> None:
    pytest.importorskip("modal")
    program = "import modal_worker as m; print(m.app.name, sorted(m.app.registered_functions))"
    done = subprocess.run(
        [sys.executable, "-B", "-c", program], cwd=FLEET, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["kernelexp", "['work']"]


def test_options_of_sbatch_are_read() -> None:
    assert slurm.parse("partition=gpu,time=60") == {"partition": "gpu", "time": 60}
    for text in ("", "partition", "=gpu", "time=60,"):
        with pytest.raises(UsageError, match="should have options of sbatch"):
            slurm.parse(text)


@pytest.mark.slow
def test_submitit_s_workers_empty_a_queue(tmp_path: Path) -> None:
    pytest.importorskip("submitit")
    queue = Queue(tmp_path / "queue")
    for number in range(3):
        queue.put(str(number), msgspec.json.encode(job(number)), "one", 10)
    argv = [
        *KERNELEXP,
        "serve",
        "--worker",
        "--queue",
        "queue",
        "--slurm",
        "cluster=local",
        "--count",
        "2",
    ]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "what they print is in slurm/." in done.stderr
    wait_until(lambda: queue.counts() == {"done": 3})
