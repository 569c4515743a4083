"""What git knows: revisions, who works here."""

from __future__ import annotations

import getpass
import re
from pathlib import Path

from kernelexp import processes
from kernelexp.errors import EnvironmentFault, UsageError
from kernelexp.processes import Completed
from kernelexp.text import quote

LIMIT_S = 60.0


def git(root: Path, *arguments: str, timeout_s: float = LIMIT_S) -> Completed:
    """Runs git in a folder; EnvironmentFault where there is none."""
    return processes.run(("git", *arguments), cwd=root, timeout_s=timeout_s)


def has_repository(root: Path) -> bool:
    """Whether `root` is in a repository that git can read."""
    try:
        return git(root, "rev-parse", "--git-dir").returncode == 0
    except EnvironmentFault:
        return False


def resolve(root: Path, revision: str) -> str:
    """The full name of a commit; UsageError where git knows none."""
    found = find(root, revision)
    if found is None:
        if not has_repository(root):
            raise UsageError(f"{root} is in no git repository: there are no revisions.")
        raise UsageError(
            f"git knows no revision {quote(revision)} (git log shows those there are)."
        )
    return found


def find(root: Path, revision: str) -> str | None:
    """The full name of a commit; None where git knows none."""
    if revision.startswith("-"):
        return None
    asked = f"{revision}^{{commit}}"
    try:
        done = git(root, "rev-parse", "--verify", "--quiet", asked)
    except EnvironmentFault:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def is_commit_name(text: str) -> bool:
    """Whether a text looks like a commit's name or the beginning of one."""
    return re.fullmatch("[0-9a-f]{7,64}", text) is not None


def author(root: Path) -> str:
    """Who works here: git's user.name, else the login name, else nothing."""
    try:
        done = git(root, "config", "user.name")
        if name := done.stdout.strip():
            return name
    except EnvironmentFault:
        pass
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""
