"""Whether programs do on a card what they do on the emulator.

    python benchmarks/suites.py SUITE FOLDER ... --outputs EMULATED
    python benchmarks/on_card.py pack EMULATED PROGRAMS.tar.xz
    python3 on_card.py run PROGRAMS.tar.xz CARD [--jobs N] [--time S]     where the card is
    python benchmarks/on_card.py compare EMULATED CARD ... [--results FILE]

The programs that are run there are the same files, with the same arguments, linked with NVIDIA's
runtime when they start. What each prints, what it copies from the device (copies.cpp) and the files
it writes are compared. Each runs twice on the card: what differs there by itself is not compared,
nor are numbers on a line about time. With --results, the outcome is kept in the file of suites.py.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
LARGEST_FILE = 1 << 20
"""Of those that a program writes, in bytes; of a larger one its first so many."""
LARGEST_INPUT = 8 << 20
RELATIVE, OF_LARGEST, LEAST = 1e-3, 1e-5, 1e-12
"""How far numbers may be apart: of each, of the largest of a copy or a line, and printed ones at
all."""
_RUNS = 2


class Kept:
    """A folder with what one run of a program did."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._begun = 0.0

    def begin(self) -> dict[str, str]:
        """Empties it; the environment that the program runs in."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        # As the clock of files has it, which is up to a tick behind time.time().
        self._begun = self.folder.stat().st_mtime
        shim = library(self.folder.parent)
        return {"LD_PRELOAD": str(shim), "COPIES_FILE": str(self.folder / "copies")}

    def end(
        self, place: Path, argv: Sequence[str], code: int, text: bytes, unwritten: bool = False
    ) -> None:
        """`unwritten`: the emulator found that the program copies what nobody has written."""
        freed = "COPIES_FREED" in os.environ
        how = {"folder": str(place), "argv": list(argv), "code": code, "freed": freed}
        how["unwritten"] = unwritten
        (self.folder / "how.json").write_text(json.dumps(how))
        (self.folder / "output").write_bytes(text)
        for path in sorted(place.rglob("*")):
            if path.is_file() and path.stat().st_mtime >= self._begun and not _is_built(path):
                to = self.folder / "files" / path.relative_to(place)
                to.parent.mkdir(parents=True, exist_ok=True)
                with path.open("rb") as file:
                    to.write_bytes(file.read(LARGEST_FILE))


def library(folder: Path) -> Path:
    """What is preloaded, compiled where it is not there yet."""
    path = folder / "copies.so"
    if not path.is_file():
        with tempfile.TemporaryDirectory(dir=folder) as place:
            new = Path(place) / path.name
            source = str(HERE / "copies.cpp")
            flags = ["-std=c++17", "-O2", "-shared", "-fPIC"]
            subprocess.run(["g++", *flags, source, "-o", str(new), "-ldl"], check=True)
            new.rename(path)
    return path


def _is_built(path: Path) -> bool:
    with path.open("rb") as file:
        return path.suffix == ".a" or file.read(4) == b"\x7fELF"


def _how(folder: Path) -> dict[str, dict[str, object]]:
    return {
        path.parent.name: json.loads(path.read_text()) for path in sorted(folder.glob("*/how.json"))
    }


def pack(emulated: Path, root: Path, to: Path) -> None:
    """The programs that ran, with the files beside them."""
    programs = {
        name: {**how, "folder": str(Path(str(how["folder"])).relative_to(root))}
        if str(how["folder"]).startswith("/")
        else how
        for name, how in _how(emulated).items()
    }
    with tempfile.TemporaryDirectory() as place:
        src = Path(place) / "src"
        folders = {str(how["folder"]).split("/")[0] for how in programs.values()}
        folders |= {name for how in programs.values() for name in _beside(how, root)}
        for name in sorted(folders):
            for path in (root / name).rglob("*"):
                target = src / path.relative_to(root)
                if path.is_file() and path.suffix not in (".o", ".a", ".cu", ".cpp", ".git"):
                    if path.stat().st_size < LARGEST_INPUT or os.access(path, os.X_OK):
                        target.parent.mkdir(parents=True, exist_ok=True)
                        shutil.copy(path, target)
                        if path.read_bytes()[:4] == b"\x7fELF":
                            subprocess.run(["strip", str(target)], check=True)
        (src / "programs.json").write_text(json.dumps(programs))
        shutil.copy(library(emulated), src / "copies.so")
        subprocess.run(["tar", "-C", place, "-cf", str(to), "-I", "xz -T2 -3", "src"], check=True)


def _beside(how: dict[str, object], root: Path) -> Iterator[str]:
    """The folders that its arguments or the program itself name, as ../data/x.txt."""
    words = _words(how)
    program = root / str(how["folder"]) / words[0]
    content = program.read_bytes() if program.is_file() else b""
    for name in {*re.findall(rb"\.\./([\w+-][\w.+-]*)/", " ".join(words).encode() + content)}:
        if (root / name.decode()).is_dir():
            yield name.decode()


def _words(how: dict[str, object]) -> list[str]:
    words = how["argv"]
    assert isinstance(words, list)
    return words


def run(programs: Path, to: Path, jobs: int, limit_s: float, whole_s: float) -> None:
    """Runs them on the card of this machine, twice each."""
    until = time.monotonic() + whole_s
    with tempfile.TemporaryDirectory() as place:
        with tarfile.open(programs) as archive:
            archive.extractall(place, filter="data")
        src = Path(place) / "src"
        to.mkdir(parents=True, exist_ok=True)
        for name in range(_RUNS):
            (to / str(name)).mkdir(exist_ok=True)
            shutil.copy(src / "copies.so", to / str(name))
        known = json.loads((src / "programs.json").read_text())
        with ThreadPoolExecutor(jobs) as pool:
            runs = [
                pool.submit(_run, src, to, name, how, limit_s, until) for name, how in known.items()
            ]
            for done in runs:
                print(done.result(), flush=True)


def _run(
    src: Path, to: Path, name: str, how: dict[str, object], limit_s: float, until: float
) -> str:
    codes = []
    for number in range(_RUNS):
        if time.monotonic() > until:
            return f"{name}: no time"
        place, argv = src / str(how["folder"]), _words(how)
        kept = Kept(to / str(number) / name)
        with tempfile.TemporaryFile() as output:
            environment = {**os.environ, **kept.begin()}
            if how.get("freed"):
                environment["COPIES_FREED"] = "1"
            try:
                process = subprocess.Popen(
                    argv,
                    cwd=place,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                )
            except OSError as error:
                return f"{name}: {error}"
            try:
                code = process.wait(limit_s)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                code = -signal.SIGKILL
            output.seek(0)
            kept.end(place, argv, code, output.read(LARGEST_FILE))
        codes.append(code)
    return f"{name}: {codes}"


class Copy(NamedTuple):
    """What was copied from the device, or freed."""

    kind: str
    size: int
    hash: int
    kept: bytes


def copies(path: Path) -> list[Copy]:
    content = path.read_bytes() if path.is_file() else b""
    found, at = [], 0
    while at + 32 <= len(content):
        kind, size, digest, kept = struct.unpack_from("<4Q", content, at)
        found.append(Copy(chr(kind), size, digest, content[at + 32 : at + 32 + kept]))
        at += 32 + kept
    return found


class Compared(NamedTuple):
    """One program here and there."""

    name: str
    outcome: str
    """same; near: numbers differ within the tolerance; differs; unlike: the card's own two runs
    differ in all that could be compared; nothing: there is nothing to compare; failed: it did not
    end on the card."""
    why: str
    copies: int
    """That were compared."""
    numbers: int
    """Printed ones that were compared."""
    bytes: int
    """Of the copies."""


_NUMBER = re.compile(
    r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?)|[-+]?\b(?:nan|inf)\b"
)
_ABOUT_TIME = re.compile(
    r"\btimes?\b|\b(?:sec|second)s?\b|\b[mun]?s(?:ec)?\b|\([mun]?s\)|[GMKT]i?B|FLOP|/\s*s\b|rate|speed"
    r"|bandwidth|throughput|elapsed|latency|perf|overhead|cycles|clock|duration|memory|takes|took"
    r"|\d:\d\d\b|MLUPS|GUP|tflop|GCell|device|NVIDIA|driver|processors|0x[0-9a-f]{6,}",
    re.I,
)


_OF_ERRORS = re.compile(r"\berr\b|error|difference|deviation|rms", re.I)
"""Lines about rounding where their numbers are below a hundred-thousandth, or within a factor of
two where all copies are the same or near."""
_ROUNDING = 1e-5


def compare(name: str, emulated: Path, card: Sequence[Path]) -> Compared:
    hows = [_how(folder.parent).get(name) for folder in (emulated, *card)]
    if not all(hows):
        return Compared(name, "failed", "it was not run on the card", 0, 0, 0)
    here, there = hows[0], hows[1]
    assert here
    assert there
    if here["code"] != there["code"]:
        why = f"exit code {here['code']}, {there['code']} on the card"
        return Compared(name, "failed" if there["code"] == -9 else "differs", why, 0, 0, 0)
    outcomes, counted, size = [], 0, 0
    records = [_worth(copies(folder / "copies")) for folder in (emulated, *card)]
    lengths = [len(found) for found in records]
    if len(set(lengths)) > 1:
        steady = len(set(lengths[1:])) == 1
        why = f"{', '.join(map(str, lengths))} copies"
        outcomes.append(("differs" if steady else "unlike", why))
    for at, (mine, *theirs) in enumerate(zip(*records, strict=False)):
        if here.get("unwritten"):
            mine = _without_unwritten(mine, theirs[0])
        result, why = _copy(mine, theirs)
        outcomes.append((result, f"copy {at} of {mine.size} bytes: {why}"))
        if result in ("same", "near", "differs"):
            counted, size = counted + 1, size + mine.size
    texts = [_lines(folder / "output") for folder in (emulated, *card)]
    settled = counted > 0 and all(result in ("same", "near") for result, _ in outcomes)
    numbers, result, why = _text(*texts, settled=settled)
    outcomes.append((result, why))
    outcomes += _files(emulated, card)
    for result in ("differs", "near", "same", "unlike"):
        for found, why in outcomes:
            if found == result:
                why = "" if result == "same" else why
                return Compared(name, result, why, counted, numbers, size)
    if here["code"]:
        return Compared(name, "same", f"it ends with {here['code']}", 0, 0, 0)
    return Compared(name, "nothing", "", 0, 0, 0)


def _worth(found: list[Copy]) -> list[Copy]:
    """What was copied, or else what was freed: of libraries too, and not written in whole."""
    return [copy for copy in found if copy.kind != "f"] or found


def _without_unwritten(mine: Copy, other: Copy) -> Copy:
    """A copy with the card's words where the emulator has 0xFFFFFFFF, as it has where nobody has
    written anything."""
    if len(mine.kept) != len(other.kept) or b"\xff\xff\xff\xff" not in mine.kept:
        return mine
    words = len(mine.kept) // 4 * 4
    kept = b"".join(
        (other if mine.kept[at : at + 4] == b"\xff" * 4 else mine).kept[at : at + 4]
        for at in range(0, words, 4)
    )
    kept += mine.kept[words:]
    return mine._replace(kept=kept, hash=other.hash if kept == other.kept else mine.hash)


def _copy(mine: Copy, theirs: Sequence[Copy]) -> tuple[str, str]:
    first = theirs[0]
    if any(other.size != first.size for other in theirs):
        return "unlike", "its size changes"
    if mine.size != first.size or mine.kind != first.kind:
        return "differs", f"of {first.size} bytes on the card"
    if mine.hash == first.hash:
        return "same", ""
    steady = all(other.hash == first.hash for other in theirs)
    kept = [other.kept for other in theirs]
    for code, name in _TYPES.items():
        if not _may_be(first.kept, code):
            continue
        if (
            _near(_floats(mine.kept, code), [_floats(one, code) for one in kept], code)
            if code in "fd"
            else _near_halves(mine.kept, kept)
        ):
            return "near", f"as {name}"
    if not steady:
        return "unlike", "the card's own runs differ"
    at = next(
        (k for k, (a, b) in enumerate(zip(mine.kept, first.kept, strict=False)) if a != b), -1
    )
    differing = sum(a != b for a, b in zip(mine.kept, first.kept, strict=False))
    at &= ~3
    words = [other.kept[at : at + 4].hex() for other in (mine, first)]
    return "differs", f"{differing} of {len(mine.kept)} kept bytes, {words} at {at}"


_TYPES = {"f": "float32", "d": "float64", "e": "float16", "h": "bfloat16"}
_MOST_ULPS = 8
"""How far apart numbers of 16 bits may be, in steps of their last bit."""


def _floats(content: bytes, code: str) -> list[float]:
    width = {"d": 8, "f": 4, "e": 2, "h": 2}[code]
    content = content[: len(content) // width * width]
    if code == "h":
        halves = struct.iter_unpack("<H", content)
        content, code = b"".join(struct.pack("<I", half << 16) for (half,) in halves), "f"
    return [value for (value,) in struct.iter_unpack(f"<{code}", content)]


_PLAUSIBLE = (1e-20, 1e20)
"""Where nearly all numbers of a program lie that are not 0."""


def _may_be(content: bytes, code: str) -> bool:
    """Whether bytes may be numbers of a type: halves of others would be near each other by chance.

    The low words of float64 are no float32, but where it holds one; integers and pixels are no
    normal numbers of 16 bits.
    """
    if code == "f":
        return True
    if code == "d" and _are_widened(content):
        return True
    every = _floats(content, "f")[::2] if code == "d" else _floats(content, code)
    values = [abs(value) for value in every if value]
    least, most = (6.2e-5, 65504.0) if code == "e" else _PLAUSIBLE
    plain = sum(least < value <= most for value in values)
    return plain < 0.9 * len(values) if code == "d" else plain > 0.95 * len(values)


def _are_widened(content: bytes) -> bool:
    """Whether bytes are numbers of 64 bits that were made of numbers of 32 bits."""
    lows = [low for low, _ in struct.iter_unpack("<2I", content[: len(content) // 8 * 8])]
    return any(lows) and all(low & 0x1FFFFFFF == 0 for low in lows)


def _near(mine: Sequence[float], theirs: Sequence[Sequence[float]], code: str = "") -> bool:
    """Whether each number is within the tolerance of the card's."""
    first = [abs(value) for value in theirs[0] if value == value and abs(value) != float("inf")]
    largest = max(first, default=0.0)
    if code and not _PLAUSIBLE[0] < largest < _PLAUSIBLE[1]:
        return False  # integers
    allowed = max(OF_LARGEST * largest, 0.0 if code else LEAST)
    for value, *others in zip(mine, *theirs, strict=True):
        low, high = min(others), max(others)
        if value != value or low != low:
            if (value != value) != (low != low):
                return False
        elif value != low and not (
            low - allowed - RELATIVE * abs(low) <= value <= high + allowed + RELATIVE * abs(high)
        ):
            return False
    return bool(mine)


def _near_halves(mine: bytes, theirs: Sequence[bytes]) -> bool:
    """Whether each number of 16 bits is a few steps from the card's."""
    every = [
        struct.unpack(f"<{len(one) // 2}h", one[: len(one) // 2 * 2]) for one in (mine, *theirs)
    ]
    ordered = [[half if half >= 0 else -32768 - half for half in one] for one in every]
    return all(
        min(others) - _MOST_ULPS <= half <= max(others) + _MOST_ULPS
        for half, *others in zip(*ordered, strict=True)
    )


def _lines(path: Path) -> list[str]:
    return [" ".join(line.split()) for line in path.read_text(errors="replace").splitlines()]


def _text(mine: list[str], *theirs: list[str], settled: bool = False) -> tuple[int, str, str]:
    """How many numbers were compared, and with what result; `settled`: copies were, and are the
    same or near."""
    first = theirs[0]
    if any(
        _NUMBER.sub("#", "\n".join(first)) != _NUMBER.sub("#", "\n".join(other)) for other in theirs
    ):
        return 0, "unlike", "the card's own runs print different words"
    numbers, near = 0, ""
    if len(mine) != len(first):
        at = next(
            (
                k
                for k, (a, b) in enumerate(zip(mine, first, strict=False))
                if _shape(a) != _shape(b)
            ),
            0,
        )
        pair = [lines[min(at, len(lines) - 1)][:60] if lines else "" for lines in (mine, first)]
        return 0, "differs", f"{len(mine)} lines, {len(first)} on the card: {pair}"
    for line, *others in zip(mine, *theirs, strict=True):
        about_time = bool(_ABOUT_TIME.search(line))
        if _shape(line) != _shape(others[0]) and not about_time:
            return numbers, "differs", f"{line[:70]!r}, {others[0][:70]!r} on the card"
        if about_time:
            continue
        values = [[float(word) for word in _NUMBER.findall(text)] for text in (line, *others)]
        if any(values[1] != other for other in values[1:]):
            continue  # the card's own runs differ
        numbers += len(values[0])
        if values[0] == values[1] or line == others[0]:
            continue
        rounding = _OF_ERRORS.search(line) and _is_rounding(*values[:2], settled)
        if not rounding and not _near([0.0, *values[0]], [[0.0, *other] for other in values[1:]]):
            return numbers, "differs", f"{line[:70]!r}, {others[0][:70]!r} on the card"
        near = f"{line[:70]!r}, {others[0][:70]!r} on the card"
    return numbers, "near" if near else "same" if numbers else "nothing", near


def _is_rounding(mine: Sequence[float], first: Sequence[float], settled: bool) -> bool:
    if all(abs(value) < _ROUNDING for value in (*mine, *first)):
        return True
    return settled and all(
        2 * min(pair) >= max(pair) >= 0 for pair in zip(mine, first, strict=True)
    )


def _shape(line: str) -> str:
    return _NUMBER.sub("#", line)


def _files(emulated: Path, card: Sequence[Path]) -> Iterator[tuple[str, str]]:
    for path in sorted((emulated / "files").rglob("*")):
        if path.is_file():
            name = path.relative_to(emulated)
            others = [folder / name for folder in card]
            if not all(other.is_file() for other in others):
                yield "differs", f"{name} is not written on the card"
                continue
            content = [other.read_bytes() for other in (path, *others)]
            if content[0] == content[1]:
                yield "same", ""
            elif content[1] != content[2]:
                yield "unlike", f"{name} changes on the card"
            elif b"\0" in content[0]:
                result, why = _copy(*_as_copies(content))
                yield result, f"{name}: {why}"
            else:
                _, result, why = _text(*[_lines(file) for file in (path, *others)])
                yield result, f"{name}: {why}"


def _as_copies(content: Sequence[bytes]) -> tuple[Copy, list[Copy]]:
    mine, *theirs = [Copy("c", len(one), hash(one), one) for one in content]
    return mine, theirs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=["pack", "run", "compare"])
    parser.add_argument("first", type=Path)
    parser.add_argument("others", type=Path, nargs="+")
    parser.add_argument("--root", type=Path, help="of the programs' folders, to pack")
    parser.add_argument("--jobs", type=int, default=12)
    parser.add_argument("--time", type=float, default=20.0, help="of a run, in seconds")
    parser.add_argument("--whole", type=float, default=300.0, help="of all runs")
    parser.add_argument("--results", type=Path)
    options = parser.parse_args()
    other = options.others[-1]
    if options.action == "pack":
        pack(options.first, options.root, other)
    elif options.action == "run":
        run(options.first, other, options.jobs, options.time, options.whole)
    else:
        results = [
            compare(name, options.first / name, _latest(options.others, name))
            for name in _how(options.first)
        ]
        for result in results:
            print(*result, sep=" | ")
        outcomes = [result.outcome for result in results]
        print({outcome: outcomes.count(outcome) for outcome in sorted(set(outcomes))})
        if options.results:
            note(results, options.results)


def _latest(cards: Sequence[Path], name: str) -> list[Path]:
    """Its runs in the last of the folders that has any."""
    ran = [card for card in cards if (card / "0" / name / "how.json").is_file()]
    return [(ran or cards)[-1] / str(number) / name for number in range(_RUNS)]


def note(results: Sequence[Compared], path: Path) -> None:
    """Puts what was compared into the rows of suites.py."""
    known = {result.name: result for result in results}
    rows = [json.loads(line) for line in path.read_bytes().splitlines()]
    for row in rows:
        if result := known.get(row["name"]):
            row["on_card"], row["card_why"] = result.outcome, result.why
    path.write_text("".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows))


if __name__ == "__main__":
    main()
