"""Profiles that were taken elsewhere: one file or several, and which launch of them."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest
from support import Kx

from kernelexp.evidence.profile import imports
from kernelexp.logs import profiles
from kernelexp.model import errors
from kernelexp.model.errors import EnvironmentFault, UsageError

DATA = Path(__file__).parents[2] / "data" / "ncu"
RAW, DETAILS, SASS = (DATA / name for name in ("raw.csv", "details.csv", "source-sass.csv"))
CUDA = DATA / "source-cuda-sass.csv"
TIME = "gpu__time_duration.sum"


def test_files_of_one_report_are_one_launch_with_figures_advice_and_lines() -> None:
    result = imports.read([SASS, DETAILS, RAW, CUDA], launch=1)
    evidence = result.evidence
    assert evidence.figures[TIME] == pytest.approx(754_368)
    assert evidence.advice
    assert evidence.instructions[0].line
    assert result.lost == ()


def test_the_source_names_each_file_with_its_hash_and_the_launch() -> None:
    digest = hashlib.sha256(RAW.read_bytes()).hexdigest()
    assert imports.read([RAW], launch=3).source == f"raw.csv (SHA-256 {digest}), launch 3 of 4"


def test_a_launch_is_chosen_among_those_of_the_kernel() -> None:
    assert imports.read([RAW], kernel="^trans", launch=2).source.endswith("launch 4 of 4")


def test_a_session_page_tells_how_the_report_was_recorded() -> None:
    evidence = imports.read([DATA / "session.csv", RAW], launch=1).evidence
    assert evidence.tool == "ncu 2025.3.1.0"
    assert (evidence.clock_control, evidence.cache_control) == ("none", "all")
    assert evidence.replay == "kernel"


def test_a_session_page_alone_is_no_profile() -> None:
    with pytest.raises(UsageError, match="is a session page, and has no launch"):
        imports.read([DATA / "session.csv"])


def test_several_launches_are_listed_with_how_to_choose() -> None:
    with pytest.raises(UsageError, match="there are 4 launches: choose one with --launch") as error:
        imports.read([RAW])
    assert "  1  patch_embed_gemm  (132, 1, 1) x (384, 1, 1)  754.37 us" in str(error.value)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"kernel": "softmax"}, "there are patch_embed_gemm, transpose"),
        ({"kernel": "("}, "is not a regular expression"),
        ({"launch": 5}, "should be from 1 to 4"),
        ({"launch": 0}, "should be from 1 to 4"),
    ],
)
def test_a_choice_that_fits_no_launch_is_refused(options: dict[str, object], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        imports.read([RAW], **options)  # type: ignore[arg-type]


def test_a_page_that_powershell_wrote_is_read(tmp_path: Path) -> None:
    path = tmp_path / "raw.csv"
    path.write_bytes(RAW.read_text().encode("utf-16"))
    assert imports.read([path], launch=1).evidence == imports.read([RAW], launch=1).evidence


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "is not a page of ncu"),
        (b"\x89PNG\r\n\x1a\n\x00", "is not a page of ncu"),
        (b"\x1f\x8b\x08\x00", "is compressed: unpack it"),
    ],
)
def test_a_file_that_is_no_profile_is_refused(tmp_path: Path, content: bytes, why: str) -> None:
    path = tmp_path / "page.csv"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=why):
        imports.read([path])


def test_a_folder_a_device_and_a_file_that_is_not_there_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path, Path("/dev/zero"), tmp_path / "none.csv"):
        with pytest.raises(UsageError, match=r"is not a regular file|No such file"):
            imports.read([path])


def test_a_report_without_ncu_says_how_to_print_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    path = tmp_path / "report"
    path.write_bytes(b"NVR\0....")
    with pytest.raises(EnvironmentFault, match=r"ncu --import REPORT\.ncu-rep --csv --page"):
        imports.read([path])


# ---- the command ---------------------------------------------------------------------------------


def test_an_imported_profile_belongs_to_the_variant(scale: Path, kx: Kx) -> None:
    done = kx("profile", "--import", str(RAW), "--launch", "1", "--variant", "S1", cwd=scale)
    assert done.exit_code == errors.OK, done.output
    assert "754.37 us" in done.output
    kept = profiles.latest(scale, "scale", "sm_90a", {"width": 4, "order": "forward"})
    assert kept is not None
    assert kept.provenance == "imported"
    assert profiles.latest(scale, "scale", "sm_90a", {"width": 1, "order": "forward"}) is None


def test_a_launch_of_a_kernel_that_the_sources_do_not_name_is_doubted(
    scale: Path, kx: Kx, tmp_path: Path
) -> None:
    arguments = ("--launch", "1", "--variant", "S1")
    done = kx("profile", "--import", str(RAW), *arguments, cwd=scale)
    assert "The launch is of a kernel 'patch_embed_gemm', a name that no source of scale has" in (
        " ".join(done.output.split())
    )
    page = tmp_path / "own.csv"
    page.write_text(RAW.read_text().replace('"patch_embed_gemm"', '"void ns::scale<4>(float)"'))
    done = kx("profile", "--import", str(page), *arguments, cwd=scale)
    assert done.exit_code == errors.OK, done.output
    assert "a name that no source" not in " ".join(done.output.split())


def test_show_mentions_a_profile_and_what_changed_since(scale: Path, kx: Kx) -> None:
    arguments = ("--variant", "S1", "--candidate", "0", "--launch", "1")
    kx("profile", "--import", str(RAW), *arguments, cwd=scale)
    assert "profile of baseline: 0.7544 ms under ncu, NVIDIA H200" in _words(kx, scale)
    text = (scale / "experiments.yaml").read_text()
    (scale / "experiments.yaml").write_text(text.replace("scale.cu", "other.cu"))
    shutil.copy(scale / "variants/scale/scale.cu", scale / "variants/scale/other.cu")
    assert "taken before this changed: source variants/scale/other.cu" in _words(kx, scale)


def _words(kx: Kx, scale: Path) -> str:
    return " ".join(kx("show", "S1", cwd=scale).output.split())


def test_show_warns_of_a_file_that_is_no_profile(scale: Path, kx: Kx) -> None:
    (scale / profiles.FOLDER).mkdir(parents=True)
    (scale / profiles.FOLDER / "20260101T000000Z-0.json").write_text("{")
    words = " ".join(kx("show", "S1", cwd=scale).output.split())
    assert "skipped logs/profiles/20260101T000000Z-0.json: it is truncated or invalid JSON" in words


def test_files_may_follow_the_first_one(scale: Path, kx: Kx) -> None:
    files = (str(RAW), str(DETAILS), str(SASS))
    done = kx(
        "profile", "--import", *files, "--variant", "S1", "--launch", "1", "--json", cwd=scale
    )
    (kept,) = json.loads(done.stdout)
    assert kept["profile"]["arm"]["profiled"]["advice"]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--import", str(RAW), "--launch", "1"), "--import needs --variant"),
        (("--import", str(RAW), "--launch", "1", "--variant", "S2"), "S2 has 2 candidates"),
        (("--import", str(RAW), "--variant", "S1", "--candidate", "2"), "candidates 1 to 1"),
        (("--import", str(RAW), "--variant", "scale", "--candidate", "1"), "belongs to an exper"),
        (("S1", "--kernel", "scale"), "--kernel goes with --import"),
        ((), "name the variants to profile"),
    ],
)
def test_a_command_line_that_says_too_little_is_refused(
    scale: Path, kx: Kx, arguments: tuple[str, ...], why: str
) -> None:
    done = kx("profile", *arguments, cwd=scale)
    assert done.exit_code == errors.USAGE
    assert why in done.output


def test_a_launch_on_another_architecture_is_refused(scale: Path, kx: Kx, tmp_path: Path) -> None:
    path = tmp_path / "b200.csv"
    path.write_text(RAW.read_text().replace('"9.0"', '"10.0"'))
    done = kx("profile", "--import", str(path), "--variant", "S1", "--launch", "1", cwd=scale)
    assert done.exit_code == errors.USAGE
    assert "ran on compute capability 10.0" in done.output


def test_without_ncu_the_command_says_how_to_import(
    scale: Path, kx: Kx, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    done = kx("profile", "S1", cwd=scale)
    assert done.exit_code == errors.ENVIRONMENT
    assert "kernelexp profile --import FILE --variant NAME" in done.output


def test_a_report_is_read_through_ncu(tmp_path: Path) -> None:
    """The pages of a recorded report, printed by a script that stands in for ncu."""
    ncu = tmp_path / "ncu"
    names = {"raw": "raw", "details": "details", "session": "session"}
    pages = "".join(f"*'--page {page}'*) cat {DATA}/{name}.csv;; " for page, name in names.items())
    ncu.write_text(
        f'#!/bin/sh\ncase "$*" in --version) echo Version 2025.3.1.0;; {pages}'
        f"*'--print-source cuda,sass'*) cat {CUDA};; *) cat {SASS};; esac\n"
    )
    ncu.chmod(0o755)
    report = tmp_path / "full.ncu-rep"
    report.write_bytes(b"NVR\0")
    result = imports.read([report], launch=1, ncu=str(ncu))
    pages_of_it = imports.read([RAW, DETAILS, SASS, CUDA, DATA / "session.csv"], launch=1)
    assert result.evidence == pages_of_it.evidence


def test_a_report_that_ncu_cannot_read_is_said_to(tmp_path: Path) -> None:
    ncu = tmp_path / "ncu"
    ncu.write_text(
        "#!/bin/sh\ncase $1 in --version) echo Version 2025.3.1.0;; "
        '*) echo "==ERROR== Failed to open file"; exit 1;; esac\n'
    )
    ncu.chmod(0o755)
    report = tmp_path / "full.ncu-rep"
    report.write_bytes(b"NVR\0")
    with pytest.raises(EnvironmentFault, match=r"can't read full\.ncu-rep: Failed to open file\."):
        imports.read([report], ncu=str(ncu))
