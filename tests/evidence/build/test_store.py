"""What is in the cache is what was written, or it is not used."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import filelock
import pytest
from compilers import SOURCE, BuildOne, Plant, default, edit_file
from hypothesis import given
from hypothesis import strategies as st

from kernelexp.evidence import build
from kernelexp.evidence.build import combined, store
from kernelexp.model.errors import EnvironmentFault
from kernelexp.system.toolchain import Toolchain

slow = pytest.mark.slow
ARTEFACTS = (
    "kernel.sass",
    *(
        pytest.param(name, marks=slow)
        for name in ("kernel.ptx", "kernel.cubin", "ptxas.log", "checksums.json")
    ),
)


@pytest.mark.parametrize("name", ARTEFACTS)
def test_an_artefact_cut_in_half_is_built_again_with_a_note(
    scale: Path, build_one: BuildOne, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    first = build_one()
    path = scale / ".kernelexp/build" / first.identity / name
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(EnvironmentFault, match="is not what the compiler left there"):
        build.artefacts(scale, first.identity)
    again = build_one()
    assert (again.ok, again.cached, again.identity) == (True, False, first.identity)
    assert capsys.readouterr().err.count(f"{first.identity} was damaged") == 1
    build.artefacts(scale, first.identity)


def test_a_build_under_another_one_s_name_is_built_again(scale: Path, build_one: BuildOne) -> None:
    first = build_one()
    folder = scale / ".kernelexp/build" / first.identity
    shutil.copytree(folder, folder.with_name("0" * 16))
    build.artefacts(scale, first.identity)
    with pytest.raises(EnvironmentFault, match="is not what the compiler left there"):
        build.artefacts(scale, "0" * 16)


def test_a_pipe_in_the_place_of_an_artefact_is_built_again(
    scale: Path, build_one: BuildOne
) -> None:
    first = build_one()
    path = scale / ".kernelexp/build" / first.identity / "kernel.cubin"
    path.unlink()
    os.mkfifo(path)
    assert (build_one().cached, path.is_file()) == (False, True)


def test_a_manifest_that_is_damaged_is_as_none(scale: Path, build_one: BuildOne) -> None:
    first = build_one()
    (manifest,) = (scale / ".kernelexp/build/manifests").iterdir()
    manifest.write_bytes(manifest.read_bytes().replace(b"identity", b"identify"))
    again = build_one()
    assert (again.cached, again.identity) == (False, first.identity)


@given(content=st.binary())
def test_what_is_kept_is_read_back(
    content: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.getbasetemp()
    build.keep(folder, "kept", content)
    assert build.kept(folder, "kept") == content
    with (folder / "kept").open("ab") as file:
        file.write(b"!")
    assert build.kept(folder, "kept") is None


def test_what_was_kept_elsewhere_is_none(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
    build.keep(tmp_path / "one", "kept", b"content")
    content = (tmp_path / "one/kept").read_bytes()
    (tmp_path / "other/kept").write_bytes(content)
    (tmp_path / "one/again").write_bytes(content)
    assert build.kept(tmp_path / "one", "kept") == b"content"
    assert build.kept(tmp_path / "other", "kept") is None
    assert build.kept(tmp_path / "one", "again") is None


def test_what_was_never_kept_is_none(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text('{"size":"emulated"}')
    assert build.kept(tmp_path, "kept") is None
    assert build.kept(tmp_path, "other") is None


def test_temporaries_of_processes_that_are_gone_are_removed_and_no_others(
    scale: Path, build_one: BuildOne
) -> None:
    folder = scale / ".kernelexp/build"
    folder.mkdir(parents=True)
    mine = store.temporary_in(folder)
    code = "import pathlib, sys; from kernelexp.evidence.build import store; "
    code += "store.temporary_in(pathlib.Path(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", code, str(folder)], check=True)
    assert len(list(folder.glob("tmp-*"))) == 2
    build_one()
    assert list(folder.glob("tmp-*")) == [mine]


def test_two_runs_at_once_share_the_work(scale: Path, counted: tuple[Toolchain, Path]) -> None:
    tools, calls = counted
    code = (
        "from compilers import build_each, default\n"
        "from kernelexp.system import toolchain\n"
        "from pathlib import Path; import sys\n"
        "root = Path(sys.argv[1]); tools = toolchain.find(sys.argv[2], root)\n"
        "print(build_each(root, [default(root)], tools)[0].ok)"
    )
    paths = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    argv = [sys.executable, "-c", code, str(scale), tools.nvcc]
    runs = [
        subprocess.Popen(
            argv, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": paths}
        )
        for _ in range(3)
    ]
    assert [run.communicate()[0] for run in runs] == ["True\n"] * 3
    assert len(calls.read_text().splitlines()) == 1


def test_waiting_for_another_run_says_so(
    scale: Path, build_one: BuildOne, monkeypatch: pytest.MonkeyPatch
) -> None:
    (scale / ".kernelexp/build").mkdir(parents=True)
    held, waited_for = threading.Event(), threading.Event()

    def hold() -> None:
        with filelock.FileLock(scale / ".kernelexp/build/lock-scale"):
            held.set()
            waited_for.wait(60)

    def note(*words: object, **_: object) -> None:
        result.append(" ".join(map(str, words)))
        waited_for.set()

    result: list[str] = []
    monkeypatch.setattr("builtins.print", note)
    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    assert build_one().ok
    thread.join()
    assert "waiting for another run that builds scale in" in result[0]


def test_another_kernel_of_the_project_is_not_waited_for(
    scale: Path, build_one: BuildOne, capsys: pytest.CaptureFixture[str]
) -> None:
    (scale / ".kernelexp/build").mkdir(parents=True)
    with filelock.FileLock(scale / ".kernelexp/build/lock-another"):
        assert build_one().ok
    assert capsys.readouterr().err == ""


def test_ptxas_that_could_not_write_its_cubin_is_no_build(
    scale: Path, build_one: BuildOne, planted: Plant, tools: Toolchain
) -> None:
    short = f'{tools.ptxas} "$@"; for last; do :; done; [ "${{last##*.}}" = cubin ] && '
    built = build_one(using=planted("bin/ptxas", short + 'truncate -s 3000 "$last"; exit 0'))
    assert "ptxas left no whole cubin" in str(built.fault)
    assert not os.listdir(scale / ".kernelexp/build/manifests")


def test_a_cubin_is_whole_or_cut_at_any_byte(scale: Path, build_one: BuildOne) -> None:
    content = build.artefacts(scale, build_one().identity).cubin.read_bytes()
    assert combined.is_whole(content)
    assert not any(combined.is_whole(content[:length]) for length in range(0, len(content), 7))
    beyond = content[:0x28] + b"\xff" * 8 + content[0x30:]  # where its section headers are
    assert not combined.is_whole(beyond)


@pytest.mark.parametrize(
    "name",
    [
        "a b#$c:d",
        *(pytest.param(x, marks=slow) for x in ("a b", "$x", "c:d", "grün", "g%h", "i=j")),
    ],
)
def test_odd_names_of_headers_are_read_from_the_compiler_s_list(
    scale: Path, build_one: BuildOne, name: str
) -> None:
    (scale / f"variants/scale/{name}.cuh").write_text("// odd\n")
    edit_file(
        scale, SOURCE, '#include "export.cuh"', f'#include "{name}.cuh"\n#include "export.cuh"'
    )
    built = build_one()
    assert built.ok, built.log or built.fault
    assert f"variants/scale/{name}.cuh" in built.arm.files


@given(cut=st.integers(min_value=1))
def test_a_list_of_files_that_is_cut_short_is_none(cut: int) -> None:
    whole = "k.ptx : a.cu \\\n    b\\ c.h \\\n    d.h\n"
    assert store.parse(whole) == ["a.cu", "b c.h", "d.h"]
    assert store.parse(whole[: -(cut % len(whole)) or None]) is None or cut % len(whole) == 0


def test_a_full_disk_is_the_machine_s_fault_and_leaves_no_entry(
    scale: Path, tmp_path: Path, build_one: BuildOne
) -> None:
    cache = scale / ".kernelexp"
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=76k", "tmpfs", str(cache)], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("no file system can be mounted here")
    try:
        built = build_one()
        assert "No space left on device" in str(built.fault)
        subprocess.run(["mount", "-o", "remount,size=64m", str(cache)], check=True)
        again = build_one()
        assert again.ok, again.log or again.fault
        assert not again.cached
    finally:
        subprocess.run(["umount", str(cache)], check=True)


def test_a_folder_that_can_t_be_written_is_a_sentence(scale: Path, tools: Toolchain) -> None:
    shutil.rmtree(scale / ".kernelexp")
    (scale / ".kernelexp").write_text("a file\n")
    with pytest.raises(EnvironmentFault, match=r"\.kernelexp.* can't be used: Not a directory"):
        build.build(scale, [default(scale)], tools)
