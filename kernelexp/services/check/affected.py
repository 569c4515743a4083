"""Which variants a change since a revision touches: by their files, and by what defines them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path

from kernelexp import project
from kernelexp.evidence import build
from kernelexp.model.errors import ConfigurationError, KernelexpError
from kernelexp.model.experiment import Variant
from kernelexp.project import Project, revisions
from kernelexp.services.check import gates
from kernelexp.services.check.gates import Baseline

_INCLUDE = re.compile(rb'^\s*#\s*include\s*(?:["<]([^">\n]+)[">]|(\S+))', re.MULTILINE)
_HOST = (".py",)
_DOCUMENTS = (".md", ".txt", ".png", ".svg")


def since(here: Project, commit: str, named: Mapping[str, Variant]) -> dict[str, Variant]:
    """Those of the variants that are not the same as at `commit`: definition, gates, line of the
    baseline, sources with all that they include, and the Python files next to problem.py."""
    changed = revisions.changed_since(here.root, commit)
    if not changed:
        return {}
    before, then, gated = _then(here, commit)
    now = _baseline(here.root)
    files = _files(here.root)
    inputs = {
        (variant.source, variant.config): _inputs(here.root, files, variant.source, variant.config)
        for variant in named.values()
    }
    return {
        label: variant
        for label, variant in named.items()
        if before.get(label) != variant
        or _line(then, label) != _line(now, label)
        or gated.get(variant.kernel) != here.kernels[variant.kernel].gates
        or _touches(changed, variant, inputs[variant.source, variant.config])
    }


def _then(
    here: Project, commit: str
) -> tuple[dict[str, Variant], Baseline | None, dict[str, object]]:
    """The variants, the baseline and the gates of a revision; none where it can't be read."""
    with revisions.checked_out(here.root, commit, build.CACHE) as root:
        try:
            there = project.load(root, sources=False)
        except KernelexpError:
            return {}, None, {}
        gated: dict[str, object] = {name: kernel.gates for name, kernel in there.kernels.items()}
        return gates.named_variants(there), _baseline(root), gated


def _baseline(root: Path) -> Baseline | None:
    try:
        return gates.read_baseline(root)
    except ConfigurationError:
        return None


def _line(baseline: Baseline | None, label: str) -> object:
    return baseline.variants.get(label) if baseline else None


def _touches(changed: Collection[str], variant: Variant, inputs: Collection[str] | None) -> bool:
    """Whether one of the files that changed goes into the variant.

    Where an include can't be followed, `inputs` is None and every file of the kernels counts.
    """
    folder = f"variants/{variant.kernel}/"
    for name in changed:
        if not name.startswith("variants/") or name.endswith(_DOCUMENTS):
            continue
        if name.endswith(_HOST):
            if name.startswith(folder):
                return True
        elif inputs is None or name in inputs or Path(name).name in inputs:
            return True
    return False


def _files(root: Path) -> dict[str, list[Path]]:
    """All files of the kernels, by their names."""
    files: dict[str, list[Path]] = {}
    for path in (root / "variants").rglob("*"):
        if path.is_file():
            files.setdefault(path.name, []).append(path)
    return files


def _inputs(root: Path, files: Mapping[str, list[Path]], *sources: str) -> set[str] | None:
    """The sources, by path from the root, and all files that have the name of one that they
    include; of what is included and is not there, the name. None where a macro names a file."""
    seen: set[str] = set()
    waiting = [root / source for source in sources if source]
    while waiting:
        path = waiting.pop()
        relative = path.relative_to(root).as_posix()
        if relative in seen or not path.is_file():
            continue
        seen.add(relative)
        for plain, macro in _INCLUDE.findall(path.read_bytes()):
            if macro:
                return None
            name = Path(plain.decode(errors="replace")).name
            waiting += files.get(name, [])
            seen |= set() if name in files else {name}
    return seen
