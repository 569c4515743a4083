"""Real git repositories of a test's own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

_ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}


def git(root: Path, *arguments: str) -> str:
    """What git prints; an error where it fails."""
    done = subprocess.run(
        ["git", *arguments], cwd=root, env=_ENVIRONMENT, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def repository(root: Path, who: str = "Ada Test") -> Path:
    """Makes a folder a repository with one commit of all that is there but the cache."""
    git(root, "init", "-q", "-b", "main")
    git(root, "config", "user.name", who)
    git(root, "config", "user.email", "ada@example.org")
    git(root, "config", "commit.gpgsign", "false")
    if not (root / ".gitignore").exists():
        (root / ".gitignore").write_text(".kernelexp/\n")
    commit(root, "first")
    return root


def commit(root: Path, message: str) -> str:
    """Commits all changes; the commit's full name."""
    git(root, "add", "-A")
    git(root, "commit", "-q", "--allow-empty", "-m", message)
    return git(root, "rev-parse", "HEAD")
