import os
import subprocess
import sys
from pathlib import Path

import pytest

from decidewise.kit.errors import InputError
from decidewise.kit.files import check_output, whole_file, write_whole

posix = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs the modes, links and signals of POSIX")


def test_an_error_leaves_every_file_as_it_was(tmp_path):
    (tmp_path / "old.txt").write_text("old")
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError, match=r"file.inside"):
        write_whole({tmp_path / "old.txt": b"new", tmp_path / "file" / "inside": b"no"})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "old.txt"]
    assert (tmp_path / "old.txt").read_text() == "old"


@posix
def test_a_file_has_the_mode_that_the_user_wants(tmp_path):
    (tmp_path / "old.txt").touch(0o640)
    before = os.umask(0o027)
    try:
        write_whole({tmp_path / "new.txt": b"new", tmp_path / "old.txt": b"new"})
        os.umask(0o077)
        with whole_file(tmp_path / "private.txt") as beside:
            beside.write_bytes(b"new")
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert modes == {"new.txt": 0o640, "old.txt": 0o640, "private.txt": 0o600}


@posix
def test_links_are_followed_and_pipes_refused(tmp_path):
    (tmp_path / "folder").mkdir()
    for name, leads_to in (("old", "folder/old.txt"), ("new", "folder/new.txt")):  # the second leads to nothing yet
        (tmp_path / name).symlink_to(leads_to)
    (tmp_path / "folder" / "old.txt").write_text("old")
    write_whole({tmp_path / "old": b"1", tmp_path / "new": b"2"})
    assert all((tmp_path / name).is_symlink() for name in ("old", "new"))
    assert {path.name: path.read_text() for path in (tmp_path / "folder").iterdir()} == {"old.txt": "1", "new.txt": "2"}
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/null"), Path("/dev/stdout"), Path("/dev/fd/1")):
        for write in (check_output, lambda path: write_whole({path: b""})):
            with pytest.raises(InputError, match="is not a file that can be replaced"):
                write(path)


@posix
@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may write everything")
def test_what_is_read_only_stays(tmp_path):
    (tmp_path / "old.txt").touch(0o444)
    with pytest.raises(InputError, match="read-only"):
        write_whole({tmp_path / "old.txt": b"new"})


def test_what_is_moved_is_on_the_disk(tmp_path, monkeypatch):
    done = []
    fsync, replace = os.fsync, Path.replace
    monkeypatch.setattr(os, "fsync", lambda file: done.append(os.fstat(file).st_size) or fsync(file))
    monkeypatch.setattr(Path, "replace", lambda path, target: done.append(target.name) or replace(path, target))
    write_whole({tmp_path / "a.txt": b"one", tmp_path / "b.txt": b"four"})
    assert [entry for entry in done if entry in (3, 4, "a.txt", "b.txt")] == [3, 4, "a.txt", "b.txt"]


KILLED = """
import os, signal, sys
from pathlib import Path
from decidewise.kit.files import whole_file
with whole_file(Path(sys.argv[1], "a.txt")) as beside:
    beside.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


@posix
def test_what_a_killed_writer_left_is_removed_by_the_next_one(tmp_path):
    subprocess.run([sys.executable, "-c", KILLED, tmp_path], check=False)
    [left] = tmp_path.iterdir()
    assert left.read_text() == "half"
    (tmp_path / ".decidewise-notes").touch()  # of someone else
    with whole_file(tmp_path / "b.txt") as alive:
        write_whole({tmp_path / "a.txt": b"whole"})
        alive.write_text("slow")
    assert {path.name for path in tmp_path.iterdir()} == {".decidewise-notes", "a.txt", "b.txt"}
    assert (tmp_path / "b.txt").read_text() == "slow"
