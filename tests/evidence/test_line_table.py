"""The line table of a cubin, compared with what nvdisasm and ncu read from it."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from pathlib import Path

import kept
import pytest
from elftools.elf.elffile import ELFFile
from hypothesis import given
from hypothesis import strategies as st
from support import ROOT

from kernelexp import project
from kernelexp.dossier import prepare
from kernelexp.dossier.session import Session
from kernelexp.evidence import build
from kernelexp.evidence.code import line_table, sass_lines
from kernelexp.evidence.code.line_table import _Program
from kernelexp.model.errors import EnvironmentFault
from kernelexp.system import toolchain
from kernelexp.system.toolchain import Toolchain
from warpsim.lineinfo import Source

DATA = ROOT / "tests/data/ncu"
SOURCE = """
struct Pair { float a, b; };
__device__ __forceinline__ float twice(float v) {
    return v + v;
}
__device__ __forceinline__ float sum(Pair p) {
    return twice(p.a) * twice(p.b);
}
extern "C" __global__ void first(const Pair* x, float* y) {
    y[threadIdx.x] = sum(x[threadIdx.x]);
    y[threadIdx.x + 64] = sum(x[threadIdx.x + 64]);
}
extern "C" __global__ void second(const Pair* x, float* y) {
    y[threadIdx.x] = twice(sum(x[threadIdx.x]));
}
"""
PLACE = re.compile(r'//## File "([^"]*)", line (\d+)(?: inlined at "([^"]*)", line (\d+))?')


@pytest.fixture(scope="module")
def cubin(tools: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two entries with functions inlined two deep."""
    return compiled(tools, tmp_path_factory.mktemp("cubin"), "sm_90a")


def compiled(
    tools: Toolchain, folder: Path, arch: str, options: Sequence[str] = ("-lineinfo",)
) -> Path:
    argv = [tools.nvcc, f"-arch={arch}", *options, "-cubin", "-o", "two.cubin", "two.cu"]
    path = folder / f"two{len(options)}.cubin"
    path.write_bytes(kept.run(argv, {"two.cu": SOURCE}, "two.cubin"))
    return path


def dump(tools: Toolchain, cubin: Path) -> str:
    argv = [tools.cuobjdump, "-sass", "two.cubin"]
    return kept.run(argv, {"two.cubin": cubin.read_bytes()}).decode()


def disassembled(cubin: Path, entry: str) -> dict[int, list[tuple[str, ...]]]:
    """By offset what `nvdisasm -gi` prints before an instruction: file, line, inlined at."""
    wheels = toolchain.wheel_bin()
    argv = [f"{wheels}/nvdisasm" if wheels else "nvdisasm", "-c", "-gi", "two.cubin"]
    printed = kept.run(argv, {"two.cubin": cubin.read_bytes()}).decode()
    result: dict[int, list[tuple[str, ...]]] = {}
    above: list[tuple[str, ...]] = []
    section = printed.partition(f".section\t.text.{entry},")[2].partition(".section")[0]
    for line in section.splitlines():
        if match := PLACE.search(line):
            above.append(tuple(group or "" for group in match.groups()))
        elif match := re.match(r"\s+/\*([0-9a-f]{4,})\*/", line):
            result[int(match[1], 16)], above = above, []
    return result


def chain(source: Source) -> list[tuple[str, ...]]:
    """A source as nvdisasm spells it."""
    caller = source.caller
    at = (caller.file, str(caller.line)) if caller else ("", "")
    rest = chain(caller) if caller else []
    return [(source.file, str(source.line), *at), *rest]


@pytest.mark.parametrize("entry", ["first", "second"])
def test_each_instruction_has_the_chain_of_lines_that_nvdisasm_shows(
    tools: Toolchain, cubin: Path, entry: str
) -> None:
    shown = disassembled(cubin, entry)
    result = sass_lines.read(cubin, dump(tools, cubin), entry)
    assert [element.offset for element in result] == list(shown)
    current: list[tuple[str, ...]] = []
    for item in result:
        current = shown[item.offset] or current
        assert item.source
        assert chain(item.source) == current, item
    assert max(len(element.source.frames()) for element in result if element.source) == 3


@pytest.mark.parametrize(
    "arch",
    [
        "sm_100a",
        *(pytest.param(arch, marks=pytest.mark.slow) for arch in ("sm_80", "sm_89", "sm_120a")),
    ],
)
def test_cubins_of_every_architecture_have_lines(
    tools: Toolchain, tmp_path: Path, arch: str
) -> None:
    answer = compiled(tools, tmp_path, arch)
    result = sass_lines.read(answer, dump(tools, answer), "second")
    called = {len(item.source.frames()) for item in result if item.source}
    assert max(called) == 3


def test_a_function_is_named_for_its_lines_and_the_entry_for_none(cubin: Path) -> None:
    names = line_table.functions(cubin, "first")
    lines = {line: name for (_, line), name in names.items()}
    number = SOURCE.splitlines().index("    return v + v;") + 1
    assert "twice" in lines[number]
    assert "sum" in lines[number + 3]
    assert number + 6 not in lines


def test_a_cubin_without_line_table_has_instructions_without_source(
    tools: Toolchain, tmp_path: Path
) -> None:
    bare = compiled(tools, tmp_path, "sm_90a", ())
    result = sass_lines.read(bare, dump(tools, bare), "first")
    assert result
    assert all(item.source is None for item in result)


def test_lines_are_those_that_ncu_shows_on_its_source_page(tools: Toolchain) -> None:
    # ncu shows an instruction at its own line, and at each line that it was inlined at.
    loaded = project.load(ROOT)
    variant = loaded.variant("transpose", "sm_90a", {"layout": "plain"})
    arm = prepare.arm_of(loaded, variant, Session(tools=tools))
    artefacts = build.artefacts(ROOT, arm.identity)
    result = sass_lines.read(artefacts.cubin, artefacts.sass, "transpose")
    with (DATA / "lines-transpose-plain.csv").open() as file:
        shown = {int(row["offset"]): set(row["lines"].split()) for row in csv.DictReader(file)}
    assert {
        item.offset: {str(frame.line) for frame in item.source.frames()}
        for item in result
        if item.source and not item.is_padding
    } == shown


@pytest.mark.parametrize("version", [3, 5])
def test_a_table_of_another_form_is_a_fault_of_this_machine(cubin: Path, version: int) -> None:
    content = cubin.read_bytes()
    changed = cubin.with_name(f"v{version}.cubin")
    with cubin.open("rb") as file:
        at = ELFFile(file).get_section_by_name(".debug_line")["sh_offset"] + 4
    changed.write_bytes(content[:at] + bytes([version]) + content[at + 1 :])
    with pytest.raises(EnvironmentFault, match=f"DWARF version {version}, not 2"):
        line_table.read(changed, "first")


@given(st.binary(max_size=80))
def test_bytes_that_are_no_table_end_in_an_error_that_read_explains(data: bytes) -> None:
    head = (len(data) + 2).to_bytes(4, "little") + b"\x02\x00"
    try:
        list(_Program(head + data, b"", {}).run())
    except (IndexError, ValueError):
        pass


@given(st.integers(-(1 << 40), 1 << 40))
def test_signed_leb128_is_read_as_it_is_written(value: int) -> None:
    encoded, rest = bytearray(), value
    while True:
        byte, rest = rest & 0x7F, rest >> 7
        done = rest in (0, -1) and (byte >> 6 & 1) == (rest & 1)
        encoded.append(byte | (0 if done else 0x80))
        if done:
            break
    program = _Program(bytes(encoded), b"", {})
    program.stream.write(bytes(encoded))
    program.stream.seek(0)
    assert program.signed() == value
