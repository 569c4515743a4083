"""Which line of a program made a call, of all that its return addresses have."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from kernelexp.evidence.programs import sites

TOOLKIT = """
#pragma once
void show();
template <class T> __attribute__((always_inline)) inline void allocate(T) { show(); }
"""
MAIN = """
#include <cuda_runtime.h>
static void go() {
  allocate(1);
}
int main() {
  go();
  return 0;
}
"""
SHOW = """
#include <execinfo.h>
#include <fstream>
#include <iostream>
void show() {
  std::cout << std::ifstream("/proc/self/maps").rdbuf() << "\\n";
  void* found[16];
  const int count = backtrace(found, 16);
  for (int i = 1; i < count; ++i) std::cout << "at " << found[i] << "\\n";
}
"""


def resolved(folder: Path, *flags: str) -> str:
    (folder / "include").mkdir()
    (folder / "include" / "cuda_runtime.h").write_text(TOOLKIT)
    for name, text in (("main.cpp", MAIN), ("show.cpp", SHOW)):
        (folder / name).write_text(text)
    compiler = shutil.which("g++")
    if compiler is None or shutil.which("addr2line") is None:
        pytest.skip("needs g++ and binutils")
    command = [compiler, "-O1", "-Iinclude"]
    subprocess.run([*command, "-c", *flags, "main.cpp"], cwd=folder, check=True)
    subprocess.run([*command, "main.o", "show.cpp", "-o", "program"], cwd=folder, check=True)
    shown = subprocess.run([folder / "program"], capture_output=True, text=True, check=True).stdout
    maps, _, stack = shown.partition("\n\n")
    addresses = [int(line.removeprefix("at "), 16) for line in stack.splitlines()]
    return "".join(map(str, sites.resolve(maps, [addresses]).values()))


def test_a_call_in_a_header_of_cuda_is_the_line_that_it_was_inlined_at(tmp_path: Path) -> None:
    assert resolved(tmp_path, "-g1") == "main.cpp:4"


def test_a_program_without_line_tables_has_no_line(tmp_path: Path) -> None:
    assert resolved(tmp_path) == ""
