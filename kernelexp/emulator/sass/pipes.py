"""Which pipes of an SM execute an instruction, by the names in ncu's counters.

On Hopper an H200's counters of 188 launches bear it out (docs/sass-counters.md), and seven profiles
in logs/profiles. Opcodes that none of these executes, and the other architectures, are where the
documentation of Nsight Compute ("Metrics Decoder", pipelines) and the scheduling tables of nvdisasm
have their kind. What no pipe counts, such as BRA, ULDC, UMOV or NOP, has none.

How FADD, FMUL and FFMA divide between fmaheavy and fmalite is arbitration, and not emulated.
"""

from __future__ import annotations

AMPERE = 80

_PIPES = {
    "adu": "LDC S2R S2UR B2R BAR REDUX SYNCS MATCH ERRBAR UCGABAR_ARV USETMAXREG",
    "alu": "IADD3 IADD ISETP LEA LOP3 MOV SHF PRMT SEL FSEL FMNMX FMNMX3 FSETP FSET IABS IMNMX"
    " VIMNMX VIMNMX3 VIADDMNMX PLOP3 SGXT BMSK P2R R2P F2FP F2IP I2FP I2I I2IP CS2R VOTE ELECT R2UR"
    " RPCMOV VABSDIFF VABSDIFF4",
    "cbu": "EXIT BSSY BSYNC BREAK WARPSYNC.ALL CALL YIELD NANOSLEEP",
    "cbu adu": "WARPSYNC RET BRX",
    "fma": "FADD FFMA FMUL FADD2 FFMA2 FMUL2 FSWZADD IMAD IMUL IDP VIADD",
    "fma fma_type_fp16": "HADD2 HMUL2 HFMA2 HMNMX2 HSETP2 HSET2",
    "fp64": "DADD DMUL DFMA DSETP",
    "lsu": "LDG STG LD ST LDS STS LDL STL LDSM STSM MOVM ATOM ATOMG ATOMS RED REDG REDAS LDGSTS"
    " LDGDEPBAR ARRIVES SHFL MEMBAR CCTL FENCE STAS",
    "tensor tensor_op_hmma": "HMMA",
    "tensor_op_hmma": "HFMA2.MMA",
    "tensor tensor_op_imma": "IMMA BMMA",
    "tensor tensor_op_dmma": "DMMA",
    "tensor tensor_op_hmma tensor_op_gmma": "HGMMA QGMMA",
    "tensor tensor_op_imma tensor_op_gmma": "IGMMA BGMMA",
    "tensor tc": "UTCHMMA UTCQMMA UTCIMMA UTCOMMA",
    "tc": "UTCBAR UTCCP UTCSHIFT UTCATOMSWS",
    "tmem": "LDTM STTM",
    "tex": "CGAERRBAR",
    "tma": "UBLKCP UBLKRED UBLKPF UTMALDG UTMASTG UTMAREDG UTMAPF UTMACCTL UTMACMDFLUSH",
    "uniform": "UIADD3 UIMAD ULEA ULOP3 USHF UISETP UPLOP3 UPRMT USEL USGXT UBMSK UFLO UPOPC UBREV"
    " UVIADD UVIMNMX",
    "xu": "MUFU FCHK F2I I2F F2F FRND BREV FLO POPC",
}
_PIPES_OF = {
    opcode: tuple(pipes.split()) for pipes, opcodes in _PIPES.items() for opcode in opcodes.split()
}
_BY_LSU = ("SR_TID", "SR_LANEID", "MASK")
"""Special registers that the LSU reads."""


def pipes(opcode: str, text: str, sm: int) -> tuple[str, ...]:
    """The pipes of an instruction, the wider one first; empty for what is executed without.

    opcode: with its modifiers, as in HFMA2.MMA; text: the whole instruction; sm: 90 for sm_90a.
    """
    base = opcode.partition(".")[0]
    if base == "S2R" and any(name in text for name in _BY_LSU):
        return ("lsu",)
    exact = _PIPES_OF.get(".".join(opcode.split(".")[:2]))
    found = exact if exact is not None else _PIPES_OF.get(base, ())
    # Of A100 alone ncu has a counter of the FP16 pipe; later chips have it in FMA.
    return ("fp16",) if sm == AMPERE and "fma_type_fp16" in found else found
