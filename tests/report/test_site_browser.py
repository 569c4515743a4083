"""The web pages in Chromium, from files: no errors, filters, sorting, links, nothing hostile runs.

Skipped where there is no Chromium with its driver: apt-get install chromium chromium-driver.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from site_project import HOSTILE, SCRIPT, build, copy, hostile
from support import Kx, edit, wait_until

from kernelexp import project
from kernelexp.report.site import server, single, site
from kernelexp.system import live
from kernelexp.system.live import Step

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("site"),
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="no chromium with chromedriver here"),
]


@pytest.fixture(scope="module")
def chromium() -> Iterator[webdriver.Chrome]:
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM or ""
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"):
        options.add_argument(argument)
    options.add_argument("--window-size=1280,900")  # below 60rem the rows of the index fold
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with webdriver.Chrome(options, Service(DRIVER)) as driver:
        yield driver


@pytest.fixture
def page(chromium: webdriver.Chrome, every_page: Path) -> webdriver.Chrome:
    """The first page, opened from its file."""
    show(chromium, every_page / "index.html")
    return chromium


def show(chromium: webdriver.Chrome, path: Path, fragment: str = "") -> None:
    chromium.get("about:blank")
    chromium.get_log("browser")  # what earlier pages said
    chromium.get(path.as_uri() + fragment)


def visible(chromium: webdriver.Chrome) -> list[str]:
    """The ids in the table's rows that are shown, in their order."""
    result = chromium.execute_script(
        "return [...document.querySelectorAll('#experiments tbody tr')]"
        ".filter(row => row.offsetParent).map(row => row.dataset.id)"
    )
    return list(result)


def figures(chromium: webdriver.Chrome, name: str) -> list[float | None]:
    result = chromium.execute_script(
        "const heads = [...document.querySelectorAll('#experiments thead th')];"
        "const place = heads.findIndex(head => head.dataset.key === arguments[0]);"
        "return [...document.querySelectorAll('#experiments tbody tr')]"
        ".map(row => row.cells[place]).filter(cell => cell.offsetParent)"
        ".map(cell => 'value' in cell.dataset ? Number(cell.dataset.value) : null)",
        name,
    )
    return list(result)


def control(chromium: webdriver.Chrome, name: str) -> WebElement:
    return chromium.find_element(By.CSS_SELECTOR, f"#filters [name={name}]")


def head(chromium: webdriver.Chrome, key: str) -> WebElement:
    return chromium.find_element(By.CSS_SELECTOR, f"#experiments th[data-key={key}]")


def test_no_page_has_an_error_on_its_console(chromium: webdriver.Chrome, every_page: Path) -> None:
    result = {}
    for path in [*sorted(every_page.rglob("*.html"))[::4], every_page / "index.html"]:
        show(chromium, path)
        if entries := chromium.get_log("browser"):
            result[path.name] = entries
    assert result == {}


def test_words_filter_the_rows_and_their_number_is_said(page: webdriver.Chrome) -> None:
    everything = visible(page)
    control(page, "q").send_keys("transpose rows=16")
    assert visible(page) == ["T3"]
    assert page.find_element(By.ID, "count").text == f"1 of {len(everything)} rows"


def test_a_filter_is_in_the_address_and_comes_back_with_it(
    page: webdriver.Chrome, every_page: Path
) -> None:
    control(page, "verdict").send_keys("IMPROVED")
    control(page, "q").send_keys("S")
    filtered = visible(page)
    fragment = page.current_url.partition("#")[2]
    assert fragment == "q=S&verdict=IMPROVED"
    show(page, every_page / "index.html", f"#{fragment}")
    assert visible(page) == filtered
    assert 0 < len(filtered) < 40


def test_the_keyboard_sorts_by_figures_and_says_so(page: webdriver.Chrome) -> None:
    before = visible(page)
    cell = head(page, "time_ms")
    button = cell.find_element(By.TAG_NAME, "button")
    page.execute_script("arguments[0].focus()", button)
    button.send_keys(Keys.ENTER)
    times = figures(page, "time_ms")
    known = [time for time in times if time is not None]
    assert known == sorted(known)
    assert times[len(known) :] == [None] * (len(times) - len(known))  # what has no time comes last
    assert cell.get_attribute("aria-sort") == "ascending"
    page.switch_to.active_element.send_keys(Keys.SPACE)
    known = [time for time in figures(page, "time_ms") if time is not None]
    assert known == sorted(known, reverse=True)
    assert cell.get_attribute("aria-sort") == "descending"
    page.switch_to.active_element.send_keys(Keys.ENTER)
    assert (cell.get_attribute("aria-sort"), visible(page)) == ("none", before)


def test_a_long_table_shows_its_first_rows_and_all_when_asked(
    chromium: webdriver.Chrome, tmp_path: Path
) -> None:
    """Chromium lays 1,000 rows out in more than the 100 ms that a key may take."""
    root = copy(tmp_path)
    for number in range(250):
        (root / "experiments" / f"X{number}.yaml").write_text(
            f"kernel: transpose\narch: sm_90a\ntitle: Experiment {number}\n"
            "candidate: {layout: swizzled}\nhypothesis: It is faster.\n"
        )
    show(chromium, build(root, tmp_path / "out") / "index.html", "#q=experiment")
    count, more = (chromium.find_element(By.ID, name) for name in ("count", "all"))
    total = count.text.split(" of ")[1].split()[0]
    assert count.text == f"250 of {total} rows, the first 200 shown"
    assert len(visible(chromium)) == 200
    control(chromium, "q").send_keys(" 24")
    assert visible(chromium) == [
        "X24",
        "X124",
        "X224",
        *(f"X{number}" for number in range(240, 250)),
    ]
    assert not more.is_displayed()
    control(chromium, "q").send_keys(Keys.BACKSPACE * 3)
    more.click()
    assert len(visible(chromium)) == 250
    assert count.text == f"250 of {total} rows"


def test_clearing_shows_every_row_again(page: webdriver.Chrome) -> None:
    everything = visible(page)
    control(page, "q").send_keys("nothing has these words")
    assert visible(page) == []
    page.find_element(By.CSS_SELECTOR, "#filters [type=reset]").click()
    wait_until(lambda: visible(page) == everything, 20)


def test_the_figures_on_the_screen_are_those_of_the_log(kx: Kx, page: webdriver.Chrome) -> None:
    logged = [
        arm.get("time_ms")
        for log in json.loads(kx("log", "--json").stdout)
        for section in ("history", "experiments")
        for entry in log[section]
        for arm in entry["arms"]
        if arm["arm"] == "candidate"
    ]
    assert figures(page, "time_ms") == logged


def test_a_row_leads_to_its_experiment(page: webdriver.Chrome) -> None:
    page.find_element(By.LINK_TEXT, "H3").click()
    assert page.find_element(By.TAG_NAME, "h1").text.startswith("H3: ")
    assert page.get_log("browser") == []


def test_the_first_tab_skips_to_the_content(page: webdriver.Chrome) -> None:
    page.find_element(By.TAG_NAME, "body").send_keys(Keys.TAB)
    assert page.switch_to.active_element.text == "Skip to content"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_follow_the_system_and_contrast(page: webdriver.Chrome, scheme: str) -> None:
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    colours = page.execute_script(
        "const s = getComputedStyle(document.body); return [s.color, s.backgroundColor]"
    )
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    front, back = map(luminance, colours)
    assert (back > front) == (scheme == "light")
    assert (max(front, back) + 0.05) / (min(front, back) + 0.05) > 7


def luminance(colour: str) -> float:
    """Relative luminance, as WCAG defines it, of `rgb(1, 2, 3)`."""
    parts = [int(part) / 255 for part in colour[4:-1].split(",")]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_a_phone_scrolls_tables_but_not_the_page(page: webdriver.Chrome, every_page: Path) -> None:
    phone = {"width": 360, "height": 740, "deviceScaleFactor": 1, "mobile": True}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
    widths = {}
    for name in ("index.html", "experiments/H3.html"):
        show(page, every_page / name)
        widths[name] = page.execute_script("return document.documentElement.scrollWidth")
    page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert all(width <= 360 for width in widths.values()), widths


CUT = """
const wide = document.documentElement.clientWidth, out = [];
const scrolls = (e) => e
  && (["auto", "scroll"].includes(getComputedStyle(e).overflowX) || scrolls(e.parentElement));
for (const e of document.querySelectorAll("main *")) {
  const box = e.getBoundingClientRect();
  if (box.width && box.right > wide + 1 && !scrolls(e)) out.push(e.outerHTML.slice(0, 80));
}
for (const text of document.querySelectorAll("svg.plot text")) {
  const svg = text.closest("svg");
  const own = text.getBoundingClientRect(), around = svg.getBoundingClientRect();
  if (!own.width) continue;
  const cut = own.left < around.left - 1 || own.right > around.right + 1
    || own.bottom > around.bottom + 1;
  const scale = around.width / svg.viewBox.baseVal.width;
  if (cut) out.push("cut: " + text.textContent);
  if (11 * scale < 9) out.push("too small: " + text.textContent);
}
return out;
"""


@pytest.mark.parametrize("width", [390, 768, 1280])
def test_nothing_is_cut_and_charts_can_be_read(
    chromium: webdriver.Chrome, every_page: Path, width: int
) -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        cut = {}
        for path in [*sorted(every_page.rglob("*.html"))[::5], every_page / "index.html"]:
            show(chromium, path)
            chromium.execute_script(
                "for (const e of document.querySelectorAll('details')) e.open = true"
            )
            if outside := chromium.execute_script(CUT):
                cut[path.name] = outside
        assert cut == {}
    finally:
        chromium.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_a_phone_shows_rows_of_the_index_without_scrolling(
    chromium: webdriver.Chrome, every_page: Path
) -> None:
    size = {"width": 390, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        show(chromium, every_page / "index.html")
        rights = chromium.execute_script(
            "return [...document.querySelectorAll('#experiments tbody tr')]"
            ".map(row => row.cells[3].getBoundingClientRect().right)"
        )
        assert rights
        assert max(rights) <= 390
        wider = chromium.execute_script(
            "return [...document.querySelectorAll('.scroll:has(.judged)')]"
            ".map(box => [box.getAttribute('aria-label'), box.scrollWidth - box.clientWidth])"
        )
        assert wider == [["Sweeps", 0], ["Profiles", 0]]
    finally:
        chromium.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_a_line_of_source_shows_its_instructions_in_every_listing(
    chromium: webdriver.Chrome, scale: Path, kx: Kx
) -> None:
    kx("inspect", "scale", "--lines", "--page", "listing.html", cwd=scale)
    show(chromium, scale / "listing.html")
    assert not chromium.find_element(By.ID, "code1").is_displayed()
    chromium.find_element(By.CSS_SELECTOR, "input[value=code1]").click()
    assert chromium.find_element(By.ID, "code1").is_displayed()
    identity = chromium.find_element(By.CSS_SELECTOR, "#code0 tr[id]").get_attribute("data-at")
    chromium.find_element(By.ID, f"L{identity}").click()
    for pane in chromium.find_elements(By.CSS_SELECTOR, ".pane"):
        marked = pane.find_elements(By.CSS_SELECTOR, "tr.on")
        assert {row.get_attribute("data-at") for row in marked} == {identity}
    heats = chromium.find_element(By.CSS_SELECTOR, "th.heated").text
    chromium.find_elements(By.CSS_SELECTOR, "#heat option")[-1].click()
    assert chromium.find_element(By.CSS_SELECTOR, "th.heated").text != heats
    assert not chromium.get_log("browser")


def test_a_variant_without_the_chosen_figure_has_no_column_beside_the_source(
    chromium: webdriver.Chrome, scale: Path, kx: Kx
) -> None:
    kx("inspect", "S1", "--lines", "--page", "listing.html", cwd=scale)
    show(chromium, scale / "listing.html")
    heads = "return [...document.querySelectorAll('.first th[scope=col]')].map(h => h.offsetWidth)"
    assert all(chromium.execute_script(heads))
    chromium.execute_script(
        "for (const row of document.querySelectorAll('.first tbody tr'))"
        " { delete row.cells[2].dataset.heat; row.cells[2].textContent = ''; }"
        "document.getElementById('heat').dispatchEvent(new Event('change'))"
    )
    shown = [bool(width) for width in chromium.execute_script(heads)[:4]]
    assert shown == [True, True, False, True]  # line, baseline, candidate, source


@pytest.fixture
def one_file(tmp_path: Path, part: Path) -> Path:
    path = tmp_path / "one.html"
    path.write_bytes(single.render(site.ProjectSite(project.load(part, sources=False))))
    return path


def in_sight(chromium: webdriver.Chrome) -> list[str]:
    """The pages of a single file that are shown."""
    result = chromium.execute_script(
        "return [...document.querySelectorAll('article.page')]"
        ".filter(page => page.offsetParent).map(page => page.id)"
    )
    return list(result)


@pytest.mark.parametrize("fragment", ["", "#q=T1", "#best"])
def test_a_single_file_opens_with_its_first_page(
    chromium: webdriver.Chrome, one_file: Path, fragment: str
) -> None:
    show(chromium, one_file, fragment)
    assert in_sight(chromium) == ["index"]


def test_a_link_in_a_single_file_shows_one_other_page_and_back_the_first(
    chromium: webdriver.Chrome, one_file: Path
) -> None:
    show(chromium, one_file)
    chromium.find_element(By.CSS_SELECTOR, "#experiments tr[data-id=T1] a").click()
    assert in_sight(chromium) == ["experiments-T1"]
    assert chromium.get_log("browser") == []
    chromium.find_element(By.CSS_SELECTOR, "#experiments-T1 header a").click()
    assert in_sight(chromium) == ["index"]


def test_a_single_file_works_without_scripts(chromium: webdriver.Chrome, one_file: Path) -> None:
    chromium.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        show(chromium, one_file, "#experiments-T1")
        shown = chromium.find_element(By.CSS_SELECTOR, "#experiments-T1 h1").text
        first = chromium.find_element(By.CSS_SELECTOR, "#index h1").text
    finally:
        chromium.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    assert shown.startswith("T1:")
    assert first == ""  # what is not in sight has no text


def test_hostile_words_are_shown_and_do_nothing(chromium: webdriver.Chrome, tmp_path: Path) -> None:
    out = build(hostile(tmp_path), tmp_path / "out")
    for path in sorted(out.rglob("*.html")):
        show(chromium, path, "#q=<script>document.title=1</script>&sort=<img src=x>")
        assert chromium.title not in ("1", "run"), path
        assert chromium.get_log("browser") == [], path
        assert not chromium.find_elements(By.TAG_NAME, "img")


def test_the_policy_stops_a_script_that_escaping_missed(
    chromium: webdriver.Chrome, every_page: Path, tmp_path: Path
) -> None:
    text = (every_page / "index.html").read_text()
    bad = tmp_path / "index.html"
    bad.write_text(text.replace("<h1>", "<script>document.title='run'</script><h1>", 1))
    show(chromium, bad)
    assert chromium.title != "run"
    assert any("Content Security Policy" in item["message"] for item in chromium.get_log("browser"))


@contextlib.contextmanager
def serving(root: Path) -> Iterator[str]:
    """The address of the project's pages."""
    with server.make(root, 0) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{running.server_port}"
        finally:
            running.shutdown()
            thread.join()


def test_a_served_page_shows_a_change_by_itself(chromium: webdriver.Chrome, tmp_path: Path) -> None:
    root = copy(tmp_path, "T1")
    with serving(root) as address:
        chromium.get(f"{address}/#q=T1")
        assert visible(chromium) == ["T1"]
        good = (root / "experiments.yaml").read_text()
        (root / "experiments.yaml").write_text("version: [")  # half written
        time.sleep(3)
        assert visible(chromium) == ["T1"]
        (root / "experiments.yaml").write_text(good)
        edit(root, "title: One word of padding", "title: Quite anew")
        wait_until(lambda: "Quite anew" in chromium.page_source)
        assert visible(chromium) == ["T1"]
        chromium.get("about:blank")


def test_a_served_page_follows_a_run_from_its_build_to_its_record(
    chromium: webdriver.Chrome, cold: Path
) -> None:
    with serving(cold) as address:
        chromium.get_log("browser")  # what earlier pages said
        chromium.get(f"{address}/experiments/S1.html")
        place = chromium.find_element(By.ID, "live")
        assert not place.is_displayed()
        program = [sys.executable, "-m", "kernelexp", "run", "S1", "--no-gpu"]
        with subprocess.Popen(program, cwd=cold, stdout=subprocess.DEVNULL) as run:
            seen = follow(chromium, run)
        assert {"kernelexp run S1 --no-gpu", "building", "emulating"} <= seen
        wait_until(lambda: "No records yet" not in chromium.page_source)
        wait_until(lambda: not chromium.find_element(By.ID, "live").is_displayed())
        assert chromium.get_log("browser") == []
        chromium.get("about:blank")


def follow(chromium: webdriver.Chrome, run: subprocess.Popen[bytes]) -> set[str]:
    """The words that a served page shows of what runs, until the run has ended."""
    script = (
        "return [...document.querySelectorAll('#live code, #live li > span')]"
        ".map(each => each.textContent)"
    )
    seen: set[str] = set()
    while run.poll() is None:
        seen.update(chromium.execute_script(script))
        time.sleep(0.1)
    return seen


def test_hostile_words_of_what_runs_do_nothing(chromium: webdriver.Chrome, tmp_path: Path) -> None:
    root = copy(tmp_path, "T1")
    with serving(root) as address, live.published(root, SCRIPT) as tell:
        tell(Step(phase="building", done=0, total=0, now=HOSTILE))
        chromium.get(address)
        wait_until(lambda: "onerror" in chromium.find_element(By.ID, "live").text)
        assert chromium.title not in ("1", "run")
        assert not chromium.find_elements(By.TAG_NAME, "img")
        chromium.get("about:blank")
