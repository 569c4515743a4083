"""What a text on the command line names: a record's arm, a variant, a profile, a page of ncu."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import ROOT, Kx

from kernelexp import project
from kernelexp.dossier import subjects
from kernelexp.dossier.session import Session
from kernelexp.dossier.subjects import Subject
from kernelexp.evidence import build
from kernelexp.logs import profiles, records
from kernelexp.model import errors
from kernelexp.model.arm import Arm, ProfiledEvidence
from kernelexp.model.errors import UsageError
from kernelexp.model.record import Profile
from kernelexp.project import Project
from kernelexp.services.run import conclusion, runner
from kernelexp.system.toolchain import Toolchain

RUN = "20261121T000044Z-485c4d1d"
T3 = ROOT / f"logs/runs/T3/{RUN}.measured.json"
PAGE = ROOT / "tests/data/ncu/raw.csv"


@pytest.fixture(scope="module")
def here() -> Project:
    return project.load(ROOT)


@pytest.fixture(scope="module")
def ran(warm: Path, tools: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project `scale` with one run of S1, emulated."""
    root = tmp_path_factory.mktemp("ran") / "scale"
    shutil.copytree(ROOT / "tests/projects/scale", root)
    shutil.copytree(warm, root / build.CACHE)
    runner.run(
        project.load(root),
        ["S1"],
        Session(tools=tools, emulate=True),
        settings=conclusion.RunSettings(),
    )
    return root


@pytest.fixture
def scale(ran: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(ran, tmp_path / "scale"))


@pytest.fixture
def built(scale: Path) -> Arm:
    """The candidate of its run."""
    return records.read(scale, "S1")[0][-1].arms[1]


def sentence(loaded: Project | None, text: str) -> str:
    with pytest.raises(UsageError) as caught:
        subjects.find(loaded, text)
    return str(caught.value)


# ---- records -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", [f"{RUN}:1", f"{RUN[:18]}:1", f"{T3}:1"], ids=["run", "beginning", "file"]
)
def test_a_record_is_named_by_its_run_or_its_file(here: Project, text: str) -> None:
    result = subjects.find(here, text)
    assert (result.label, result.arm.axes["rows"]) == ("T3 candidate 1", 4)
    assert result.run == RUN
    assert result.conditions["measured"]["GPU"] == "NVIDIA H200"


def test_an_experiment_stands_for_its_latest_run(scale: Path) -> None:
    first = records.read(scale, "S1")[0][-1]
    records.write(scale, msgspec.structs.replace(first, run="20991121T000000Z-00000001"))
    result = subjects.find(project.load(scale), "S1:baseline")
    assert result.about[0] == "20991121T000000Z-00000001"
    assert result.arm.axes["width"] == 1


def test_a_record_alone_is_its_only_candidate(here: Project) -> None:
    assert subjects.find(here, "H1").label == "H1 candidate"


def test_of_several_candidates_one_must_be_named(here: Project) -> None:
    words = f"the record {RUN} has 2 candidates: name an arm (T3:baseline, T3:1, T3:2)."
    assert sentence(here, RUN) == words


def test_a_record_alone_is_each_of_a_few_candidates(here: Project) -> None:
    assert subjects.pairs(here, RUN) == [
        (f"{RUN}:baseline", f"{RUN}:1"), (f"{RUN}:baseline", f"{RUN}:2"),
    ]  # fmt: skip
    assert subjects.pairs(here, "H1") == [("H1:baseline", "H1:candidate")]
    assert subjects.pairs(here, "T3:2") == [("T3:baseline", "T3:2")]
    swept = "20261122T062128Z"  # 23 candidates
    assert subjects.pairs(here, swept) == [(f"{swept}:baseline", f"{swept}:candidate")]


def test_an_arm_that_a_record_lacks_is_a_sentence_with_those_that_it_has(here: Project) -> None:
    words = f"the record {RUN} has no arm '9': it has T3:baseline, T3:1, T3:2."
    assert sentence(here, f"{RUN}:9") == words


def test_the_beginning_of_several_runs_is_ambiguous(here: Project) -> None:
    assert "is ambiguous" in sentence(here, "2026")


def test_an_experiment_without_a_record_says_how_to_make_one(scale: Path) -> None:
    words = "there is no record of S2 yet: kernelexp run S2 makes one."
    assert sentence(project.load(scale), "S2") == words


def test_an_unknown_text_is_a_sentence_with_the_nearest_name(here: Project) -> None:
    words = sentence(here, "transpos")
    assert "'transpos' is not a file, an experiment, a kernel, or the beginning" in words
    assert "did you mean 'transpose'?" in words


def test_an_empty_text_names_nothing(here: Project) -> None:
    assert "is not a file, an experiment, a kernel" in sentence(here, "")


def test_a_kernel_with_the_name_of_an_experiment_is_ambiguous(here: Project) -> None:
    kernel = here.kernels["transpose"]
    both = msgspec.structs.replace(here, kernels={**here.kernels, "T3": kernel})
    assert sentence(both, "T3").startswith("'T3' is an experiment and a kernel: write T3@ARCH")


@settings(max_examples=50)  # each looks for names that are alike
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=300))
def test_any_text_is_a_subject_or_a_sentence(here: Project, text: str) -> None:
    for loaded in (here, None):
        with contextlib.suppress(UsageError):
            subjects.find(loaded, text)


# ---- files ---------------------------------------------------------------------------------------


def test_a_file_needs_no_project() -> None:
    result = subjects.find(None, f"{PAGE}:3")
    assert result.arm.profiled is not None
    assert result.arm.profiled.entry == "transpose"
    assert (result.label, result.conditions["profiled"]["GPU"]) == ("raw.csv:3", "NVIDIA H200")


def test_without_a_project_all_else_is_a_sentence() -> None:
    words = "there is no file 'F3', and no project to look it up in."
    assert sentence(None, "F3") == words


def test_of_several_launches_one_must_be_named() -> None:
    words = "raw.csv has 4 launches: name one, raw.csv:1 to raw.csv:4."
    assert sentence(None, str(PAGE)) == words
    assert "raw.csv has no launch '5'" in sentence(None, f"{PAGE}:5")
    assert "raw.csv has no launch '0'" in sentence(None, f"{PAGE}:0")


def test_a_file_that_is_no_page_of_ncu_is_a_sentence() -> None:
    assert "README.md is not a page of ncu" in sentence(None, str(ROOT / "README.md"))


def test_a_session_page_alone_has_no_launch_to_compare(tmp_path: Path) -> None:
    path = tmp_path / "session.csv"
    shutil.copy(ROOT / "tests/data/ncu/session.csv", path)
    assert "session.csv is a session page, and has no launch" in sentence(None, str(path))


def test_a_json_file_that_is_no_record_is_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text("{}")
    assert "is not a record" in sentence(None, str(path))


def test_a_damaged_profile_is_said_to_be_a_profile(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(
        '{"version": 1, "run": "a", "provenance": "run", "created": "", "arm": {"profiled": {}}}'
    )
    assert "x.json is not a profile: Object missing required field `entry`" in sentence(
        None, str(path)
    )


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("none.csv", "'none.csv' does not exist."),
        ("tests", "'tests' is not a file, an experiment"),
        ("tests/", "'tests/' is a folder, where a file is wanted."),
        ("/dev/null", "'/dev/null' is not a regular file: save what it gives to one."),
    ],
)
def test_what_looks_like_a_path_is_answered_as_one(
    here: Project, monkeypatch: pytest.MonkeyPatch, name: str, why: str
) -> None:
    monkeypatch.chdir(ROOT)
    assert sentence(here, name).startswith(why)


# ---- profiles and variants -----------------------------------------------------------------------


def profile_of(arm: Arm, run: str, **figures: float) -> Profile:
    evidence = ProfiledEvidence(entry="scale", figures=dict(figures), device="NVIDIA H200")
    return Profile(
        version=1,
        run=run,
        provenance="run",
        created="2026-11-21T00:00:00Z",
        arm=msgspec.structs.replace(arm, profiled=evidence),
    )


def find_variant(root: Path, tools: Toolchain, text: str, emulate: bool = False) -> Subject:
    return subjects.find(project.load(root), text, Session(tools=tools, emulate=emulate))


def test_a_variant_is_built_and_has_its_kept_emulation(
    scale: Path, built: Arm, tools: Toolchain
) -> None:
    result = find_variant(scale, tools, "scale@sm_90a:width=4")
    assert result.arm.build == built.build
    assert result.arm.emulated == built.emulated
    assert result.conditions["built"] == {"compiler": tools.version}


def test_a_variant_is_emulated_only_where_that_is_asked_for(scale: Path, tools: Toolchain) -> None:
    text = "scale@sm_90a:width=2,order=backward"
    bare = find_variant(scale, tools, text)
    assert bare.arm.build is not None
    assert bare.arm.emulated is None
    assert "not emulated (--emulate does it)" in bare.about
    assert find_variant(scale, tools, text, emulate=True).arm.emulated is not None


def test_a_variant_has_its_latest_profile(scale: Path, built: Arm, tools: Toolchain) -> None:
    profiles.write(scale, profile_of(built, "20261121T000000Z-00000001", a=1.0))
    profiles.write(scale, profile_of(built, "20261121T000000Z-00000002", a=2.0))
    result = find_variant(scale, tools, "scale:width=4")
    assert result.arm.profiled is not None
    assert result.arm.profiled.figures == {"a": 2.0}
    assert result.warnings == ()


def test_a_profile_of_other_sources_is_taken_with_a_warning(
    scale: Path, built: Arm, tools: Toolchain
) -> None:
    profiles.write(scale, profile_of(built, "20261121T000000Z-00000001", a=1.0))
    source = scale / "variants/scale/scale.cu"
    source.write_text(source.read_text() + "// edited\n")
    (warning,) = find_variant(scale, tools, "scale:width=4").warnings
    assert warning.endswith("before this changed: variants/scale/scale.cu")


def test_a_profile_by_another_installation_of_the_compiler_needs_no_warning(
    scale: Path, built: Arm, tools: Toolchain
) -> None:
    other = msgspec.structs.replace(built, identity="0" * 12)
    profiles.write(scale, profile_of(other, "20261121T000000Z-00000001", a=1.0))
    assert find_variant(scale, tools, "scale:width=4").warnings == ()


def test_a_record_has_the_profile_of_its_own_build_alone(scale: Path, built: Arm) -> None:
    other = msgspec.structs.replace(built, identity="0" * 12)
    profiles.write(scale, profile_of(built, "20261121T000000Z-00000001", a=1.0))
    profiles.write(scale, profile_of(other, "20261121T000000Z-00000002", a=2.0))
    result = subjects.find(project.load(scale), "S1")
    assert result.arm.profiled is not None
    assert result.arm.profiled.figures == {"a": 1.0}


def test_what_a_profile_names_stays_on_one_line(scale: Path, built: Arm) -> None:
    kept = profile_of(built, "20261121T000000Z-00000001", a=1.0)
    assert kept.arm.profiled is not None
    evidence = msgspec.structs.replace(kept.arm.profiled, device="H200\n\nerror: x\x1b[31m")
    arm = msgspec.structs.replace(kept.arm, profiled=evidence)
    profiles.write(scale, msgspec.structs.replace(kept, arm=arm, source="a.csv\nerror: y"))
    result = subjects.find(project.load(scale), kept.run)
    assert result.conditions["profiled"]["GPU"] == "H200 error: x\\x1b[31m"
    assert result.about[0].endswith("from a.csv error: y")


def test_a_profile_is_named_by_its_run_or_its_file(scale: Path, built: Arm) -> None:
    path = profiles.write(scale, profile_of(built, "20201121T000000Z-00000001", a=1.0))
    for text in ("20201121T", str(path)):
        result = subjects.find(project.load(scale), text)
        assert result.label == "profile 20201121T000000Z-00000001"
        assert result.arm.profiled is not None


def test_a_variant_that_was_measured_has_its_time(tools: Toolchain, tmp_path: Path) -> None:
    root = tmp_path / "p"
    for name in ("variants/transpose", "variants/include"):
        shutil.copytree(ROOT / name, root / name)
    (root / "logs/runs/T3").mkdir(parents=True)
    shutil.copy(T3, root / "logs/runs/T3")
    here = project.load(ROOT)
    moved = msgspec.structs.replace(here, root=root)
    result = subjects.find(moved, "transpose@sm_90a:rows=4", Session(tools=tools))
    assert result.arm.measured is not None
    assert result.arm.measured.time_us == pytest.approx(287.7, abs=0.1)
    assert result.run == RUN


# ---- one side alone ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "sides"),
    [
        ("F3", ("F3:baseline", "F3:candidate")),
        ("T3:2", ("T3:baseline", "T3:2")),
        (str(T3), (f"{T3}:baseline", f"{T3}:candidate")),
    ],
)
def test_a_record_alone_is_its_baseline_and_its_candidate(
    here: Project, text: str, sides: tuple[str, str]
) -> None:
    assert subjects.pair(here, text) == sides


@pytest.mark.parametrize("text", ["T3:baseline", "transpose@sm_90a:rows=4", f"{PAGE}:2"])
def test_what_has_no_baseline_needs_another_side(here: Project, text: str) -> None:
    with pytest.raises(UsageError, match="is one side of a comparison"):
        subjects.pair(here, text)


def test_a_profile_that_was_edited_is_named_as_such(tmp_path: Path, kx: Kx) -> None:
    for name in ("experiments.yaml", "variants"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tmp_path / name)
    run = "20261122T052206Z-c4343e1f"
    kept = profiles.read_file(ROOT / f"logs/profiles/{run}.json")
    assert isinstance(kept, Profile)
    path = profiles.write(tmp_path, kept)
    path.write_text(path.read_text().replace("NVIDIA H200", "NVIDIA B200"))
    for words in (f"show {run}", f"show {run} --sections all", f"compare {run} {run}"):
        result = kx(*words.split(), cwd=tmp_path)
        assert result.exit_code == errors.USAGE
        assert f"logs/profiles/{run}.json was edited after it was written." in result.stderr
