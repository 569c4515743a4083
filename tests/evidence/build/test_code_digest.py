"""The digest of a cubin's machine code: the same for other line tables, another for other code."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelexp.evidence.build import code_digest
from kernelexp.system.process import processes
from kernelexp.system.toolchain import Toolchain

KERNEL = """.version 9.0
.target {arch}
.address_size 64
.const .align 4 .u32 table[2] = {{1, 2}};
.global .align 4 .u32 kx_threads = 64;
.visible .entry k(.param .u64 x) .maxntid 64 {{
    .reg .b64 %rd<3>;
    .reg .b32 %r<4>;
    .shared .align {aligned} .b8 buffer[64];
    .loc 1 3 5
    ld.param.u64 %rd1, [x];
    ld.global.u32 %r1, [%rd1];
    .loc 1 4 5
    ld.const.u32 %r2, [table+4];
    add.u32 %r3, %r1, %r2;
    add.u32 %r3, %r3, 17;
    st.shared.u32 [buffer], %r3;
    st.global.u32 [%rd1], %r3;
    ret;
}}
.file 1 "k.cu"
"""


def digest(
    tools: Toolchain, folder: Path, arch: str, old: str = "", new: str = "", *, aligned: int = 4
) -> str:
    text = KERNEL.format(arch=arch, aligned=aligned)
    assert old in text
    (folder / "k.ptx").write_text(text.replace(old, new) if old else text)
    argv = [tools.ptxas, f"-arch={arch}", "--generate-line-info", "k.ptx", "-o", "k.cubin"]
    done = processes.run(argv, cwd=folder)
    assert done.returncode == 0, done.stderr
    return code_digest((folder / "k.cubin").read_bytes())


@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize(
    ("old", "new"),
    [(".loc 1 4 5", ".loc 1 40 7"), ('"k.cu"', '"other/kernel.cu"'), ("ret;", "ret; // moved\n\n")],
    ids=["another line", "another file", "a comment"],
)
def test_line_tables_do_not_count(
    tools: Toolchain, tmp_path: Path, arch: str, old: str, new: str
) -> None:
    assert digest(tools, tmp_path, arch) == digest(tools, tmp_path, arch, old, new)


@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a"])
def test_padding_behind_longer_line_tables_does_not_count(
    tools: Toolchain, tmp_path: Path, arch: str
) -> None:
    """Shared memory is aligned in the file too, behind the figures that the kernel exports."""
    digests = {
        digest(tools, tmp_path, arch, '"k.cu"', f'"{folder}/k.cu"', aligned=1024)
        for folder in ("x" * 10, "x" * 100, "x" * 200)
    }
    assert len(digests) == 1


@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("%r3, 17;", "%r3, 18;"),
        ("[table+4]", "[table]"),
        ("{1, 2}", "{1, 3}"),
        (".param .u64 x)", ".param .u64 x, .param .u32 n)"),
        (".maxntid 64", ".maxntid 128"),
        (".maxntid 64", ".reqntid 64"),
        ("buffer[64]", "buffer[128]"),
        ("kx_threads = 64", "kx_threads = 32"),
        ("kx_threads", "kx_cluster"),
        (".entry k(", ".entry j("),
    ],
    ids=[
        "an immediate",
        "a place in a constant bank",
        "a constant",
        "another parameter",
        "most threads",
        "required threads",
        "shared memory",
        "a figure that it exports",
        "the name of that figure",
        "the entry's name",
    ],
)
def test_other_code_has_another_digest(
    tools: Toolchain, tmp_path: Path, arch: str, old: str, new: str
) -> None:
    assert digest(tools, tmp_path, arch) != digest(tools, tmp_path, arch, old, new)


def test_another_architecture_has_another_digest(tools: Toolchain, tmp_path: Path) -> None:
    assert digest(tools, tmp_path, "sm_90a") != digest(tools, tmp_path, "sm_90")


def test_of_a_file_that_is_no_cubin_every_byte_counts() -> None:
    assert code_digest(b"one") != code_digest(b"other")
