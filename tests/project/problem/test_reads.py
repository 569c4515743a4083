"""What problem.py reads besides its folder: a module that kernels share, the environment."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import pytest
from support import Kx, all_records

from kernelexp.model import errors

SHARED = """import sys
sys.path.insert(0, str(__import__("pathlib").Path(__file__).parents[1]))
from kernelexp.launch import"""


def change(root: Path, text: str, instead: str) -> None:
    path = root / "variants/scale/problem.py"
    before = path.read_text()
    assert text in before
    path.write_text(before.replace(text, instead, 1))


@pytest.fixture
def sharing(scale: Path) -> Path:
    """problem.py takes its factor from a module above its folder, when the reference is made."""
    change(scale, "from kernelexp.launch import", SHARED)
    change(scale, "    yield Chunk(", "    from shared_factor import FACTOR\n\n    yield Chunk(")
    (scale / "variants/shared_factor.py").write_text("FACTOR = 3.0\n")
    return scale


def test_a_module_beside_the_kernels_belongs_to_the_key_of_an_emulation(
    sharing: Path, kx: Kx
) -> None:
    assert kx("emulate", "scale", cwd=sharing).exit_code == errors.OK
    (sharing / "variants/shared_factor.py").write_text("FACTOR = 4.0\n")
    assert kx("emulate", "scale", cwd=sharing).exit_code == errors.WRONG_RESULT


def test_it_is_in_the_record_whose_verdict_is_from_before_it_changed(sharing: Path, kx: Kx) -> None:
    kx("run", "S1", cwd=sharing)
    (record,) = all_records(sharing)[0]
    assert "variants/shared_factor.py" in record.host_files
    assert "variants/" not in record.host_files  # which Python lists to import from it
    (sharing / "variants/shared_factor.py").write_text("FACTOR = 3.0 + 0\n")
    output = " ".join(kx("explain", "S1", cwd=sharing).stdout.split())
    assert "from before these changed: variants/shared_factor.py." in output


def test_an_environment_variable_that_it_reads_does_so_too(
    scale: Path, kx: Kx, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(scale, "() * FACTOR", '() * float(__import__("os").getenv("KX_F", 3))')
    kx("run", "S1", cwd=scale)
    (record,) = all_records(scale)[0]
    assert record.environment == {"KX_F": "unset"}
    monkeypatch.setenv("KX_F", "4")
    assert kx("emulate", "scale", cwd=scale).exit_code == errors.WRONG_RESULT
    monkeypatch.setenv("KX_F", "3.0")
    output = " ".join(kx("explain", "S1", cwd=scale).stdout.split())
    assert "from before these changed: the environment variable KX_F." in output


READERS = {
    "a file's text": "(ROOT / 'factor.txt').read_text()",
    "os.open": "os.read(os.open(ROOT / 'factor.txt', os.O_RDONLY), 99)",
    "numpy": "__import__('numpy').loadtxt(ROOT / 'factor.txt')",
    "a command": "subprocess.run(['cat', ROOT / 'factor.txt'], capture_output=True).stdout",
    "a shell": "subprocess.run(f'cat {ROOT}/factor.txt', shell=True, capture_output=True).stdout",
}


def reading(root: Path, expression: str) -> None:
    """problem.py takes its factor from elsewhere, when the reference is made."""
    change(
        root,
        "def reference(inputs, size):",
        "import os, pathlib, subprocess\n\n"
        "ROOT = pathlib.Path(__file__).parents[2]\n\n\n"
        "def reference(inputs, size):",
    )
    change(root, "() * FACTOR", f"() * float({expression})")


@pytest.mark.parametrize("expression", READERS.values(), ids=READERS)
def test_data_outside_its_folder_belongs_to_the_key_however_they_are_read(
    scale: Path, kx: Kx, expression: str
) -> None:
    reading(scale, expression)
    (scale / "factor.txt").write_text("3.0")
    assert kx("emulate", "scale", cwd=scale).exit_code == errors.OK
    (scale / "factor.txt").write_text("4.0")
    assert kx("emulate", "scale", cwd=scale).exit_code == errors.WRONG_RESULT


def test_a_database_belongs_to_the_key_too(scale: Path, kx: Kx) -> None:
    query = "sqlite3.connect(ROOT / 'db').execute('select x from t').fetchone()[0]"
    reading(scale, query)
    change(scale, "import os, pathlib, subprocess", "import os, pathlib, sqlite3")
    for value, code in ((3.0, errors.OK), (4.0, errors.WRONG_RESULT)):
        (scale / "db").unlink(missing_ok=True)
        with contextlib.closing(sqlite3.connect(scale / "db")) as database:
            database.execute("create table t (x real)")
            database.execute("insert into t values (?)", (value,))
            database.commit()
        assert kx("emulate", "scale", cwd=scale).exit_code == code


def test_data_of_the_repository_are_in_the_record(scale: Path, kx: Kx) -> None:
    reading(scale, READERS["a file's text"])
    (scale / "factor.txt").write_text("3.0")
    kx("run", "S1", cwd=scale)
    (record,) = all_records(scale)[0]
    assert "factor.txt" in record.host_files
    (scale / "factor.txt").write_text("3.00")
    output = " ".join(kx("explain", "S1", cwd=scale).stdout.split())
    assert "from before these changed: factor.txt." in output


def test_where_a_link_leads_belongs_to_the_key_too(scale: Path, kx: Kx) -> None:
    reading(scale, "os.readlink(ROOT / 'link')")
    for target, code in (("3.0", errors.OK), ("4.0", errors.WRONG_RESULT)):
        (scale / "link").unlink(missing_ok=True)
        (scale / "link").symlink_to(target)
        assert kx("emulate", "scale", cwd=scale).exit_code == code


@pytest.mark.parametrize(
    ("expression", "made"),
    [
        ("4 if (ROOT / 'flag').exists() else 3", "flag"),
        ("2 + len(os.listdir(ROOT / 'variants/include/more'))", "variants/include/more/second"),
        (
            "3 + os.lstat(ROOT / 'variants/include/more/first').st_size // 4",
            "variants/include/more/first",
        ),
        ("2 + len(list((ROOT / 'variants/include/more').glob('*')))", "variants/include/more/b"),
        ("4 if '4' in (ROOT / 'variants/scale/note.cuh').read_text() else 3", None),
    ],
)
def test_what_is_missing_what_folders_hold_and_sources_that_nobody_compiles_are_too(
    scale: Path, kx: Kx, expression: str, made: str | None
) -> None:
    reading(scale, expression)
    (scale / "variants/include/more").mkdir()
    (scale / "variants/include/more/first").touch()
    (scale / "variants/scale/note.cuh").write_text("// 3")
    assert kx("emulate", "scale", cwd=scale).exit_code == errors.OK
    (scale / (made or "variants/scale/note.cuh")).write_text("// 4")
    assert kx("emulate", "scale", cwd=scale).exit_code == errors.WRONG_RESULT


def test_what_was_missing_and_what_folders_held_are_in_the_record(scale: Path, kx: Kx) -> None:
    later = "4 if (ROOT / 'flag').exists() else 2 + len(os.listdir(ROOT / 'many'))"
    reading(scale, later)
    (scale / "many").mkdir()
    (scale / "many/first").touch()
    kx("run", "S1", cwd=scale)
    assert "UNMEASURED" in kx("log", cwd=scale).stdout
    (scale / "flag").touch()
    assert "before this changed: flag (is new)." in " ".join(kx("log", cwd=scale).stdout.split())
    (scale / "flag").unlink()
    assert "UNMEASURED" in kx("log", cwd=scale).stdout
    (scale / "many/second").touch()
    words = " ".join(kx("log", cwd=scale).stdout.split())
    assert "before this changed: many/ (is a folder that holds other files)." in words


def test_what_it_made_itself_is_no_data_of_it(scale: Path, kx: Kx) -> None:
    reading(scale, "(ROOT / 'made').write_text('3') and (ROOT / 'made').read_text()")
    kx("run", "S1", cwd=scale)
    (record,) = all_records(scale)[0]
    assert "made" not in record.host_files


def test_folders_in_which_imports_look_are_no_data_of_it(scale: Path, kx: Kx) -> None:
    """As with PYTHONPATH=., where each import lists the folder that it stands in."""
    looked = "__import__('importlib.util').util.find_spec('no')"
    reading(scale, f"3 + bool(os.sys.path.insert(0, str(ROOT)) or {looked})")
    kx("run", "S1", cwd=scale)
    (record,) = all_records(scale)[0]
    assert not [name for name in record.host_files if name.endswith("/")]
