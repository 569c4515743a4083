"""A new project from the package's templates: a kernel, an experiment on it, and a CI workflow."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib import metadata, resources
from importlib.resources.abc import Traversable
from pathlib import Path

import msgspec

from kernelexp import project
from kernelexp.facts.chips import ARCHITECTURES
from kernelexp.model.errors import EnvironmentFault, UsageError, suggest
from kernelexp.project import PROJECT_FILE, shape
from kernelexp.system import disk

TEMPLATES = resources.files("kernelexp.project") / "templates"
SCHEMA = "experiments.schema.json"
_IGNORE = ".gitignore"
_WORKFLOWS = ".github"


class Started(msgspec.Struct, frozen=True, kw_only=True):
    """A project that was written."""

    root: Path
    files: tuple[Path, ...]
    """What was written, or added to (a .gitignore)."""
    experiment: str
    """The one that it has; none where the project is empty."""


def start(folder: Path, arch: str, empty: bool = False) -> Started:
    """Writes a project for `arch` into `folder`, which may have other files.

    An empty one has neither kernels nor experiments.
    The workflow goes where GitHub looks for it, at the top of the repository. UsageError for an
    unknown architecture, and where a file is there already: nothing is written then.
    EnvironmentFault where the folder can't be made.
    """
    if arch not in ARCHITECTURES:
        raise UsageError(f"there is no architecture {arch!r}{suggest(arch, ARCHITECTURES)}.")
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file: name a folder for the project.")
    root = folder.resolve()
    top = _repository(root) or root
    values = {
        "ARCH": arch,
        "CARD": ARCHITECTURES[arch].card,
        "FOLDER": root.relative_to(top).as_posix(),
        "REQUIREMENT": requirement(),
    }
    wanted = {root / SCHEMA: json.dumps(shape.schema(), indent=1) + "\n"}
    for name, text in _files(TEMPLATES / "project"):
        if empty and name.startswith("variants/"):
            continue
        place = top if name.startswith(f"{_WORKFLOWS}/") else root
        wanted[place / name] = fill(text, values)
    if empty:
        wanted[root / PROJECT_FILE] = _without_entries(wanted[root / PROJECT_FILE])
    ignore = root / _IGNORE
    existing = sorted(str(path) for path in wanted if path.exists() and path != ignore)
    if existing:
        raise UsageError(
            f"{existing[0]} is there already, and init overwrites nothing: choose another folder."
        )
    if ignore.is_file():
        wanted[ignore] = _extended(
            ignore.read_bytes().decode("utf-8", "surrogateescape"), wanted[ignore]
        )
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EnvironmentFault(f"{folder} can't be made: {error.strerror}.") from None
    with disk.FilesTogether() as files:
        for path, text in wanted.items():
            files.write(path, text.encode("utf-8", "surrogateescape"))
        loaded = project.load(root)
    return Started(root=root, files=tuple(wanted), experiment=next(iter(loaded.experiments), ""))


def requirement() -> str:
    """Returns what pip installs this kernelexp by elsewhere: its repository where pip had it from
    one."""
    try:
        text = metadata.distribution("kernelexp").read_text("direct_url.json")
        origin = json.loads(text or "{}")
    except (metadata.PackageNotFoundError, ValueError):
        origin = {}
    if "vcs_info" in origin:
        vcs = origin["vcs_info"]
        return f"kernelexp @ {vcs['vcs']}+{origin['url']}@{vcs['commit_id']}"
    return "kernelexp"


def _without_entries(text: str) -> str:
    """An experiments.yaml down to its version, with no kernels and no experiments."""
    head, _, _ = text.partition("kernels:\n")
    return f"{head}kernels: {{}}\n\nexperiments: {{}}\n"


def _files(folder: Traversable, prefix: str = "") -> Iterator[tuple[str, str]]:
    for entry in sorted(folder.iterdir(), key=lambda traversable: traversable.name):
        if entry.is_dir() and entry.name != "__pycache__":
            yield from _files(entry, f"{prefix}{entry.name}/")
        elif entry.is_file():
            yield f"{prefix}{entry.name}", entry.read_text("utf-8")


def fill(text: str, values: Mapping[str, str]) -> str:
    """A template with each @NAME@ replaced by its value."""
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    return text


def _repository(folder: Path) -> Path | None:
    """The top of the git repository that a folder is in."""
    return next(
        (parent for parent in (folder, *folder.parents) if (parent / ".git").exists()), None
    )


def _extended(text: str, wanted: str) -> str:
    """A .gitignore with the lines that it lacks."""
    missing = [line for line in wanted.splitlines() if line not in text.splitlines()]
    newline = "\r\n" if "\r\n" in text else "\n"
    end = "" if not text or text.endswith("\n") else newline
    return text + end + "".join(line + newline for line in missing)
