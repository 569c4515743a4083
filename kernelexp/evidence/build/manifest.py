"""Which builds are there: for each plan, the files that earlier compilations of it read."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from kernelexp.evidence.build import dependencies, store
from kernelexp.evidence.build.dependencies import CachedCompilation, Files
from kernelexp.evidence.build.planning import INCLUDE, Plan
from kernelexp.model.decoding import decode

KEPT = 8
"""Compilations of a plan that are remembered, the last first."""


def find(plan: Plan, files: Files, preprocessed: str = "") -> CachedCompilation | None:
    """The compilation that would only be repeated, if its build is there and whole.

    `preprocessed` is the hash of the preprocessed text, for sources that ask for more than files.
    """
    for entry in entries(plan):
        folders = searched(plan, entry.read)
        if (
            entry.preprocessed == preprocessed
            and dependencies.is_unchanged(files, entry, folders, plan.compiler.toolkit)
            and store.is_whole(store.builds(plan.root) / entry.identity)
        ):
            return entry
    return None


def searched(plan: Plan, read: Iterable[str]) -> tuple[str, ...]:
    flags = (*plan.flags, "-I", INCLUDE)
    toolkit = plan.compiler.toolkit
    return dependencies.searched(str(plan.root), read, toolkit, flags, plan.environment)


def _manifest(plan: Plan) -> tuple[Path, str]:
    return store.builds(plan.root) / "manifests", f"{plan.key[:32]}.json"


def entries(plan: Plan) -> list[CachedCompilation]:
    content = store.kept(*_manifest(plan))
    try:
        return decode(content, list[CachedCompilation]) if content else []
    except msgspec.DecodeError:
        return []


def remember(plan: Plan, entry: CachedCompilation) -> None:
    others = [other for other in entries(plan) if other != entry]
    store.keep(*_manifest(plan), msgspec.json.encode([entry, *others][:KEPT]))
