"""The conditions that evidence was taken under: figures of the same ones compare."""

from __future__ import annotations

from collections.abc import Iterator

from kernelexp.facts.metrics import Kind
from kernelexp.model.arm import Arm, ProfiledEvidence
from kernelexp.model.record import Profile, Record
from kernelexp.model.text import one_line

Conditions = dict[str, str]
"""What figures depend on besides the variant, by name: GPU, driver; empty where not known."""
_MAKER = "NVIDIA "
"""ncu prints a GPU's maker before its name, a document may not."""


def conditions(
    arm: Arm, record: Record | None = None, profile: Profile | None = None
) -> dict[Kind, Conditions]:
    """Returns the conditions that the figures of each kind depend on."""
    result: dict[Kind, Conditions] = {}
    if arm.is_built:
        result["built"] = {"compiler": answer.compiler if (answer := record or profile) else ""}
    if arm.emulated:
        result["emulated"] = {"size": arm.emulated.size, "emulator": arm.emulated.emulator}
    if arm.measured:
        measurement = record.measurement if record else None
        result["measured"] = {
            "GPU": arm.measured.device,
            "driver": measurement.device.driver if measurement else "",
            "problem size": arm.measured.size,
        }
    if arm.profiled:
        result["profiled"] = _of_launch(arm.profiled)
    return result


def _of_launch(evidence: ProfiledEvidence) -> Conditions:
    device = evidence.device or evidence.figures.get("device__attribute_display_name", "")
    result = {
        "GPU": str(device),
        "driver": evidence.driver,
        "profiler": evidence.tool,
        "clock control": evidence.clock_control,
        "cache control": evidence.cache_control,
        "replay": evidence.replay,
        "problem size": evidence.size,
    }
    return {name: one_line(text) for name, text in result.items()}


def different(one: Conditions, other: Conditions) -> Iterator[tuple[str, str, str]]:
    """Each condition that both know and that differs, with its two values."""
    for name in {**one, **other}:
        first, second = one.get(name, ""), other.get(name, "")
        if first and second and first.removeprefix(_MAKER) != second.removeprefix(_MAKER):
            yield name, first, second
