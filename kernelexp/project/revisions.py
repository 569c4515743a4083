"""Git queries: revisions, changes since one, the files of one, the user who works here."""

from __future__ import annotations

import contextlib
import getpass
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from kernelexp.model.errors import EnvironmentFault, UsageError
from kernelexp.model.text import one_line, quote
from kernelexp.system.process import processes
from kernelexp.system.process.processes import Completed

LIMIT_S = 60.0


def git(root: Path, *arguments: str, timeout_s: float = LIMIT_S) -> Completed:
    """Runs git in a folder; EnvironmentFault where there is none."""
    return processes.run(("git", *arguments), cwd=root, timeout_s=timeout_s)


_NO_REPOSITORY = "not a git repository"
_SHALLOW = "this clone is shallow: `git fetch --unshallow` brings the rest"


def why_unreadable(root: Path) -> str:
    """Says why git can read no repository at `root`, without a full stop; empty where it can."""
    try:
        done = git(root, "rev-parse", "--git-dir")
    except EnvironmentFault as error:  # no git
        return str(error).rstrip(".")
    if done.returncode == 0:
        return ""
    if _NO_REPOSITORY in done.stderr:
        return f"{root} is in no git repository"
    return f"git can't read the repository of {root}: {one_line(done.stderr)}"


def is_boundary(root: Path, commit: str) -> bool:
    """Whether a shallow clone ends at this commit, which looks as if it had added all files."""
    done = git(root, "rev-parse", "--git-path", "shallow")
    try:
        return commit in (root / done.stdout.strip()).read_text().split()
    except OSError:
        return False


def _is_shallow(root: Path) -> bool:
    return git(root, "rev-parse", "--is-shallow-repository").stdout.strip() == "true"


def resolve(root: Path, revision: str) -> str:
    """The full name of a commit; UsageError where git knows none."""
    commit = find(root, revision)
    if commit is None:
        if why := why_unreadable(root):
            raise UsageError(f"{why}: there are no revisions.")
        why = _SHALLOW if _is_shallow(root) else "git log shows those there are"
        raise UsageError(f"git knows no revision {quote(revision)} ({why}).")
    return commit


def find(root: Path, revision: str) -> str | None:
    """The full name of a commit; None where git knows none."""
    if revision.startswith("-"):
        return None
    commit_name = f"{revision}^{{commit}}"
    try:
        done = git(root, "rev-parse", "--verify", "--quiet", commit_name)
    except EnvironmentFault:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def is_commit_name(text: str) -> bool:
    """Whether a text looks like a commit's name or the beginning of one."""
    return re.fullmatch("[0-9a-f]{7,64}", text) is not None


def author(root: Path) -> str:
    """Names who works here: git's user.name, else the login name, else nothing."""
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


def between(root: Path, first: str, last: str) -> list[str]:
    """The commits after `first` up to `last`, oldest first, first parents only; full names."""
    done = git(root, "rev-list", "--reverse", "--first-parent", f"{first}..{last}", "--")
    return done.stdout.split() if done.returncode == 0 else []


def is_ancestor(root: Path, first: str, last: str) -> bool:
    return git(root, "merge-base", "--is-ancestor", first, last).returncode == 0


def resolve_range(root: Path, text: str) -> list[str]:
    """The commits of A..B, A itself first, by their full names; A.. ends with HEAD.

    UsageError where the text is no range, or A is not an ancestor of B.
    """
    first, dots, last = text.partition("..")
    if not dots or not first or last.startswith("."):
        raise UsageError(
            f"{quote(text)} is not a range of revisions: write A..B, as in HEAD~10..HEAD."
        )
    begin, end = resolve(root, first), resolve(root, last or "HEAD")
    if not is_ancestor(root, begin, end):
        why = _SHALLOW if _is_shallow(root) else "name the older one first"
        raise UsageError(f"{first} is not an ancestor of {last or 'HEAD'}: {why}.")
    return [begin, *between(root, begin, end)]


def files_of(root: Path, commit: str) -> list[str]:
    """The files below `root` that a commit changed, by path from `root`."""
    done = git(
        *(root, "diff-tree", "-r", "-m", "--first-parent", "--no-commit-id", "--name-only"),
        *("--root", "--relative", "-z", commit),
    )
    return sorted({name for name in done.stdout.split("\0") if name})


def subject(root: Path, commit: str) -> str:
    """The first line of a commit's message."""
    return git(root, "log", "-1", "--format=%s", commit, "--").stdout.strip()


def last_change(root: Path, file: str, text: str) -> str | None:
    """The last commit that added or removed a text in a file; None where no commit did."""
    try:
        done = git(root, "log", "-1", "--format=%H", f"-S{text}", "--", file)
    except EnvironmentFault:
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None


def changed_since(root: Path, commit: str) -> set[str]:
    """The files below `root` that differ from a commit's or that git does not know, by path from
    `root`."""
    tracked = git(root, "diff", "--name-only", "--no-renames", "-z", "--relative", commit, "--")
    new = git(root, "ls-files", "--others", "--exclude-standard", "-z")
    if tracked.returncode or new.returncode:
        raise EnvironmentFault(f"git can't compare with {commit[:10]}: {tracked.stderr.strip()}")
    return {name for done in (tracked, new) for name in done.stdout.split("\0") if name}


@contextlib.contextmanager
def checked_out(root: Path, commit: str, cache: str) -> Iterator[Path]:
    """The project's folder as a commit has it, in a worktree that is gone afterwards, whatever
    happens. It shares the folder `cache` of `root`, where the worktree itself lies too.

    EnvironmentFault where git can't make it.
    """
    folder = root / cache / "worktrees"
    folder.mkdir(parents=True, exist_ok=True)
    _remove_abandoned(folder)
    place = folder / f"{os.getpid()}-{secrets.token_hex(4)}"
    try:
        done = git(
            *(root, "-c", f"core.hooksPath={os.devnull}", "worktree", "add", "--detach", "--quiet"),
            *(str(place), commit),
        )
        if done.returncode:
            raise EnvironmentFault(f"git can't check out {commit[:10]}: {done.stderr.strip()}")
        below = git(root, "rev-parse", "--show-prefix").stdout.strip()
        inside = place / below
        if not inside.is_dir():
            raise EnvironmentFault(f"{commit[:10]} has no folder {below}.")
        own = inside / cache
        if not own.exists():
            own.symlink_to(root.resolve() / cache)
        yield inside
    finally:
        _remove(place)


def _remove(place: Path) -> None:
    """Does what `git worktree remove --force` does; no process starts once a signal has come."""
    with contextlib.suppress(OSError):
        pointer = (place / ".git").read_text().strip()
        kept = Path(pointer.removeprefix("gitdir: "))
        if kept.parent.name == "worktrees":
            shutil.rmtree(kept, ignore_errors=True)
    shutil.rmtree(place, ignore_errors=True)


def _remove_abandoned(folder: Path) -> None:
    """Worktrees of processes that were killed."""
    for place in folder.iterdir():
        owner = place.name.partition("-")[0]
        if owner.isdigit() and not Path(f"/proc/{owner}").exists():
            _remove(place)
