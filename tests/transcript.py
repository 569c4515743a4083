"""Commands that a page shows, run one after the other in a folder of their own.

cog makes one in a page's first block; the page's later blocks go on where that one ended.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from shown import ROOT

from kernelexp.evidence import native
from kernelexp.evidence.programs import library
from kernelexp.model.errors import EnvironmentFault

WIDTH = 96
# The programs that a reader has on the PATH.
_PROGRAMS = 'kernelexp() { "$KX" -m kernelexp "$@"; }; python() { "$KX" "$@"; }'
_RUN = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{8}")
_SHOWN_RUN = "20261122T120000Z-5f0c2a91"


def compile_first(root: Path) -> None:
    """What a first command compiles, and says so: no page and no test is to begin with that."""
    native.library(root)
    with contextlib.suppress(EnvironmentFault):
        library.folder(root)


class Transcript:
    """The commands in a folder, of its own unless given, which goes with the process."""

    def __init__(self, folder: Path | None = None) -> None:
        if folder is None:
            folder = Path(tempfile.mkdtemp(prefix="kernelexp-page-"))
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
        compile_first(ROOT)
        self._at = folder
        self._path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))

    def show(self, *commands: str, code: int = 0, lines: slice = slice(None)) -> None:
        """Writes commands and what they print as one console block.

        The last of them ends with `code`, all others with 0. Of its output, `lines` are shown. The
        name of a run, which has the time in it, is always the same one.
        """
        shown = ["```console"]
        for place, command in enumerate(commands):
            last = place == len(commands) - 1
            printed = self._run(command, code if last else 0)
            kept = printed[lines] if last else printed
            cut = ["..."]
            shown += _wrapped(f"$ {command}")
            shown += cut if kept and kept[0] != printed[0] else []
            shown += kept
            shown += cut if kept and kept[-1] != printed[-1] else []
        _write(*shown, "```")

    def run(self, *commands: str) -> None:
        """Runs commands that the page does not show."""
        for command in commands:
            self._run(command, 0)

    def file(self, name: str, first: int = 1, last: int | None = None) -> None:
        """Writes some lines of a file, counted from 1, as a block."""
        text = (self._at / name).read_text().splitlines()
        language = {".cu": "cuda", ".py": "python"}.get(Path(name).suffix, "yaml")
        _write(f"```{language}", *text[first - 1 : last], "```")

    def patch(self, name: str) -> None:
        """Applies a patch of the repository, and writes it."""
        text = (ROOT / name).read_text()
        subprocess.run(["git", "apply"], cwd=self._at, input=text, text=True, check=True)
        _write("```diff", text.strip("\n"), "```")

    def copy(self, name: str, folder: str = ".") -> None:
        """Puts a file of the repository into a folder here."""
        shutil.copy(ROOT / name, self._at / folder)

    def _run(self, command: str, code: int) -> list[str]:
        words = shlex.split(command)
        if words[0] == "cd":
            self._at = (self._at / words[1]).resolve()
            return []
        done = subprocess.run(
            ["bash", "-c", f"{_PROGRAMS}\n{command}"],
            cwd=self._at,
            env={**os.environ, "NO_COLOR": "1", "PYTHONPATH": self._path, "KX": sys.executable},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if code == 0 else subprocess.STDOUT,
            text=True,
        )
        if done.returncode != code:
            raise SystemExit(
                f"{command} ended with {done.returncode}, not {code}:\n{done.stdout}{done.stderr}"
            )
        printed = _RUN.sub(_SHOWN_RUN, done.stdout).rstrip()
        return [line.rstrip() for line in printed.splitlines()]


def _wrapped(line: str) -> list[str]:
    """A command in lines of WIDTH columns, broken before options as a shell allows it."""
    lines = [""]
    for part in re.split(r" (?=--)", line):
        if lines[-1] and len(lines[-1]) + len(part) > WIDTH:
            lines[-1] += " \\"
            lines.append(f"    {part}")
        else:
            lines[-1] += f" {part}" if lines[-1] else part
    return lines


def _write(*lines: str) -> None:
    import cog  # exists only while cog runs this

    cog.outl("\n".join(lines))
