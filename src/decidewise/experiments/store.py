"""Rows on disk: one SQLite file that any number of runs may write to, and that no crash can spoil.

A row is one transaction, so it is stored whole or not at all. Its primary key is that of its cell, a hash of everything
that decides the result; rows of another plan, seed, code or library have other keys and are never read for this one.

So that two runs can share the work, a cell is claimed before it is computed. A claim lasts as long as its run: another
run takes it over when the process no longer exists on this machine, or has sent no heartbeat for `LEASE` seconds.

A row that is to be computed anew is set aside: it stays, under another key, and is read until its successor is stored.
"""

from __future__ import annotations

import os
import platform
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path

from decidewise.errors import InputError
from decidewise.experiments.cells import Cell
from decidewise.experiments.rows import COLUMNS, Row

#: Seconds after which a run that sends no heartbeat has lost its claims.
LEASE = 60.0
#: Changed with the tables below, so that an old file is refused rather than misread.
_FORMAT = 2
#: How long a connection waits for others to finish their (very short) transactions.
_PATIENCE = 60.0
#: Before the key of a row that is set aside.
_ASIDE = "aside:"
#: What to do, by the beginning of SQLite's name for what went wrong.
_ADVICE = {
    "SQLITE_FULL": "Make room on the disk; the rows so far are kept, and the same command continues.",
    "SQLITE_IOERR": "The disk may be full or broken; the rows so far are kept, and the same command continues.",
    "SQLITE_BUSY": "Another process holds it; try again when that is done.",
    "SQLITE_READONLY": "Ask for the right to write to it, or choose another file.",
    "SQLITE_CANTOPEN": "Check that the folder is there, with the right to read and write in it.",
    "SQLITE_CORRUPT": "The file is damaged; choose another, or bring back a copy.",
}

_SQL = {str: "TEXT", int: "INTEGER", float: "REAL"}
_TABLES = f"""
CREATE TABLE IF NOT EXISTS rows (
    cell TEXT PRIMARY KEY, {", ".join(f"{name} {_SQL[kind]}" for name, kind in COLUMNS.items())}
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS claims (
    cell TEXT PRIMARY KEY, run TEXT, host TEXT, pid INTEGER, heard REAL
) WITHOUT ROWID;
PRAGMA user_version = {_FORMAT};
"""


@dataclass(frozen=True)
class Store:
    """The rows in one file; it keeps no connection, so that threads and processes may share it.

    Parameters
    ----------
    path : Path
        Made, with its folder, where it does not exist. It must be on a local disk.
    """

    path: Path

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", Path(self.path))
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._prepare()

    def add(self, cell: Cell, row: Row) -> None:
        """Write a row, unless the cell has one; one that was set aside is then forgotten."""
        marks = ", ".join("?" * (1 + len(COLUMNS)))
        with self._transaction() as db:
            db.execute(f"INSERT OR IGNORE INTO rows VALUES ({marks})", (cell.key, *astuple(row)))
            db.execute("DELETE FROM rows WHERE cell = ?", (_ASIDE + cell.key,))

    def rows(self, cells: Sequence[Cell], *, aside: bool = True) -> list[Row]:
        """Return the rows of those cells that have one, in the order of the cells.

        Parameters
        ----------
        aside : bool
            Whether a row that is set aside counts.
        """
        found = {key: values for key, *values in self._select("*", cells)}
        if aside:
            found = {key.removeprefix(_ASIDE): values for key, values in found.items()}
        return [Row(*found[cell.key]) for cell in cells if cell.key in found]

    def missing(self, cells: Sequence[Cell]) -> list[Cell]:
        """Return the cells without a row, or with one that is set aside."""
        done = {key for (key,) in self._select("cell", cells)}
        return [cell for cell in cells if cell.key not in done]

    def set_aside(self, cells: Sequence[Cell], *, only_failed: bool = False) -> None:
        """Have the rows of these cells, or those of them that failed, replaced; each is kept until then."""
        failed = "AND status = 'failed'" if only_failed else ""
        with self._transaction() as db:
            db.executemany(
                f"UPDATE OR REPLACE rows SET cell = ? WHERE cell = ? {failed}",
                [(_ASIDE + cell.key, cell.key) for cell in cells],
            )

    def versions(self, plan: str) -> dict[tuple[str, str], int]:
        """Return the number of rows of a plan by version of the code and of the libraries, whatever its settings."""
        query = "SELECT version, libraries, count(*) FROM rows WHERE plan = ? GROUP BY version, libraries"
        with self._connection() as db:
            return {(version, libraries): count for version, libraries, count in db.execute(query, (plan,))}

    def claim(self, cells: Sequence[Cell], run: str) -> list[Cell]:
        """Return those cells that have no row and that no other run is at work on; they are now this run's."""
        with self._transaction() as db:
            free = [cell for cell in cells if not _is_done(db, cell) and not _is_taken(db, cell, run)]
            claims = [(cell.key, run, platform.node(), os.getpid(), time.time()) for cell in free]
            db.executemany("INSERT OR REPLACE INTO claims VALUES (?, ?, ?, ?, ?)", claims)
        return free

    def drop_stale_claims(self) -> None:
        """Remove the claims of runs that are gone."""
        with self._transaction() as db:
            runs = db.execute("SELECT DISTINCT run, host, pid, heard FROM claims").fetchall()
            stale = [(run, heard) for run, host, pid, heard in runs if not _is_alive(host, pid, heard)]
            db.executemany("DELETE FROM claims WHERE run = ? AND heard = ?", stale)

    def record_heartbeat(self, run: str) -> None:
        """Note that a run is alive."""
        with self._connection() as db:
            db.execute("UPDATE claims SET heard = ? WHERE run = ?", (time.time(), run))

    def release(self, run: str, cells: Iterable[Cell] | None = None) -> None:
        """Give up a run's claims on some cells, or all of them."""
        with self._transaction() as db:
            if cells is None:
                db.execute("DELETE FROM claims WHERE run = ?", (run,))
            else:
                db.executemany("DELETE FROM claims WHERE run = ? AND cell = ?", [(run, cell.key) for cell in cells])

    @contextmanager
    def held_open(self) -> Iterator[None]:
        """Hold one connection open: each time the last one is closed, SQLite merges its log, which takes time."""
        with self._connection() as db:
            db.execute("SELECT count(*) FROM claims").fetchone()
            yield

    def _prepare(self) -> None:
        with self._connection() as db:
            # In one statement, for another process may be setting up the file.
            found, tables = db.execute(
                "SELECT (SELECT user_version FROM pragma_user_version), (SELECT count(*) FROM sqlite_master)"
            ).fetchone()
            if 0 < found < _FORMAT:
                raise InputError(
                    f"{self.path} holds rows of an earlier decidewise (format {found}, not {_FORMAT}), which cannot be "
                    "compared with new ones. Choose another file, or remove this one and compute its rows anew."
                )
            if found not in (0, _FORMAT) or (found == 0 and tables):
                raise InputError(
                    f"{self.path} is a database, but no store of this decidewise (format {found}, not {_FORMAT}). "
                    "Choose another file."
                )
            if found == 0:
                _retry_while_locked(lambda: db.execute("PRAGMA journal_mode = WAL"))
                _retry_while_locked(lambda: db.executescript(f"BEGIN IMMEDIATE; {_TABLES} COMMIT;"))

    def _select(self, columns: str, cells: Sequence[Cell]) -> list[tuple]:
        plans = sorted({cell.plan for cell in cells})
        marks = ", ".join("?" * len(plans))
        with self._connection() as db:
            return db.execute(f"SELECT {columns} FROM rows WHERE plan IN ({marks})", plans).fetchall()

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """Connect with every statement a transaction of its own; what SQLite complains of becomes a sentence."""
        try:
            with closing(sqlite3.connect(self.path, timeout=_PATIENCE, isolation_level=None)) as db:
                db.execute("PRAGMA synchronous = NORMAL")  # whole after any crash; without power the last may be lost
                yield db
        except sqlite3.Error as error:
            name = getattr(error, "sqlite_errorname", "")
            advice = next((text for start, text in _ADVICE.items() if name.startswith(start)), "Choose another file.")
            raise InputError(f"cannot use the store {self.path}: {error}. {advice}") from error

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._connection() as db:
            db.execute("BEGIN IMMEDIATE")
            yield db
            db.execute("COMMIT")


def _is_done(db: sqlite3.Connection, cell: Cell) -> bool:
    return db.execute("SELECT 1 FROM rows WHERE cell = ?", (cell.key,)).fetchone() is not None


def _is_taken(db: sqlite3.Connection, cell: Cell, run: str) -> bool:
    claim = db.execute("SELECT run, host, pid, heard FROM claims WHERE cell = ?", (cell.key,)).fetchone()
    if claim is None or claim[0] == run:
        return False
    return _is_alive(*claim[1:])


def _is_alive(host: str, pid: int, heard: float) -> bool:
    """Whether a run has sent a heartbeat lately, and its process has not ended on this machine."""
    return time.time() - heard < LEASE and not (host == platform.node() and _is_gone(pid))


def _is_gone(pid: int) -> bool:
    """Whether no process of this machine has that id; where that cannot be asked, the lease decides alone."""
    if os.name != "posix":
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def _retry_while_locked(act: Callable[[], object]) -> None:
    """Act, and again while another process sets up the same file: SQLite does not wait for that by itself."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            act()
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return
