"""Programs that do not compile."""

from __future__ import annotations

from kernelexp.evidence.programs import compiling


def test_a_header_of_curand_that_is_missing_is_named_with_its_package() -> None:
    words = "k.cu:2:10: fatal error: curand_kernel.h: No such file or directory"
    assert compiling.absent_package(words).endswith("`pip install 'kernelexp[curand]'`")


def test_other_errors_are_the_compilers_alone() -> None:
    assert compiling.absent_package("fatal error: my.h: No such file or directory") == ""
