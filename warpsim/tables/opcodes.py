"""Which pipes of an SM execute a SASS instruction, by the names in ncu's counters.

On Hopper an H200's counters of 188 launches bear it out (warpsim/docs/counters.md), and seven
profiles in logs/profiles. Opcodes that none of these executes, and the other architectures, are
where the documentation of Nsight Compute ("Metrics Decoder", pipelines), the CUDA Binary Utilities'
instruction set reference and the scheduling tables of nvdisasm have their kind.

How FADD, FMUL and FFMA divide between fmaheavy and fmalite is arbitration, and not known here.
"""

from __future__ import annotations

PIPE = "sm__inst_executed_pipe_"
"""Begins the counters of what each pipe executed."""

PADDING = frozenset({"NOP"})
"""Opcodes that only pad the code to its alignment after the last branch."""

AMPERE = 80

_TABLE = {
    "fma": "FADD FFMA FMUL FADD2 FFMA2 FMUL2 FADD32I FFMA32I FMUL32I FSWZADD IMAD IMUL IDP IDP4A"
    " VIADD",
    "fma fma_type_fp16": "HADD2 HMUL2 HFMA2 HMNMX2 HSETP2 HSET2 HADD2_32 VHMNMX",
    "alu": "IADD3 IADD IADD32I ISETP LEA LOP3 LOP MOV MOV32I SHF SHL SHR ISCADD PRMT SEL FSEL FMNMX"
    " FMNMX3 FSETP FSET IABS ICMP IMNMX VIMNMX VIMNMX3 VIADDMNMX PLOP3 SGXT BMSK P2R R2P F2FP"
    " F2FP32 F2IP I2FP I2I I2IP CS2R CSMTEST LEPC VOTE ELECT R2UR RPCMOV VABSDIFF VABSDIFF4",
    "lsu": "LDG STG LD ST LDS STS LDL STL LDSM STSM MOVM ATOM ATOMG ATOMS RED REDG REDAS LDGSTS"
    " LDGMC LDGDEPBAR ARRIVES SHFL MEMBAR CCTL CCTLL QSPC FENCE STAS",
    "uniform": "UIADD3 UIMAD ULEA ULOP3 USHF UISETP UPLOP3 UPRMT USEL USGXT UBMSK UFLO UPOPC UBREV"
    " UVIADD UVIMNMX UFADD UFFMA UFMUL UFSETP UFSET UFSEL UFMNMX UFRND UF2F UF2FP UF2I UI2F UI2FP"
    " UIABS UIMNMX USHL USHR UP2UR UR2UP",
    "xu": "MUFU FCHK F2I I2F F2F FRND BREV FLO POPC",
    "fp64": "DADD DMUL DFMA DSETP DMNMX",
    "tensor tensor_op_hmma": "HMMA QMMA OMMA HFMA2.MMA HFMA2_MMA",
    "tensor tensor_op_imma": "IMMA BMMA",
    "tensor tensor_op_dmma": "DMMA",
    "tensor tensor_op_hmma tensor_op_gmma": "HGMMA QGMMA",
    "tensor tensor_op_imma tensor_op_gmma": "IGMMA BGMMA",
    "tensor tc": "UTCHMMA UTCQMMA UTCIMMA UTCOMMA",
    "tc": "UTCBAR UTCCP UTCSHIFT UTCATOMSWS",
    "tmem": "LDTM STTM",
    "tma": "UBLKCP UBLKRED UBLKPF UTMALDG UTMASTG UTMAREDG UTMAPF UTMACCTL UTMACMDFLUSH",
    "tex": "CGAERRBAR",
    "cbu": "EXIT BSSY BSYNC BREAK WARPSYNC.ALL CALL YIELD NANOSLEEP",
    "cbu adu": "WARPSYNC RET BRX",
    "adu": "LDC S2R S2UR B2R BAR REDUX CREDUX SYNCS MATCH ERRBAR UCGABAR_ARV USETMAXREG",
    "": "BRA BRXU JMP JMX JMXU BMOV DEPBAR BPT KILL VOTEU NOP PMTRIG ACQBULK ACQSHMINIT"
    " UCGABAR_WAIT CGABAR PREEXIT ENDCOLLECTIVE R2B SETCTAID SETLMEMBASE GETLMEMBASE CCTLT"
    " WARPGROUP WARPGROUPSET WARPGROUPDEPBAR LDCU ULDC UMOV UR2R",
}  # fmt: skip
"""Opcodes by their pipes, the wider pipe first; what no pipe counts is under the empty name."""
_PIPES_OF = {
    opcode: tuple(names.split()) for names, opcodes in _TABLE.items() for opcode in opcodes.split()
}
_BY_LSU = ("SR_TID", "SR_LANEID", "MASK")
"""Special registers that the LSU reads."""

PIPES = (
    "fma", "alu", "lsu", "uniform", "xu", "fp64", "fp16", "tensor", "tc", "tmem", "tma", "tex",
    "cbu", "adu",
)  # fmt: skip
"""In the order in which tables show them."""
NONE, UNKNOWN = "none", "unknown"
GROUPS = (*PIPES, "tensor_op_hmma", NONE, UNKNOWN)
"""What group() answers: of HFMA2.MMA, which multiplies no matrices, the tensor pipe's own name."""


def pipes(opcode: str, text: str, sm: int) -> tuple[str, ...]:
    """The pipes of an instruction, the wider one first; empty for what is executed without.

    opcode: with its modifiers, as in HFMA2.MMA; text: the whole instruction; sm: 90 for sm_90a.
    """
    base = opcode.partition(".")[0]
    if base == "S2R" and any(name in text for name in _BY_LSU):
        return ("lsu",)
    exact = _PIPES_OF.get(".".join(opcode.split(".")[:2]))
    result = exact if exact is not None else _PIPES_OF.get(base, ())
    # Of A100 alone ncu has a counter of the FP16 pipe; later chips have it in FMA.
    return ("fp16",) if sm == AMPERE and "fma_type_fp16" in result else result


def group(opcode: str, text: str, sm: int) -> str:
    """The one of GROUPS that an instruction is listed under; arguments as for pipes()."""
    if opcode.partition(".")[0] not in _PIPES_OF:
        return UNKNOWN
    result = pipes(opcode, text, sm)
    return result[-1] if opcode.startswith("HFMA2") else next(iter(result), NONE)


def known() -> tuple[str, ...]:
    """Every opcode of the table, without modifiers."""
    return tuple(dict.fromkeys(opcode.partition(".")[0] for opcode in _PIPES_OF))
