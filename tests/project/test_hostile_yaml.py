"""Whatever a project's file holds, loading it gives a project or sentences, at a bounded cost."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import ROOT, Kx

from kernelexp import project
from kernelexp.model.errors import ConfigurationError
from kernelexp.model.text import CONTROL

TEXT = (ROOT / "tests/projects/scale/experiments.yaml").read_text()


def with_value(value: str) -> str:
    """The sample project with `value` as a value of an axis."""
    return TEXT.replace("values: [1, 2, 4]", f"values: [1, {value}, 2, 4]")


def with_title(value: str) -> str:
    return TEXT.replace("title: Four floats per thread", f"title: {value}")


# The file, and the sentence or a part of it.
HOSTILE = {
    "empty": ("", "experiments.yaml:1:1: 'kernels' is missing."),
    "no kernels": ("version: 1\n", "experiments.yaml:1:1: 'kernels' is missing."),
    "a list": ("- a\n", "experiments.yaml:1:1: this should be a mapping, not a list."),
    "text": ("a\n", "experiments.yaml:1:1: this should be a mapping, not text."),
    "two documents": (f"{TEXT}---\n{TEXT}", "experiments.yaml:44:1: a second document begins"),
    "tab": ("version: 1\n\tkernels: {}", "indent with spaces, not with tabs"),
    "NUL": (TEXT.replace("16", "\0"), "the control character U+0000 is not allowed"),
    "escape code": (with_title("\x1b[31mred"), "19:12: the control character U+001B is not"),
    "escaped escape code": (
        with_title('"\\e[31mred"'),
        "experiments.yaml:19:12: experiments.S1.title: this has the control character U+001B",
    ),
    "C1": (with_title('"\\x9b31m"'), "experiments.S1.title: this has the control character U+009B"),
    "bidi override": (with_title("a\u202eb"), "19:13: the control character U+202E is not allowed"),
    "escaped carriage return": (with_title('"a\\rb"'), "this has the control character U+000D"),
    "control character in a key": ('"a\\e": 1', "experiments.yaml:1:1: this key has the control"),
    "list as a key": ("[a]: 1\n", "experiments.yaml:1:1: a key is text, not a list or a mapping."),
    "date": (with_value("2026-11-20"), "'2026-11-20' is not allowed: an axis value is a"),
    "impossible date": (with_value("2026-02-30"), "'2026-02-30' is not allowed"),
    "fraction": (
        with_value("2.0"),
        "experiments.yaml:12:31: kernels.scale.targets.sm_90a.axes.width.values[1]: 2.0 is not a "
        "whole number; in quotes, '2.0', it would be text.",
    ),
    "power": (with_value("42e1234"), "42e1234 is not a whole number"),
    "infinity": (with_value("-.inf"), "-.inf is not a whole number"),
    "not a number": (with_value(".nan"), ".nan is not a whole number"),
    "many digits": (with_value("9" * 5000), "has 5000 digits; at most 18 are allowed"),
    "nothing": (with_title("~"), "experiments.S1.title: this should be text, not nothing."),
    "tag": (
        with_title("!!python/name:os.system x"),
        "19:12: tags such as tag:yaml.org,2002:python",
    ),
    "directive": ("%YAML 1.1\n---\na: 1\n", "experiments.yaml:1:1: a line that begins with %"),
    "alias to itself": ("a: &a [*a]\n", "1:8: no anchor &a ends before this alias."),
    "merge of itself": ("a: &a {<<: *a}\n", "1:12: no anchor &a ends before this alias."),
    "merge of text": ("<<: text\n", "1:1: << takes a mapping, or a list of mappings."),
    "flow depth": ("[" * 100_000, "this is nested more than 32 deep."),
    "block depth": ("- " * 50_000, "this is nested more than 32 deep."),
    "line break in a title": (
        with_title('"a\\nb"'),
        "'a\\nb' is not allowed: this is a single line",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_a_sentence_with_its_place(name: str, scale: Path) -> None:
    text, sentence = HOSTILE[name]
    (scale / "experiments.yaml").write_text(text, newline="")
    with pytest.raises(ConfigurationError) as caught:
        project.load(scale)
    assert sentence in str(caught.value)
    assert all(fault.isprintable() for fault in caught.value.faults)


def test_a_byte_that_is_not_utf8_has_its_place(scale: Path) -> None:
    path = scale / "experiments.yaml"
    path.write_bytes(path.read_bytes().replace(b"Two widths", "Zwölf".encode("latin-1")))
    with pytest.raises(ConfigurationError, match=r"28:14: byte 0xf6 is not UTF-8; save the file"):
        project.load(scale)


@pytest.mark.parametrize("encode", [lambda text: "\ufeff" + text, lambda text: _crlf(text)])
def test_a_byte_order_mark_and_windows_line_ends_change_nothing(scale: Path, encode: Any) -> None:
    wanted = project.load(scale)
    (scale / "experiments.yaml").write_text(encode(TEXT), encoding="utf-8", newline="")
    assert project.load(scale) == wanted


def _crlf(text: str) -> str:
    return text.replace("\n", "\r\n")


def test_text_is_what_is_written_where_text_is_wanted(scale: Path) -> None:
    text = with_title("42e1234").replace("why: Not known yet.", "why: 6319928\n    notes: 2.50")
    (scale / "experiments.yaml").write_text(text.replace("notes: first", "notes: true"))
    loaded = project.load(scale)
    first, step = loaded.experiments["S1"], loaded.experiments["aaaaaaa"]
    assert (first.title, first.why, first.notes) == ("42e1234", "6319928", "2.50")
    assert step.notes == "true"


def test_on_and_off_are_text_and_true_is_not(scale: Path) -> None:
    text = TEXT.replace("[forward, backward], default: forward", "[on, true], default: on")
    (scale / "experiments.yaml").write_text(text)
    assert project.load(scale).kernels["scale"].targets["sm_90a"].axes["order"].values == [
        "on",
        True,
    ]


def test_the_first_ten_mistakes_are_shown_and_the_others_counted(scale: Path, kx: Kx) -> None:
    steps = "".join(f"  s{number}: {{kernal: scale}}\n" for number in range(7))
    (scale / "experiments.yaml").write_text(TEXT.replace("history:\n", f"history:\n{steps}"))
    with pytest.raises(ConfigurationError) as caught:
        project.load(scale)
    assert len(caught.value.faults) == 7 * 6  # an unknown key and five that are missing, each
    result = kx("list", cwd=scale)
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 11
    assert result.stderr.endswith("... and 32 more mistakes\n")


# ---- cost ----------------------------------------------------------------------------------------


def bombs() -> Iterator[str]:
    """Files that would be much larger than they are."""
    nine = ",".join(["*a{0}"] * 9)
    yield "a0: &a0 [x]\n" + "".join(f"a{n + 1}: &a{n + 1} [{nine.format(n)}]\n" for n in range(30))
    yield "a0: &a0 {k: 1}\n" + "".join(
        f"a{n + 1}: &a{n + 1} {{<<: [{nine.format(n)}], k{n}: 1}}\n" for n in range(30)
    )
    # The first key's value is never built, so that nothing before the chain's end is merged yet.
    chain = ",".join(f"&a{n + 1} {{<<: *a{n}}}" for n in range(20_000))
    yield f"x: [&a0 {{k: v}},{chain}]\nx: 1\ny: *a20000\n"
    yield "x: [&a0 [1]," + ",".join(f"&a{n + 1} [[[*a{n}]]]" for n in range(20_000)) + "]\n"
    yield "[" + "1," * 1_500_000 + "]"
    yield "%TAG !a! b\n" * 300_000
    yield "x" * (5 << 20)
    yield with_value(",".join(map(str, range(5, 40_000))))
    axes = ", ".join(f"a{n}: {{values: [1, 2], default: 1}}" for n in range(8_000))
    experiment = "{kernel: scale, arch: sm_90a, title: t, hypothesis: h, baseline: {}, candidate: "
    kernels = TEXT.partition("experiments:")[0].replace("axes:\n", f"axes: {{{axes}}}\n        #")
    many = (f"  E{n}: {experiment}[{'{},' * 10}]}}\n" for n in range(3_000))
    yield f"{kernels.partition('#')[0]}\nexperiments:\n{''.join(many)}"


LIMITED = """
import json, resource, sys
from pathlib import Path
from kernelexp import project
from kernelexp.model.errors import ConfigurationError
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
said = []
for text in json.load(sys.stdin):
    spent = int(sum(resource.getrusage(resource.RUSAGE_SELF)[:2]))
    resource.setrlimit(resource.RLIMIT_CPU, (spent + 15, resource.RLIM_INFINITY))
    Path("experiments.yaml").write_text(text)
    try:
        project.load(Path())
        said.append("loaded")
    except ConfigurationError as error:
        said.append(error.faults[0])
json.dump(said, sys.stdout)
"""


@pytest.mark.slow
def test_a_bomb_costs_little_time_and_memory(scale: Path) -> None:
    texts = list(bombs())
    done = subprocess.run(
        [sys.executable, "-c", LIMITED], input=json.dumps(texts), cwd=scale, **CAPTURED
    )
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert len(data) == len(texts)
    assert all(item.startswith("experiments.yaml:") for item in data)


CAPTURED: dict[str, Any] = {"capture_output": True, "text": True}

# ---- fuzz ----------------------------------------------------------------------------------------

FRAGMENTS = [
    *[b"&a ", b"*a", b"<<: ", b"<<: *a\n", b"[", b"]", b"{", b"}", b"\t", b"\0", b"\xff", b"\r"],
    *[b"2026-02-30", b"1e5", b".nan", b"!!binary ", b"? ", b"- ", b": ", b"\n", b"  ", b"#"],
    *[b"|\n", b">-\n", b'"\\e[31m"', b'"\\ud800"', b"\xef\xbb\xbf", b"%", b"---\n", b"...\n"],
    *[b"~", b"true", b"9" * 5000, b"'", b'"', b"\xe2\x80\xae", b"null", b"$(x)", b"!", b"@"],
]

CHANGES = st.lists(
    st.tuples(
        st.integers(0, len(TEXT) - 1),
        st.sampled_from([0, 0, 1, 3, 20]),
        st.sampled_from(FRAGMENTS) | st.binary(max_size=4),
    ),
    min_size=1,
    max_size=5,
)


@contextmanager
def cpu_limit(seconds: int) -> Iterator[None]:
    """Ends what takes more of the processor's time; how long it takes by the clock is no matter."""

    def stop(number: int, frame: object) -> None:
        pytest.fail(f"this took more than {seconds} s of the processor's time")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fuzzed") / "scale"
    return Path(shutil.copytree(ROOT / "tests/projects/scale", folder))


def load_changed(root: Path, changes: list[tuple[int, int, bytes]]) -> None:
    raw = TEXT.encode()
    for start, removed, inserted in changes:
        raw = raw[:start] + inserted + raw[start + removed :]
    (root / "experiments.yaml").write_bytes(raw)
    with cpu_limit(10):
        try:
            assert project.load(root).kernels
        except ConfigurationError as error:
            for fault in error.faults:
                assert re.fullmatch(r"experiments\.yaml:\d+:\d+: .*[.…]", fault), fault
                assert not CONTROL.search(fault)


@given(CHANGES)
@settings(max_examples=300, deadline=None)
def test_a_changed_file_loads_or_is_sentences(
    fuzzed: Path, changes: list[tuple[int, int, bytes]]
) -> None:
    load_changed(fuzzed, changes)


@pytest.mark.slow
@given(CHANGES)
@settings(max_examples=10_000, deadline=None)
def test_many_changed_files_load_or_are_sentences(
    fuzzed: Path, changes: list[tuple[int, int, bytes]]
) -> None:
    load_changed(fuzzed, changes)
