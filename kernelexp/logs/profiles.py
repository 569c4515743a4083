"""Profiles on disk: one JSON file per profile, whole or not there, never edited."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from kernelexp.logs import documents
from kernelexp.logs.documents import Unreadable, sealed
from kernelexp.model.arm import Arm
from kernelexp.model.experiment import AxisValue, is_name
from kernelexp.model.record import Profile, is_of
from kernelexp.system import disk

FOLDER = "logs/profiles"
VERSION = 1

_encoder = msgspec.json.Encoder(order="deterministic")
_decoder = msgspec.json.Decoder(Profile)


class _Variant(msgspec.Struct):
    kernel: str = ""
    arch: str = ""
    axes: dict[str, AxisValue] = {}


class _Head(msgspec.Struct):
    """The part of a profile that identifies its variant, without its thousands of figures."""

    version: int
    arm: _Variant
    edited: bool = False


_head_decoder = msgspec.json.Decoder(_Head)


class _Arm(msgspec.Struct):
    arm: msgspec.Raw


_arm_decoder = msgspec.json.Decoder(_Arm)


def write(root: Path, profile: Profile) -> Path:
    """Writes the profile; a kill at any moment leaves either none or a whole one."""
    return disk.write(root / FOLDER / f"{profile.run}.json", encode(profile).encode())


def encode(profile: Profile) -> str:
    """The profile as JSON, on one line: a source page has tens of thousands of numbers."""
    bare = msgspec.structs.replace(profile, edited=False)
    return sealed(_encoder.encode(bare).decode())


def read_file(path: Path) -> Profile | Unreadable:
    """The profile in a file, or why it is none."""
    profile = documents.decode(str(path), _decoder, VERSION, "profile")
    if isinstance(profile, Unreadable):
        return profile
    if not is_name(profile.run) or profile.arm.profiled is None:
        return Unreadable(path=path, why="is not a profile: it has no name or no figures")
    return profile


def is_meant(path: Path) -> bool:
    """Whether a JSON file is a profile by its shape, even if it is damaged: it has one arm."""
    try:
        _arm_decoder.decode(path.read_bytes())
    except (OSError, msgspec.DecodeError, ValueError, RecursionError):
        return False
    return True


def read_all(root: Path) -> tuple[list[Profile], list[Unreadable]]:
    """Every profile of the project, oldest first, and the files that are none."""
    return documents.apart(map(read_file, reversed(_list(root))))


def latest(root: Path, kernel: str, arch: str, axes: Mapping[str, AxisValue]) -> Profile | None:
    """The latest profile of a variant, whether its sources have changed since or not."""
    return next(of_variant(root, kernel, arch, axes), None)


def of_variant(
    root: Path, kernel: str, arch: str, axes: Mapping[str, AxisValue]
) -> Iterator[Profile]:
    """The profiles of a variant, the latest first; a file is opened when it is asked for."""
    for path in _list(root):
        head = _read_head(path)
        if isinstance(head, Unreadable):
            continue
        arm = Arm(kernel=head.arm.kernel, arch=head.arm.arch, axes=head.arm.axes)
        if (arm.kernel, arm.arch) == (kernel, arch) and is_of(dict(axes), arm):
            profile = read_file(path)
            if isinstance(profile, Profile):
                yield profile


def unreadable(root: Path) -> list[Unreadable]:
    """The files among the profiles that are none, without reading the others wholly."""
    return documents.apart(map(_read_head, _list(root)))[1]


def _read_head(path: Path) -> _Head | Unreadable:
    return documents.decode(str(path), _head_decoder, VERSION, "profile")


def _list(root: Path) -> list[Path]:
    """The latest first; those that are not named after a moment come last."""
    paths = (root / FOLDER).glob("*.json")
    return sorted(paths, key=lambda path: (path.name[:1].isdigit(), path.name), reverse=True)
