"""Options of a service, and the tokens of its clients."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from kernelexp.model.errors import UsageError

SHORTEST = 16
"""Characters of a token."""


class Client(msgspec.Struct, frozen=True, kw_only=True):
    """The client that a token stands for."""

    name: str
    worker: bool = False
    """Whether it may take jobs, and say what became of them."""


class ServeOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of one service."""

    folder: Path
    project: Path = Path()
    """Whose pages are shown."""
    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    """Without a GPU."""
    gpus: tuple[str, ...] = ()
    """UUIDs, of a worker each."""
    tokens: Mapping[str, Client] = {}
    """Clients by their tokens; empty: everybody on this machine may ask."""
    most: int = 100
    """Jobs of one client that are not done."""


def read_tokens(path: Path) -> dict[str, Client]:
    """Reads a file with a name and a token on each line, followed by "worker" for workers."""
    tokens = {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        words = line.split()
        if not words or line.startswith("#"):
            continue
        if words[2:] not in ([], ["worker"]) or len(words) < 2 or len(words[1]) < SHORTEST:
            raise UsageError(
                f"{path}:{number} should be a name and a token of {SHORTEST} characters or more, "
                'with "worker" after the token of a worker.'
            )
        tokens[words[1]] = Client(name=words[0], worker=len(words) > 2)
    if not tokens:
        raise UsageError(f"{path} has no token: a name and a token are needed in each line.")
    return tokens
