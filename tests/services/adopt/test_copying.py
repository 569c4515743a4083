"""Copies that do not compile end in a sentence with what to do."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from kernelexp.evidence.build import Diagnostic
from kernelexp.model.errors import BuildError
from kernelexp.services.adopt import copying


def refused(source: Path, *errors: tuple[int, str]) -> str:
    """The sentence about a compiler that finds these one after the other."""
    return str(error(source, *((source.name, line, message) for line, message in errors)))


def error(source: Path, *errors: tuple[str, int, str]) -> BuildError:
    result = iter(errors)

    def attempt(_texts: Mapping[str, str]) -> tuple[Diagnostic, ...]:
        file, line, message = next(result)
        return (Diagnostic(file=file, line=line, message=message),)

    with pytest.raises(BuildError) as raised:
        copying.compile_copy(copying.read(source), attempt)
    return raised.value


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "kernels/attention/source/k.cu"
    path.parent.mkdir(parents=True)
    path.write_text('#include "tools/own.h"\n__global__ void k(int* x) { *x = OWN; }\n')
    return path


MISSING = (1, "tools/own.h: No such file or directory")


def test_a_header_in_another_folder_of_the_repository_is_named(
    tmp_path: Path, source: Path
) -> None:
    (tmp_path / ".git").mkdir()
    for folder in ("others", "kernels/attention/include"):
        (tmp_path / folder / "tools").mkdir(parents=True)
        (tmp_path / folder / "tools/own.h").write_text("#define OWN 1\n")
    result = refused(source, MISSING, (2, 'identifier "OWN" is undefined'))
    assert f": try --flag=-I{tmp_path}/kernels/attention/include." in result


def test_a_header_that_is_nowhere_is_asked_for(source: Path) -> None:
    result = refused(source, MISSING, (2, 'identifier "OWN" is undefined'))
    assert (
        'headers were not found: "tools/own.h"): name folders of headers with --flag=-I' in result
    )


def test_a_flag_that_nvcc_names_is_the_advice(source: Path) -> None:
    flag = "--expt-relaxed-constexpr"
    message = f"calling a function. The experimental flag '{flag}' can be used to allow this."
    result = refused(source, MISSING, (2, message))
    assert result.endswith(f"can be used to allow this: try --flag={flag}.")


def test_a_name_that_the_including_file_declares_is_told(source: Path) -> None:
    result = refused(source, (2, 'identifier "OWN" is undefined'))
    assert "OWN is declared by no header that it includes: adopt the file that includes" in result


def test_host_code_in_a_header_that_was_found_by_a_flag_is_left_out(source: Path) -> None:
    header = source.parent.parent / "include/tools/own.h"
    header.parent.mkdir(parents=True)
    header.write_text("#include <absent.h>\nconst int OWN = 1;\n")

    def attempt(texts: Mapping[str, str]) -> tuple[Diagnostic, ...]:
        if texts.get("tools/own.h") == "// #include <absent.h>\nconst int OWN = 1;\n":
            return ()
        file = "tools/own.h" if "tools/own.h" in texts else str(header)
        return (Diagnostic(file=file, line=1, message="absent.h: No such file or directory"),)

    copy, left = copying.compile_copy(copying.read(source), attempt)
    assert [item.include for _, item in left] == ["<absent.h>"]
    assert copy.texts["k.cu"] == source.read_text()
    assert header.read_text().startswith("#include")


def test_an_intrinsic_that_cuda_has_no_more_is_named_with_its_successor(source: Path) -> None:
    result = refused(source, (2, 'identifier "__shfl_xor" is undefined'))
    assert result.endswith("write __shfl_xor_sync(0xffffffff, ...) instead.")


def test_an_error_in_pytorch_s_headers_comes_after_the_one_in_the_source(source: Path) -> None:
    undefined = 'identifier "uint32_t" is undefined'
    header = "/include/torch/csrc/python_headers.h"
    alone = error(source, (source.name, 2, undefined))
    absent = (header, 12, "Python.h: No such file or directory")
    with_torch = error(source, absent, (header, 25, "#error Python 2 has reached end-of-life"))
    text = str(copying.with_headers(copying.read(source), alone, with_torch))
    assert text.startswith(f"{source} does not compile: k.cu:2: {undefined}: ")
    assert "try --flag=--pre-include=cstdint. With PyTorch's headers and flags" in text
    assert "python_headers.h:25 needs Python.h, which was not found: install" in text
    assert "end-of-life" not in text


def test_errors_in_the_source_alone_and_with_pytorch_s_headers_are_both_shown(source: Path) -> None:
    alone = error(source, (source.name, 2, 'identifier "uint32_t" is undefined'))
    with_torch = error(source, (source.name, 3, "no instance of fill_fragment"))
    text = str(copying.with_headers(copying.read(source), alone, with_torch))
    assert text.startswith(str(alone))
    assert "PyTorch's headers and flags it does not either: k.cu:3: no instance of" in text


def test_headers_of_a_folder_of_the_same_repository_are_copied(
    tmp_path: Path, source: Path
) -> None:
    """So that the copy builds where the original is not."""
    (tmp_path / ".git").mkdir()
    common, own = tmp_path / "common/tools", tmp_path / "own"
    common.mkdir(parents=True)
    own.mkdir()
    (common / "own.h").write_text('#include "more.h"\n')
    (common / "more.h").write_text("#define OWN 1\n")
    flags = [f"-I{tmp_path}/common", f"-I{tmp_path}/else", "-O3"]
    copy = copying.read(source, copying.folders_of(flags, own))
    assert sorted(copy.texts) == [
        *("common/tools/more.h", "common/tools/own.h", "kernels/attention/source/k.cu"),
    ]
    moved = copying.moved(flags, copy, own, "variants/k/origin")
    assert moved == ("-Ivariants/k/origin/common", flags[1], "-O3")


def test_headers_of_another_place_are_not_copied(tmp_path: Path, source: Path) -> None:
    for folder in (source.parent, tmp_path / "opt/tools"):
        folder.mkdir(parents=True, exist_ok=True)
    (tmp_path / "kernels/attention/.git").mkdir()
    (tmp_path / "opt/tools/own.h").write_text("#define OWN 1\n")
    assert list(copying.read(source, [tmp_path / "opt"]).texts) == ["k.cu"]


def test_a_comment_in_another_encoding_is_no_obstacle(source: Path) -> None:
    source.write_bytes(b"// caf\xe9\n__global__ void k(int* x) { *x = 1; }\n")
    (text,) = copying.read(source).texts.values()
    assert "__global__ void k" in text


def test_a_macro_in_a_pragma_is_told_from_a_name_that_nobody_declares(source: Path) -> None:
    source.write_text("#define OWN 4\n#pragma unroll OWN\nfor (int i = 0; i < OWN; ++i) *x = i;\n")
    result = refused(source, (2, 'identifier "OWN" is undefined'))
    assert "write the value of OWN there, or make it a constant, as in constexpr int OWN" in result


def test_a_header_of_a_library_brings_the_types_that_nvidias_brings(source: Path) -> None:
    source.write_text("#include <cublas_v2.h>\n__global__ void k(__nv_bfloat16* x) { *x = 1; }\n")
    missing = Diagnostic(file=source.name, line=1, message="cublas_v2.h: No such file or directory")
    rounds = iter([(missing,), ()])
    copy, left = copying.compile_copy(copying.read(source), lambda _texts: next(rounds))
    assert left == []
    assert "#include <cuda_bf16.h>" in copy.texts[f"{copying.STUBS}/cublas_v2.h"]
