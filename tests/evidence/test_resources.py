"""Resources of an entry, read from a real cubin."""

from __future__ import annotations

from pathlib import Path

import pytest
from compilers import build_each

from kernelexp import project
from kernelexp.evidence import build
from kernelexp.evidence.code import built as evidence_built
from kernelexp.evidence.code.built import Launches
from kernelexp.model.arm import BuildEvidence
from kernelexp.model.errors import ConfigurationError
from kernelexp.system.toolchain import Toolchain
from warpsim.launch import Launch

pytestmark = pytest.mark.usefixtures("shared_builds")


def collect(
    root: Path, tools: Toolchain, edit: tuple[str, str], launches: Launches | None = None
) -> BuildEvidence:
    source = root / "variants/scale/scale.cu"
    assert edit[0] in source.read_text()
    source.write_text(source.read_text().replace(*edit))
    (built,) = build_each(root, [project.load(root).variant("scale", "sm_90a")], tools)
    assert built.ok, built.log
    artefacts = build.artefacts(root, built.identity)
    exports = evidence_built.read_exports(artefacts.cubin)
    return evidence_built.collect(built.arm, artefacts, exports, launches or {})


def test_static_shared_memory_is_what_the_source_declares(scale: Path, tools: Toolchain) -> None:
    static = "__shared__ float s[300]; s[threadIdx.x] = factor; __syncthreads(); factor = s[0];"
    evidence = collect(scale, tools, ("if (i >= count) return;", static))
    assert evidence.resources.static_smem_bytes == 1200


def test_stack_and_spills_are_seen(scale: Path, tools: Toolchain) -> None:
    many = (
        "float a[200]; for (int k = 0; k < 200; ++k) a[k] = x[i + k].at[0];"
        "__syncthreads(); for (int k = 0; k < 200; ++k) factor += a[k] * a[199 - k];"
    )
    source = scale / "variants/scale/scale.cu"
    source.write_text(source.read_text().replace("bounds__(THREADS)", "bounds__(THREADS, 8)"))
    used = collect(scale, tools, ("if (i >= count) return;", many)).resources
    assert used.stack_bytes > 0
    assert used.registers <= 32


def test_figures_of_the_source_are_read_from_the_cubin(scale: Path, tools: Toolchain) -> None:
    evidence = collect(scale, tools, ("dynamic_smem_bytes, 0", "dynamic_smem_bytes, 4096"))
    assert evidence.exports == {"dynamic_smem_bytes": 4096, "threads": 256}
    assert evidence.entry == "scale"


SECOND = (
    'extern "C" __global__ void __launch',
    "__global__ void other(int* y) { __shared__ int s[32]; s[threadIdx.x] = y[threadIdx.x]; "
    "__syncwarp(); y[threadIdx.x] = s[31]; }\n"
    'extern "C" __global__ void __launch',
)


def launch(entry: str, threads: int, *, main: bool = False) -> Launch:
    return Launch(entry=entry, grid=(1, 1, 1), block=(threads, 1, 1), main=main)


def test_each_entry_that_is_launched_has_resources(scale: Path, tools: Toolchain) -> None:
    with pytest.raises(ConfigurationError, match=r"has 2 __global__ functions \(.*other"):
        collect(scale, tools, SECOND)
    same = ("THREADS", "THREADS")
    with pytest.raises(
        ConfigurationError, match=r"launch\(\) names the entry 'x'; .*scale.cu has "
    ):
        collect(scale, tools, same, {"full": [launch("x", 1)]})
    alone = collect(scale, tools, same, {"full": [launch("scale", 256)]})
    assert (alone.entry, alone.others) == ("scale", {})
    both = [launch("other", 32), launch("scale", 256, main=True)]
    result = collect(scale, tools, same, {"emulated": both[:1], "full": both})
    assert (result.entry, result.resources) == ("scale", alone.resources)
    assert list(result.others) == ["_Z5otherPi"]
    other = result.others["_Z5otherPi"]
    assert (other.resources.threads, other.resources.static_smem_bytes) == (32, 128)
    assert (result.resources.static_smem_bytes, other.occupancy.ctas_per_sm) == (0, 32)


def test_what_is_not_exported_is_as_launched(scale: Path, tools: Toolchain) -> None:
    missing = ("KX_EXPORT(threads, THREADS);", "")
    with pytest.raises(ConfigurationError, match=r"and KX_EXPORT\(threads, \.\.\.\)"):
        collect(scale, tools, missing)
    job = [launch("scale", 128)]
    assert collect(scale, tools, ("THREADS", "THREADS"), {"full": job}).resources.threads == 128


@pytest.mark.parametrize("export", ["threads, 0", "threads, 256); KX_EXPORT(cluster, 0"])
def test_a_cta_of_nothing_is_a_sentence(scale: Path, tools: Toolchain, export: str) -> None:
    with pytest.raises(ConfigurationError, match=r"the source exports 0 as .*: it is at least 1"):
        collect(scale, tools, ("threads, THREADS", export))


def test_wgmma_that_ptxas_serializes_is_a_warning(scale: Path, tools: Toolchain) -> None:
    wgmma = (
        "float d[4] = {}; for (int k = 0; k < 2; ++k) {"
        ' asm volatile("wgmma.fence.sync.aligned;\\n\\t"'
        ' "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3 {%0, %1, %2, %3}, %4, %4, 1, 1, 1;"'
        ' : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(0ull));'
        " d[0] += factor; } factor = d[0]; if (i >= count) return;"
    )
    (warning,) = collect(scale, tools, ("if (i >= count) return;", wgmma)).warnings
    assert warning.startswith("wgmma.mma_async instructions are serialized due to")


def test_a_build_without_a_warning_has_none(scale: Path, tools: Toolchain) -> None:
    assert collect(scale, tools, ("THREADS", "THREADS")).warnings == ()
