"""The metrics that are recorded, under ncu's names for GH100."""

from __future__ import annotations

EXECUTED = "sass__inst_executed_per_opcode_with_modifier_all"
THREADS = "sass__thread_inst_executed_true_per_opcode_with_modifier_all"
"""Threads for which the guard holds."""
PIPES = (
    "adu", "alu", "cbu", "fma", "fma_type_fp16", "fmaheavy", "fmalite", "fp64", "lsu",
    "tensor_op_dmma", "tensor_op_gmma", "tensor_op_hmma", "tensor_op_imma", "tex", "tma",
    "uniform", "xu",
)  # fmt: skip
_CLASSES = (
    "branch", "generic_ld", "generic_st", "global_ld", "global_red", "global_st", "ldc", "ldgsts",
    "ldsm", "local_ld", "local_st", "shared_atom", "shared_ld", "shared_st", "shared_stsm",
    "tma_ld", "tma_st",
)  # fmt: skip
_WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared"
_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared"
_TAGS = "l1tex__t_{}_pipe_lsu_mem_{}_op_{}"
_BULK_READ = "l1tex__m_xbar2l1tex_read_sectors_mem_global_op_tma_ld"
_BULK_WRITTEN = "l1tex__m_l1tex2xbar_write_sectors_mem_global_op"
HARDWARE = (
    "smsp__inst_executed",
    "smsp__thread_inst_executed",
    "smsp__thread_inst_executed_pred_on",
    *(f"smsp__inst_executed_pipe_{pipe}" for pipe in PIPES),
    *(f"smsp__inst_executed_op_{class_}" for class_ in _CLASSES),
    "smsp__sass_inst_executed_op_shared_gmma",
    "smsp__sass_inst_executed_op_global_ld",
    "smsp__sass_inst_executed_op_global_st",
    _WAVEFRONTS,
    *(f"{_WAVEFRONTS}_op_{item}" for item in ("ld", "st", "atom", "gmma", "misc")),
    _CONFLICTS,
    *(f"{_CONFLICTS}_op_{item}" for item in ("ld", "st", "atom", "ldgsts", "misc")),
    *(
        _TAGS.format(what, space, op)
        for space, ops in (("global", ("ld", "st", "atom", "red")), ("local", ("ld", "st")))
        for op in ops
        for what in ("requests", "sectors")
    ),
    _BULK_READ,
    f"{_BULK_READ}_dest_multicast",
    f"{_BULK_WRITTEN}_tma_st",
    f"{_BULK_WRITTEN}_tma_red",
)
"""Sums over the chip: ncu wants .sum behind the name."""
SOURCE = (
    "memory_l1_wavefronts_shared",
    "memory_l1_wavefronts_shared_ideal",
    "memory_l2_theoretical_sectors_global",
    "memory_l2_theoretical_sectors_global_ideal",
    "memory_l1_tag_requests_global",
)
"""Sums over the instructions of ncu's source page."""
EVERY = (*(f"{name}.sum" for name in HARDWARE), *SOURCE, EXECUTED, THREADS)
