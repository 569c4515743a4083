"""Which files make up a project, and their text: only regular files of a reasonable size."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from kernelexp.model.errors import UsageError, explain
from kernelexp.project.faults import Fault

FILE = "experiments.yaml"
MAX_BYTES = 4 << 20

Section: TypeAlias = Literal["experiments", "history"]
_STEP = re.compile(r"([0-9]+)-(.+)", re.DOTALL)


class ExperimentFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that defines one experiment."""

    file: str
    """Path from the project's root."""
    section: Section
    id: str


def find(start: Path) -> Path:
    """The experiments.yaml of `start` (the file, its folder, or a folder below it).

    Whatever has this name is returned, be it a regular file or not. UsageError if nothing has.
    """
    try:
        mode = os.stat(start).st_mode
        folder = Path(os.path.realpath(start))
    except (FileNotFoundError, NotADirectoryError):
        raise UsageError(f"there is no file or folder {str(start)!r}.") from None
    except (OSError, ValueError) as error:
        reason = explain(error) if isinstance(error, OSError) else f"{str(start)!r}: {error}"
        raise UsageError(f"{reason}.") from None
    if not stat.S_ISDIR(mode):
        return folder
    for parent in (folder, *folder.parents):
        if os.path.lexists(parent / FILE):
            return parent / FILE
    raise UsageError(
        f"no {FILE} in {str(folder)!r} nor above it: run kernelexp in a project, "
        "name one with --project, or start one with kernelexp init (--empty: without an example)."
    )


def sources(root: Path) -> tuple[list[ExperimentFile], list[Fault]]:
    """The files of experiments/ and history/, each folder in its order; names that do not fit."""
    experiments, faults = _list(root, "experiments")
    steps, more = _list(root, "history")
    experiments.sort(key=lambda item: (_natural(item.id), item.id))
    steps.sort(key=lambda item: (_number(item.file), item.file))
    return [*experiments, *steps], [*faults, *more]


def _list(root: Path, section: Section) -> tuple[list[ExperimentFile], list[Fault]]:
    listed: list[ExperimentFile] = []
    faults: list[Fault] = []
    try:
        names = sorted(os.listdir(root / section))
    except (FileNotFoundError, NotADirectoryError):
        return [], []
    except OSError as error:
        return [], [_fault(section, f"this folder can't be read: {error.strerror}.")]
    for name in names:
        stem, suffix = os.path.splitext(name)
        file = f"{section}/{name}"
        step = _STEP.fullmatch(stem)
        if name.startswith(".") or suffix not in (".yaml", ".yml"):
            continue  # an editor's or the system's own file, a README
        if suffix == ".yml":
            faults.append(_fault(file, "a project's files end in .yaml; rename this one."))
        elif section == "experiments":
            listed.append(ExperimentFile(file=file, section=section, id=stem))
        elif step:
            listed.append(ExperimentFile(file=file, section=section, id=step[2]))
        else:
            message = "the file of a step is named NUMBER-ID.yaml, as in 12-6319928.yaml."
            faults.append(_fault(file, message))
    return listed, faults


def _number(file: str) -> int:
    match = _STEP.fullmatch(file.partition("/")[2])
    return int(match[1]) if match else 0


def _natural(name: str) -> list[tuple[int, str]]:
    """F2 before F10."""
    parts = re.findall(r"([0-9]+)|([^0-9]+)", name)
    return [(int(digits), "") if digits else (-1, text) for digits, text in parts]


def read(root: Path, file: str) -> str | Fault:
    """The text of a file; a fault if it is not a regular file inside of `root`, or not UTF-8."""
    path = root / file
    if file != FILE and not inside(root, file):
        return _fault(file, "this is a symbolic link to a file outside of the project.")
    try:
        # Without O_NONBLOCK a FIFO would keep us waiting for its writer.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                return _fault(file, "this can't be read: it is not a regular file.")
            raw = stream.read(MAX_BYTES + 1)
    except IsADirectoryError:
        return _fault(file, "this can't be read: it is a folder.")
    except OSError as error:
        return _fault(file, f"this can't be read: {error.strerror}.")
    if len(raw) > MAX_BYTES:
        return _fault(file, f"this file is larger than {MAX_BYTES >> 20} MiB.")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = raw[: error.start].decode("utf-8-sig").splitlines(keepends=True) or [""]
        ended = before[-1].endswith(("\n", "\r"))
        line, column = (len(before) + 1, 1) if ended else (len(before), len(before[-1]) + 1)
        message = f"byte 0x{raw[error.start]:02x} is not UTF-8; save the file in UTF-8."
        return Fault(file, (line, column), "", message)


def inside(folder: Path, file: str) -> bool:
    """Whether a path from `folder` stays in it, symbolic links resolved."""
    return Path(os.path.realpath(folder / file)).is_relative_to(os.path.realpath(folder))


def _fault(file: str, message: str) -> Fault:
    return Fault(file, (1, 1), "", message)
