"""ncu's session page: which ncu recorded a report, and with which control of clocks and caches."""

from __future__ import annotations

import re

import msgspec

from kernelexp.model.arm import ProfiledEvidence

# ncu's defaults, where its command line does not say otherwise.
_DEFAULTS = {"clock": "base", "cache": "all"}


class ProfilingSession(msgspec.Struct, frozen=True, kw_only=True):
    """The settings that a report was recorded with; empty where its page does not say."""

    tool: str = ""
    """ncu with its version."""
    clock_control: str = ""
    cache_control: str = ""
    replay: str = ""


def is_page(head: str) -> bool:
    """Whether a text begins as a session page does, after ncu's own messages."""
    return re.search(r'^(?:Launch Settings|"Launch Attribute","Value")\s*$', head, re.M) is not None


def read(text: str) -> ProfilingSession:
    """The session of a page that `ncu --csv --page session` printed; any text has one."""
    version = re.search(r'"Nsight Compute Target","(\d+(?:\.\d+)+)', text)
    line = re.search(r'^"Profiler Command Line","(.*)"\s*$', text, re.M)
    if line is None:
        return ProfilingSession(tool=f"ncu {version[1]}" if version else "")
    return ProfilingSession(
        tool=f"ncu {version[1]}" if version else "",
        clock_control=_control(line[1], "clock"),
        cache_control=_control(line[1], "cache"),
        replay=_option(line[1], "replay-mode") or "kernel",
    )


def _control(line: str, what: str) -> str:
    return _option(line, f"{what}-control") or _DEFAULTS[what]


def _option(line: str, name: str) -> str:
    match = re.search(rf"\s--{name}[= ]([a-z-]+)", line)
    return match[1] if match else ""


def complete(evidence: ProfiledEvidence, session: ProfilingSession) -> ProfiledEvidence:
    """The evidence with what it did not say of its recording."""
    return msgspec.structs.replace(
        evidence,
        tool=evidence.tool or session.tool,
        clock_control=evidence.clock_control or session.clock_control,
        cache_control=evidence.cache_control or session.cache_control,
        replay=evidence.replay or session.replay,
    )
