"""Builds variants to PTX, cubin and SASS, each once per identity.

The identity is a hash of everything that a build depends on: compiler, arguments, environment, and
every file that the compiler reports reading. It is the same in another folder and on another
machine.
"""

from kernelexp.evidence.build.combined import code_digest
from kernelexp.evidence.build.diagnosis import Diagnostic, first_error, iter_errors
from kernelexp.evidence.build.planning import Plan, compiler_flags
from kernelexp.evidence.build.service import (
    LIMIT_S,
    Builder,
    build,
    build_one,
    compilers_s,
    make_plans,
    unlisted,
)
from kernelexp.evidence.build.store import (
    CACHE,
    Artefacts,
    ProgramArtefacts,
    artefacts,
    folder_of,
    keep,
    kept,
    note_alike,
    own_files,
    program,
    with_builds_here,
)

__all__ = [
    "CACHE",
    "LIMIT_S",
    "Artefacts",
    "Builder",
    "Diagnostic",
    "Plan",
    "ProgramArtefacts",
    "artefacts",
    "build",
    "build_one",
    "code_digest",
    "compiler_flags",
    "compilers_s",
    "first_error",
    "folder_of",
    "iter_errors",
    "keep",
    "kept",
    "make_plans",
    "note_alike",
    "own_files",
    "program",
    "unlisted",
    "with_builds_here",
]
