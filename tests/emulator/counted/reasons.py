"""Why a count is not ncu's, where it is not: warpsim/docs/counters.md says more of each."""

from __future__ import annotations

import re

from .golden import Counted

POLLING = "time decides how often it is asked"
ARBITRATION = "hardware's counter of conflicts has those with bulk copies too"
PREDICATE = "ncu counts LDGSTS.BYPASS wrongly where P0 is its guard or its operand"
MASK = "hardware's counters have a WARPSYNC with a mask once more than ncu's by opcode"
_ASKING = ("SYNCS.PHASECHK.TRANS64.TRYWAIT", "USETMAXREG.TRY_ALLOC.CTAPOOL")
"""What is executed until something has happened, in a loop with what follows."""
_LOOPS = re.compile(
    r"(executed|threads) (SYNCS\.PHASECHK\.TRANS64\.TRYWAIT|USETMAXREG\.TRY_ALLOC\.CTAPOOL|BRA"
    r"|YIELD|NOP|PLOP3\.LUT|SHF\.L\.U32|ULEA|VIADD|SEL|ISETP\.LT\.U32\.AND|ISETP\.GE\.AND|IADD3"
    r"|HFMA2\.MMA|CCTL\.IVALL|BSYNC)|smsp__(thread_)?inst_executed.*"
)
_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_"
_SOURCE = r"memory_l1_wavefronts_shared(_ideal)?|memory_l2_theoretical_sectors_global(_ideal)?"
_NAMED = (
    ("conformance", r"cp_async", _SOURCE, PREDICATE),
    (
        "conformance",
        r"remote_arrive \d",
        _SOURCE
        + "|smsp__inst_executed_op_shared_ld|l1tex__t_(requests|sectors)_pipe_lsu_mem_global_op_st",
        POLLING,
    ),
    ("public", r"shfl_scan_test", r"smsp__(thread_)?inst_executed(_pred_on|_pipe_cbu)?", MASK),
)


def reason(group: str, name: str, what: str, figures: tuple[int, int], counted: Counted) -> str:
    """Why `what`, a metric or an opcode of a launch, may have these figures, (emulated, ncu's);
    empty if it may not."""
    mine, ncu = figures
    if group == "hopper" and what.startswith(_CONFLICTS) and ncu >= mine:
        return ARBITRATION
    if any(item in counted.executed for item in _ASKING) and _LOOPS.fullmatch(what):
        return POLLING
    return next(
        (
            why
            for of, launch, metric, why in _NAMED
            if of == group and re.fullmatch(launch, name) and re.fullmatch(metric, what)
        ),
        "",
    )
