"""The web pages: whole, with the figures of the log, and harmless whatever people wrote."""

from __future__ import annotations

import http.client
import json
import runpy
import shutil
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urldefrag

import pytest
from site_project import build, copy, hostile
from support import ROOT, Kx, edit

from kernelexp import errors, records
from kernelexp.report.site import server, site

pytestmark = pytest.mark.xdist_group("site")


class Reader(HTMLParser):
    """What a page holds that tests ask for."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "input", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"</{tag}> closes another element"

    def handle_data(self, data: str) -> None:
        self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="module")
def read(pages: Path) -> dict[str, Reader]:
    """All of them by their paths."""
    return {
        path.relative_to(pages).as_posix(): Reader(path.read_text())
        for path in sorted(pages.rglob("*.html"))
    }


def test_elements_are_nested_and_closed(read: dict[str, Reader]) -> None:
    assert {name for name, page in read.items() if page.open} == set()
    assert len(read) > 80


def test_every_link_leads_to_a_page_and_every_fragment_to_a_place(
    pages: Path, read: dict[str, Reader]
) -> None:
    ids = {
        name: {attributes["id"] for _, attributes in page.tags if attributes.get("id")}
        for name, page in read.items()
    }
    broken = []
    for name, page in read.items():
        for link in page.all("a"):
            path, fragment = urldefrag(link["href"] or "")
            target = (pages / name).parent.joinpath(path).resolve() if path else pages / name
            where = target.relative_to(pages.resolve()).as_posix()
            if not target.is_file() or (fragment and fragment not in ids[where]):
                broken.append((name, link["href"]))
    assert broken == []


def test_nothing_is_loaded_from_elsewhere(read: dict[str, Reader]) -> None:
    loaded = {
        (name, tag)
        for name, page in read.items()
        for tag, attributes in page.tags
        if attributes.keys() & {"src", "srcset", "data", "action", "background"} or tag == "link"
    }
    assert loaded == set()


def test_every_page_has_a_policy_a_language_a_title_and_one_first_heading(
    read: dict[str, Reader],
) -> None:
    for name, page in read.items():
        policies = [m["content"] for m in page.all("meta") if m.get("http-equiv")]
        assert len(policies) == 1, name
        assert "default-src 'none'" in (policies[0] or "")
        assert "unsafe" not in (policies[0] or "")
        assert (len(page.all("h1")), page.all("html")[0]["lang"]) == (1, "en"), name


def test_tables_have_header_cells_with_a_scope(read: dict[str, Reader]) -> None:
    scopes = {each.get("scope") for page in read.values() for each in page.all("th")}
    assert scopes == {"col", "colgroup", "row"}


def test_no_element_has_a_style_or_a_handler_of_its_own(read: dict[str, Reader]) -> None:
    named = {key for page in read.values() for _, attributes in page.tags for key in attributes}
    assert [key for key in named if key.startswith("on") or key == "style"] == []


def test_the_figures_are_those_of_the_log(kx: Kx, pages: Path, read: dict[str, Reader]) -> None:
    logged = json.loads(kx("log", "--json").stdout)
    assert json.loads((pages / "log.json").read_text()) == logged
    expected = [
        arm[name]
        for log in logged
        for section in ("history", "experiments")
        for entry in log[section]
        for arm in entry["arms"]
        if arm["arm"] == "candidate"
        for name in site.index.NUMBERS
        if name in arm
    ]
    shown = [
        float(cell["data-value"] or "")
        for cell in read["index.html"].all("td")
        if "data-value" in cell
    ]
    assert shown == expected
    assert len(shown) > 100


def test_an_experiment_has_its_words_evidence_plot_reproduction_and_costs(
    read: dict[str, Reader],
) -> None:
    text = read["experiments/H3.html"].text
    for words in (
        "hypothesis",
        "Verdict:",
        "kernelexp run --record 20261121T014950Z-633bb845",
        "Lines that cost most",
        "99.75% interval",
    ):
        assert words in text


def test_a_measured_experiment_without_a_figure_of_its_own_says_what_changed(
    tmp_path: Path,
) -> None:
    root = copy(tmp_path, "T1")
    text = Reader((build(root, tmp_path / "out") / "experiments/T1.html").read_text()).text
    assert "changed since" in text  # its sources are not there


def test_words_of_people_and_records_run_nothing(tmp_path: Path) -> None:
    out = build(hostile(tmp_path), tmp_path / "out")
    for path in out.rglob("*.html"):
        page = Reader(path.read_text())
        scripts = page.all("script")
        assert len(scripts) == (path.name == "index.html"), path
        assert page.all("img") == []
        assert not page.open
    text = Reader((out / "experiments/X1.html").read_text()).text
    assert "<script>document.title=1</script>" in text
    assert "{{ 7*7 }}" in text
    assert "{{ 7*7 }} \\x1b[2J\\u202e" in Reader((out / "experiments/T1.html").read_text()).text


def test_the_file_of_a_hostile_log_is_json(tmp_path: Path) -> None:
    out = build(hostile(tmp_path), tmp_path / "out")
    assert json.loads((out / "log.json").read_text())


def test_sass_differs_where_both_builds_are_kept_and_sources_since_the_run(
    kx: Kx, scale: Path, tmp_path: Path
) -> None:
    assert kx("run", "S1", "--no-gpu", cwd=scale).exit_code == errors.OK
    before = Reader((build(scale, tmp_path / "a") / "experiments/S1.html").read_text()).text
    assert "SASS of baseline and candidate" in before
    assert "@@" in before
    assert "since run" not in before
    source = next((scale / "variants/scale").glob("*.cu"))
    source.write_text(f"{source.read_text()}// a later thought\n")
    after = Reader((build(scale, tmp_path / "b") / "experiments/S1.html").read_text()).text
    assert f"{source.relative_to(scale)} since run" in after
    assert "+// a later thought" in after


def test_lines_of_code_are_hot_where_the_emulation_counted_most(
    read: dict[str, Reader],
) -> None:
    cells = read["experiments/T1.html"].all("td")
    shades = {word for each in cells for word in (each.get("class") or "").split()} & {"h1", "h5"}
    assert shades == {"h1", "h5"}


# ---- the command ---------------------------------------------------------------------------------


@pytest.fixture
def trap(tmp_path: Path) -> Path:
    """A project whose problem.py leaves a file where it is imported."""
    root = tmp_path / "scale"
    shutil.copytree(ROOT / "tests/projects/scale", root)
    problem = root / "variants/scale/problem.py"
    problem.write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\n{problem.read_text()}")
    runpy.run_path(str(problem))
    (tmp_path / "ran").unlink()  # it works
    return root


@pytest.mark.parametrize(
    "arguments",
    [
        ("list",),
        ("show", "S1"),
        ("log",),
        ("log", "--json"),
        ("report",),
        ("plot", "history"),
    ],
)
def test_what_only_reads_never_runs_a_projects_python(
    kx: Kx, trap: Path, arguments: tuple[str, ...]
) -> None:
    kx(*arguments, cwd=trap)
    assert not (trap.parent / "ran").exists()


def test_a_folder_with_other_files_is_left_as_it_is(kx: Kx, trap: Path) -> None:
    (trap / "report").mkdir()
    (trap / "report" / "thesis.tex").write_text("mine")
    said = kx("report", cwd=trap)
    assert (said.exit_code, "holds files" in said.stderr) == (errors.USAGE, True)
    assert [each.name for each in (trap / "report").iterdir()] == ["thesis.tex"]


def test_a_report_is_written_over_its_former_self(kx: Kx, trap: Path) -> None:
    assert kx("report", cwd=trap).exit_code == errors.OK
    edit(trap, "title: ", "title: Anew, ")
    assert kx("report", cwd=trap).exit_code == errors.OK


def test_serving_writes_no_folder(kx: Kx, trap: Path) -> None:
    said = kx("report", "--serve", "--out", "x", cwd=trap)
    assert (said.exit_code, "leave out --out" in said.stderr) == (errors.USAGE, True)


# ---- the server ----------------------------------------------------------------------------------


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[tuple[Path, int]]:
    root = copy(tmp_path, "T1")
    with server.make(root, 0) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.05,))
        thread.start()
        yield root, running.server_port
        running.shutdown()
        thread.join()


def ask(port: int, path: str, host: str | None = None, method: str = "GET") -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request(method, path, headers={"Host": host or f"127.0.0.1:{port}"})
    with connection.getresponse() as response:
        found = response.status, response.read().decode()
    connection.close()
    return found


def test_a_page_is_served_as_it_is_written_but_for_its_script(serving: tuple[Path, int]) -> None:
    root, port = serving
    status, text = ask(port, "/experiments/T1.html")
    assert status == http.HTTPStatus.OK
    page = Reader(text)
    assert "connect-src 'self'" in (page.all("meta")[1]["content"] or "")
    assert len(page.all("script")) == 1
    assert ask(port, "/")[1] == ask(port, "/index.html?x=1")[1]
    assert not (root / "report").exists()


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil:80"])
def test_another_hosts_name_is_refused(serving: tuple[Path, int], host: str) -> None:
    assert ask(serving[1], "/", host)[0] == http.HTTPStatus.FORBIDDEN
    assert ask(serving[1], "/version", host)[0] == http.HTTPStatus.FORBIDDEN


@pytest.mark.parametrize(
    "path", ["/../experiments.yaml", "/%2e%2e/experiments.yaml", "/experiments/../x", "/nothing"]
)
def test_no_file_is_served_that_is_no_page(serving: tuple[Path, int], path: str) -> None:
    assert ask(serving[1], path)[0] == http.HTTPStatus.NOT_FOUND


def test_nothing_can_be_sent_to_the_server(serving: tuple[Path, int]) -> None:
    assert ask(serving[1], "/", method="POST")[0] == http.HTTPStatus.NOT_IMPLEMENTED


def test_a_new_record_is_shown_without_a_restart(serving: tuple[Path, int]) -> None:
    root, port = serving
    before = ask(port, "/version")[1]
    assert "not run" in ask(port, "/experiments/T2.html")[1]
    shutil.copytree(ROOT / records.FOLDER / "T2", root / records.FOLDER / "T2")
    assert ask(port, "/version")[1] != before
    assert "not run" not in ask(port, "/experiments/T2.html")[1]


def test_a_project_that_is_being_edited_is_an_error_and_then_a_page(
    serving: tuple[Path, int],
) -> None:
    root, port = serving
    good = (root / "experiments.yaml").read_text()
    (root / "experiments.yaml").write_text("version: [")
    status, text = ask(port, "/")
    assert (status, "experiments.yaml" in text) == (500, True)
    (root / "experiments.yaml").write_text(good)
    assert ask(port, "/")[0] == http.HTTPStatus.OK


def test_a_port_that_is_taken_is_said(serving: tuple[Path, int]) -> None:
    with pytest.raises(errors.EnvironmentFault, match="can't be had"):
        server.make(serving[0], serving[1])
