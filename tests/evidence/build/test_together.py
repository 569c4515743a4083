"""Cubins that are disassembled by one process: each listing is as of the cubin alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from compilers import Plant, build_each
from hypothesis import given
from hypothesis import strategies as st

from kernelexp import project
from kernelexp.evidence import build
from kernelexp.evidence.build import combined, turns
from kernelexp.system.process import processes
from kernelexp.system.toolchain import Toolchain

KERNEL = """
.visible .entry {name}(.param .u64 x) {{
    .reg .b64 %rd<2>;
    .reg .b32 %r<2>;
    .reg .pred %p<2>;
    ld.param.u64 %rd1, [x];
    ld.global.u32 %r1, [%rd1];
    setp.gt.u32 %p1, %r1, 2147483647;
    @%p1 st.global.u32 [%rd1+{offset}], %r1;
    ret;
}}
"""


def assemble(tools: Toolchain, folder: Path, *kernels: str) -> bytes:
    text = ".version 9.0\n.target sm_90a\n.address_size 64\n" + "".join(kernels)
    (folder / "k.ptx").write_text(text)
    argv = [tools.ptxas, "-arch=sm_90a", "k.ptx", "-o", "k.cubin"]
    assert processes.run(argv, cwd=folder).returncode == 0
    return (folder / "k.cubin").read_bytes()


def test_builds_that_wait_for_a_core_are_disassembled_by_one_process(
    scale: Path, planted: Plant, tools: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "CORES", 1)
    monkeypatch.setattr(turns, "_turns", turns._Turns())
    starts = tmp_path / "starts"
    real = Path(tools.cuobjdump).with_name("nvdisasm")
    counted = planted("bin/nvdisasm", f'echo >> {starts}\nexec {real} "$@"')
    loaded = project.load(scale)
    variants = [loaded.variant("scale", "sm_90a", {"width": width}) for width in (1, 4)]
    builds = build_each(scale, variants, counted)
    assert [entry.ok for entry in builds] == [True, True], builds
    assert len(starts.read_text().splitlines()) == 1
    for item in builds:
        artefacts = build.artefacts(scale, item.identity)
        alone = processes.run([tools.cuobjdump, "-res-usage", "-sass", str(artefacts.cubin)])
        assert artefacts.sass == alone.stdout


def test_a_cubin_of_two_functions_is_disassembled_alone(tools: Toolchain, tmp_path: Path) -> None:
    kernels = [KERNEL.format(name=name, offset=4) for name in ("one", "two")]
    assert combined.read(assemble(tools, tmp_path, kernels[0])) is not None
    assert combined.read(assemble(tools, tmp_path, *kernels)) is None


def test_listings_of_which_one_is_missing_are_not_taken_apart(
    tools: Toolchain, tmp_path: Path
) -> None:
    code = combined.read(assemble(tools, tmp_path, KERNEL.format(name="one", offset=4)))
    assert code
    one = "\n\tcode for sm_90\n\t.target\tsm_90a\n\n\t\tFunction : 1\n"
    assert combined.separate(one, [code]) == [
        one.replace("sm_90\n", "sm_90a\n").replace("1\n", "one\n")
    ]
    assert combined.separate(one, [code, code]) is None
    assert combined.separate(f"{one}  BRX R2\n", [code]) is None


@given(content=st.binary(max_size=256))
def test_what_is_no_cubin_is_disassembled_alone(content: bytes) -> None:
    assert combined.read(content) is None
    assert combined.read(b"\x7fELF" + content) is None
