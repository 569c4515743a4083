"""JSON files of the logs as they are read: of a known version, or why one can't be believed.

A record is one run of one experiment. Emulated evidence that was taken again for it is in files of
their own, as records are not edited: the latest `logs/recounts/RUN/MOMENT.json` is read with it.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from kernelexp.facts import metrics
from kernelexp.facts.counters import PTX
from kernelexp.model.arm import Arm, EmulatedEvidence
from kernelexp.model.experiment import spell
from kernelexp.model.measurement import Measurement
from kernelexp.model.record import Record, measured_evidence, measurements, with_arms
from kernelexp.model.text import spelled
from kernelexp.system import disk

# The largest record committed so far has 210 KB; 16 processes of 24 arms would have 20 MB.
BYTES_MAX = 256 << 20


class _Versioned(Protocol):
    @property
    def version(self) -> int: ...


Document = TypeVar("Document", bound=_Versioned)


class Unreadable(msgspec.Struct, frozen=True, kw_only=True):
    """A file among the records that is none, or that is not to be believed, and why."""

    path: Path
    why: str


class _Version(msgspec.Struct):
    version: int = 0


_version_decoder = msgspec.json.Decoder(_Version)

# The last line of a file: of all before it. No signature: whoever edits a file can work it out.
_DIGEST = re.compile(rb',\n "digest": "([0-9a-f]{64})"\n}\n$')


def sealed(text: str) -> str:
    """A JSON object with a digest of itself, by which an edit is noticed."""
    body = text.rstrip().removesuffix("}").rstrip()
    return f'{body},\n "digest": "{hashlib.sha256(body.encode()).hexdigest()}"\n}}\n'


def is_edited(data: bytes) -> bool:
    """Whether a file is not as it was written; early versions wrote no digest that would tell."""
    data = data.replace(b"\r\n", b"\n")  # as git checks files out for Windows
    if seal := _DIGEST.search(data, max(0, len(data) - 100)):
        return hashlib.sha256(data[: seal.start()]).hexdigest() != seal[1].decode()
    return b'"digest":' in data


def decode(
    path: str, decoder: msgspec.json.Decoder[Document], newest: int, kind: str
) -> Document | Unreadable:
    """Reads a file of the logs, or says why it is no `kind` of version `newest` or before."""
    content = read(path)
    if isinstance(content, Unreadable):
        return content
    document = parse(content, decoder, newest, kind)
    if isinstance(document, str):
        return Unreadable(path=Path(path), why=document)
    if getattr(document, "edited", False):
        return Unreadable(path=Path(path), why="was edited after it was written")
    return document


def apart(
    documents: Iterable[Document | Unreadable],
) -> tuple[list[Document], list[Unreadable]]:
    """Documents, and files that are none, each in their order."""
    read, unreadable = [], []
    for document in documents:
        if isinstance(document, Unreadable):
            unreadable.append(document)
        else:
            read.append(document)
    return read, unreadable


def parse(
    content: bytes, decoder: msgspec.json.Decoder[Document], newest: int, kind: str
) -> Document | str:
    """The document of a file's content, or why it is none, as the end of a sentence."""
    try:
        document = decoder.decode(content)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        return _explain(content, error, newest, kind)
    if document.version > newest:
        return _newer(document.version, newest)
    if is_edited(content) and isinstance(document, msgspec.Struct) and hasattr(document, "edited"):
        return msgspec.structs.replace(document, edited=True)
    return document


def read(path: str) -> bytes | Unreadable:
    """The content of a file of the logs."""
    try:
        return _bytes(path)
    except OSError as error:
        return Unreadable(path=Path(path), why=f"can't be read: {error.strerror}")


def _bytes(path: str) -> bytes:
    """A regular file of the folder itself: a clone may hold a link to anything, or a pipe."""
    # open() costs twice as much; 10,000 records are to be read in under 0.5 s.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > BYTES_MAX:
            raise OSError(0, f"it is not a file of at most {BYTES_MAX >> 20} MiB")
        return os.read(descriptor, status.st_size)
    finally:
        os.close(descriptor)


def _explain(text: bytes, error: Exception, newest: int, kind: str) -> str:
    try:
        version = _version_decoder.decode(text).version
    except msgspec.ValidationError:
        return f"is not a {kind}: {spelled(str(error))}"
    except (msgspec.DecodeError, ValueError, RecursionError):
        return f"is truncated or invalid JSON: {spelled(str(error))}"
    return (
        _newer(version, newest) if version > newest else f"is not a {kind}: {spelled(str(error))}"
    )


def _newer(version: int, newest: int) -> str:
    return f"has version {version}, written by a newer kernelexp (this one reads {newest})"


RECOUNTS = "logs/recounts"
RECOUNT_VERSION = 1


class RecountedArm(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The evidence of executing an arm of a run once more."""

    identity: str
    """Of the build in the record."""
    emulated: EmulatedEvidence
    emulated_sass: EmulatedEvidence | None = None


class Recount(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Emulated evidence of the arms of one run."""

    version: int
    run: str
    experiment: str
    created: str
    """ISO 8601, in UTC."""
    tool: str
    """kernelexp's version."""
    compiler: str
    host_files: dict[str, str]
    """SHA-256 of problem.py and the Python files next to it, by path from the root."""
    arms: dict[str, RecountedArm]
    """By the name that the record has for them."""
    edited: bool = False
    """Whether its file is not as it was written, as it is read; no file has it."""


_recount_encoder = msgspec.json.Encoder(order="deterministic")
_recount_decoder = msgspec.json.Decoder(Recount)


def write_recount(root: Path, recount: Recount) -> Path:
    """Adds a recount to those of its run; a kill leaves none or a whole one."""
    name = f"{disk.name_at(datetime.now(UTC))}.json"
    named = msgspec.to_builtins(recount, str_keys=True)  # the encoder orders no other keys
    text = sealed(msgspec.json.format(_recount_encoder.encode(named), indent=1).decode())
    return disk.write(root / RECOUNTS / recount.run / name, text.encode())


def latest_recount(root: str, run: str) -> Recount | Unreadable | None:
    """The latest recount of a run; None where there is none."""
    folder = os.path.join(root, RECOUNTS, run)
    try:
        names = [name for name in os.listdir(folder) if name.endswith(".json")]
    except OSError:
        return None
    if not names:
        return None
    path = os.path.join(folder, max(names))
    recount = decode(path, _recount_decoder, RECOUNT_VERSION, "recount")
    if isinstance(recount, Recount) and recount.run != run:
        return Unreadable(path=Path(path), why=f"is of run {recount.run}")
    return recount


def complete(record: Record) -> Record:
    """The record with what its arms do not repeat: kernel, architecture, measured evidence.

    One of version 1 names counts of PTX as this version does.
    """
    if record.version < 2:
        record = _name_ptx(record)
    return with_arms(
        record,
        [
            msgspec.structs.replace(
                arm,
                kernel=record.kernel,
                arch=record.arch,
                measured=measured_evidence(record, name),
            )
            for name, arm in zip(record.names, record.arms, strict=True)
        ],
    )


def with_recount(record: Record, recount: Recount) -> Record:
    """The record with emulated evidence that was taken again."""
    arms = [
        msgspec.structs.replace(arm, emulated=own.emulated, emulated_sass=own.emulated_sass)
        if (own := recount.arms.get(name)) and own.identity == arm.identity
        else arm
        for name, arm in zip(record.names, record.arms, strict=True)
    ]
    when = f"{recount.created}, kernelexp {recount.tool}"
    return msgspec.structs.replace(with_arms(record, arms), recounted=when)


def contradiction(record: Record) -> str:
    """Says how a record contradicts itself or its samples, as the end of a sentence; else empty."""
    for name, arm in zip(record.names, record.arms, strict=True):
        for macro, axis in _axis_macros(arm):
            if macro not in arm.defines and any(text.startswith(axis) for text in arm.defines):
                return f"contradicts itself: its {name} was not built with {macro}"
    if record.measurement is None:
        return ""
    for measurement in measurements(record):
        if why := _fault_of_samples(measurement):
            return f"contradicts itself: it {why}"
        if measurement.device.name != record.device:
            return (
                f"contradicts itself: its samples are of {measurement.device.name}, it is of "
                f"{record.device}"
            )
    arms = [arm for measurement in measurements(record) for arm in measurement.arms]
    for name, arm in zip(record.names, record.arms, strict=True):
        others = {timed_arm.identity for timed_arm in arms if timed_arm.name == name} - {
            arm.identity
        }
        if others:
            return (
                f"contradicts itself: its samples of the {name} are of build {min(others)}, "
                f"its {name} is build {arm.identity}"
            )
    return ""


def _fault_of_samples(measurement: Measurement) -> str:
    """Says how samples are not of their arms, as the end of a sentence; empty where they are."""
    names = {arm.name for arm in measurement.arms}
    if len(names) < len(measurement.arms):
        return "has two arms of one name"
    rows = (row for worker in measurement.workers for block in worker.blocks for row in block.rows)
    peers = (row for worker in measurement.workers for row in worker.peer_rows)
    arms = len(measurement.arms)
    # Of thousands of rows, with one of a few orders.
    shapes = {(row.order, len(row.times_us)) for row in chain(rows, peers)}
    if any(len(order) != times or max(order, default=-1) >= arms for order, times in shapes):
        return "has a row of samples that are not of its arms"
    return ""


def _axis_macros(arm: Arm) -> Iterator[tuple[str, str]]:
    """Yields the definition that gives each axis to the compiler, and how it begins."""
    for axis, value in arm.axes.items():
        axis = f"KX_{axis.upper()}="
        yield axis + spell(value), axis


def _name_ptx(record: Record) -> Record:
    """Version 1 gave what an emulation counted on PTX the names of ncu's counters."""
    arms = [
        msgspec.structs.replace(arm, emulated=_name_counters(arm.emulated)) if arm.emulated else arm
        for arm in record.arms
    ]
    expect = tuple(
        {_on_ptx(name): text for name, text in figures.items()} for figures in record.expect
    )
    return msgspec.structs.replace(with_arms(record, arms), version=2, expect=expect)


def _name_counters(evidence: EmulatedEvidence) -> EmulatedEvidence:
    lines = (
        msgspec.structs.replace(line, counters=_ptx_keys(line.counters)) for line in evidence.lines
    )
    return msgspec.structs.replace(
        evidence, counters=_ptx_keys(evidence.counters), lines=tuple(lines)
    )


def _ptx_keys(counters: dict[str, int]) -> dict[str, int]:
    return {name if name.startswith(PTX) else PTX + name: n for name, n in counters.items()}


def _on_ptx(figure: str) -> str:
    """Renames an expectation's figure: ncu's names without a suffix were the emulator's."""
    was_emulated = metrics.kind_of(figure) == "profiled" and "." not in figure
    return PTX + figure if was_emulated else figure
