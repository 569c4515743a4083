"""variants/include: the one place of inline PTX, a wrapper an instruction, with PTX's name."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from _pytest.mark.structures import ParameterSet

from kernelexp.system.process.processes import Completed

VARIANTS = Path(__file__).parents[2] / "variants"
HEADERS = sorted((VARIANTS / "include").glob("*.cuh"))
SOURCES = sorted(path for path in VARIANTS.rglob("*.cu*") if path.parent.name != "include")

# From a function's name to its end; its asm statements; the literals that a statement begins with.
FUNCTION = re.compile(r"__forceinline__ [\w\s*&]*?(\w+)\(.*?\n}\n", re.S)
STATEMENT = re.compile(r"asm(?: volatile)?\(.*?\);\n", re.S)
LITERAL = re.compile(r'\(\s*((?:"(?:[^"\\]|\\.)*"\s*)+)')
SETTING = re.compile(r"[{}]|\.reg |setp|selp")


def statements(header: Path) -> list[ParameterSet]:
    """Each asm statement of a header, as the name of its function and its text."""
    text = header.read_text()
    return [
        pytest.param(function[1], statement[0], id=function[1])
        for function in FUNCTION.finditer(text)
        for statement in STATEMENT.finditer(function[0])
    ]


def instruction(statement: str) -> str:
    """The statement's own instruction, past declaring and setting a predicate."""
    result = LITERAL.search(statement)
    assert result
    text = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', result[1]))
    lines = [line for line in re.split(r"\\n\\t|;", text) if line and not SETTING.match(line)]
    (own,) = lines
    return own


# Values of their operands alone, or of memory that nobody writes.
PURE = {
    "cluster_ctarank",
    "cvt_rn_bf16x2_f32",
    "cvt_rn_f16x2_f32",
    "ex2_approx_ftz_f32",
    "ld_global_nc",
    "mapa_shared_cluster",
    "mma_sync_m16n8k16_f16",
}
WRAPPERS = [statement for header in HEADERS for statement in statements(header)]


# Each takes a run of nvcc.
ALONE = [
    path if index % 6 == 0 else pytest.param(path, marks=pytest.mark.slow)
    for index, path in enumerate(HEADERS)
]


@pytest.mark.parametrize("header", ALONE, ids=lambda path: path.name)
def test_every_header_compiles_alone(header: Path, nvcc: Callable[..., Completed]) -> None:
    done = nvcc(f'#include "{header.name}"\n')
    assert done.returncode == 0, done.stderr


# In mbarrier.cuh it would change the sources of every other measured kernel.
ELSEWHERE = {"flash_attention_hopper.cu": ["mbarrier.arrive.release.cta.shared::cta.b64"]}


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_inline_ptx_stands_nowhere_but_in_the_headers(source: Path) -> None:
    result = re.findall(r"\basm\b(?: volatile\(\"(\S+))?", source.read_text())
    assert result == ELSEWHERE.get(source.name, [])


def test_the_wrappers_are_found() -> None:
    text = "".join(header.read_text() for header in HEADERS)
    assert len(WRAPPERS) == len(re.findall(r"\basm\b(?: volatile)?\(", text)) > 30


@pytest.mark.parametrize(("name", "statement"), WRAPPERS)
def test_a_wrapper_is_named_after_its_instruction(name: str, statement: str) -> None:
    words = iter(re.split(r"[^a-z0-9]+", instruction(statement)))
    assert all(word in words for word in name.split("_"))


@pytest.mark.parametrize(("name", "statement"), WRAPPERS)
def test_a_wrapper_with_an_effect_is_volatile_and_orders_memory(name: str, statement: str) -> None:
    if name in PURE:
        return
    assert statement.startswith("asm volatile")
    assert '"memory"' in statement


@pytest.mark.parametrize("header", HEADERS, ids=lambda path: path.name)
def test_a_header_with_inline_ptx_cites_the_isa(header: Path) -> None:
    text = header.read_text()
    assert "asm" not in text or re.search(r"PTX ISA 9\.1,\s(// )?sections? (9\.7\.|10\.)\d+", text)
