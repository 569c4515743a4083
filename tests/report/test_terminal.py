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
