"""Records on disk: one JSON file per run, whole or not there, never edited."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from weakref import WeakValueDictionary

import msgspec

from kernelexp.logs import documents
from kernelexp.logs.documents import Unreadable as Unreadable
from kernelexp.logs.documents import complete, contradiction, with_recount
from kernelexp.logs.documents import sealed as sealed
from kernelexp.model.arm import Arm
from kernelexp.model.errors import UsageError
from kernelexp.model.experiment import Placed, is_name
from kernelexp.model.record import Record, is_of, separate
from kernelexp.system import disk

FOLDER = "logs/runs"
PUBLISHED = "published"
VERSION = 2
_TIMED = ".measured.json"
"""What the names of records end with that timed something."""

_encoder = msgspec.json.Encoder(order="deterministic")
_decoder = msgspec.json.Decoder(Record)
_held: WeakValueDictionary[tuple[str, int, int, int], Record] = WeakValueDictionary()


def new_run_name() -> str:
    """A name that sorts by time and that no other run has."""
    return disk.name_at(datetime.now(UTC))


def file_name(record: Record) -> str:
    """The run and its most expensive evidence, so that git can be told which records to keep."""
    if record.provenance == "published":
        return f"{PUBLISHED}.json"
    emulated = any(arm.emulated for arm in record.arms)
    kind = "measured" if record.measurement else "emulated" if emulated else "build"
    return f"{record.run}.{kind}.json"


def write(root: Path, record: Record) -> Path:
    """Writes the record; a kill at any moment leaves either no record or a whole one."""
    return disk.write(place(root, record), encode(record).encode())


def place(root: Path, record: Record) -> Path:
    """Returns the path at which a record is written."""
    return root / FOLDER / record.experiment / file_name(record)


def encode(record: Record) -> str:
    """The record as JSON for people, but for the samples: thousands of numbers, on one line."""
    bare = msgspec.structs.replace(separate(record), measurement=None, heats=())
    named = msgspec.to_builtins(bare, str_keys=True)  # the encoder orders no other keys
    text = msgspec.json.format(_encoder.encode(named), indent=1).decode()
    samples = {"measurement": record.measurement, "heats": record.heats}
    for name, content in samples.items():
        if content:
            text = f'{text[:-2]},\n "{name}": {_encoder.encode(content).decode()}\n}}'
    return sealed(text)


# ---- reading -------------------------------------------------------------------------------------


def read(
    root: Path, experiment: str, latest: int | None = None
) -> tuple[list[Record], list[Unreadable]]:
    """The records of one experiment, oldest first; published ones come before all runs.

    With `latest` only those of the last so many files and, before these, of what was timed: there
    may be thousands.
    """
    paths = _list(root, experiment)
    left_out = [] if latest is None else paths[: max(0, len(paths) - latest)]
    untimed = {path for path in left_out if not path.endswith(_TIMED)}
    return documents.apart(_read(path, experiment) for path in paths if path not in untimed)


def last(root: Path, experiment: str, count: int, known: Mapping[str, Record]) -> list[Record]:
    """The latest `count` files of an experiment, oldest first; those that are no records, not.

    Runs that are in `known` are not read again.
    """
    return _known_or_read(_list(root, experiment)[-count:], experiment, known)


def last_timed(
    root: Path, experiment: str, count: int, known: Mapping[str, Record]
) -> list[Record]:
    """The same of those that timed something; none, without a file opened, where there is one."""
    timed = [path for path in _list(root, experiment) if path.endswith(_TIMED)]
    return _known_or_read(timed[-count:], experiment, known) if len(timed) > 1 else []


def read_file(path: Path) -> Record:
    """One record by its path; UsageError says why a file is none."""
    record = _read(str(path))
    if isinstance(record, Unreadable):
        raise UsageError(f"{path} {record.why}.")
    return record


def find(root: Path, text: str, *, measured: bool = False) -> Path:
    """The file of a record by its path, its run's name or the beginning of it, or by an
    experiment's id, which stands for its latest run, or with `measured` for its latest measured
    one; UsageError where that names none, or several.
    """
    if text.endswith(".json") and Path(text).is_file():
        return Path(text)
    if "/" not in text and (runs := _list(root, text)):
        timed = [path for path in runs if path.endswith(_TIMED)]
        return Path((timed if measured and timed else runs)[-1])
    matches = matching(root, text)
    if len({path.name for path in matches}) == 1:
        return matches[0]
    if not matches:
        raise UsageError(
            f"there is no record {text!r}: name a run (kernelexp show EXPERIMENT lists them), "
            "an experiment with records, or a record's file."
        )
    names = ", ".join(path.name.split(".")[0] for path in matches[:3])
    raise UsageError(
        f"{text!r} is ambiguous: {len(matches)} runs start with it ({names}, ...); type more of it."
    )


def count(root: Path, experiment: str) -> int:
    """Counts the records of an experiment."""
    return len(_list(root, experiment))


def by_weight(root: Path, experiment: str) -> Iterator[Record | Unreadable]:
    """The records of an experiment as they are read, those that may say most first.

    Measured ones, the latest first; then the published one; then the others, the latest first. A
    file is opened when it is asked for: decoding 10,000 runs of F3 takes 0.44 s on two cores.
    """
    paths = sorted(_list(root, experiment), key=_weigher(), reverse=True)
    return (_read(path, experiment) for path in paths)


def measured(root: Path) -> Iterator[Record]:
    """The runs that measured, of all experiments, the latest first; each is read when asked for."""
    paths = [path for path in _all(root) if path.endswith(_TIMED)]
    for path in sorted(paths, key=os.path.basename, reverse=True):
        record = _read(path, os.path.basename(os.path.dirname(path)))
        if isinstance(record, Record):
            yield record


def latest_measured(
    root: Path, variant: Placed, files: Mapping[str, str], device: str = ""
) -> tuple[Record, Arm] | None:
    """The latest run that measured exactly this variant, built from `files`, and its arm there; on
    any device, or on this one."""
    for record in measured(root):
        if (record.kernel, record.arch) == (variant.kernel, variant.arch):
            for arm in record.arms:
                if arm.measured and arm.axes.keys() == variant.axes.keys():
                    if device not in ("", arm.measured.device):
                        continue
                    if is_of(dict(variant.axes), arm) and files == arm.files:
                        return record, arm
    return None


def matching(root: Path, text: str) -> list[Path]:
    """The files of the runs whose names begin with `text`."""
    names = ((path, os.path.basename(path)) for path in _all(root))
    return [
        Path(path) for path, name in names if name.startswith(text) and name != f"{PUBLISHED}.json"
    ]


def latest_untimed(root: Path, experiment: str) -> Record | None:
    """The latest run that timed nothing, if its file is a record; whatever --set it had."""
    weight = _weigher()
    path = max(
        _list(root, experiment), key=lambda path: (-weight(path)[0], weight(path)), default=""
    )
    record = _read(path, experiment) if path and weight(path)[0] == 0 else None
    return record if isinstance(record, Record) else None


def _weigher() -> Callable[[str], tuple[int, bool, str]]:
    """Returns a function that ranks records by path: by their most expensive evidence, then time.

    A run named after a time in the future, as by a wrong clock, comes last.
    """
    future = f"{datetime.now(UTC) + timedelta(days=1):%Y%m%dT}"

    def weight(path: str) -> tuple[int, bool, str]:
        name = os.path.basename(path)
        evidence = 2 if name.endswith(_TIMED) else 1 if name == f"{PUBLISHED}.json" else 0
        return evidence, not ("0" <= name[:1] <= "9" and name > future), name

    return weight


def _all(root: Path) -> Iterator[str]:
    try:
        with os.scandir(os.path.join(root, FOLDER)) as entries:
            names = sorted(entry.name for entry in entries if entry.is_dir())
    except FileNotFoundError:
        return
    for name in names:
        yield from _list(root, name)


def _list(root: Path, experiment: str) -> list[str]:
    folder = os.path.join(root, FOLDER, experiment)
    try:
        names = [name for name in os.listdir(folder) if name.endswith(".json")]
    except FileNotFoundError:
        return []
    names.sort(key=lambda name: (name != f"{PUBLISHED}.json", name))
    return [os.path.join(folder, name) for name in names]


def _known_or_read(
    paths: Iterable[str], experiment: str, known: Mapping[str, Record]
) -> list[Record]:
    latest = (
        known.get(os.path.basename(path).split(".")[0]) or _read(path, experiment) for path in paths
    )
    return [record for record in latest if isinstance(record, Record)]


def _read(path: str, experiment: str | None = None) -> Record | Unreadable:
    """The record in a file; with `experiment`, only if it is of that one, and of the run that the
    file is named after."""
    record = _decode(path)
    if isinstance(record, Unreadable):
        return record
    if experiment not in (None, record.experiment):
        return Unreadable(path=Path(path), why=f"is a record of {record.experiment}")
    is_run = experiment is not None and record.provenance == "run"
    if is_run and os.path.basename(path).split(".")[0] != record.run:  # which says how old it is
        return Unreadable(path=Path(path), why=f"is a record of run {record.run}")
    return _with_latest_recount(path, record)


def _decode(path: str) -> Record | Unreadable:
    """A file that somebody still holds as it is now is not decoded again: a server makes its pages
    anew with each run, and 10,000 records take a second."""
    try:
        status = os.lstat(path)
    except OSError as error:
        return Unreadable(path=Path(path), why=f"can't be read: {error.strerror}")
    state = (path, status.st_ino, status.st_size, status.st_mtime_ns)
    if (held := _held.get(state)) is not None:
        return held
    content = documents.read(path)
    if isinstance(content, Unreadable):
        return content
    record = _parse(content)
    if isinstance(record, str):
        return Unreadable(path=Path(path), why=record)
    _held[state] = record
    return record


@functools.lru_cache(maxsize=256)
def _parse(content: bytes) -> Record | str:
    """The record of a file's content, or why it is none.

    Kept by content: one command looks through the same records for variant after variant.
    """
    record = documents.parse(content, _decoder, VERSION, "record")
    if isinstance(record, str):
        return record
    if not is_name(record.run) or not is_name(record.experiment):
        return "is not a record: its name is not one of a run"
    return contradiction(record) or complete(record)


def _with_latest_recount(path: str, record: Record) -> Record:
    """The record of a project with the emulated evidence that was taken of it last."""
    folder = os.path.dirname(os.path.dirname(os.path.abspath(path)))
    if not folder.endswith(os.path.join("", *FOLDER.split("/"))):
        return record
    recount = documents.latest_recount(folder.removesuffix(FOLDER), record.run)
    if isinstance(recount, Unreadable):
        why = f"the file of the latest recount {recount.why}"
        return msgspec.structs.replace(record, recounted=why)
    return with_recount(record, recount) if recount else record
