"""The instruction mix, from SASS as cuobjdump prints it."""

from __future__ import annotations

from kernelexp import opcodes
from kernelexp.evidence import instructions

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
    assert instructions.count_opcodes(DUMP, "first") == {"FADD": 1, "LDC": 1, "UTCQMMA": 1}


def test_opcodes_are_grouped_by_pipe_and_an_unknown_one_is_not_hidden() -> None:
    counted = instructions.count_opcodes(DUMP, "second")
    assert instructions.group_by_pipe(counted) == {"TMA": 1, "uniform": 1, "other": 1}


def test_no_opcode_belongs_to_two_pipes() -> None:
    listed = [each for pipe in opcodes._PIPES.values() for each in pipe.split()]
    assert len(listed) == len(set(listed))
