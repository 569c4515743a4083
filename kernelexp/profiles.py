"""Profiles on disk: one JSON file per profile, whole or not there, never edited."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from kernelexp import records
from kernelexp.model import AxisValue
from kernelexp.names import is_name
from kernelexp.record import Profile, is_of
from kernelexp.records import Unreadable

FOLDER = "logs/profiles"
VERSION = 1

_encoder = msgspec.json.Encoder(order="deterministic")
_decoder = msgspec.json.Decoder(Profile)


def write(root: Path, profile: Profile) -> Path:
    """Writes the profile; a kill at any moment leaves either none or a whole one."""
    return records.write_text(root, f"{FOLDER}/{profile.run}.json", encode(profile))


def encode(profile: Profile) -> str:
    """The profile as JSON, on one line: a source page has tens of thousands of numbers."""
    return _encoder.encode(profile).decode() + "\n"


def read_file(path: Path) -> Profile | Unreadable:
    """The profile in a file, or why it is none."""
    profile = records.decode(str(path), _decoder, VERSION, "profile")
    if isinstance(profile, Unreadable):
        return profile
    if not is_name(profile.run) or profile.arm.profiled is None:
        return Unreadable(path=path, why="is not a profile: it has no name or no figures")
    return profile


def read_all(root: Path) -> tuple[list[Profile], list[Unreadable]]:
    """Every profile of the project, oldest first, and the files that are none."""
    found: list[Profile] = []
    unreadable: list[Unreadable] = []
    for profile in _read(root):
        if isinstance(profile, Unreadable):
            unreadable.append(profile)
        else:
            found.append(profile)
    return found[::-1], unreadable[::-1]


def latest(root: Path, kernel: str, arch: str, axes: Mapping[str, AxisValue]) -> Profile | None:
    """The latest profile of a variant, whether its sources have changed since or not."""
    return next((profile for profile in of_variant(root, kernel, arch, axes)), None)


def of_variant(
    root: Path, kernel: str, arch: str, axes: Mapping[str, AxisValue]
) -> Iterator[Profile]:
    """The profiles of a variant, the latest first; a file is opened when it is asked for."""
    for profile in _read(root):
        if isinstance(profile, Profile) and is_profile_of(profile, kernel, arch, axes):
            yield profile


def is_profile_of(profile: Profile, kernel: str, arch: str, axes: Mapping[str, AxisValue]) -> bool:
    """Whether a profile is of the variant at `axes`, for all the axes that it names."""
    arm = profile.arm
    return (arm.kernel, arm.arch) == (kernel, arch) and is_of(dict(axes), arm)


def _read(root: Path) -> Iterator[Profile | Unreadable]:
    """The latest first; those of the history that names no day come last."""
    paths = (root / FOLDER).glob("*.json")
    for path in sorted(paths, key=lambda path: (path.name[:1].isdigit(), path.name), reverse=True):
        yield read_file(path)
