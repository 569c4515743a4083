"""Messages between client and workers, sealed with a SHA-256 that is checked on arrival."""

from __future__ import annotations

import functools
import hashlib
import zlib
from pathlib import Path
from typing import TypeVar

import msgspec

import kernelexp
import warpsim
from kernelexp.evidence.emulate.job import EmulationJob
from kernelexp.evidence.measure.measured import MeasurementQuestion
from kernelexp.model.errors import USAGE, ConfigurationError, EnvironmentFault
from kernelexp.model.experiment import Variant

_PACKAGES = tuple(Path(package.__file__ or "").parent for package in (kernelexp, warpsim))
_SEAL = 32
Answer = TypeVar("Answer")


class BuildTask(msgspec.Struct, frozen=True, kw_only=True, tag="build"):
    """A variant to build."""

    variant: Variant
    key: str
    """The plan's: the same compiler, arguments and environment have the same."""
    timeout_s: float


class EmulateTask(msgspec.Struct, frozen=True, kw_only=True, tag="emulate"):
    """Code to execute; paths of the job are of the client's machine."""

    job: EmulationJob
    files: dict[str, bytes]
    """Contents of `ptx`, `cubin` and `listing` of the job, those that it has."""


class MeasureTask(msgspec.Struct, frozen=True, kw_only=True, tag="measure"):
    """Arms to time on the worker's GPU; paths of the job are of the client's machine."""

    question: MeasurementQuestion
    cubins: dict[str, bytes]
    """By the path that the job has for them."""


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """A task with what it needs to be the same as at home."""

    task: BuildTask | EmulateTask | MeasureTask
    sources: str
    """The digest of the project's files."""
    code: str
    """The digest of kernelexp itself."""


class SentFault(msgspec.Struct, frozen=True, kw_only=True):
    """A KernelexpError."""

    sentence: str
    exit_code: int


class Reply(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer to an order, or why there is none."""

    answer: msgspec.Raw = msgspec.Raw()
    fault: SentFault | None = None


def seal(message: msgspec.Struct) -> bytes:
    """The message, compressed, after its hash."""
    content = zlib.compress(msgspec.msgpack.encode(message), 1)
    return hashlib.sha256(content).digest() + content


def seal_answer(answer: object) -> bytes:
    """The reply of a worker that did what it was to do."""
    return seal(Reply(answer=msgspec.Raw(msgspec.msgpack.encode(answer))))


def seal_fault(sentence: str, exit_code: int) -> bytes:
    """The reply of a worker that could not."""
    return seal(Reply(fault=SentFault(sentence=sentence, exit_code=exit_code)))


def read_order(sealed: bytes) -> Order:
    """EnvironmentFault where what arrived is not what was sent."""
    return msgspec.msgpack.decode(_unseal(sealed), type=Order)


def read_answer(sealed: bytes, kind: type[Answer]) -> Answer:
    """Raises the fault that a reply is; EnvironmentFault where it is not what was sent."""
    reply = msgspec.msgpack.decode(_unseal(sealed), type=Reply)
    if reply.fault:
        error = ConfigurationError if reply.fault.exit_code == USAGE else EnvironmentFault
        raise error(reply.fault.sentence)
    return msgspec.msgpack.decode(reply.answer, type=kind)


def _unseal(sealed: bytes) -> bytes:
    content = sealed[_SEAL:]
    if hashlib.sha256(content).digest() != sealed[:_SEAL]:
        raise EnvironmentFault("a message between this machine and a worker was damaged.")
    return zlib.decompress(content)


@functools.cache
def code() -> str:
    """Returns a digest of this kernelexp's code: two versions may judge or count differently."""
    digest = hashlib.sha256()
    for package in _PACKAGES:
        for path in sorted(package.rglob("*.[cph][py]*")):
            if path.suffix in (".py", ".cpp", ".hpp"):
                digest.update(path.relative_to(package).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:16]
