"""Which lines a finding in a program's kernel names."""

from __future__ import annotations

from kernelexp.report import programs
from kernelexp.services.execution import _of_kernel
from warpsim.lineinfo import Source
from warpsim.machine.core.findings import Finding
from warpsim.runtime.reports import Caught


def test_a_finding_in_an_inlined_helper_names_the_lines_that_used_it() -> None:
    use = Source("/p/k.cu", 20, Source("/p/k.cu", 31))
    for source, words in (
        (Source("/p/ptx.cuh", 34, use), "at ptx.cuh:34, inlined at k.cu:31 → :20, launch 1"),
        (Source("/p/k.cu", 31), "at k.cu:31, launch 1"),
    ):
        finding = Finding(name="race", sentence="It races.", source=source)
        caught = Caught(finding=finding, kernel="k", launch=1, stream=0, frames=())
        mistake = _of_kernel(caught, {}, str)  # type: ignore[arg-type]
        assert words in programs._place(mistake)
