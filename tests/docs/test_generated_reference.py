"""Pages that are generated: everything that they are generated from is on them."""

from __future__ import annotations

import re

import kxdocs
import msgspec
import pytest
import typer
from kxdocs import commands, problem, schema

from kernelexp import project
from kernelexp.cli import app
from kernelexp.model import problem as problems
from kernelexp.project.problem import loader
from warpsim import launch
from warpsim.dtypes import TORCH_NAMES

COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def command_page() -> str:
    return commands.commands()


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_of_every_command_is_a_row_with_its_help(command_page: str, name: str) -> None:
    section = command_page.partition(f"## kernelexp {name}\n")[2]
    section = section.partition("\n## ")[0]
    for param in COMMANDS[name].params:
        if param.param_type_name == "option" and not param.hidden:
            rows = [row for row in section.splitlines() if row.startswith("| `")]
            named = re.compile(rf"{param.opts[0]}(?![\w-])")
            row = next(row for row in rows if named.search(row.partition("` |")[0]))
            words = re.sub(r"[\\`]", "", row).split()
            assert set(re.sub(r"[\\`]", "", param.help).split()) <= set(words)


def test_exit_codes_are_a_table() -> None:
    assert "| 4 | a kernel gives a wrong result, crashes or hangs |" in commands.exit_codes()


def test_every_function_that_the_loader_takes_from_a_problem_is_described() -> None:
    page = problem.functions()
    fields = set(problems.Problem.__struct_fields__) - {"name", "folder", "peer_names", "launches"}
    for name in {*fields, *loader.REQUIRED}:
        assert re.search(rf"^### `{name}`", page, re.M | re.I), name


def test_what_problem_py_must_have_is_told_from_what_is_optional() -> None:
    page = problem.functions()
    assert "### `launch`\n" in page
    assert "### `arrange` (optional)\n" in page


@pytest.mark.parametrize("module", [problems, launch])
def test_every_field_of_the_types_is_an_item(module: object) -> None:
    page = problem.types() + problem.launch_types()
    for kind in vars(module).values():
        if (
            isinstance(kind, type)
            and issubclass(kind, msgspec.Struct)
            and kind.__name__ != ("Problem")
        ):
            section = page.partition(f"### `{kind.__name__}`\n")[2].partition("\n### ")[0]
            for field in kind.__struct_fields__:
                assert f"- `{field}: " in section


def test_an_alias_of_allowed_values_is_spelled_out() -> None:
    assert "- `swizzle: 'none' | '32B' | '64B' | '128B' = 'none'`" in problem.launch_types()
    assert "- `grid: tuple[int, int, int]`" in problem.launch_types()
    (row,) = [row for row in problem.types().splitlines() if row.startswith("- `dtype: ")]
    assert all(f"'{dtype}'" in row for dtype in TORCH_NAMES)


def test_every_key_of_experiments_yaml_is_a_row_with_its_meaning() -> None:
    page = schema.tables()
    for name, definition in project.shape.schema()["$defs"].items():
        section = page.partition(f"## {schema.NAMES.get(name, name)}\n")[2].partition("\n## ")[0]
        for key, value in definition["properties"].items():
            (row,) = [line for line in section.splitlines() if line.startswith(f"| `{key}` |")]
            described = value.get("description", "").split()
            assert len(described) <= len(row.split())
            assert ("| required |" in row) == (key in definition["required"])


def test_types_are_named_in_words() -> None:
    points = {
        "type": "object",
        "additionalProperties": {"anyOf": [{"type": "boolean"}, {"type": "integer"}]},
    }
    assert schema.type_of(points) == "mapping of names to (true or false or whole number)"
    assert schema.type_of({"type": "array", "items": {"type": "string"}}) == "list of text"
    assert schema.type_of({"enum": [1]}) == "1"


def test_a_mark_is_replaced_and_an_unknown_one_is_an_error() -> None:
    assert "| 0 | ok |" in kxdocs.fill("text\n\n<!-- generated: exit codes -->\n\ntext")
    with pytest.raises(KeyError):
        kxdocs.fill("<!-- generated: nothing -->")


def test_text_that_is_markdown_by_chance_is_escaped() -> None:
    from kxdocs.markdown import escape

    assert escape("`a|b` of __global__ <x>") == r"`a\|b` of \_\_global\_\_ \<x\>"
    assert escape("one ` only") == r"one \` only"
