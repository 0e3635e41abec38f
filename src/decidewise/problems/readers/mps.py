"""Mistakes in an MPS file that HiGHS does not report.

It takes `4,5` as 4 and `four` as 0, leaves out an entry of NaN, adds a variable where a bound names one that is not
there, and leaves out a third entry in a line, and what follows a name that is also that of a section. Comments at the
end of a line confuse it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from decidewise.kit.checks import nearest_names
from decidewise.kit.errors import InputError
from decidewise.problems.readers.translation import refused

_QUADRATIC = ("QUADOBJ", "QMATRIX")
_TRANSLATED = (
    "NAME",
    "OBJSENSE",
    "OBJSENS",
    "ROWS",
    "LAZYCONS",
    "COLUMNS",
    "RHS",
    "RANGES",
    "BOUNDS",
    *_QUADRATIC,
    "ENDATA",
)
_REFUSED = {
    **dict.fromkeys(("QSECTION", "QCMATRIX"), "quadratic terms"),
    **dict.fromkeys(("SOS", "SOS1", "SOS2", "SETS"), "special ordered sets"),
    "CSECTION": "cones",
    "INDICATORS": "indicator constraints",
    "GENCONS": "general constraints",
    "PWLOBJ": "piecewise linear costs",
    "SCENARIOS": "several scenarios",
    "USERCUTS": "user cuts",
}
_NUMBER = re.compile(r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:[eEdD][+-]?\d+)?|inf(?:inity)?)", re.IGNORECASE)
_COMMENT = re.compile(r"(?<=\S)[ \t]+[$*].*")
_WITHOUT_NUMBER = ("FR", "MI", "PL", "BV")
_SEEN_ANYWHERE = ("NAME", "OBJSENSE", "QSECTION", "QCMATRIX", "CSECTION")  # also where a line is indented
_WIDTHS = {"ROWS": (2,), "COLUMNS": (3, 5), "RHS": (2, 3, 4, 5), "RANGES": (2, 3, 4, 5), "BOUNDS": (2, 3, 4)}
_WIDTHS |= dict.fromkeys(_QUADRATIC, (3,))


def check_mps(text: str, name: str) -> str:
    r"""Return the text without comments in lines; raise an `InputError` with the line if HiGHS would misread one.

    A file with spaces in names, whose fields only their columns tell apart, is left to HiGHS as it is.

    >>> check_mps("COLUMNS\n    x  cost  1,5\n", "plan.mps")
    Traceback (most recent call last):
    decidewise.kit.errors.InputError: plan.mps, line 2: '1,5' is not a number.
    """
    plain = _COMMENT.sub("", text)
    lines = list(_data_lines(plain))
    _check_translated(lines, text.splitlines(), name)
    irregular = {section for _, section, fields in lines if not _is_regular(section, fields)}
    if irregular & {"ROWS", "COLUMNS"}:
        return text
    columns: dict[str, int] = {}
    entries: set[tuple[str, ...]] = set()
    for number, section, fields in lines:
        place = f"{name}, line {number}"
        if section in ("COLUMNS", "RHS", "RANGES") and fields[0].upper() in _SEEN_ANYWHERE:
            raise InputError(f"{place}: HiGHS takes the name {fields[0]!r} as that of a section. Rename it.")
        if section.startswith("OBJSENS"):
            if fields[0].upper() not in ("MAX", "MAXIMIZE", "MIN", "MINIMIZE"):
                raise InputError(f"{place}: the sense must be MAX or MIN; got {fields[0]!r}.")
        elif section == "COLUMNS" and "'MARKER'" not in fields:
            if fields[0] in columns and next(reversed(columns)) != fields[0]:
                raise InputError(f"{place}: variable {fields[0]!r} is already there, further up. Rename one.")
            columns[fields[0]] = number
            _check_numbers(fields[2::2], place)
        elif section in ("RHS", "RANGES") and 2 <= len(fields) <= 5:
            _check_numbers(fields[2::2] if len(fields) % 2 else fields[1::2], place)
        elif section == "BOUNDS" and len(fields) in (3, 4):
            _check_bound(fields, columns, place)
        elif section in _QUADRATIC and len(fields) == 3:
            _check_entry(fields, columns, entries, section, place)
    return text if irregular else plain


def _check_translated(lines: list[tuple[int, str, list[str]]], whole: list[str], name: str) -> None:
    """Refuse sections that are not translated, and lines of which HiGHS reads a part, with comments or without."""
    for number, section, fields in lines:
        if section and section not in _TRANSLATED:
            raise InputError(refused(name, f"{_REFUSED.get(section, f'a section {section}')} (line {number})"))
        if section == "ROWS" and len(fields) == 6:  # with priority, weight and tolerances, as Gurobi writes it
            raise InputError(refused(name, f"several objectives (line {number})"))
        line = whole[number - 1]
        if any(_is_regular(section, words) for words in (fields, line.split())) or section == "ROWS":
            continue
        if fields[0] not in _WITHOUT_NUMBER and not _NUMBER.fullmatch(line[24:36].strip()):  # as in fixed columns
            raise InputError(
                f"{name}, line {number}: HiGHS would leave out a part of these {len(fields)} words. Write one name and "
                "one number per line, and names without spaces."
            )


def _check_bound(fields: list[str], columns: dict[str, int], place: str) -> None:
    if fields[0] in _WITHOUT_NUMBER:
        variable = fields[2] if fields[1] not in columns or fields[2] in columns else fields[1]
    else:
        variable = fields[-2]
        _check_numbers(fields[-1:], place)
    if variable not in columns:
        raise InputError(
            f"{place}: a bound of variable {variable!r}, which has no column{nearest_names(variable, columns)}"
        )


def _check_entry(
    fields: list[str], columns: dict[str, int], entries: set[tuple[str, ...]], section: str, place: str
) -> None:
    """Refuse an entry of a quadratic term that HiGHS would add to another one, or give a variable of its own."""
    for variable in fields[:2]:
        if variable not in columns:
            raise InputError(
                f"{place}: a square of variable {variable!r}, which has no column{nearest_names(variable, columns)}"
            )
    _check_numbers(fields[2:], place)
    entry = tuple(fields[:2] if section == "QMATRIX" else sorted(fields[:2]))
    if entry in entries:
        raise InputError(
            f"{place}: the entry of {fields[0]!r} and {fields[1]!r} is already there, further up. QUADOBJ has one for "
            "both orders of two variables, and QMATRIX one for each order."
        )
    entries.add(entry)


def _check_numbers(numbers: list[str], place: str) -> None:
    for number in numbers:
        if not _NUMBER.fullmatch(number):
            raise InputError(f"{place}: {number!r} is not a number.")


def _is_regular(section: str, fields: list[str]) -> bool:
    return len(fields) in _WIDTHS.get(section, (len(fields),))


def _data_lines(text: str) -> Iterator[tuple[int, str, list[str]]]:
    """Yield the number, the section and the fields of each line with data."""
    section = ""
    for number, line in enumerate(text.splitlines(), start=1):
        fields = line.split()
        if not fields or line[0] == "*":
            continue
        word = fields[0].upper()
        is_alone = len(fields) == 1 and section and not section.startswith("OBJSENS")
        if not line[0].isspace() and (word in _TRANSLATED or word in _REFUSED or is_alone):
            section = word
            fields = fields[1:] if section.startswith("OBJSENS") else []
        if fields:
            yield number, section, fields
