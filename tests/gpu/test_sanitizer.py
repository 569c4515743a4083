"""compute-sanitizer finds nothing in any variant of the Hopper kernel's experiments."""

import re
import shutil
import subprocess
import sys

import launch_each
import msgspec
import pytest
from gpu_kernels import needs_gpu
from support import ROOT

from kernelexp import build, prepare, project, toolchain
from kernelexp.limits import Limits

CHECKS = (
    ("memcheck", "--report-api-errors=no"),
    ("racecheck",),
    ("synccheck",),
)
needs_sanitizer = pytest.mark.skipif(
    shutil.which("compute-sanitizer") is None, reason="compute-sanitizer is not on the PATH"
)


@pytest.fixture(scope="module")
def jobs(tmp_path_factory):
    """A file for launch_each: each variant of each experiment and step, on both small sizes."""
    loaded = project.load(ROOT)
    variants = [
        variant
        for experiment in loaded.experiments.values()
        if (experiment.kernel, experiment.arch) == ("patch_embed_gemm", "sm_90a")
        for variant in (lambda found: (found[0], *found[1]))(loaded.variants(experiment))
    ]
    tools = toolchain.find(None, ROOT / build.CACHE)
    arms = prepare.built(loaded, variants, tools, Limits()).arms.values()
    found = [
        launch_each.LaunchJob(
            root=str(loaded.root),
            kernel=each.kernel,
            cubin=str(build.artefacts(loaded.root, each.identity).cubin),
            axes=dict(each.axes),
            size=size,
            exports=each.build.exports,
        )
        for each in arms
        for size in ("emulated", "uneven")
    ]
    path = tmp_path_factory.mktemp("jobs") / "jobs.json"
    path.write_bytes(msgspec.json.encode(found))
    return path


@needs_gpu
@needs_sanitizer
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check[0])
def test_nothing_is_found_in_any_variant(check, jobs):
    tool, *options = check
    argv = ["compute-sanitizer", "--tool", tool, *options, "--kernel-name", "kns=patch_embed_gemm"]
    argv += [sys.executable, launch_each.__file__, str(jobs)]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=ROOT, check=False)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said[-4000:]
    summaries = re.findall(r"(?:ERROR|RACECHECK) SUMMARY: (\d+)", said)
    assert summaries == ["0"], said[-4000:]
