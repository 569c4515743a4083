"""Many processes that write records into one folder at once: each finds all of its own there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support import ROOT, all_records

WRITER = """
import sys
from pathlib import Path
sys.path[:0] = sys.argv[2:4]
from test_records import a_record
from kernelexp.logs import records
sys.stdin.readline()
for _ in range(int(sys.argv[4])):
    print(records.write(Path(sys.argv[1]), a_record()))
"""


@pytest.mark.parametrize(
    ("writers", "each"), [(2, 20), pytest.param(16, 100, marks=pytest.mark.slow)]
)
def test_no_record_of_writers_at_once_is_lost(tmp_path: Path, writers: int, each: int) -> None:
    argv = [
        sys.executable,
        "-c",
        WRITER,
        str(tmp_path),
        str(ROOT),
        str(ROOT / "tests/logs"),
        str(each),
    ]
    pipe = subprocess.PIPE
    processes = [subprocess.Popen(argv, stdin=pipe, stdout=pipe, text=True) for _ in range(writers)]
    for process in processes:
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()
    written = [line for item in processes for line in item.communicate()[0].splitlines()]
    result, unreadable = all_records(tmp_path)
    print(f"{writers} processes wrote {len(written)} records at once: {len(result)} read back")
    assert len(set(written)) == len(result) == writers * each
    assert not unreadable
    assert sorted(map(str, tmp_path.rglob("*.*"))) == sorted(written)
