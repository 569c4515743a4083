"""JSON output of commands: each kind with its version and its schema."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, get_origin

import msgspec

from kernelexp.model.errors import UsageError, suggest
from kernelexp.model.text import CONTROL, quote

FIELD = "schema"
"""Names kind and version, as in `run/1`."""

VERSIONS: dict[str, int] = {}
"""Of kinds that are no longer at their first: a version may gain fields, and the next one begins
where a field goes or changes its meaning."""


def encode(kind: str, values: Any) -> bytes:
    """The values as JSON, each object at the top with its kind and version.

    What is a list gets them in each of its items, and what is a mapping by label in each of its
    values, so that one item can be read without the rest. Characters that JSON may have as they are
    and that a terminal would act on are escaped.
    """
    stamped = _stamp(kind, values)
    try:
        encoded = msgspec.json.encode(stamped, enc_hook=str)
    except UnicodeEncodeError:  # the name of a file that is not UTF-8
        text = json.dumps(msgspec.to_builtins(stamped, enc_hook=str, str_keys=True))
        encoded = re.sub(r"\\udc([89a-f][0-9a-f])", r"\\\\x\1", text).encode()
    formatted = msgspec.json.format(encoded, indent=2).decode()
    return CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", formatted).encode()


def _stamp(kind: str, values: Any) -> Any:
    if isinstance(values, Mapping):
        return {label: _stamp(kind, item) for label, item in values.items()}
    if isinstance(values, list | tuple):
        return [_stamp(kind, value) for value in values]
    fields = msgspec.to_builtins(values, enc_hook=str, builtin_types=(), str_keys=True)
    return {FIELD: name(kind), **fields}


def name(kind: str) -> str:
    """Kind and version, as in `run/1`."""
    return f"{kind}/{VERSIONS.get(kind, 1)}"


def schema(kind: str) -> dict[str, Any]:
    """The JSON Schema of encode()'s output for a kind, derived from the encoded types; UsageError
    for an unknown kind."""
    known = types()
    if kind not in known:
        raise UsageError(f"there is no output {quote(kind)}{suggest(kind, known)}.")
    kind_type = known[kind]
    whole = msgspec.json.schema(kind_type, schema_hook=lambda _: {"type": "string"})
    definitions = whole.pop("$defs", {})
    named = {"properties": {FIELD: {"const": name(kind)}}, "required": [FIELD]}
    if get_origin(kind_type) is list:
        whole["items"] = {"allOf": [whole["items"], named]}
    elif get_origin(kind_type) is dict:
        whole["additionalProperties"] = {"allOf": [whole["additionalProperties"], named]}
    else:
        whole = {"allOf": [whole, named]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": name(kind),
        **whole,
        "$defs": definitions,
    }


def types() -> dict[str, Any]:
    """The type of each kind: a struct, a list of them, or a mapping of them by label."""
    from kernelexp.dossier.emulations import Emulation
    from kernelexp.judge.sweeps import Swept
    from kernelexp.model.arm import Arm
    from kernelexp.model.record import Record
    from kernelexp.project.sections.evaluate import SectionReading
    from kernelexp.report.charts.chart import Chart
    from kernelexp.services import (
        auditing,
        calibration,
        comparisons,
        deciding,
        doctor,
        evaluation,
        explaining,
        inspected,
        kernel_logs,
        listing,
        memory_pictures,
        modelling,
        record_differences,
        validating,
    )
    from kernelexp.services.calibration import Calibrated
    from kernelexp.services.capturing import ProgramCaptures
    from kernelexp.services.check import gates
    from kernelexp.services.execution import Executed
    from kernelexp.services.lines import service
    from kernelexp.services.profiling import Profiling
    from kernelexp.services.recompiling import Recompiled
    from kernelexp.services.recounting import Recounted
    from kernelexp.services.replaying import Replay
    from kernelexp.services.revisions import bisecting, timeline
    from kernelexp.services.run import again, conclusion, sweep
    from kernelexp.services.tasks.assessment import Assessment

    return {
        "run": list[conclusion.Ran],
        "sweep": Swept,
        "sweep-plan": sweep.PlannedSweep,
        "time": evaluation.Evaluation,
        "assessment": Assessment,
        "build": dict[str, Arm],
        "emulate": list[Emulation],
        "exec": Executed,
        "capture": ProgramCaptures,
        "replay": list[Replay],
        "recount": list[Recounted],
        "recompile": list[Recompiled],
        "decisions": deciding.Made,
        "plot": list[Chart],
        "audit": auditing.Audited,
        "bisect": bisecting.Bisected,
        "history": timeline.RevisionTimeline,
        "list": listing.Listed,
        "show": listing.Shown,
        "record": Record,
        "log": list[kernel_logs.Logged],
        "diff": record_differences.Differing,
        "compare": comparisons.Compared | list[comparisons.Compared],
        "explain": explaining.Explained,
        "profile": list[Profiling],
        "sections": list[SectionReading],
        "opportunities": explaining.Offered,
        "lines": list[service.CostedVariant],
        "memory": list[memory_pictures.PicturedVariant],
        "model-validation": validating.ModelValidation,
        "model-refit": calibration.ModelRefit,
        "modelled": list[modelling.ModelledVariant],
        "inspect": inspected.Inspected,
        "verdict": again.Rejudged,
        "check": list[gates.GateFinding],
        "calibrate": Calibrated,
        "doctor": list[doctor.Fact],
    }
