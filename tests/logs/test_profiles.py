"""Profiles on disk: whole or not there, and files that are none."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelexp.logs import profiles
from kernelexp.logs.records import Unreadable
from kernelexp.model.arm import Arm, ProfiledEvidence, ProfiledInstruction
from kernelexp.model.record import Profile

AXES = {"width": 4, "order": "forward"}


def profile(run: str = "20260101T000000Z-00000000", **axes: object) -> Profile:
    evidence = ProfiledEvidence(
        entry="scale",
        figures={"gpu__time_duration.sum": 12.5, "launch__tpc_enabled": "all"},
        instructions=(ProfiledInstruction(offset=16, sass="NOP", figures={"# Samples": 3}),),
    )
    point = {**AXES, **axes}
    arm = Arm(kernel="scale", arch="sm_90a", axes=point, profiled=evidence)  # type: ignore[arg-type]
    return Profile(version=1, run=run, provenance="run", created="2026-01-01", arm=arm)


def test_a_profile_is_read_as_it_was_written(tmp_path: Path) -> None:
    profiles.write(tmp_path, profile())
    assert profiles.read_all(tmp_path) == ([profile()], [])


def test_the_latest_profile_of_a_variant_is_found_by_its_axes(tmp_path: Path) -> None:
    for moment in ("20260101T000000Z-0", "20260301T000000Z-0", "20260201T000000Z-0"):
        profiles.write(tmp_path, profile(moment))
    profiles.write(tmp_path, profile("20260401T000000Z-0", width=2))
    result = profiles.latest(tmp_path, "scale", "sm_90a", AXES)
    assert result is not None
    assert result.run == "20260301T000000Z-0"


@pytest.mark.parametrize(
    ("kernel", "arch", "axes"),
    [
        ("other", "sm_90a", AXES),
        ("scale", "sm_100a", AXES),
        ("scale", "sm_90a", {**AXES, "width": 2}),
        ("scale", "sm_90a", {**AXES, "width": True}),
    ],
)
def test_a_profile_of_another_variant_is_not_its_own(
    tmp_path: Path, kernel: str, arch: str, axes: dict[str, int | str]
) -> None:
    profiles.write(tmp_path, profile())
    assert profiles.latest(tmp_path, kernel, arch, axes) is None


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "is truncated or invalid JSON"),
        (b"{}", "is not a profile"),
        (b'{"version": 9}', "has version 9, written by a newer kernelexp"),
        (msgspec.json.encode(profile("..")), "it has no name"),
        (
            msgspec.json.encode(msgspec.structs.replace(profile(), arm=Arm(kernel="scale"))),
            "it has no name or no figures",
        ),
    ],
)
def test_a_file_that_is_no_profile_is_skipped_with_why(
    tmp_path: Path, content: bytes, why: str
) -> None:
    profiles.write(tmp_path, profile())
    (tmp_path / profiles.FOLDER / "z.json").write_bytes(content)
    result, (unreadable,) = profiles.read_all(tmp_path)
    assert result == [profile()]
    assert why in unreadable.why
    assert profiles.latest(tmp_path, "scale", "sm_90a", AXES) == profile()


def test_links_and_pipes_are_not_followed(tmp_path: Path) -> None:
    path = profiles.write(tmp_path, profile())
    (path.parent / "link.json").symlink_to(path)
    os.mkfifo(path.parent / "pipe.json")
    result, unreadable = profiles.read_all(tmp_path)
    assert len(result) == 1
    assert len(unreadable) == 2


def test_a_project_without_profiles_has_none(tmp_path: Path) -> None:
    assert profiles.read_all(tmp_path) == ([], [])


@given(st.binary(max_size=300))
def test_any_bytes_are_a_profile_or_skipped(content: bytes) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.json"
        path.write_bytes(content)
        assert not isinstance(profiles.read_file(path), Profile)


def test_an_edit_of_a_profile_is_noticed(tmp_path: Path) -> None:
    path = profiles.write(tmp_path, profile())
    text = path.read_text()
    kept = profiles.read_file(path)
    assert isinstance(kept, Profile)
    assert not kept.edited
    path.write_text(text.replace("sm_90a", "sm_80", 1))
    edited = profiles.read_file(path)
    assert isinstance(edited, Unreadable)
    assert edited.why == "was edited after it was written"
    assert [one.path for one in profiles.unreadable(tmp_path)] == [path]
    assert profiles.latest(tmp_path, "scale", "sm_90a", AXES) is None
