"""The Python API does what commands do, and the MCP server what the API does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from schemas import validate
from support import ROOT

from kernelexp import api
from kernelexp.model import errors
from kernelexp.model.arm import Status
from kernelexp.report import outputs
from kernelexp.system import disk


def test_functions_give_what_commands_print(scale: Path) -> None:
    loaded = api.load(scale)
    assert validate("list", api.encode("list", api.list_project(loaded)))
    (ran,) = api.run(loaded, ["S1"], emulate=False, gpu=False)
    assert ran.record is not None
    assert ran.record.candidates[0].verdict.status is Status.UNMEASURED
    validate("run", api.encode("run", [ran]))
    shown = api.show(loaded, "S1")
    assert [record.run for record in shown.records] == [ran.record.run]
    assert api.record(loaded, ran.record.run) == ran.record
    (emulation,) = api.emulate(loaded, ["scale:width=2"])
    assert emulation.arm.emulated
    explained = api.explain(loaded, "S2", 2, emulate=False)
    assert explained.candidate["width"] == 4


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda p: api.run(p, ["S9"]), "there is no experiment 'S9'"),
        (lambda p: api.emulate(p, ["scales"]), "there is no kernel 'scales'"),
        (lambda p: api.explain(p, "S1", 2), "S1 has no candidate 2"),
        (lambda p: api.evaluate(p, "scale:width=3", ""), "width=3"),
    ],
)
def test_a_mistake_is_an_exception_with_a_sentence(scale: Path, call, words: str) -> None:
    with pytest.raises(errors.KernelexpError, match=words):
        call(api.load(scale))


@pytest.mark.slow
def test_the_documented_example_runs(
    scale: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (ROOT / "docs/api.md").read_text()
    _, _, rest = page.partition("<!-- run in tests/api/test_api.py -->\n```python\n")
    monkeypatch.chdir(scale)
    exec(rest.partition("```")[0], {})
    out = capsys.readouterr().out
    assert "registers per thread" in out
    assert "y 0 wrong elements" in out


@pytest.mark.parametrize("kind", outputs.types())
def test_every_schema_is_documented(kind: str) -> None:
    rows = [line for line in (ROOT / "docs/api.md").read_text().splitlines() if line[:3] == "| `"]
    assert any(f"`{kind}`" in row for row in rows)


def test_importing_the_package_loads_nothing() -> None:
    code = "import sys, kernelexp; print(*(m for m in sys.modules if m.startswith('kernelexp')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["kernelexp"]


def test_a_path_is_no_run_of_the_project(scale: Path, tmp_path: Path) -> None:
    (record,) = list((ROOT / "logs/runs/T1").glob("*.measured.json"))[:1]
    for name in (str(record), "../T1", record.name, "S1\0"):
        with pytest.raises(errors.UsageError, match="is a path: name a run"):
            api.record(api.load(scale), name)


def _serving(root: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "kernelexp", "serve", "--mcp", "-C", str(root)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen(command, env=environment, **pipes)


def test_a_message_that_is_too_long_is_refused_and_a_signal_ends_the_server(scale: Path) -> None:
    with _serving(scale) as server:
        server.stdin.write(b"[" * (13 << 20) + b"\n")
        server.stdin.flush()
        assert b"more than 12,582,912 bytes" in server.stdout.readline()
        server.send_signal(signal.SIGTERM)
        try:
            assert server.wait(timeout=60) == errors.TERMINATED
        finally:
            server.kill()


@pytest.mark.slow
def test_a_client_of_the_protocol_lists_emulates_and_evaluates(scale: Path) -> None:
    anyio.run(_converse, scale)


async def _converse(root: Path) -> None:
    from mcp import Client, StdioServerParameters  # 2 s, for one slow test

    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "kernelexp", "serve", "--mcp", "-C", str(root)],
        env={"PYTHONPATH": str(ROOT), disk.CACHE_VARIABLE: os.environ[disk.CACHE_VARIABLE]},
    )
    async with Client(server) as client:
        named = {tool.name for tool in (await client.list_tools()).tools}
        assert named == {"list", "show", "run", "emulate", "explain", "evaluate"}

        async def ask(tool: str, **arguments: object) -> str:
            answer = await client.call_tool(tool, arguments)
            assert not answer.is_error, answer.content
            return answer.content[0].text

        assert validate("list", await ask("list"))["experiments"]["S1"]
        (result,) = validate("emulate", await ask("emulate", variant="scale:width=4"))
        assert result["arm"]["emulated"]["arrays"][0]["wrong"] == 0
        validate("run", await ask("run", experiment="S1", gpu=False))
        assert validate("show", await ask("show", name="S1"))["records"] == []
        validate("explain", await ask("explain", experiment="S1"))
        text = (root / "variants/scale/scale.cu").read_text().replace("*= factor", "*= 2.0f")
        judged = await ask("evaluate", variant="scale", source=text, gpu=False)
        assert validate("evaluate", judged)["verdict"]["status"] == "INCORRECT"
        wrong = await client.call_tool("show", {"name": "S9"})
        assert wrong.is_error
        assert "S9" in wrong.content[0].text
