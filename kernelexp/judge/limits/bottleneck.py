"""Bottleneck of a kernel, as an expert's first sentence: the grid, a limit, or latency; and what
holds its clock."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from kernelexp.facts.derived import READY, stalls
from kernelexp.judge.limits.bounds import NEAR, Use, nearest
from kernelexp.judge.limits.case import Case
from kernelexp.judge.limits.floors import OF_CHIP, Resource, floors
from kernelexp.judge.limits.opportunity import GLOBAL_ATOMICS, Opportunity
from kernelexp.model.arm import Arm

BOUND = 80.0
"""Percent of a limit from which ncu says that a kernel is bound by it."""
LARGE = 10.0
"""Percent of the time from which a cause is named before the limit that it makes busy."""
FEW_WARPS = 0.25
"""Of the warps that an SM holds, the share up to which a kernel that no limit holds is said to have
few."""
_FLOORS = 3
_MOST = 0.5
"""Of a cause, the share above which its line is named with it."""
FULL_CLOCK = 0.97
"""Of the chip's highest clock, from which nothing is said of what holds it."""
_OTHER_GRID = 0.01
_TURNS = 70.0
"""Percent of the time that tensor cores and an arithmetic pipe are busy together, from which they
are said to take turns where neither is near its limit."""
_LEAST_TURN = 25.0
_ABOUT = 0.1
"""Relative change below which needs that are about so long are not said to differ."""
_OF_DATA_PIPE: tuple[Resource, ...] = ("shared memory", "L1 tag stage", "L1")
_ARITHMETIC: tuple[Resource, ...] = ("XU pipe", "ALU pipe", "FMA pipe")
BUSY = 0.9
"""Share of the SMs' time with work below which the grid is named first."""


class GridShare(msgspec.Struct, frozen=True, kw_only=True):
    """The share of the chip that a grid fills."""

    ctas: int
    sms: int
    per_sm: int
    """CTAs that an SM holds at once."""
    waves: float
    busy: float
    """Of 1, the most that the chip can use of any limit: the SM with most CTAs, which share its
    units, is done last. Not the share of a last wave: an SM with 3 CTAs of the 8 that it holds may
    use as much as one with 8."""
    warps_per_sm: int
    """That an SM has at once, at most."""

    @property
    def most(self) -> int:
        """CTAs of the SM that has most of them."""
        return -(-self.ctas // self.sms)


def grid(case: Case) -> GridShare | None:
    """Returns the grid's share of the chip; None where the chip or the grid is not known."""
    build = case.arm.build
    if case.chip is None or build is None or not case.ctas or not build.occupancy.ctas_per_sm:
        return None
    sms, per_sm = int(case.chip.sms.value), build.occupancy.ctas_per_sm
    waves = case.ctas / (sms * per_sm)
    busy = case.ctas / (sms * math.ceil(case.ctas / sms))
    warps = -(-build.resources.threads // 32)
    return GridShare(
        ctas=case.ctas,
        sms=sms,
        per_sm=per_sm,
        waves=waves,
        busy=busy,
        warps_per_sm=warps * min(per_sm, -(-case.ctas // sms)),
    )


def waits(arm: Arm) -> dict[str, float]:
    """Percent of the warps' time by reason to wait, largest first, without when they issue or
    could."""
    return {key: value for key, value in stalls(arm).items() if key not in READY}


def conclude(
    case: Case,
    known: Sequence[Use],
    whose: str = "This kernel",
    gains: Sequence[Opportunity] = (),
) -> str:
    """The first sentences: what the grid leaves idle, the largest cause among `gains`, then the
    limit that is nearest."""
    idle, cause = of_grid(case), _cause(gains)
    first = _of_cause(case, cause, "Then" if idle else "Largest cost") if cause else ""
    words = (idle, first, _of_limit(case, known, whose, cause), _of_atomics(gains), of_power(case))
    return " ".join(filter(None, words))


def _cause(gains: Sequence[Opportunity]) -> Opportunity | None:
    """The first that a conclusion may begin with."""
    large = (gain for gain in gains if gain.cause and (gain.percent or 0.0) >= LARGE)
    return next(large, None)


def _of_atomics(gains: Sequence[Opportunity]) -> str:
    """Says that global atomics, which no known limit covers, may take longer."""
    atomics = next((gain for gain in gains if gain.rule == GLOBAL_ATOMICS), None)
    if atomics is None:
        return ""
    where = f" at {atomics.line.rpartition('/')[2]}" if atomics.part > _MOST else ""
    return f"Its global atomics{where} may take longer: those to one address wait for each other."


def _of_cause(case: Case, cause: Opportunity, order: str) -> str:
    where = f" at {cause.line.rpartition('/')[2]}" if cause.part > _MOST else ""
    of = "the time" if case.time_s else "the least time that it needs"
    much = f"{'at most' if cause.at_most else 'about'} {cause.percent:.1f}% of {of}"
    hidden = " where nothing hides it" if cause.hidden else ""
    return f"{order}: {cause.cause}{where}, {much}{hidden}."


def of_latency(
    case: Case, known: Sequence[Use], whose: str, cause: Opportunity | None = None
) -> str:
    """Says what a kernel that no limit holds waits for; empty where one does, or all is unknown."""
    near = nearest(known)
    if near is None or _of_allowed(case, near.percent or 0.0) >= NEAR:
        return ""
    if not is_counted(known):
        return f"{whose} needs {_share(near)} of {spell(near)}: {UNCOUNTED}."
    waits = _waits(case.arm)
    reason = f": its warps wait {waits}" if waits else _turns(known) or _unknown(case)
    if cause and cause.is_of_accesses and not waits:
        reason = ", likely that of these accesses"
    return f"{whose} waits for latency{reason}."


def allowed(case: Case) -> float:
    """The share of any limit that the grid can use, where it leaves SMs idle; else 1."""
    share = grid(case)
    return 1.0 if share is None or share.busy >= BUSY else share.busy


def allowed_of(before: Case, after: Case) -> tuple[float, float]:
    """Returns two arms' shares by one measure: of both where the grid of either leaves SMs idle."""
    was, now = grid(before), grid(after)
    if min(allowed(before), allowed(after)) == 1.0:
        return 1.0, 1.0
    return was.busy if was else 1.0, now.busy if now else 1.0


def _of_allowed(case: Case, percent: float) -> float:
    return percent / allowed(case)


def of_grid(case: Case) -> str:
    """Says what the grid leaves idle; empty where it fills the chip, or nothing is known."""
    share = grid(case)
    if share is None or share.busy >= BUSY:
        return ""
    limit = f"so that no limit can be used beyond {100 * share.busy:.1f}%"
    if share.ctas < share.sms:
        ctas = "only CTA leaves" if share.ctas == 1 else f"{share.ctas:,} CTAs leave"
        return (
            f"The grid comes first: its {ctas} {share.sms - share.ctas} of "
            f"{share.sms} SMs without work, {limit}."
        )
    return (
        f"The grid comes first: {share.ctas:,} CTAs on {share.sms} SMs, {share.most} on some and "
        f"{share.most - 1} on others, {limit} if all do the same work."
    )


def is_same_grid(before: Case, after: Case) -> bool:
    """Whether the grids of two arms leave as much of the chip idle."""
    was, now = grid(before), grid(after)
    return was is None or now is None or abs(was.busy - now.busy) < _OTHER_GRID


def of_same_grid(case: Case) -> str:
    """Says what both arms' grids leave idle: no difference, so that it does not come first."""
    share = grid(case)
    if share is None or share.busy >= BUSY:
        return ""
    return (
        f"The {share.ctas:,} CTAs of either grid can use {100 * share.busy:.1f}% of any limit of "
        f"{share.sms} SMs."
    )


def of_grids(before: Case, after: Case) -> str:
    """Says what a candidate's grid leaves idle, and the baseline's; empty where they are alike."""
    was, now = grid(before), grid(after)
    words = of_grid(after)
    if was is None or now is None or is_same_grid(before, after):
        return ""
    if words:
        return f"{words} The baseline's {was.ctas:,} CTAs allow {100 * was.busy:.1f}%."
    if was.busy >= BUSY:
        return ""
    own = f"the candidate's {now.ctas:,} allow {100 * now.busy:.1f}%"
    return f"{of_grid(before)} That is the baseline's; {own}."


def _of_limit(
    case: Case, known: Sequence[Use], whose: str, cause: Opportunity | None = None
) -> str:
    near = nearest(known)
    if near is None or near.percent is None:
        return _of_floors(case, known, "Its" if whose == "This kernel" else f"{whose}'s")
    share, of_allowed = _share(near), _of_allowed(case, near.percent)
    if of_allowed > near.percent:
        share += f", {of_allowed:.0f}% of what the grid allows"
    if near.percent >= BOUND:
        return f"{whose} is bound by {spell(near)}: {share} of the peak{_how(near)}."
    if of_allowed >= NEAR:
        return (
            f"{whose} is nearest to {spell(near)}, which likely limits it: {share} of the peak"
            f"{_how(near)}."
        )
    if not is_counted(known):
        return of_latency(case, known, whose)
    return (
        f"{whose} is below {NEAR:.0f}% of every known limit (most: {spell(near)}, {share}"
        f"{_how(near)}). {of_latency(case, known, 'It', cause)}"
    )


UNCOUNTED = "what it executes was not counted, so that no other limit is known"


def is_counted(known: Sequence[Use]) -> bool:
    """Whether any use is from what was executed: time and useful work alone say of no other limit
    that it is far."""
    return any(use.kind in ("emulated", "profiled") for use in known)


def _turns(known: Sequence[Use]) -> str:
    """Says that tensor cores and an arithmetic pipe are busy for most of the time only together."""
    shares = {use.resource: use.percent or 0.0 for use in known}
    tensor = shares.get("tensor cores", 0.0)
    pipe = max(_ARITHMETIC, key=lambda name: shares.get(name, 0.0))
    other = shares.get(pipe, 0.0)
    if min(tensor, other) < _LEAST_TURN or tensor + other < _TURNS:
        return ""
    return (
        f", or its phases do not overlap: the tensor cores ({tensor:.1f}%) and the {pipe} "
        f"({other:.1f}%) are busy for {tensor + other:.0f}% of the time if they take turns"
    )


def _unknown(case: Case) -> str:
    """Says why latency is likely not hidden, where no profile says what warps wait for."""
    share, build = grid(case), case.arm.build
    if case.is_specialised:  # few warps are its design
        return ", or a limit that is not known"
    if share and build and share.warps_per_sm <= FEW_WARPS * build.occupancy.warps_limit:
        warps = -(-build.resources.threads // 32)
        return (
            f", with at most {share.warps_per_sm} of {build.occupancy.warps_limit} warps on an SM "
            f"to hide it ({share.ctas:,} CTAs of {warps} {'warp' if warps == 1 else 'warps'} on "
            f"{share.sms} SMs)"
        )
    return ", or a limit that is not known"


def _share(use: Use) -> str:
    """Spells the share of the time: useful work alone is the least that a limit has to do."""
    percent = f"{'about ' * use.rough}{use.percent:.1f}%"
    return percent if use.kind in ("profiled", "emulated") else f"at least {percent}"


def _how(use: Use) -> str:
    """Says how far a share can be trusted: scaled counts are those of a full problem whose tiles do
    what they do at the small sizes."""
    return ", by scaled counts" if use.kind == "emulated" else ""


def _of_floors(case: Case, known: Sequence[Use], whose: str) -> str:
    """Says, without a time, which limit needs longest, and how much less the next."""
    timed = case.arm.measured
    reason = f"Timed at size '{timed.size}' only" if timed and timed.time_us else "Not timed"
    longest = sorted(known, key=lambda use: -(use.floor_ms or 0.0))[:_FLOORS]
    longest = [use for use in longest if use.floor_ms]
    if not case.counters or case.ratios_of or not longest:
        least = ""
        why = f" ({case.ratios_why})" if case.ratios_why else ""
        if longest:
            name = spell(longest[0])
            verb = "need" if name.endswith(("cores", "slots")) or "requests" in name else "needs"
            least = f"; {name} alone {verb} {longest[0].floor_ms:.3g} ms"
        return (
            f"{reason}, and its counts are not known for {case.of_size}{why}, so that nothing says "
            f"what limits it{least}.{_of_ratios(case, whose)}"
        )
    words = [f"{spell(use)} for {use.floor_ms:.3g} ms" for use in longest]
    words[0] = words[0].replace(" for ", f" busy for {_least(longest[0])} ")
    return f"{reason}. {whose} work keeps {', '.join(words)}."


def _least(*known: Use) -> str:
    return "about" if any(use.rough for use in known) else "at least"


def of_both(
    before: Sequence[Use], after: Sequence[Use], allowed: tuple[float, float] = (1.0, 1.0)
) -> str:
    """Says, without a time, what two arms keep busy for longest; empty where that is not counted.
    `allowed` is the share of the SMs that the grid of each can use."""

    def least_ms(use: Use, share: float) -> float:
        return (use.floor_ms or 0.0) / (1.0 if use.resource in OF_CHIP else share)

    needs = {
        use.resource: (least_ms(use, allowed[0]), least_ms(other, allowed[1]))
        for use, other in zip(before, after, strict=True)
        if use.floor_ms and other.floor_ms
    }
    if not needs or not (is_counted(before) and is_counted(after)):
        return ""
    longest = [max(needs, key=lambda name: needs[name][side]) for side in (0, 1)]
    was, now = (needs[name][side] for side, name in enumerate(longest))
    change = 100 * (now / was - 1)
    own = zip((before, after), longest, strict=True)
    ends = [next(use for use in side if use.resource == name) for side, name in own]
    least, first = _least(*ends), spell(ends[0])
    is_about = least == "about" and abs(change) < 100 * _ABOUT
    is_same = f"{was:.3g}" == f"{now:.3g}"
    if longest[0] == longest[1] and (is_about or is_same):
        needed = f"{was:.3g} ms in either" if is_same else f"{was:.3g}, then {now:.3g} ms"
        return f"Not timed. Both arms keep {first} busy for longest: {least} {needed}."
    by = f" ({change:+.1f}%)" if least != "about" else ""
    same = "" if longest[0] == longest[1] else f"{spell(ends[1])} "
    left = needs.keys() - {*longest, *(_OF_DATA_PIPE if "L1 data pipe" in needs else ())}
    others = sorted(left, key=lambda name: -max(needs[name]))[: _FLOORS - 1]
    rest = "".join(
        f"; {spell(Use(resource=name))} {needs[name][0]:.3g}, then {needs[name][1]:.3g} ms"
        for name in others
        if f"{needs[name][0]:.3g}" != f"{needs[name][1]:.3g}"
    )
    where = " on the SMs that have CTAs" if min(allowed) < 1.0 else ""
    return (
        f"Not timed. The baseline keeps {first} busy for {least} "
        f"{was:.3g} ms, the candidate {same}for {now:.3g} ms{by}{rest}{where}."
    )


def _of_ratios(case: Case, whose: str) -> str:
    """Says which units of an SM the counts of a small size keep busy for longest."""
    if not case.ratios_of or not case.counters:
        return ""
    counted = msgspec.structs.replace(case, ratios_of="", flops=0, bytes=0)
    units = sorted(floors(counted), key=lambda floor: -floor.seconds)[:2]
    if not units or not units[0].seconds:
        return ""
    who = "it" if whose == "Its" else "the candidate"
    busiest, *others = (spell(Use(resource=floor.resource)) for floor in units)
    share = f", then {others[0]} ({100 * units[1].seconds / units[0].seconds:.0f}% as long)"
    share = share if others else ""
    return f" At size '{case.ratios_of}' {who} keeps {busiest} busy for longest{share}."


def spell(use: Use) -> str:
    """Spells a resource with its article: `the tensor cores`, `L2`."""
    plain = ("L1", "L2", "LSU", "shared memory", "device memory", "L1 to L2")
    words = {"L1 to L2": "the requests of L1 to L2", "LSU": "the LSU (its queue)"}
    return words.get(use.resource) or ("" if use.resource in plain else "the ") + use.resource


_MEANT = {
    "long scoreboard": "global or tensor memory (long scoreboard)",
    "short scoreboard": "shared memory (short scoreboard)",
    "lg throttle": "the LSU's queue for global memory (lg throttle)",
    "mio throttle": "the queue of shared memory and special functions (mio throttle)",
    "barrier": "CTA barriers",
    "gmma": "MMAs of the warpgroup (gmma)",
    "wait": "the fixed latency of the instruction before (wait)",
    "math pipe throttle": "a busy arithmetic pipe (math pipe throttle)",
    "no instruction": "instructions to be fetched (no instruction)",
    "sleeping": "the end of a nanosleep (sleeping)",
}


def _waits(arm: Arm) -> str:
    """The two largest stalls, in words."""
    most = [item for item in waits(arm).items() if item[1]][:2]
    words = [f"{value:.0f}% of their time for {_MEANT.get(key, key)}" for key, value in most[:1]]
    words += [f"{value:.0f}% for {_MEANT.get(key, key)}" for key, value in most[1:]]
    return " and ".join(words)


def of_power(case: Case) -> str:
    """Says what holds the clock down; empty where nothing does."""
    if not case.time_s or not case.power_capped or case.chip is None or not case.clock_hz:
        return ""
    if case.clock_hz > FULL_CLOCK * case.chip.clock.value:
        return ""
    return (
        f"Power holds its clock at {case.clock_hz / 1e6:,.0f} of "
        f"{case.chip.clock.value / 1e6:,.0f} MHz; shares are of the peaks at that clock."
    )
