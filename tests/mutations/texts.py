"""Kernels whose CUDA source is mutated: the text as nvcc sees it, and the PTX of changed texts."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from support import ROOT

from kernelexp.evidence import build
from kernelexp.system import toolchain
from kernelexp.system.process import processes
from mutations import rules_of_text
from mutations.case import Case, Source
from mutations.small import SMALL, Small
from mutations.variants import LARGE, Large

CACHE = ROOT / build.CACHE / "mutants"
FLAGS = ("-ptx", "-O3", "-std=c++17")


class TextSubject(NamedTuple):
    """A kernel of which the source is mutated."""

    of: Small | Large

    @property
    def name(self) -> str:
        return f"{self.of.name}.cu"

    def texts(self) -> Mapping[str, str]:
        """Mutants by key."""
        text = self._text()
        return rules_of_text.mutants(self.name, text, self.of.part(text))

    def ptx(self, text: str) -> str | None:
        """What nvcc makes of a text; None if that does not compile."""
        return _compiled(text, (f"-gencode={_gencode(self.of.arch)}", *self.of.defines()))

    def source(self) -> Source:
        """With all mutants that compile, and that are not the same program as the kernel."""
        own = self.of.source()
        texts = self.texts()
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            same, *result = pool.map(self.ptx, (self._text(), *texts.values()))
        changed = {
            key: ptx for key, ptx in zip(texts, result, strict=True) if ptx not in (None, same)
        }
        return own._replace(changed=changed)

    def case(self, exports: Mapping[str, int]) -> Case:
        return self.of.case(exports)

    def _text(self) -> str:
        return "\n".join(_lines(self.of.path(), self.of.folders(), set()))


def _lines(path: Path, folders: Sequence[Path], seen: set[Path]) -> Iterator[str]:
    """A source with the project's headers in their places, each once, and without comments."""
    for line in path.read_text().splitlines():
        named = re.match(r'#include "(.*)"', line)
        if named:
            header = next(f / named[1] for f in folders if (f / named[1]).exists())
            if header not in seen:
                seen.add(header)
                yield from _lines(header, folders, seen)
        elif line != "#pragma once":
            yield re.sub(r" *//.*", "", line)


def _gencode(arch: str) -> str:
    return f"arch={arch.replace('sm_', 'compute_')},code={arch}"


def _compiled(text: str, flags: Sequence[str]) -> str | None:
    """Kept by what goes in, so that a text is compiled once."""
    command = [*FLAGS, *flags]
    tools = toolchain.find(None, ROOT / build.CACHE)
    content = repr((text, command, tools.version)).encode()
    kept = CACHE / f"{hashlib.sha256(content).hexdigest()}.ptx"
    if not kept.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as folder:
            source, out = Path(folder) / "k.cu", Path(folder) / "k.ptx"
            source.write_text(text)
            done = processes.run([tools.nvcc, *command, str(source), "-o", str(out)])
            if done.returncode:
                return None
            out.rename(kept)
    return kept.read_text()


_NAMES = """
reduce_tree scan transpose_twice named_barriers grid_barrier last_adds
copies_ahead ring_of_stores ring_of_tma multicast multiply staged_multiply five_tiles
patch_embed_gemm@sm_100a patch_embed_gemm@sm_90a flash_attention_hopper
""".split()
TEXTS = tuple(TextSubject(item) for item in (*SMALL, *LARGE) if item.name in _NAMES)
