"""The queue: one SQLite file. What it has accepted is neither lost nor evaluated twice, whoever is
killed.

A worker leases a job, renews the lease while it works, and finishes it only while the lease is its
own. Who takes jobs watches the leases of others: one that is not renewed for LEASE_S of the
watcher's own time has ended, and its job goes to the next worker. No two clocks are compared.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections.abc import Hashable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from kernelexp.model.errors import EnvironmentFault

LEASE_S = 15.0
LOOKS = 5
"""After a machine has slept, all that it watches seems old; its workers get time to renew."""


class Leases:
    """A lease has a mark that each renewal changes. Any thread may ask."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: dict[str, tuple[Hashable, float, int]] = {}
        """The mark of each lease, when it was first seen, and how often since."""

    def ended(self, marks: Mapping[str, Hashable]) -> frozenset[str]:
        """Returns those of all current leases whose mark is as it was LEASE_S ago."""
        now = time.monotonic()
        with self._lock:
            self._seen = {key: self._look(key, mark, now) for key, mark in marks.items()}
            return frozenset(
                key
                for key, (_, since, looks) in self._seen.items()
                if now - since >= LEASE_S and looks >= LOOKS
            )

    def _look(self, key: str, mark: Hashable, now: float) -> tuple[Hashable, float, int]:
        known = self._seen.get(key)
        if known is None or known[0] != mark:
            return mark, now, 0
        return mark, known[1], known[2] + 1


State = Literal["queued", "running", "done", "failed", "cancelled"]
AGAIN = ("failed", "cancelled")
"""States of jobs that are tried again if somebody asks for them."""
FILE = "queue.sqlite"
ATTEMPTS = 3
"""Workers that may end with a job, or fail at it, before it is given up."""
BUSY_S = 30.0
"""How long to wait for another process that writes."""
FORM = 2
"""Of the file's tables."""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS jobs (
  id TEXT PRIMARY KEY, client TEXT NOT NULL, job BLOB NOT NULL, state TEXT NOT NULL,
  created REAL NOT NULL, begun REAL, ended REAL, worker TEXT,
  renewals INTEGER NOT NULL DEFAULT 0, attempts INTEGER NOT NULL DEFAULT 0,
  gpu INTEGER NOT NULL DEFAULT 0, result BLOB, sentence TEXT NOT NULL DEFAULT '');
CREATE INDEX IF NOT EXISTS by_state ON jobs (state, gpu);
CREATE INDEX IF NOT EXISTS by_client ON jobs (client, state);
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


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """The offer for a worker."""

    leased: Leased | None = None
    left: int = 0
    """Jobs that have not ended and that it could do, whoever has them."""


class JobEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event in the life of a job."""

    number: int
    at: float
    what: str


class TooMany(Exception):
    """A client has as many jobs waiting as it may."""


class Queue:
    """A queue in a folder; any number of processes may have it open."""

    idle_s = 0.25

    def __init__(self, folder: Path, busy_s: float = BUSY_S) -> None:
        self._path, self._busy_s = folder / FILE, BUSY_S
        self._threads = threading.local()
        self._writer = threading.Lock()
        """Threads wait for each other here: SQLite lets them sleep up to 100 ms between tries."""
        self._leases = Leases()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._database.execute("PRAGMA journal_mode=WAL")  # the file's, from here on
            self._create()
            self._busy_s = busy_s
            self._database.execute(f"PRAGMA busy_timeout = {int(1e3 * busy_s)}")
        except (OSError, sqlite3.Error) as error:
            raise EnvironmentFault(f"the queue {self._path} can't be opened: {error}.") from None

    def _create(self) -> None:
        with self._writing() as database:
            form = database.execute("PRAGMA user_version").fetchone()[0]
            if form == 0 and not database.execute("SELECT 1 FROM sqlite_master").fetchone():
                for statement in _SCHEMA.split(";"):
                    database.execute(statement)
                database.execute(f"PRAGMA user_version = {FORM}")
            elif form != FORM:
                raise EnvironmentFault(
                    f"the queue {self._path} is of another version of kernelexp: name another "
                    "folder."
                )

    @property
    def _database(self) -> sqlite3.Connection:
        """This thread's own."""
        if not hasattr(self._threads, "database"):
            database = sqlite3.connect(self._path, timeout=self._busy_s, isolation_level=None)
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
                database.execute("COMMIT")
            finally:
                if database.in_transaction:  # a full disk may have ended it
                    database.execute("ROLLBACK")

    # Clients

    def put(self, key: str, job: bytes, client: str, most: int) -> Ticket:
        """Adds a job, unless it is there; TooMany where the client has `most` that are not done.

        One that was cancelled or failed is tried again.
        """
        known = self.ticket(key)
        if known is not None and known.state not in AGAIN:
            return known
        with self._writing() as database:
            known = self.ticket(key)
            if known is not None and known.state not in AGAIN:
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
        ticket = self.ticket(key)
        assert ticket is not None
        return ticket

    def ticket(self, key: str) -> Ticket | None:
        row = self._database.execute(
            "SELECT id, state, created, begun, ended, attempts, sentence FROM jobs WHERE id = ?",
            (key,),
        ).fetchone()
        if row is None:
            return None
        return msgspec.convert(dict(zip(Ticket.__struct_fields__, row, strict=True)), Ticket)

    def result(self, key: str) -> bytes | None:
        """Returns what the worker wrote, once the job is done."""
        row = self._database.execute("SELECT result FROM jobs WHERE id = ?", (key,)).fetchone()
        return bytes(row[0]) if row and row[0] is not None else None

    def events(self, key: str, after: int = 0) -> list[JobEvent]:
        rows = self._database.execute(
            "SELECT number, at, what FROM events WHERE id = ? AND number > ? ORDER BY number",
            (key, after),
        )
        return [JobEvent(number=number, at=at, what=what) for number, at, what in rows]

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

    def take(self, worker: str, gpu: bool = False) -> Offer:
        """The oldest job that nobody has, or whose worker is gone; jobs for a GPU to workers with
        one, and to these first. A worker that asks again has lost the answer, and gets the same.
        """
        if self._next(worker, gpu) is None:  # most looks find nothing, and write nothing
            return Offer(left=self._left(gpu))
        with self._writing() as database:
            while (key := self._next(worker, gpu)) is not None:
                if (leased := self._lease(database, key, worker)) is not None:
                    return Offer(leased=leased, left=self._left(gpu))
        return Offer(left=self._left(gpu))

    def _next(self, worker: str, gpu: bool) -> str | None:
        query = "SELECT id, worker, renewals, gpu FROM jobs WHERE state = 'running'"
        running = self._database.execute(query).fetchall()
        marks = {str(key): (owner, renewals) for key, owner, renewals, _ in running}
        gone = self._leases.ended(marks)
        for key, owner, _, for_gpu in running:
            if owner == worker or (key in gone and gpu >= for_gpu):
                return str(key)
        query = (
            "SELECT id FROM jobs WHERE state = 'queued' AND gpu <= ? "
            "ORDER BY gpu DESC, rowid LIMIT 1"
        )
        row = self._database.execute(query, (gpu,)).fetchone()
        return str(row[0]) if row else None

    def _lease(self, database: sqlite3.Connection, key: str, worker: str) -> Leased | None:
        """Leases a job; None where too many have tried."""
        query = "SELECT job, attempts, worker FROM jobs WHERE id = ?"
        job, attempts, owner = database.execute(query, (key,)).fetchone()
        if owner == worker and attempts:
            return Leased(id=key, job=bytes(job))
        if attempts >= ATTEMPTS:
            self._end(database, key, "failed", f"{ATTEMPTS} workers ended in the middle of it.")
            return None
        database.execute(
            "UPDATE jobs SET state = 'running', worker = ?, renewals = renewals + 1,"
            " attempts = attempts + 1, begun = ? WHERE id = ?",
            (worker, time.time(), key),
        )
        self._note(database, key, "running" if attempts == 0 else "running again")
        return Leased(id=key, job=bytes(job))

    def _left(self, gpu: bool) -> int:
        query = "SELECT count(*) FROM jobs WHERE state IN ('queued', 'running') AND gpu <= ?"
        return int(self._database.execute(query, (gpu,)).fetchone()[0])

    def renew(self, key: str, worker: str) -> bool:
        """False where the job is no longer this worker's."""
        with self._writing() as database:
            changed = database.execute(
                "UPDATE jobs SET renewals = renewals + 1 "
                "WHERE id = ? AND worker = ? AND state = 'running'",
                (key, worker),
            ).rowcount
        return bool(changed)

    def finish(self, key: str, worker: str, result: bytes) -> bool:
        """Keeps a result; False where the job is no longer this worker's."""
        with self._owned(key, worker) as (database, attempts):
            if attempts:
                database.execute("UPDATE jobs SET result = ? WHERE id = ?", (result, key))
                self._end(database, key, "done")
        return bool(attempts)

    def fail(self, key: str, worker: str, sentence: str, again: bool = False) -> bool:
        """Says why there is no result; with `again`, others may try, as the machine was at fault.

        False where the job is no longer this worker's.
        """
        with self._owned(key, worker) as (database, attempts):
            if attempts and again and attempts < ATTEMPTS:
                self._requeue(database, key, f"queued again: {sentence}")
            elif attempts:
                self._end(database, key, "failed", sentence)
        return bool(attempts)

    def pass_on(self, key: str, worker: str) -> bool:
        """Passes a job to a worker with a GPU; False where the job is no longer this worker's."""
        with self._owned(key, worker) as (database, attempts):
            if attempts:
                database.execute("UPDATE jobs SET gpu = 1, attempts = 0 WHERE id = ?", (key,))
                self._requeue(database, key, "queued for a GPU")
        return bool(attempts)

    @contextlib.contextmanager
    def _owned(self, key: str, worker: str) -> Iterator[tuple[sqlite3.Connection, int]]:
        """Yields the worker's attempts at the job so far; 0 where it does not have it."""
        with self._writing() as database:
            row = database.execute(
                "SELECT attempts FROM jobs WHERE id = ? AND worker = ? AND state = 'running'",
                (key, worker),
            ).fetchone()
            yield database, row[0] if row else 0

    def give_back(self, worker: str, attempts: int = 0) -> None:
        """Gives this worker's jobs to the next one at once, each counted as so many attempts."""
        with self._writing() as database:
            rows = database.execute(
                "SELECT id FROM jobs WHERE worker = ? AND state = 'running'", (worker,)
            ).fetchall()
            for (key,) in rows:
                database.execute(
                    "UPDATE jobs SET attempts = attempts + ? WHERE id = ?", (attempts - 1, key)
                )
                self._requeue(database, key, "given back")

    def _requeue(self, database: sqlite3.Connection, key: str, what: str) -> None:
        database.execute("UPDATE jobs SET state = 'queued', worker = NULL WHERE id = ?", (key,))
        self._note(database, key, what)

    def _end(
        self, database: sqlite3.Connection, key: str, state: State, sentence: str = ""
    ) -> None:
        database.execute(
            "UPDATE jobs SET state = ?, ended = ?, sentence = ? WHERE id = ?",
            (state, time.time(), sentence, key),
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
        """Returns how many jobs are done, how long they waited and how long they took."""
        count, waited, took, again = self._database.execute(
            "SELECT count(*), coalesce(sum(begun - created), 0), coalesce(sum(ended - begun), 0), "
            "coalesce(sum(attempts - 1), 0) FROM jobs WHERE state = 'done'"
        ).fetchone()
        return {"done": count, "waited_s": waited, "took_s": took, "again": again}
