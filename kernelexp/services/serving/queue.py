"""The queue: one SQLite file. What it has accepted is neither lost nor evaluated twice, whoever is
killed.

A worker leases a job, renews the lease while it works, and finishes it only while the lease is its
own. A job whose lease ran out goes to the next worker.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec

from kernelexp.model.errors import EnvironmentFault

State = Literal["queued", "running", "done", "failed", "cancelled"]
FILE = "queue.sqlite"
LEASE_S = 15.0
ATTEMPTS = 3
"""Workers that may die with a job before it is given up."""
BUSY_S = 30.0
_SCHEMA = """
CREATE TABLE IF NOT EXISTS jobs (
  id TEXT PRIMARY KEY, client TEXT NOT NULL, job BLOB NOT NULL, state TEXT NOT NULL,
  created REAL NOT NULL, begun REAL, ended REAL, worker TEXT, lease REAL,
  attempts INTEGER NOT NULL DEFAULT 0, result BLOB, sentence TEXT NOT NULL DEFAULT '');
CREATE INDEX IF NOT EXISTS by_state ON jobs (state, created);
CREATE TABLE IF NOT EXISTS events (
  number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL, at REAL NOT NULL, what TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS by_id ON events (id, number);
"""


class Ticket(msgspec.Struct, frozen=True, kw_only=True):
    """A job in the queue."""

    id: str
    state: State
    created: float
    """In seconds since 1970, as are the others."""
    begun: float | None = None
    ended: float | None = None
    attempts: int = 0
    sentence: str = ""
    """Why it failed."""


class Leased(msgspec.Struct, frozen=True, kw_only=True):
    """A job that a worker has to do."""

    id: str
    job: bytes


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """What happened to a job."""

    number: int
    at: float
    what: str


class TooMany(Exception):
    """A client has as many jobs waiting as it may."""


class Queue:
    """Of a folder; any number of processes may have it open."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._threads = threading.local()
        self._writer = threading.Lock()
        """Threads wait for each other here: SQLite lets them sleep up to 100 ms between tries."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._database.execute("PRAGMA journal_mode=WAL")  # the file's, from here on
            with self._writing() as database:
                database.executescript(_SCHEMA)
        except (OSError, sqlite3.Error) as error:
            raise EnvironmentFault(f"the queue {self._path} can't be opened: {error}.") from None

    @property
    def _database(self) -> sqlite3.Connection:
        """This thread's own."""
        if not hasattr(self._threads, "database"):
            database = sqlite3.connect(self._path, timeout=BUSY_S, isolation_level=None)
            # What was committed outlives every process; the last of it not a loss of power.
            database.execute("PRAGMA synchronous=NORMAL")
            self._threads.database = database
        connection: sqlite3.Connection = self._threads.database
        return connection

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction, which no other process writes in."""
        database = self._database
        with self._writer:
            database.execute("BEGIN IMMEDIATE")
            try:
                yield database
            except BaseException:
                database.execute("ROLLBACK")
                raise
            if database.in_transaction:  # a script commits what was begun
                database.execute("COMMIT")

    # Clients

    def put(self, key: str, job: bytes, client: str, most: int) -> Ticket:
        """Adds a job, unless it is there; TooMany where the client has `most` that are not done."""
        with self._writing() as database:
            known = self._ticket(key)
            if known is not None and known.state != "cancelled":
                return known
            waiting = database.execute(
                "SELECT count(*) FROM jobs WHERE client = ? AND state IN ('queued', 'running')",
                (client,),
            ).fetchone()[0]
            if waiting >= most:
                raise TooMany
            database.execute(
                "INSERT OR REPLACE INTO jobs (id, client, job, state, created) "
                "VALUES (?, ?, ?, 'queued', ?)",
                (key, client, job, time.time()),
            )
            self._note(database, key, "queued")
        ticket = self._ticket(key)
        assert ticket is not None
        return ticket

    def ticket(self, key: str) -> Ticket | None:
        return self._ticket(key)

    def _ticket(self, key: str) -> Ticket | None:
        row = self._database.execute(
            "SELECT id, state, created, begun, ended, attempts, sentence FROM jobs WHERE id = ?",
            (key,),
        ).fetchone()
        if row is None:
            return None
        return msgspec.convert(dict(zip(Ticket.__struct_fields__, row, strict=True)), Ticket)

    def result(self, key: str) -> bytes | None:
        """What the worker wrote, once the job is done."""
        row = self._database.execute("SELECT result FROM jobs WHERE id = ?", (key,)).fetchone()
        return bytes(row[0]) if row and row[0] is not None else None

    def events(self, key: str, after: int = 0) -> list[Event]:
        rows = self._database.execute(
            "SELECT number, at, what FROM events WHERE id = ? AND number > ? ORDER BY number",
            (key, after),
        )
        return [Event(number=number, at=at, what=what) for number, at, what in rows]

    def cancel(self, key: str) -> bool:
        """False where it has ended already, or is not known."""
        with self._writing() as database:
            changed = database.execute(
                "UPDATE jobs SET state = 'cancelled', ended = ?, worker = NULL "
                "WHERE id = ? AND state IN ('queued', 'running')",
                (time.time(), key),
            ).rowcount
            if changed:
                self._note(database, key, "cancelled")
        return bool(changed)

    # Workers

    def take(self, worker: str) -> Leased | None:
        """The oldest job that nobody has, or whose worker is gone; None where there is none."""
        now = time.time()
        free = "state = 'queued' OR (state = 'running' AND lease < ?)"
        if not self._database.execute(
            f"SELECT 1 FROM jobs WHERE {free} LIMIT 1", (now,)
        ).fetchone():
            return None
        with self._writing() as database:
            row = database.execute(
                f"SELECT id, job, attempts FROM jobs WHERE {free} ORDER BY created LIMIT 1", (now,)
            ).fetchone()
            if row is None:
                return None
            key, job, attempts = row
            if attempts >= ATTEMPTS:
                sentence = f"{ATTEMPTS} workers ended in the middle of it."
                self._end(database, key, "failed", None, sentence)
                return None
            database.execute(
                "UPDATE jobs SET state = 'running', worker = ?, lease = ?, attempts = attempts + 1,"
                " begun = ? WHERE id = ?",
                (worker, now + LEASE_S, now, key),
            )
            self._note(database, key, "running" if attempts == 0 else "running again")
        return Leased(id=str(key), job=bytes(job))

    def renew(self, key: str, worker: str) -> bool:
        """False where the job is no longer this worker's."""
        with self._writing() as database:
            changed = database.execute(
                "UPDATE jobs SET lease = ? WHERE id = ? AND worker = ? AND state = 'running'",
                (time.time() + LEASE_S, key, worker),
            ).rowcount
        return bool(changed)

    def finish(self, key: str, worker: str, result: bytes | None, sentence: str = "") -> bool:
        """Keeps a result, or why there is none; False where the job is no longer this worker's."""
        with self._writing() as database:
            owned = database.execute(
                "SELECT 1 FROM jobs WHERE id = ? AND worker = ? AND state = 'running'",
                (key, worker),
            ).fetchone()
            if owned:
                state: State = "done" if result is not None else "failed"
                self._end(database, key, state, result, sentence)
        return bool(owned)

    def give_back(self, worker: str) -> None:
        """What this worker has goes to the next one at once."""
        with self._writing() as database:
            database.execute(
                "UPDATE jobs SET state = 'queued', worker = NULL, attempts = attempts - 1 "
                "WHERE worker = ? AND state = 'running'",
                (worker,),
            )

    def _end(
        self,
        database: sqlite3.Connection,
        key: str,
        state: State,
        result: bytes | None,
        sentence: str,
    ) -> None:
        database.execute(
            "UPDATE jobs SET state = ?, ended = ?, result = ?, sentence = ? WHERE id = ?",
            (state, time.time(), result, sentence, key),
        )
        self._note(database, key, state)

    def _note(self, database: sqlite3.Connection, key: str, what: str) -> None:
        database.execute(
            "INSERT INTO events (id, at, what) VALUES (?, ?, ?)", (key, time.time(), what)
        )

    # Figures

    def counts(self) -> dict[str, int]:
        """Jobs by state."""
        rows = self._database.execute("SELECT state, count(*) FROM jobs GROUP BY state")
        return {str(state): int(count) for state, count in rows}

    def totals(self) -> dict[str, Any]:
        """Of jobs that are done: how many, how long they waited and how long they took."""
        count, waited, took, again = self._database.execute(
            "SELECT count(*), coalesce(sum(begun - created), 0), coalesce(sum(ended - begun), 0), "
            "coalesce(sum(attempts - 1), 0) FROM jobs WHERE state = 'done'"
        ).fetchone()
        return {"done": count, "waited_s": waited, "took_s": took, "again": again}
