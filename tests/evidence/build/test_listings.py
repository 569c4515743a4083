"""Code that was disassembled once is not disassembled again, in any project of the user."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import kept
import pytest
from compilers import Plant, build_each, default

from kernelexp.evidence import build
from kernelexp.evidence.build import listings
from kernelexp.system import disk
from kernelexp.system.toolchain import Toolchain


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache of a user of its own."""
    monkeypatch.setenv(disk.CACHE_VARIABLE, str(tmp_path / "user"))
    return tmp_path / "user"


@pytest.fixture
def starts(tmp_path: Path) -> Path:
    """A line for each start of nvdisasm."""
    (tmp_path / "starts").touch()
    return tmp_path / "starts"


@pytest.fixture
def counted(planted: Plant, tools: Toolchain, starts: Path) -> Toolchain:
    real = Path(tools.cuobjdump).with_name("nvdisasm")
    return planted("bin/nvdisasm", f'echo >> {starts}\nexec {real} "$@"')


def sass_of(root: Path, tools: Toolchain) -> tuple[str, str]:
    """The name of the build, and its listing."""
    (built,) = build_each(root, [default(root)], tools)
    assert built.ok, built.log
    return built.identity, build.artefacts(root, built.identity).sass


def listed(root: Path, identity: str, tools: Toolchain) -> str:
    """What cuobjdump prints of a build."""
    cubin = build.artefacts(root, identity).cubin.read_bytes()
    return kept.run(
        [tools.cuobjdump, "-res-usage", "-sass", "k.cubin"], {"k.cubin": cubin}
    ).decode()


def test_a_comment_is_compiled_and_not_disassembled(
    scale: Path, user: Path, counted: Toolchain, starts: Path, tmp_path: Path, tools: Toolchain
) -> None:
    first = sass_of(scale, counted)
    assert first[1] == listed(scale, first[0], tools)
    other = Path(shutil.copytree(scale, tmp_path / "elsewhere"))
    shutil.rmtree(other / build.CACHE / "build")
    source = other / "variants/scale/scale.cu"
    source.write_text(f"// Seen from elsewhere.\n\n{source.read_text()}")
    started = starts.read_text()
    again, sass = sass_of(other, counted)
    assert again != first[0]
    assert sass == first[1]
    assert starts.read_text() == started == "\n"


def test_neither_are_two_kernels_that_call_a_function(
    scale: Path, user: Path, counted: Toolchain, starts: Path, tools: Toolchain
) -> None:
    source = scale / "variants/scale/scale.cu"
    text = source.read_text() + (
        "__device__ int kept;\n"
        "__device__ __noinline__ int more(int n) { return kept / n; }\n"
        "__global__ void second(int* y) { *y = more(*y); }\n"
    )
    source.write_text(text)
    identity, sass = sass_of(scale, counted)
    assert sass == listed(scale, identity, tools)
    assert sass.count("Function : ") > 1
    started = starts.read_text()
    source.write_text(f"// Another one.\n{text}")
    assert sass_of(scale, counted)[1] == sass
    assert starts.read_text() == started
    source.write_text(text.replace("kept / n", "kept % n"))
    identity, changed = sass_of(scale, counted)
    assert changed == listed(scale, identity, tools) != sass


def test_a_damaged_listing_is_made_again(
    scale: Path, user: Path, counted: Toolchain, starts: Path
) -> None:
    _, sass = sass_of(scale, counted)
    (kept,) = (user / "sass").iterdir()
    kept.write_bytes(kept.read_bytes()[:-1])
    shutil.rmtree(scale / build.CACHE / "build")
    started = starts.read_text()
    assert sass_of(scale, counted)[1] == sass
    assert starts.read_text() == started + "\n"


def test_another_disassembler_is_asked(
    scale: Path, user: Path, counted: Toolchain, starts: Path, tools: Toolchain
) -> None:
    sass_of(scale, tools)
    shutil.rmtree(scale / build.CACHE / "build")
    sass_of(scale, counted)
    assert len(starts.read_text()) == 1


def test_those_read_last_stay(
    scale: Path, user: Path, tools: Toolchain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listings, "KEPT", 4)
    (user / "sass").mkdir(parents=True)
    for age in range(1, 5):
        (user / "sass" / str(age)).touch()
        os.utime(user / "sass" / str(age), (1e9 - age, 1e9 - age))
    sass_of(scale, tools)
    (new,) = {path.name for path in (user / "sass").iterdir()} - {"1"}
    assert len(new) == 32
