"""Tables in files, as people have them."""

import gzip
import os
from shutil import copyfileobj

import numpy as np
import pyarrow as pa
import pytest

from decidewise.data import read_table
from decidewise.kit.errors import InputError
from decidewise.problems import TopK
from decidewise.rows import text as files
from decidewise.rows.file_blocks import FileBlocks, read_files
from decidewise.rows.files import FileRows
from decidewise.rows.write_table import write_table

TEXT = "day,größe,cost\n2026-01-01,a,1.5\n2026-01-02,,2.5\n"


def test_a_table_of_a_spreadsheet_of_another_country(tmp_path):
    (tmp_path / "t.csv").write_bytes(TEXT.replace(",", ";").replace(".", ",").encode("latin-1"))
    table = read_files(tmp_path / "t.csv", decimal=",", encoding="latin-1")
    assert table.column_names == ["day", "größe", "cost"]
    assert table["cost"].to_pylist() == [1.5, 2.5]
    assert table["größe"].to_pylist() == ["a", None]
    assert pa.types.is_date(table.schema.field("day").type)


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.csv.gz"])
def test_what_separates_columns_is_seen_in_the_first_line(tmp_path, name, separator):
    text = "day,größe; in cm,cost\n1,a,2\n".replace(",", separator) if separator != ";" else "a;b, c;d\n1;a;2\n"
    content = text.encode()
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    assert [column.to_pylist() for column in read_files(tmp_path / name).columns] == [[1], ["a"], [2]]
    [block] = FileBlocks(tmp_path / name)
    assert block.table.num_columns == 3


@pytest.mark.parametrize(
    ("name", "text", "names"),
    [
        ("t.tsv", "a, b, c\td\n1\t2\n", ["a, b, c", "d"]),
        ("t.csv", '"a; b; c; d","e;\nf"\n1,2\n', ["a; b; c; d", "e;\nf"]),
        ("t.csv", '\ufeff"a ""x"", y, z";b\n1;2\n', ['a "x", y, z', "b"]),
        ("t.csv", "\n\na;b\n1;2\n", ["a", "b"]),
        ("t.csv", '5" tube;b, c;d\n1;2;3\n', ['5" tube', "b, c", "d"]),
    ],
)
def test_names_do_not_hide_what_separates_columns(tmp_path, name, text, names):
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert read_files(tmp_path / name).column_names == names
    assert FileBlocks(tmp_path / name).names == tuple(names)


def test_text_is_no_formula_of_a_spreadsheet(tmp_path):
    texts = ["=1+1", "+cmd", "-2", "@sum(a)", "\tx", "a=b", "-1e3", "-1e3x"]
    write_table([{"=day": texts, "x": -np.arange(8.0)}], tmp_path / "t.csv")
    table = read_files(tmp_path / "t.csv")
    safe = ["'=1+1", "'+cmd", "-2", "'@sum(a)", "'\tx", "a=b", "-1e3", "'-1e3x"]
    assert (table.column_names, table["'=day"].to_pylist()) == (["'=day", "x"], safe)
    assert table["x"].to_pylist() == [-float(k) for k in range(8)]
    write_table([{"=day": texts}], tmp_path / "t.parquet")
    assert read_files(tmp_path / "t.parquet")["=day"].to_pylist() == texts


def test_utf_16_if_it_is_named(tmp_path):
    (tmp_path / "t.csv").write_text(TEXT, encoding="utf-16")
    assert read_files(tmp_path / "t.csv", encoding="utf-16")["cost"].to_pylist() == [1.5, 2.5]


def test_a_mark_at_the_beginning_is_no_part_of_the_first_name(tmp_path):
    (tmp_path / "t.csv").write_text(TEXT, encoding="utf-8-sig")
    assert read_files(tmp_path / "t.csv").column_names[0] == "day"


def test_gzip(tmp_path):
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(TEXT.encode()))
    assert read_files(tmp_path / "t.csv.gz").num_rows == 2


@pytest.mark.parametrize("read", [read_files, FileBlocks])
def test_a_damaged_gzip_in_another_encoding_is_named(tmp_path, read):
    whole = gzip.compress((TEXT + "".join(f"2026-01-03,{k * k},{k}\n" for k in range(500))).encode("latin-1"))
    middle = len(whole) // 2
    for content in (whole[:middle], whole[:middle] + bytes(40) + whole[middle + 40 :]):
        (tmp_path / "t.csv.gz").write_bytes(content)
        with pytest.raises(InputError, match=r"t\.csv\.gz could not be read"):
            read(tmp_path / "t.csv.gz", encoding="latin-1")


def test_text_in_another_encoding_is_decoded_once_for_all_passes(tmp_path, monkeypatch):
    decoded = []
    monkeypatch.setattr(files, "copyfileobj", lambda *both: decoded.append(copyfileobj(*both)))
    monkeypatch.setattr(files, "mkdtemp", lambda prefix: str(tmp_path / prefix))
    (tmp_path / "decidewise-").mkdir()
    (tmp_path / "t.csv").write_text(TEXT, encoding="latin-1")
    blocks = FileBlocks(tmp_path / "t.csv", encoding="latin-1")
    assert [len(list(blocks)) for _ in range(3)] == [1, 1, 1]
    assert len(decoded) == 1
    del blocks
    assert not (tmp_path / "decidewise-").exists()


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "utf-16"])
def test_threads_of_arrow_never_need_python(tmp_path, monkeypatch, encoding):
    """One that does when the interpreter ends aborts the process: 1 of 5 runs that read a table and ended at once."""
    monkeypatch.delattr(pa, "PythonFile")
    (tmp_path / "t.csv").write_text(TEXT, encoding=encoding)
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(TEXT.encode(encoding)))
    for name in ("t.csv", "t.csv.gz"):
        assert read_files(tmp_path / name, encoding=encoding)["größe"].to_pylist() == ["a", None]
        [block] = FileBlocks(tmp_path / name, encoding=encoding)
        assert block.table["cost"].to_pylist() == [1.5, 2.5]


def test_a_folder_is_read_in_the_order_of_names_without_hidden_files(tmp_path):
    for name, value in (("b.csv", 2), ("a.csv", 1), (".c.csv", 3), ("notes.txt", 4)):
        (tmp_path / name).write_text(f"x\n{value}\n")
    assert read_files(tmp_path)["x"].to_pylist() == [1, 2]
    assert read_files(tmp_path / "[ab].csv")["x"].to_pylist() == [1, 2]


def test_whole_numbers_in_one_file_and_fractions_in_another(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    (tmp_path / "b.csv").write_text("y,x\n2.5,3\n")
    table = read_files(tmp_path)
    assert table.to_pydict() == {"x": [1, 3], "y": [2.0, 2.5]}


def test_a_file_whose_name_looks_like_a_pattern(tmp_path):
    (tmp_path / "a[1].csv").write_text("x\n7\n")
    assert read_files(tmp_path / "a[1].csv")["x"].to_pylist() == [7]


@pytest.mark.parametrize("kind", [".csv", ".tsv", ".csv.gz", ".parquet", ".arrow"])
def test_what_is_written_is_read_again(tmp_path, kind):
    columns = {"day": np.array(["2026-01-01", "2026-01-02"], dtype="datetime64[D]"), "x": np.array([0.1, np.nan])}
    write_table(
        [{name: values[row : row + 1] for name, values in columns.items()} for row in (0, 1)], tmp_path / f"t{kind}"
    )
    table = read_files(tmp_path / f"t{kind}")
    np.testing.assert_array_equal(table["day"].to_numpy(), columns["day"])
    assert table["x"].to_pylist() == [0.1, None]


def test_read_table_reads_folders_too(tmp_path):
    for part in range(2):
        (tmp_path / f"{part}.tsv").write_text(f"x\tcost_a\tcost_b\n{part}\t1\t2\n")
    data = read_table(tmp_path, problem=TopK(2, 1), costs="cost_*", features="x")
    assert data.X.tolist() == [[0.0], [1.0]]


def test_a_bad_file_of_a_folder_is_named(tmp_path):
    (tmp_path / "a.csv").write_text("x\n1\n")
    (tmp_path / "b.parquet").write_bytes(b"junk" * 9)
    with pytest.raises(InputError, match=r"b\.parquet could not be read"):
        read_files(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs the pipes of POSIX")
def test_a_pipe_is_no_table(tmp_path):
    os.mkfifo(tmp_path / "t.csv")
    with pytest.raises(InputError, match="is not a file"):
        read_files(tmp_path / "t.csv")
    with pytest.raises(ValueError, match="is not a file"):
        FileRows(tmp_path / "t.csv", features="x", costs="c_*")
