"""The log, rendered from the repository's own records."""

from __future__ import annotations

import csv
import io
import re
import shutil
from pathlib import Path

import msgspec
import pytest
from support import ROOT, Kx

from kernelexp import project
from kernelexp.model import errors
from kernelexp.model.errors import UsageError
from kernelexp.report import export
from kernelexp.report.document.document import Table, as_markdown, text_of
from kernelexp.report.log import logbook
from kernelexp.report.site import site
from kernelexp.services import kernel_logs
from kernelexp.services.kernel_logs import KernelLog

# Commit, time (ms), TFLOPS, registers: the history as it was published.
HISTORY = """
6c327fe  —      ~300  —
c5f6c8b  —      ~400  —
4ff9644  —      ~500  —
4760f3b  —      727   147
892766c  —      1043  —
fca9178  —      1190  —
9557e0b  —      1433  —
abf04a5  0.764  1433  —
6319928  0.743  —     —
521ad55  0.722  1517  —
cefc59d  0.700  1564  216
c32ab7a  0.633  1729  222
d882aba  0.630  1739  222
9bf658a  0.579  1892  223
"""

# Experiment, baseline, result, verdict of each candidate.
EXPERIMENTS = """
F1  0.630 ms  0.663 to 0.665 ms  REJECTED
F2  0.630 ms  0.858 ms  REJECTED
F3  ~0.722 ms  0.747 ms  REJECTED
F4  ~0.826 ms  0.826 ms  REJECTED
F5  1043 TFLOPS  ~500 TFLOPS  REJECTED
F6  0.722 ms  stages=5: 0.715 ms  NEUTRAL
-   -  stages=4: 0.700 ms  IMPROVED
F7  0.764 ms  0.743 ms  IMPROVED
F8  0.764 ms  0.764 ms  NEUTRAL
F9  —  —  IMPOSSIBLE
"""


@pytest.fixture
def b200() -> KernelLog:
    """The log of the published records."""
    return next(item for item in read() if item.arch == "sm_100a")


def read() -> tuple[KernelLog, ...]:
    return kernel_logs.assemble(project.load(ROOT))


def rows_of(log_: KernelLog, header: tuple[str, ...]) -> list[tuple[str, ...]]:
    (table,) = (
        block
        for block in logbook.tables([log_])
        if isinstance(block, Table) and block.header == header
    )
    return [tuple(map(text_of, row)) for row in table.rows]


def text(log_: KernelLog) -> str:
    return as_markdown(logbook.tables([log_]))


def test_the_history_is_the_published_one_to_the_last_figure(b200: KernelLog) -> None:
    rows = [tuple(line.split()) for line in HISTORY.strip().splitlines()]
    shown = rows_of(b200, logbook.HISTORY_HEADER)
    assert [(row[0], row[2], row[3], row[4]) for row in shown] == rows


def test_the_experiments_have_the_published_figures_and_verdicts(b200: KernelLog) -> None:
    wanted = [tuple(line.split("  ")) for line in EXPERIMENTS.strip().splitlines()]
    rows = rows_of(b200, logbook.EXPERIMENT_HEADER)
    shown = [(row[0] or "-", row[2] or " -", row[3], row[4]) for row in rows]
    assert [tuple(map(str.strip, row)) for row in shown] == [
        tuple(map(str.strip, row)) for row in wanted
    ]


def test_the_current_best_is_the_fastest_step(b200: KernelLog) -> None:
    best = "**Current best: 0.579 ms / 1892 TFLOPS**, 223 registers (9bf658a, published)"
    assert best in text(b200)


def test_the_log_says_where_published_times_are_from(b200: KernelLog) -> None:
    assert "constant inputs" in text(b200)


def test_a_section_has_all_that_the_published_log_keeps(b200: KernelLog) -> None:
    section = as_markdown(logbook.file([b200])).split("#### F2: ")[1].split("####")[0]
    for label in ("Date", "Baseline", "Result", "Verdict", "Hypothesis", "Changes", "Why"):
        assert f"**{label}:**" in section
    assert "2026-02-27" in section
    assert "0.858 ms, 246 registers (published)" in section


def test_rendering_twice_gives_the_same_bytes(tmp_path: Path, kx: Kx) -> None:
    for name in ("experiments.yaml", "variants", "logs"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tmp_path / name)
    kx("log", "--write", cwd=tmp_path)
    first = (tmp_path / "logs/EXPERIMENTS.md").read_bytes()
    kx("log", "--write", cwd=tmp_path)
    assert (tmp_path / "logs/EXPERIMENTS.md").read_bytes() == first


def test_the_committed_log_is_what_the_records_say() -> None:
    assert (ROOT / "logs/EXPERIMENTS.md").read_text() == as_markdown(logbook.file(read()))


def test_a_run_that_timed_nothing_hides_no_verdict(scale: Path, kx: Kx) -> None:
    kx("run", "S1", "--no-emulate", cwd=scale)
    (path,) = (scale / "logs/runs/S1").glob("*.json")
    undigested = re.sub(r',\n "digest": "\w+"', "", path.read_text())
    path.write_text(undigested.replace("UNMEASURED", "REJECTED"))
    path.rename(path.with_name(path.name.replace(".build.", ".measured.")))
    kx("run", "S1", "--no-emulate", cwd=scale)
    assert (
        "| S1   | Four floats per thread | —          | —           | REJECTED"
        in kx("log", cwd=scale).stdout
    )


def test_a_pipe_in_a_title_does_not_break_the_table(scale: Path, kx: Kx) -> None:
    file = scale / "experiments.yaml"
    file.write_text(file.read_text().replace("Four floats per thread", "a | b"))
    assert "a \\| b" in kx("log", cwd=scale).stdout


def test_every_table_fits_80_columns_on_a_terminal() -> None:
    from rich.console import Console

    from kernelexp.report.document import terminal

    console = Console(width=80, record=True, file=io.StringIO())
    for renderable in terminal.render(logbook.tables(read())):
        console.print(renderable)
    shown = console.export_text()
    assert "0.579" in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_a_measured_step_tells_its_change_next_to_its_time() -> None:
    h200 = next(
        item for item in read() if (item.kernel, item.arch) == ("patch_embed_gemm", "sm_90a")
    )
    first, *_, last = rows_of(h200, logbook.HISTORY_HEADER)
    assert first[-1].startswith("-39.20%; its baseline is the first")
    assert last[2:] == ("0.787", "1392", "168", "-6.09%")


def test_a_kernel_without_history_has_no_empty_table() -> None:
    transpose = next(item for item in read() if item.kernel == "transpose")
    written = as_markdown(logbook.file([transpose]))
    assert "history" not in written
    assert "Current best" not in written


HAND_KEPT = "# My experiments\n\nF1: worked.\n"


def test_a_log_that_people_keep_is_never_overwritten(scale: Path, kx: Kx) -> None:
    path = scale / logbook.NAME
    path.parent.mkdir()
    path.write_text(HAND_KEPT)
    result = kx("log", "--write", cwd=scale)
    assert result.exit_code == 2
    assert "was not written by kernelexp" in result.stderr
    run = kx("run", "S1", "--no-emulate", cwd=scale)
    assert run.exit_code == 0
    assert "was not written by kernelexp" in run.stderr
    assert path.read_text() == HAND_KEPT


def test_a_log_that_is_a_link_to_a_device_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / logbook.NAME).symlink_to("/dev/zero")
    with pytest.raises(UsageError, match="was not written by kernelexp"):
        logbook.write(tmp_path, [])


def test_force_overwrites_it(scale: Path, kx: Kx) -> None:
    (scale / "logs").mkdir()
    (scale / logbook.NAME).write_text(HAND_KEPT)
    assert kx("log", "--write", "--force", cwd=scale).exit_code == 0
    assert (scale / logbook.NAME).read_text().startswith("# Experiment log")


def test_a_log_that_is_out_of_date_fails_the_check(scale: Path, kx: Kx) -> None:
    assert kx("log", "--check", cwd=scale).exit_code == 1
    kx("log", "--write", cwd=scale)
    assert kx("log", "--check", cwd=scale).exit_code == 0


def test_nothing_that_is_written_in_yaml_becomes_structure_of_the_log(scale: Path, kx: Kx) -> None:
    file = scale / "experiments.yaml"
    title, hypothesis = "Four floats per thread", "Wider accesses need fewer instructions."
    words = file.read_text().replace(title, "'# no <b>heading</b>'")
    file.write_text(words.replace(hypothesis, "'a\n\n    # not\n\n    <script>x</script>'"))
    kx("log", "--write", cwd=scale)
    lines = (scale / logbook.NAME).read_text().splitlines()
    headings = [line for line in lines if line.startswith("#")]
    assert [line for line in headings if "S1" in line] == ["#### S1: # no \\<b>heading\\</b>"]
    assert not any(line.startswith(("# not", "<script")) for line in lines)


def test_the_csv_of_a_hostile_title_has_no_control_character(scale: Path, kx: Kx) -> None:
    kx("run", "S1", "--no-emulate", cwd=scale)
    (path,) = (scale / "logs/runs/S1").iterdir()
    path.write_text(path.read_text().replace('"created": "', '"created": "\\u001b[31m'))
    assert "\x1b" not in kx("log", "--csv", cwd=scale).stdout
    assert "\\x1b[31m" in kx("log", "--csv", cwd=scale).stdout


def test_forms_of_the_log_exclude_each_other(scale: Path, kx: Kx) -> None:
    assert kx("log", "--csv", "--write", cwd=scale).exit_code == errors.USAGE


def test_a_sweep_at_another_size_and_other_axes_says_so(kx: Kx) -> None:
    lines = kx("log").stdout.splitlines()
    (row, *_) = (line for line in lines if line.startswith("| 20261122T115409Z-7756b5d3"))
    assert "schedule=free,pingpong; head_dim=128, size long128 |" in row
    (row, *_) = (line for line in lines if line.startswith("| 20261122T095412Z-47ac8230"))
    assert ";" not in row  # phase=3 is among what the sweep names


def test_times_of_steps_in_runs_of_their_own_are_said_not_to_compare(kx: Kx) -> None:
    text = kx("log").stdout
    assert text.count("changes compare, the times of two steps do not") == 1


def test_verdicts_that_differ_between_gpus_are_said_first(kx: Kx) -> None:
    shown = " ".join(kx("show", "T3", cwd=ROOT).stdout.split())
    assert shown.startswith(
        "T3 Warps per CTA rows=4: REJECTED on NVIDIA H100 80GB HBM3 (2026-11-27); "
        "IMPROVED on NVIDIA H200 (2026-11-21). kernel"
    )
    assert "rows=16: REJECTED on" not in shown
    page = site.ProjectSite(project.load(ROOT)).render("experiments/T3.html") or b""
    text = page.decode()
    assert text.index("IMPROVED on NVIDIA H200 (2026-11-21).") < text.index('<ol class="answers">')


def test_a_sweep_of_another_gpu_names_it_and_so_does_the_footnote(kx: Kx) -> None:
    lines = kx("log", cwd=ROOT).stdout.splitlines()
    start = next(at for at, line in enumerate(lines) if line.startswith("transpose, sm_90a"))
    own = lines[start : start + 20]
    assert any("layout=plain,padded,swizzled; NVIDIA H200" in line for line in own)
    assert any("figures: NVIDIA H100 80GB HBM3, NVIDIA H200;" in line for line in own)


def test_the_log_for_programs_has_the_variants_of_sweeps() -> None:
    logs = read()
    (transpose,) = (one.logged() for one in logs if one.kernel == "transpose")
    (swept,) = transpose.sweeps
    assert swept.title == "Sweep of rows=4,8,16 layout=plain,padded,swizzled"
    assert [arm.arm for arm in swept.arms] == ["baseline", *["candidate"] * 8]
    rows = list(csv.DictReader(io.StringIO(export.log([one.logged() for one in logs]))))
    listed = [row for row in rows if row["section"] == "sweep" and row["id"] == swept.id]
    assert [row["variant"] for row in listed] == [arm.variant for arm in swept.arms]
    assert all(float(row["time_ms"]) > 0 for row in listed)


def test_a_sweep_whose_sources_changed_has_no_figures() -> None:
    log = next(item for item in read() if item.kernel == "transpose")
    run = log.sweeps[0].run
    changed = msgspec.structs.replace(log, sweeps_changed={run: ("transpose.cu",)})
    (swept,) = changed.logged().sweeps
    assert swept.changed_since == ("transpose.cu",)
    assert {(arm.verdict, arm.size) for arm in swept.arms} == {("", "")}
