import pytest

from decidewise.runtime.files import write_whole


def test_an_error_leaves_every_file_as_it_was(tmp_path):
    (tmp_path / "old.txt").write_text("old")
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError, match=r"file.inside"):
        write_whole({tmp_path / "old.txt": b"new", tmp_path / "file" / "inside": b"no"})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "old.txt"]
    assert (tmp_path / "old.txt").read_text() == "old"


def test_files_can_be_read_by_all(tmp_path):
    write_whole({tmp_path / "new.txt": b"new"})
    assert (tmp_path / "new.txt").stat().st_mode & 0o777 == 0o644
