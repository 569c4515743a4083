"""The command `capture`, and with --replay."""

from __future__ import annotations

import io
from collections.abc import Iterable
from pathlib import Path

import captured
import msgspec
import pytest
from rich.console import Console
from schemas import validate
from support import Kx

from kernelexp.evidence.programs.captures import SkippedLaunch
from kernelexp.model import errors
from kernelexp.report import outputs
from kernelexp.report.captured import render, render_replays
from kernelexp.report.document import terminal
from kernelexp.report.document.document import Block
from kernelexp.services.capturing import CapturedFolder, KernelUse, ProgramCaptures
from kernelexp.services.replaying import Replay
from kernelexp.system.toolchain import Toolchain


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("capture", "ls"), "put -- before the program"),
        (("capture",), "put -- before the program"),
        (("capture", "--kernel", "k:0", "--", "ls"), "NAME:3 for its third launch"),
        (("capture", "--launches", "x", "--", "ls"), "should be like 3, 1-3 or 5-"),
        (("capture", "--replay", "."), "is not a capture: it has no launch.json"),
        (
            ("capture", "--replay", "--emulated", "--after", ".", "."),
            "--after times a launch, and needs a GPU",
        ),
    ],
)
def test_mistakes_end_in_a_sentence(
    kx: Kx, tmp_path: Path, words: tuple[str, ...], sentence: str
) -> None:
    result = kx(*words, cwd=tmp_path)
    assert result.exit_code == errors.USAGE
    assert sentence in " ".join(result.output.split())


SYMBOL = "_ZN2at6native18elementwise_kernelILi128EEEviPf"
CAPTURED = ProgramCaptures(
    program="python3",
    returncode=0,
    seconds=4.25,
    launches=120,
    graphs=2,
    kernels=(KernelUse(symbol=SYMBOL, launches=120, seconds=0.0012, median_us=10.0),),
    captured=(
        CapturedFolder(
            folder="captures/elementwise_kernel-3",
            symbol=SYMBOL,
            launch=3,
            regions=2,
            bytes=4 << 20,
            cut=1,
            microseconds=10.5,
        ),
    ),
    skipped=(SkippedLaunch(symbol=SYMBOL, launch=4, why="it is recorded into a CUDA graph"),),
)


def show(program: ProgramCaptures, *, wanted: bool) -> str:
    return shown(render(program, wanted))


def shown(blocks: Iterable[Block]) -> str:
    console = Console(width=80, highlight=False, file=io.StringIO())
    for block in terminal.render(blocks):
        console.print(block)
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]


def test_what_was_captured_is_of_its_schema() -> None:
    validate("capture", outputs.encode("capture", CAPTURED))


def test_what_was_kept_and_what_was_not_is_told() -> None:
    text = " ".join(show(CAPTURED, wanted=True).split())
    assert "captures/elementwise_kernel-3: launch 3, 4.0 MiB in 2 allocation(s), 10.5 us" in text
    assert "1 of them are larger than --limit" in text
    assert "not kept: launch 4, of elementwise_kernel<128>: it is recorded" in text
    assert "2 of CUDA graphs, whose kernels are not seen one by one" in text


def test_kernels_are_listed_where_nothing_was_kept() -> None:
    text = show(msgspec.structs.replace(CAPTURED, captured=()), wanted=False)
    (line,) = (line for line in text.splitlines() if "elementwise_kernel<128>  " in line)
    assert line.split()[-3:] == ["120", "10.0", "1.200"]


REPLAY = Replay(
    folder="captures/relu-8",
    symbol="relu",
    where="gpu",
    regions=2,
    changed=1,
    unsure=False,
    bytes=1 << 20,
    differences=(),
    replayed_us=11.0,
    row_us=10.0,
    evicted_us=12.0,
    previous="gemm",
    launch=8,
)


def test_a_replay_says_what_each_of_its_times_is_of() -> None:
    text = " ".join(shown(render_replays([REPLAY])).split())
    assert "10.00 us in a row (median), 11.00 us after its memory was put back" in text
    assert "comes after gemm: capture that too (--launches 7-8), and replay with --after" in text
    after = msgspec.structs.replace(REPLAY, after="captures/gemm-7", after_us=10.5)
    text = " ".join(shown(render_replays([after])).split())
    assert "10.50 us directly after captures/gemm-7" in text
    assert "capture that too" not in text


def test_a_row_of_launches_with_other_work_is_told() -> None:
    text = " ".join(
        shown(render_replays([msgspec.structs.replace(REPLAY, row_same=False)])).split()
    )
    assert "launches in a row leave other bytes" in text


def test_a_replay_says_whether_bytes_are_the_same(kx: Kx, tmp_path: Path, tools: Toolchain) -> None:
    cubin = captured.compile_cubin(tools, captured.SAXPY)
    captured.write_saxpy(tmp_path / "c", cubin)
    result = kx("capture", "--replay", "--emulated", "--json", "c", cwd=tmp_path)
    (document,) = validate("replay", result.stdout)
    assert document["differences"] == []
    assert result.exit_code == errors.OK
    captured.write_saxpy(tmp_path / "d", cubin)
    (tmp_path / "d/2.after").write_bytes((tmp_path / "d/2.before").read_bytes())
    result = kx("capture", "--replay", "--emulated", "c", "d", cwd=tmp_path)
    assert result.exit_code == errors.WRONG_RESULT
    assert "c: emulated: same bytes" in result.output
    assert "d: emulated: other bytes" in result.output
