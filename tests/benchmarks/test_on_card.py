"""Whether programs do on a card what they do on the emulator: what is kept, and how compared."""

import json
import os
import struct
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import on_card

RUNTIME = """
#include <cstdlib>
#include <cstring>
struct Attributes { int type, device; void *on_device, *on_host; long reserved[8]; };
static void* pinned;
extern "C" {
int cudaMalloc(void** to, size_t size) { *to = calloc(size, 1); return 0; }
int cudaMallocHost(void** to, size_t size) { *to = pinned = calloc(size, 1); return 0; }
int cudaFree(void* pointer) { free(pointer); return 0; }
int cudaMemcpy(void* to, const void* from, size_t size, int) { memcpy(to, from, size); return 0; }
int cudaPointerGetAttributes(Attributes* result, const void* pointer) {
  *result = {};
  result->type = pointer == pinned;
  return 0;
}
int cudaMemcpyAsync(void* to, const void* from, size_t size, int kind, void*) {
  return cudaMemcpy(to, from, size, kind);
}
int cudaMemcpyAsync_ptsz(void* to, const void* from, size_t size, int kind, void* stream) {
  return cudaMemcpyAsync(to, from, size, kind, stream);
}
int cudaStreamSynchronize(void*) { return 0; }
}
"""
"""A runtime that calls its own functions, as a real one may."""
PROGRAM = """
#include <cstddef>
#include <cstdint>
extern "C" {
int cudaMalloc(void**, size_t);
int cudaMallocHost(void**, size_t);
int cudaFree(void*);
int cudaMemcpy(void*, const void*, size_t, int);
int cudaMemcpyAsync(void*, const void*, size_t, int, void*);
int cudaMemcpyAsync_ptsz(void*, const void*, size_t, int, void*);
int cudaStreamSynchronize(void*);
}
int main() {
  void *device, *pinned;
  int32_t host = 5;
  cudaMalloc(&device, 4);
  cudaMallocHost(&pinned, 4);
  cudaMemcpy(device, &host, 4, 1);
  cudaMemcpy(&host, device, 4, 2);
  cudaMemcpyAsync_ptsz(&host, device, 4, 2, nullptr);
  cudaMemcpyAsync(pinned, device, 4, 2, nullptr);
  *static_cast<int32_t*>(pinned) = 6;  // before the program has waited for it
  cudaStreamSynchronize(nullptr);
  cudaFree(device);
}
"""


@pytest.fixture(scope="module")
def preloaded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return on_card.library(tmp_path_factory.mktemp("preloaded"))


def compiled(folder: Path, name: str, source: str, *flags: str) -> Path:
    (folder / f"{name}.cpp").write_text(source)
    command = ["g++", "-O1", f"{name}.cpp", "-o", name, *flags]
    subprocess.run(command, cwd=folder, check=True)
    return folder / name


@pytest.mark.parametrize(
    ("freed", "kept"), [(False, "ccc"), (True, "cccf")], ids=["copied", "and freed"]
)
def test_each_copy_to_the_host_is_kept_once_and_a_pinned_one_when_it_was_waited_for(
    tmp_path: Path, preloaded: Path, freed: bool, kept: str
) -> None:
    compiled(tmp_path, "libruntime.so", RUNTIME, "-shared", "-fPIC")
    place = f"-Wl,-rpath,{tmp_path}"
    program = compiled(tmp_path, "program", PROGRAM, "-L.", "-lruntime", place)
    environment = {"LD_PRELOAD": str(preloaded), "COPIES_FILE": str(tmp_path / "copies")}
    if freed:
        environment["COPIES_FREED"] = "1"
    subprocess.run([program], env={**os.environ, **environment}, check=True)
    copies = on_card.copies(tmp_path / "copies")
    values = [struct.unpack("<i", copy.kept)[0] for copy in copies]
    assert "".join(copy.kind for copy in copies) == kept
    assert values == [5, 5, 6, 5][: len(kept)]


Side = tuple[str, Sequence[bytes]]
"""What a run prints, and what it copies from the device."""


@pytest.fixture
def compared(tmp_path: Path) -> Callable[..., on_card.Compared]:
    """Compares a run on the emulator with two on the card."""

    def compare(
        *sides: Side, codes: Sequence[int] = (0, 0, 0), unwritten: bool = False
    ) -> on_card.Compared:
        folders = [tmp_path / name / "x" for name in ("emulated", "first", "second")]
        for folder, (text, copies), code in zip(folders, sides, codes, strict=True):
            folder.mkdir(parents=True, exist_ok=True)
            how = {"folder": "x", "argv": ["./main"], "code": code, "unwritten": unwritten}
            (folder / "how.json").write_text(json.dumps(how))
            (folder / "output").write_text(text)
            records = [
                struct.pack("<4Q", ord("c"), len(copy), hash(copy) % 2**64, len(copy)) + copy
                for copy in copies
            ]
            (folder / "copies").write_bytes(b"".join(records))
        return on_card.compare("x", folders[0], folders[1:])

    return compare


def packed(code: str, *values: float) -> bytes:
    return struct.pack(f"<{len(values)}{code}", *values)


@pytest.mark.parametrize(
    ("mine", "theirs", "outcome"),
    [
        (packed("f", 1.0, 2.0), packed("f", 1.0, 2.0), "same"),
        (packed("f", 1.0, 2.0005), packed("f", 1.0, 2.0), "near"),
        (packed("f", 1.0, 2.01), packed("f", 1.0, 2.0), "differs"),
        (packed("d", 1e-15, 4e-14), packed("d", 1.0001e-15, 4e-14), "near"),
        (packed("d", 1e-15, 4e-14), packed("d", 2e-15, 4e-14), "differs"),
        (packed("d", -170.53179931640625, 4.0), packed("d", -170.53184509277344, 4.0), "near"),
        (packed("d", -170.53179931640625, 4.0), packed("d", -171.53184509277344, 4.0), "differs"),
        (packed("f", float("nan"), 2.0), packed("f", 1.0, 2.0), "differs"),
        (packed("i", 7, 100), packed("i", 8, 100), "differs"),
        (packed("e", 1.0, 0.5, 0.25, 3.0), packed("e", 1.001, 0.5, 0.25, 3.0), "near"),
    ],
)
def test_copies_are_the_same_or_near_or_differ(
    compared: Callable[..., on_card.Compared], mine: bytes, theirs: bytes, outcome: str
) -> None:
    assert compared(("", [mine]), ("", [theirs]), ("", [theirs])).outcome == outcome


@hypothesis.settings(
    max_examples=60, suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture]
)
@hypothesis.given(values=st.lists(st.integers(0, 30000), min_size=1, max_size=64), data=st.data())
def test_any_small_integer_that_changes_is_seen(
    compared: Callable[..., on_card.Compared], values: list[int], data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(values) - 1))
    planted = list(values)
    planted[at] = data.draw(st.integers(0, 30000).filter(lambda value: value != values[at]))
    card = ("", [packed("i", *values)])
    assert compared(("", [packed("i", *planted)]), card, card).outcome == "differs"


def test_what_the_cards_own_runs_differ_in_is_not_compared(
    compared: Callable[..., on_card.Compared],
) -> None:
    one, other = packed("i", 1, 2), packed("i", 3, 4)
    assert compared(("", [one]), ("", [one]), ("", [other])).outcome in ("same", "unlike")
    assert compared(("", [other]), ("", [one]), ("", [packed("i", 5, 6)])).outcome == "unlike"


def test_words_that_nobody_wrote_are_compared_only_where_none_were_found(
    compared: Callable[..., on_card.Compared],
) -> None:
    mine, card = ("", [packed("i", -1, 7)]), ("", [packed("i", 0, 7)])
    assert compared(mine, card, card, unwritten=True).outcome == "same"
    assert compared(mine, card, card).outcome == "differs"


@pytest.mark.parametrize(
    ("mine", "theirs", "outcome"),
    [
        ("sum 12 of 3", "sum 12 of 3", "same"),
        ("sum 12.001", "sum 12.000", "near"),
        ("sum 12", "sum 13", "differs"),
        ("sum 12", "total 12", "differs"),
        ("kernel time: 12 ms", "kernel time: 900 ms", "nothing"),
        ("error 2.1e-06", "error 5.1e-06", "near"),
        ("error 0.3", "error 0.5", "differs"),
        ("nothing printed", "nothing printed", "nothing"),
    ],
)
def test_printed_numbers_are_compared_but_for_those_about_time_and_rounding(
    compared: Callable[..., on_card.Compared], mine: str, theirs: str, outcome: str
) -> None:
    assert compared((mine, []), (theirs, []), (theirs, [])).outcome == outcome


def test_an_error_may_be_twice_as_large_where_all_that_was_copied_is_near(
    compared: Callable[..., on_card.Compared],
) -> None:
    card = ("error 0.5", [packed("f", 1.0, 2.0)])
    near, far = packed("f", 1.0, 2.0001), packed("f", 1.0, 3.0)
    assert compared(("error 0.3", [near]), card, card).outcome == "near"
    assert compared(("error 0.1", [near]), card, card).outcome == "differs"
    assert compared(("error 0.3", [far]), card, card).outcome == "differs"


def test_another_exit_code_differs_and_a_kill_on_the_card_is_a_failure(
    compared: Callable[..., on_card.Compared],
) -> None:
    silent: Side = ("", [])
    assert compared(silent, silent, silent, codes=(1, 0, 0)).outcome == "differs"
    assert compared(silent, silent, silent, codes=(0, -9, -9)).outcome == "failed"
    assert compared(silent, silent, silent, codes=(1, 1, 1)).outcome == "same"


def test_a_program_that_is_built_meanwhile_is_not_what_another_one_wrote(tmp_path: Path) -> None:
    place = tmp_path / "programs"
    place.mkdir()
    kept = on_card.Kept(tmp_path / "kept" / "x")
    kept.begin()
    (place / "twin.out").write_bytes(b"\x7fELF and so on")
    (place / "result.txt").write_text("seen\n")
    kept.end(place, ["./main"], 0, b"")
    assert [path.name for path in (kept.folder / "files").iterdir()] == ["result.txt"]


def test_packed_programs_run_twice_with_the_files_that_they_name(tmp_path: Path) -> None:
    root, emulated = tmp_path / "suite", tmp_path / "emulated"
    for folder, name, text in (
        ("x-cuda", "main", "#!/bin/sh\nread word < ../data/word.txt\necho $word $1 > made\n"),
        ("data", "word.txt", "seen\n"),
        ("other", "large.txt", "not named\n"),
    ):
        (root / folder).mkdir(parents=True)
        (root / folder / name).write_text(text)
    (root / "x-cuda" / "main").chmod(0o755)
    (emulated / "x").mkdir(parents=True)
    how = {"folder": str(root / "x-cuda"), "argv": ["./main", "3"], "code": 0}
    (emulated / "x" / "how.json").write_text(json.dumps(how))
    on_card.pack(emulated, root, tmp_path / "programs.tar.xz")
    on_card.run(tmp_path / "programs.tar.xz", tmp_path / "card", 2, 20.0, 60.0)
    for number in ("0", "1"):
        kept = tmp_path / "card" / number / "x"
        assert json.loads((kept / "how.json").read_text())["code"] == 0
        assert (kept / "files" / "made").read_text() == "seen 3\n"
    listed = subprocess.run(
        ["tar", "-tf", "programs.tar.xz"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "large.txt" not in listed.stdout
