"""Kept emulations are of exactly the code that made them."""

from __future__ import annotations

import shutil
from pathlib import Path

import grimp

import warpsim
from kernelexp.evidence.emulate import emulated


def test_the_hash_covers_every_module_that_the_emulating_worker_imports():
    graph = grimp.build_graph(
        "kernelexp", "warpsim", exclude_type_checking_imports=True, cache_dir=None
    )
    todo, closure = [emulated.WORKER], set()
    while todo:
        name = todo.pop()
        if name not in closure:
            closure.add(name)
            parents = [name.rpartition(".")[0]] if "." in name else []
            todo += [*graph.find_modules_directly_imported_by(name), *parents]
    rooms = tuple(f"kernelexp.{room.replace('/', '.')}." for room in emulated.ROOMS)
    holders = {"kernelexp", "kernelexp.evidence"}  # a docstring, and lazy names
    assert {
        name for name in closure - holders if not f"{name}.".startswith((*rooms, "warpsim."))
    } == set()


def test_the_tables_of_opcodes_and_counters_are_part_of_the_version(tmp_path, monkeypatch):
    copy = tmp_path / "warpsim"
    shutil.copytree(Path(warpsim.__file__).parent, copy)
    monkeypatch.setattr(warpsim, "__file__", str(copy / "__init__.py"))
    before = emulated.version.__wrapped__()
    table = copy / "tables" / "opcodes.py"
    table.write_text(table.read_text().replace('"alu"', '"xu"'))
    assert emulated.version.__wrapped__() != before
