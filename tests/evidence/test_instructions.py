"""The instruction mix, from SASS as cuobjdump prints it."""

from __future__ import annotations

from kernelexp.evidence.code import built
from warpsim.tables import opcodes

DUMP = """
		Function : first
        /*0000*/                   LDC R1, c[0x0][0x37c] ;          /* 0x0000df00ff017b82 */
                                                                    /* 0x000fe20000000800 */
        /*0010*/              @!P0 FADD R5, R0, 1 ;                 /* 0x3f80000000057421 */
        /*0020*/              @UP1 UTCQMMA.2CTA gdesc[UR4] ;        /* 0x3f80000000057421 */
        /*0030*/                   NOP;                             /* 0x0000000000007918 */
		..........

		Function : second
        /*0000*/                   UTMALDG.2D [UR8], [UR4] ;        /* 0x000000080400 */
        /*10010*/                  FROB R1 ;                        /* 0x000000080400 */
        /*10020*/                  UIADD3 UR4, UR4, 0x1, URZ ;      /* 0x000000080400 */
"""


def test_the_opcodes_of_one_entry_are_counted_without_their_modifiers() -> None:
    assert built.count_opcodes(DUMP, "first") == {"FADD": 1, "LDC": 1, "UTCQMMA": 1}


def test_instructions_are_counted_by_pipe_and_an_unknown_one_is_not_hidden() -> None:
    counted = built.count_pipes(DUMP, ["second"])
    assert counted == {"uniform": 1, "tma": 1, "unknown": 1}
    assert built.count_pipes(DUMP, ["first"]) == {"fma": 1, "tensor": 1, "adu": 1}


def test_the_static_counts_are_grouped_as_ncu_counts_what_is_executed() -> None:
    dump = """
        code for sm_80
		Function : k
        /*0000*/                   S2R R0, SR_TID.X ;
        /*0010*/                   S2R R1, SR_CTAID.X ;
        /*0020*/                   VIADD R1, R1, 0x1 ;
        /*0030*/                   R2UR UR4, R1 ;
        /*0040*/                   UMOV UR5, 0x400 ;
        /*0050*/                   HFMA2.MMA R2, -RZ, RZ, 0, 0 ;
        /*0060*/                   HFMA2 R2, R2, R2, R2 ;
        /*0070*/                   FLO.U32 R3, R2 ;
"""
    assert built.sm_of(dump) == 80
    counted = built.count_pipes(dump, ["k"])
    assert counted == {
        "fma": 1,
        "alu": 1,
        "lsu": 1,
        "xu": 1,
        "fp16": 1,
        "adu": 1,
        "tensor_op_hmma": 1,
        "none": 1,
    }


def test_no_opcode_stands_twice_in_the_table() -> None:
    listed = [part for names in opcodes._TABLE.values() for part in names.split()]
    assert len(listed) == len(set(listed))
    assert {pipe for names in opcodes._TABLE for pipe in names.split()[:1]} <= {*opcodes.GROUPS}
