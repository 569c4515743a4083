"""compute-sanitizer finds nothing in any variant of the experiments for Hopper."""

import re
import shutil
import subprocess
import sys

import launch_each
import msgspec
import pytest
from gpu_kernels import needs_gpu
from support import ROOT

from kernelexp import project
from kernelexp.dossier import prepare
from kernelexp.dossier.session import Session
from kernelexp.evidence import build
from kernelexp.model.arm import sound
from kernelexp.system import toolchain

CHECKS = (
    ("memcheck", "--report-api-errors=no"),
    ("racecheck",),
    ("synccheck",),
)
needs_sanitizer = pytest.mark.skipif(
    shutil.which("compute-sanitizer") is None, reason="compute-sanitizer is not on the PATH"
)


KERNELS = {
    "patch_embed_gemm": ("emulated", "uneven"),
    "flash_attention": ("emulated", "emulated_more"),
    "flash_attention_hopper": ("emulated", "emulated_more"),
    "fa_4x4": ("emulated", "emulated_more"),
    "transpose": ("emulated",),
}
ENTRIES = {"flash_attention_hopper": "flash_attention"}
"""Where an entry's name does not begin as its kernel's does."""


@pytest.fixture(scope="module", params=KERNELS)
def jobs(request, tmp_path_factory):
    """A file for launch_each: each variant of each experiment and step, on its small sizes."""
    loaded = project.load(ROOT)
    variants = [
        variant
        for experiment in loaded.experiments.values()
        if (experiment.kernel, experiment.arch) == (request.param, "sm_90a")
        for variant in (lambda item: (item[0], *item[1]))(loaded.variants(experiment))
        if variant.axes.get("sync_policy") != "none"  # a race, and known to be one
    ]
    tools = toolchain.find(None, ROOT / build.CACHE)
    arms = map(sound, prepare.built(loaded, variants, Session(tools=tools)))
    result = [
        launch_each.LaunchJob(
            root=str(loaded.root),
            kernel=arm.kernel,
            cubin=str(build.artefacts(loaded.root, arm.identity).cubin),
            axes=dict(arm.axes),
            size=size,
            exports=arm.build.exports,
        )
        for arm in arms
        if arm.build
        for size in KERNELS[request.param]
    ]
    path = tmp_path_factory.mktemp("jobs") / "jobs.json"
    path.write_bytes(msgspec.json.encode(result))
    return request.param, path


@needs_gpu
@needs_sanitizer
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check[0])
def test_nothing_is_found_in_any_variant(check, jobs):
    tool, *options = check
    kernel, path = jobs
    name = f"kns={ENTRIES.get(kernel, kernel)}"
    argv = ["compute-sanitizer", "--tool", tool, *options, "--kernel-name", name]
    argv += [sys.executable, launch_each.__file__, str(path)]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=ROOT, check=False)
    output = done.stdout + done.stderr
    assert done.returncode == 0, output[-4000:]
    summaries = re.findall(r"(?:ERROR|RACECHECK) SUMMARY: (\d+)", output)
    assert summaries == ["0"], output[-4000:]
