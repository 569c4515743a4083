"""Which pipes of a Hopper SM execute an instruction, by the names in ncu's counters.

An H200's counters of 188 launches bear it out (docs/sass-counters.md); opcodes that none of them
executes stand with those of their kind. What no pipe counts, such as BRA, ULDC, UMOV or NOP, has
none.
"""

from __future__ import annotations

from kernelexp.emulator.sass.syntax import Instruction

_PIPES = {
    "adu": "LDC S2R S2UR B2R BAR REDUX SYNCS MATCH ERRBAR UCGABAR_ARV USETMAXREG",
    "alu": "IADD3 ISETP LEA LOP3 MOV SHF PRMT SEL FSEL FMNMX FSETP FSET IABS IMNMX VIMNMX VIMNMX3"
    " VIADDMNMX PLOP3 SGXT BMSK P2R R2P F2FP I2FP CS2R VOTE ELECT R2UR RPCMOV VABSDIFF VABSDIFF4",
    "cbu": "EXIT BSSY BSYNC BREAK WARPSYNC.ALL CALL YIELD NANOSLEEP",
    "cbu adu": "WARPSYNC RET BRX",
    "fma": "FADD FFMA FMUL IMAD VIADD",
    "fma fma_type_fp16": "HADD2 HMUL2 HFMA2",
    "fp64": "DADD DMUL DFMA DSETP",
    "lsu": "LDG STG LD ST LDS STS LDL STL LDSM STSM MOVM ATOM ATOMG ATOMS RED REDG LDGSTS LDGDEPBAR"
    " ARRIVES SHFL MEMBAR CCTL FENCE STAS",
    "tensor_op_hmma": "HMMA HFMA2.MMA",
    "tensor_op_imma": "IMMA",
    "tensor_op_hmma tensor_op_gmma": "HGMMA QGMMA",
    "tensor_op_imma tensor_op_gmma": "IGMMA",
    "tex": "CGAERRBAR",
    "tma": "UBLKCP UBLKRED UBLKPF UTMALDG UTMASTG UTMAREDG UTMAPF UTMACCTL UTMACMDFLUSH",
    "uniform": "UIADD3 UIMAD ULEA ULOP3 USHF UISETP UPLOP3 UPRMT USEL USGXT UBMSK UFLO UPOPC UBREV"
    " UVIADD UVIMNMX",
    "xu": "MUFU FCHK F2I I2F F2F FRND BREV FLO POPC",
}
_PIPES_OF = {
    opcode: tuple(pipes.split()) for pipes, opcodes in _PIPES.items() for opcode in opcodes.split()
}


def pipes(ins: Instruction) -> tuple[str, ...]:
    """The pipes of an instruction, the wider one first; empty for what is executed without."""
    if ins.base == "S2R" and any(name in ins.text for name in ("SR_TID", "SR_LANEID", "MASK")):
        return ("lsu",)
    exact = _PIPES_OF.get(".".join(ins.opcode.split(".")[:2]))
    return exact if exact is not None else _PIPES_OF.get(ins.base, ())
