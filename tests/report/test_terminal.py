"""Documents on a terminal of 80 columns."""

from __future__ import annotations

import pytest

from kernelexp.cli import console
from kernelexp.report.document.document import table


def test_a_table_with_a_long_path_loses_no_word(capsys: pytest.CaptureFixture[str]) -> None:
    path = "/home/somebody/projects/kernels/.venv/lib/python3.11/site-packages/nvidia/cu13/bin/nvcc"
    sentence = "times variants: no usable GPU or driver on this machine, and no library of its own"
    rows = [("host compiler", path, "compiles"), ("GPU", "missing", sentence)]
    console.print_document([table(("", "found", "for"), rows)])
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    assert all(word in shown.split() for word in sentence.split())
    assert "host compiler" in shown
    assert "nvcc" in shown


def test_a_long_word_of_the_widest_column_is_not_cut(capsys: pytest.CaptureFixture[str]) -> None:
    kernel, run = "flash_attention_hopper@sm_90a", "20261122T115323Z-404cb360,"
    row = (kernel, "0.562 ms / 489 TFLOPS", f"{run} the lowest time measured, NVIDIA H200")
    console.print_document([table(("kernel", "best now", "of"), [row], unwrapped=(0,))])
    shown = capsys.readouterr().out
    assert set(" ".join(row).split()) <= set(shown.split())
    assert max(map(len, shown.splitlines())) <= 80


def test_long_figures_wrap_before_an_id_or_a_verdict_is_cut(
    capsys: pytest.CaptureFixture[str],
) -> None:
    change = "schedule=pingpong, overlap=pinned: 0.613 ms, -10.09%"
    row = (
        "A12",
        "Two ways to run softmax beside MMAs",
        "0.681 ms, size long128",
        change,
        "IMPROVED",
    )
    header = ("Id", "Experiment", "Baseline", "Candidate", "Verdict")
    console.print_document([table(header, [row], numbers=(2, 3))])
    shown = capsys.readouterr().out
    assert set(" ".join(row).split()) <= set(shown.split())
    assert max(map(len, shown.splitlines())) <= 80
