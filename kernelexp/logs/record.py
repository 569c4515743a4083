"""Contents of a record: one run of one experiment, and how its parts belong together."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import msgspec

from kernelexp.facts import metrics
from kernelexp.facts.counters import PTX
from kernelexp.logs.recounts import Recount
from kernelexp.model.arm import Arm, EmulatedEvidence
from kernelexp.model.measurement import Measurement
from kernelexp.model.record import Record, measured_evidence, measurements, with_arms
from kernelexp.model.spelling import spell


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
