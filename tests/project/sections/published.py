"""The figures of a published profile, typed once more from its document.

Source: stephendliang/siglip, "Making It Faster — Advanced Profiling", sections 1 to 8: a fused FP8
GEMM of [928256, 768] x [768, 768]^T on a B200, 0.579 ms, 1892 TFLOPS. Amounts are rounded as there.
"""

from __future__ import annotations

from kernelexp.model.arm import ProfiledEvidence

_ELAPSED = "avg.pct_of_peak_sustained_elapsed"
_TMA = "l1tex__m_xbar2l1tex_read_sectors_mem_global_op_tma_ld"
_TC = "l1tex__data_pipe_tc_wavefronts"

TENSOR = {
    f"sm__pipe_tc_cycles_active.{_ELAPSED}": 50.1,
    f"sm__pipe_tensor_cycles_active.{_ELAPSED}": 48.2,
    f"sm__mem_tensor_cycles_active.{_ELAPSED}": 49.3,
    "sm__inst_executed_pipe_tc.sum": 337_440,
    "sm__inst_executed_pipe_tc_scope_2cta.sum": 337_292,
    "sm__inst_executed_pipe_tensor.sum": 261_072,
    "smsp__cycles_active.avg": 908_593,
    "smsp__cycles_elapsed.avg": 935_850,
}
PIPES = {
    "smsp__inst_executed.sum": 122.6e6,
    "sm__inst_executed_pipe_fma.sum": 52_584_884,
    "sm__inst_executed_pipe_fmaheavy.sum": 35_578_191,
    "sm__inst_executed_pipe_fmalite.sum": 17_006_693,
    "sm__inst_executed_pipe_alu.sum": 47_497_571,
    "sm__inst_executed_pipe_lsu.sum": 12_780_392,
    "sm__inst_executed_pipe_cbu.sum": 2_439_867,
    "sm__inst_executed_pipe_adu.sum": 1_214_594,
    "sm__inst_executed_pipe_tmem.sum": 696_192,
    "sm__inst_executed_pipe_tma.sum": 261_072,
}
CONFLICTS = {
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum": 5_370_403,
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum": 3_209_846,
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum": 16_511_473,
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum": 14_349_510,
}
MULTICAST = {
    f"{_TMA}.sum": 133_668_864,
    f"{_TMA}_dest_multicast.sum": 0,
    f"{_TMA}_dest_self.sum": 133_668_864,
}
TMEM = {
    "sm__mem_tensor_reads.sum": 267.34e6,
    "sm__mem_tensor_reads_op_utcmma_matrix_c.sum": 256.20e6,
    "sm__mem_tensor_reads_op_ldt.sum": 11.14e6,
    f"{_TC}.sum": 33_417_216,
    f"{_TC}_mem_shared_op_utcmma_matrix_a.sum": 16_708_608,
    f"{_TC}_mem_shared_op_utcmma_matrix_b_scope_2cta.sum": 16_708_608,
}
STALLS = {
    "selected": 22.82,
    "long_scoreboard": 4.71,
    "wait": 1.52,
    "sleeping": 0.94,
    "barrier": 0.80,
    "short_scoreboard": 0.57,
    "branch_resolving": 0.35,
    "no_instruction": 0.22,
    "not_selected": 0.20,
    "math_pipe_throttle": 0.10,
    "dispatch_stall": 0.06,
    "mio_throttle": 0.04,
    "drain": 0.0,
    "membar": 0.0,
}
LATENCIES = {
    "long_scoreboard": 390_153,
    "wait": 126_949,
    "selected": 118_918,
    "sleeping": 78_840,
    "barrier": 68_312,
    "short_scoreboard": 47_227,
    "branch_resolving": 28_717,
    "no_instruction": 18_123,
    "not_selected": 15_241,
    "math_pipe_throttle": 8_251,
    "dispatch_stall": 4_782,
}
GLOBAL = {
    "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio": 32,
    "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio": 12.80,
}

FIGURES: dict[str, float | str] = {
    **TENSOR,
    **PIPES,
    **CONFLICTS,
    **MULTICAST,
    **TMEM,
    **{
        f"smsp__warps_issue_stalled_{name}.avg.pct_of_peak_sustained_active": value
        for name, value in STALLS.items()
    },
    **{
        f"smsp__average_warp_latency_issue_stalled_{name}.ratio": value
        for name, value in LATENCIES.items()
    },
    **GLOBAL,
}

EVIDENCE = ProfiledEvidence(
    entry="patch_embed_gemm", figures=FIGURES, device="B200", capability="10.0"
)
