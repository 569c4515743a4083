"""A build on its way from one machine to another: what it was made from, and what came of it."""

from __future__ import annotations

import shutil

import msgspec

from kernelexp.evidence.build import service, store
from kernelexp.evidence.build.planning import Plan
from kernelexp.evidence.build.store import CachedCompilation, Files
from kernelexp.model.arm import Arm, sound
from kernelexp.model.errors import EnvironmentFault


class Shipped(msgspec.Struct, frozen=True, kw_only=True):
    """A variant as another machine built it, or as its compiler refused it."""

    arm: Arm
    toolkit: str = ""
    """The compiler's folder there."""
    entry: CachedCompilation | None = None
    """Of a build that succeeded: every file that was read, with its hash."""
    artefacts: dict[str, bytes] = {}


def ship(plan: Plan) -> Shipped:
    """Builds a variant here, or finds its build, to be sent elsewhere; raises this machine's
    fault."""
    built = sound(service.build_one(plan))
    if built.refused:
        return Shipped(arm=built)
    folder = store.builds(plan.root) / built.identity
    entry = next(item for item in service.entries(plan) if item.identity == built.identity)
    artefacts = {name: (folder / name).read_bytes() for name in service.left_by(plan.variant)}
    return Shipped(arm=built, toolkit=plan.toolkit, entry=entry, artefacts=artefacts)


def receive(plan: Plan, shipped: Shipped) -> Arm:
    """Takes a build into the project's own cache, where it is found as if it had been built here.

    The identity is computed anew from what the other machine says it read; EnvironmentFault where
    it is another.
    """
    built = shipped.arm
    if shipped.entry is None:
        return built
    entry = _at_home(plan, shipped.entry, shipped.toolkit)
    own = Files(plan.root)
    changed = [path for path, sha in built.files.items() if own.sha256(path) != sha]
    if service.identify(plan, entry) != built.identity or changed:
        what = f"{changed[0]} changed meanwhile" if changed else "its identity is another"
        raise EnvironmentFault(f"{plan.label}: the build that a worker sent is not of it: {what}.")
    folder = store.temporary_in(store.builds(plan.root))
    try:
        for name, content in shipped.artefacts.items():
            (folder / name).write_bytes(content)
        target = store.builds(plan.root) / built.identity
        store.commit(folder, target, service.left_by(plan.variant))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    service.remember(plan, entry)
    return built


def _at_home(plan: Plan, entry: CachedCompilation, toolkit: str) -> CachedCompilation:
    """The files of the compiler where they are on this machine."""

    def here(path: str) -> str:
        own = path.startswith(f"{toolkit}/")
        return plan.toolkit + path.removeprefix(toolkit) if own else path

    return msgspec.structs.replace(
        entry, read={here(path): sha256 for path, sha256 in entry.read.items()}
    )
