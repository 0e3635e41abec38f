r"""Indicator constraints and special ordered sets of MPS and LP files, which HiGHS does not read.

They are taken out of the text, and put back as constraints with binary variables. What is written in another way than
here stays in the text, and is refused. In an MPS file: `SOS` with lines ` S1 SOS name` and `    variable  weight`, and
`INDICATORS` with lines ` IF row variable value`; in an LP file: `name: variable = 1 -> x + y <= 3` and, below `SOS`,
`name: S1:: x:1 y:2`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from decidewise.kit.checks import FloatArray, nearest_names
from decidewise.kit.errors import InputError
from decidewise.problems.readers.switches import Indicator, OrderedSet

_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_INDICATOR = re.compile(r"(?P<label>[^\s:]+\s*:)?(?P<gap>\s*)(?P<switch>[^\s:<>=+*-]+)\s*=\s*(?P<value>[01])\s*->")
_SETS = re.compile(r"^[ \t]*sos\d?[ \t]*$(?P<body>.*?)(?=^\s*(?:bounds?|gen|int|bin|semi|end))", re.I | re.M | re.S)
_SET = re.compile(
    rf"(?:[^\s:]+\s*:)?\s*S(?P<kind>[12])\s*::(?P<members>(?:\s*[^\s:]+\s*:\s*{_NUMBER}(?![\w.]))+)", re.I
)
_MEMBER = re.compile(rf"(?P<name>[^\s:]+)\s*:\s*(?P<weight>{_NUMBER})")


class Logic(NamedTuple):
    """The rest of a text; constraints by name, with the variable and the value that make them hold; and sets."""

    text: str
    indicators: list[tuple[str, str, int]]
    sets: list[tuple[int, list[tuple[float, str]]]]
    whole: frozenset[str] = frozenset()  # variables that HiGHS forgets to be whole, if they are semi-continuous too

    def resolved(
        self, A: csr_array, rows: tuple[FloatArray, FloatArray], names: list[str], row_names: list[str], file: str
    ) -> tuple[list[Indicator], list[OrderedSet]]:
        """Return the constraints that hold sometimes, and the sets, of a program."""
        place = {name: j for j, name in enumerate(names)}
        for name in [switch for _, switch, _ in self.indicators] + [name for _, some in self.sets for _, name in some]:
            if name not in place:
                raise InputError(f"{file}: there is no variable {name!r}{nearest_names(name, names)}")
        indicators = []
        for label, switch, value in self.indicators:
            if label not in row_names:
                raise InputError(f"{file}: there is no constraint {label!r}{nearest_names(label, row_names)}")
            row = row_names.index(label)
            factors = A[[row]].toarray()[0]
            indicators.append(Indicator(place[switch], value, factors, float(rows[0][row]), float(rows[1][row]), row))
        sets = [OrderedSet(kind, np.array([place[name] for _, name in sorted(some)])) for kind, some in self.sets]
        return indicators, sets


def logic_of_mps(text: str) -> Logic:
    r"""Return the logic of an MPS file, whose lines become comments.

    >>> logic = logic_of_mps("ROWS\nSOS\n S1 SOS s\n    x  1\n    y  2\nINDICATORS\n IF cap on 1\nENDATA\n")
    >>> logic.text, logic.indicators, logic.sets
    ('ROWS\n*\n*\n*\n*\n*\n*\nENDATA\n', [('cap', 'on', 1)], [(1, [(1.0, 'x'), (2.0, 'y')])])
    """
    lines, section, is_whole, whole = text.splitlines(), "", False, set[str]()
    logic = Logic("", [], [])
    for number, line in enumerate(lines):
        fields = line.split()
        if not fields or line[0] == "*":
            continue
        is_header = not line[0].isspace() and fields[0].upper() not in ("S1", "S2", "IF")
        section = fields[0].upper() if is_header and len(fields) == 1 else "" if is_header else section
        if section not in ("SOS", "INDICATORS"):
            if "'MARKER'" in fields:
                is_whole = "'INTORG'" in fields
            elif is_whole and section == "COLUMNS":
                whole.add(fields[0])
            continue
        if not is_header and not _add(section, fields, logic):
            return Logic(text, [], [])  # which is refused as it is
        lines[number] = "*"
    rest = "\n".join(lines) + "\n" if logic.indicators or logic.sets else text
    return logic._replace(text=rest, whole=frozenset(whole))


def _add(section: str, fields: list[str], logic: Logic) -> bool:
    """Add a line of a section; return whether it is understood."""
    if section == "INDICATORS":
        if len(fields) != 4 or fields[0].upper() != "IF" or fields[3] not in ("0", "1"):
            return False
        logic.indicators.append((fields[1], fields[2], int(fields[3])))
    elif fields[0].upper() in ("S1", "S2"):
        logic.sets.append((int(fields[0][1]), []))
    elif logic.sets and len(fields) == 2 and re.fullmatch(_NUMBER, fields[1]):
        logic.sets[-1][1].append((float(fields[1]), fields[0]))
    else:
        return False
    return True


def logic_of_lp(text: str) -> Logic:
    r"""Return the logic of an LP file, whose indicators become plain constraints.

    >>> logic_of_lp("min\n c: x\nst\n r: on = 1 -> x + y <= 3\nsos\n s: S1:: x:1 y:2\nend\n")[1:3]
    ([('r', 'on', 1)], [(1, [(1.0, 'x'), (2.0, 'y')])])
    """
    plain = re.sub(r"\\.*", "", text)  # comments
    logic = Logic("", [], [])

    def constraint(found: re.Match[str]) -> str:
        label = (found["label"] or f"indicator_{len(logic.indicators)}:")[:-1].strip()
        logic.indicators.append((label, found["switch"], int(found["value"])))
        return f"{found['gap'] if found['label'] is None else ''} {label}: "

    def sets(found: re.Match[str]) -> str:
        if _SET.sub("", found["body"]).strip():
            return found.group()  # which is refused as it is
        for each in _SET.finditer(found["body"]):
            members = [(float(one["weight"]), one["name"]) for one in _MEMBER.finditer(each["members"])]
            logic.sets.append((int(each["kind"]), members))
        return "\n" * found.group().count("\n")

    rest = _SETS.sub(sets, _INDICATOR.sub(constraint, plain))
    return logic._replace(text=rest) if logic.indicators or logic.sets else Logic(text, [], [])
