"""Rows on disk: one SQLite file, safe for several runs at once and against crashes.

Each row is one transaction, so it is stored whole or not at all. Its primary key is the key of its cell, a hash of
everything that determines the result; rows of another plan, seed, code or library have other keys.

Several runs can share the work, because a run claims a cell before it computes it. Another run takes over the claim if
the process has ended on this machine, or if it has sent no heartbeat for `LEASE` seconds.

A row to be computed again is set aside: it gets another key, and is still read until the new row is stored.
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

from decidewise.kit.errors import InputError
from decidewise_bench.experiments.cells import Cell
from decidewise_bench.experiments.rows import COLUMNS, Row

#: Seconds without a heartbeat after which a run loses its claims.
LEASE = 60.0
#: The version of the tables below; raise it with every change to them, so that an old file is refused, not misread.
_FORMAT = 3
#: Seconds that a connection waits for the (very short) transactions of others.
_TIMEOUT = 60.0
#: The prefix of the key of a row that is set aside.
_ASIDE = "aside:"
#: What to do about an error, by the beginning of SQLite's name for it.
_ADVICE = {
    "SQLITE_FULL": "Free some disk space; the rows so far are kept, and the same command continues.",
    "SQLITE_IOERR": "The disk may be full or broken; the rows so far are kept, and the same command continues.",
    "SQLITE_BUSY": "Another process has locked it; try again when that process is done.",
    "SQLITE_READONLY": "Get permission to write to it, or choose another file.",
    "SQLITE_CANTOPEN": "Check that the folder exists and that you may read and write in it.",
    "SQLITE_CORRUPT": "The file is damaged; choose another, or restore a copy.",
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
    """The rows in one file. A store keeps no connection open, so threads and processes can share it.

    Parameters
    ----------
    path : Path
        The file, on a local disk. It is created, with its folder, if it does not exist.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from decidewise_bench.experiments import cells_of_all, read_plan
    >>> from decidewise_bench.paper import PLANS
    >>> cells = cells_of_all([read_plan(PLANS / "knapsack.toml")], trials=1)
    >>> with TemporaryDirectory() as folder:
    ...     store = Store(Path(folder, "rows.sqlite"))
    ...     print(len(store.rows(cells)), len(store.missing(cells)))
    0 108
    """

    path: Path

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", Path(self.path))
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._prepare()

    def add(self, cell: Cell, row: Row) -> None:
        """Store a row, unless the cell has one, and delete the row of the cell that was set aside, if any."""
        marks = ", ".join("?" * (1 + len(COLUMNS)))
        with self._transaction() as db:
            db.execute(f"INSERT OR IGNORE INTO rows VALUES ({marks})", (cell.key, *astuple(row)))
            db.execute("DELETE FROM rows WHERE cell = ?", (_ASIDE + cell.key,))

    def rows(self, cells: Sequence[Cell], *, aside: bool = True) -> list[Row]:
        """Return the rows of the cells that have one, in the order of the cells.

        Parameters
        ----------
        aside : bool
            Whether to include rows that are set aside.
        """
        found = {key: values for key, *values in self._select("*", cells)}
        if aside:
            found = {key.removeprefix(_ASIDE): values for key, values in found.items()}
        return [Row(*found[cell.key]) for cell in cells if cell.key in found]

    def missing(self, cells: Sequence[Cell]) -> list[Cell]:
        """Return the cells that have no row, or only one that is set aside."""
        done = {key for (key,) in self._select("cell", cells)}
        return [cell for cell in cells if cell.key not in done]

    def set_aside(self, cells: Sequence[Cell], *, only_failed: bool = False) -> None:
        """Set aside the rows of these cells, or only the failed ones, until new rows replace them."""
        failed = "AND status = 'failed'" if only_failed else ""
        with self._transaction() as db:
            db.executemany(
                f"UPDATE OR REPLACE rows SET cell = ? WHERE cell = ? {failed}",
                [(_ASIDE + cell.key, cell.key) for cell in cells],
            )

    def versions(self, plan: str) -> dict[tuple[str, str], int]:
        """Return the number of rows by the versions of code and libraries, for any settings of the plan."""
        query = "SELECT version, libraries, count(*) FROM rows WHERE plan = ? GROUP BY version, libraries"
        with self._connection() as db:
            return {(version, libraries): count for version, libraries, count in db.execute(query, (plan,))}

    def claim(self, cells: Sequence[Cell], run: str) -> list[Cell]:
        """Claim for this run the cells that have no row and no claim of another live run, and return them."""
        with self._transaction() as db:
            free = [cell for cell in cells if not _is_done(db, cell) and not _is_taken(db, cell, run)]
            claims = [(cell.key, run, platform.node(), os.getpid(), time.time()) for cell in free]
            db.executemany("INSERT OR REPLACE INTO claims VALUES (?, ?, ?, ?, ?)", claims)
        return free

    def drop_stale_claims(self) -> None:
        """Remove the claims of runs that have ended."""
        with self._transaction() as db:
            runs = db.execute("SELECT DISTINCT run, host, pid, heard FROM claims").fetchall()
            stale = [(run, heard) for run, host, pid, heard in runs if not _is_alive(host, pid, heard)]
            db.executemany("DELETE FROM claims WHERE run = ? AND heard = ?", stale)

    def record_heartbeat(self, run: str) -> None:
        """Record that a run is alive."""
        with self._connection() as db:
            db.execute("UPDATE claims SET heard = ? WHERE run = ?", (time.time(), run))

    def release(self, run: str, cells: Iterable[Cell] | None = None) -> None:
        """Remove the claims of a run, on these cells or on all."""
        with self._transaction() as db:
            if cells is None:
                db.execute("DELETE FROM claims WHERE run = ?", (run,))
            else:
                db.executemany("DELETE FROM claims WHERE run = ? AND cell = ?", [(run, cell.key) for cell in cells])

    @contextmanager
    def held_open(self) -> Iterator[None]:
        """Hold one connection open for speed: SQLite merges its log each time the last connection closes."""
        with self._connection() as db:
            db.execute("SELECT count(*) FROM claims").fetchone()
            yield

    def _prepare(self) -> None:
        with self._connection() as db:
            # One statement, because another process may be creating the tables at the same time.
            found, tables = db.execute(
                "SELECT (SELECT user_version FROM pragma_user_version), (SELECT count(*) FROM sqlite_master)"
            ).fetchone()
            if 0 < found < _FORMAT:
                raise InputError(
                    f"{self.path} holds rows of an earlier decidewise (format {found}, not {_FORMAT}), which cannot be "
                    "compared with new ones. Choose another file, or remove this one and compute its rows again."
                )
            if found not in (0, _FORMAT) or (found == 0 and tables):
                raise InputError(
                    f"{self.path} is a database, but not a store of this decidewise (format {found}, not {_FORMAT}). "
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
        """Connect in autocommit mode; turn an error of SQLite into an `InputError` that says what to do."""
        try:
            with closing(sqlite3.connect(self.path, timeout=_TIMEOUT, isolation_level=None)) as db:
                db.execute("PRAGMA synchronous = NORMAL")  # a power cut may lose the last rows, but no others
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
    """Whether a run has sent a heartbeat in the last `LEASE` seconds, and its process has not ended on this machine."""
    return time.time() - heard < LEASE and not (host == platform.node() and _is_gone(pid))


def _is_gone(pid: int) -> bool:
    """Whether no process of this machine has this id; False if the system cannot tell, so the lease decides."""
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
    """Call a function until no other process is setting up the same file; SQLite's own timeout does not cover this."""
    deadline = time.monotonic() + _TIMEOUT
    while True:
        try:
            act()
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return
