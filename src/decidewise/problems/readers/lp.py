"""Mistakes in an LP file that HiGHS does not report.

It leaves out an entry of NaN, a number beside the variables of a constraint, and an objective without a sense; it keeps
only the last cost of a variable that is in the objective twice, and takes parentheses as letters of a name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from decidewise.kit.errors import InputError
from decidewise.problems.readers.translation import refused

_SENSES = {"min", "minimum", "minimize", "max", "maximum", "maximize"}
_CONSTRAINTS = {"st", "st.", "s.t.", "subject to", "such that"}
_OTHERS = {
    *("bound", "bounds", "gen", "general", "generals", "int", "integer", "integers", "bin", "binary", "binaries"),
    *("semi", "semis", "sos", "sos1", "sos2", "end"),
}
_QUADRATIC = re.compile(r"\[[^\]]*[*^][^\]]*\](?P<half>\s*/\s*2(?![\w.]))?")
#: What stands in a line of its own, or on the left of something else, where a file has more than a linear program.
_REFUSED = {
    r"^\s*sos\d?\s*$": "special ordered sets",
    r"->": "indicator constraints",
    r"^\s*general constraints?\s*$": "general constraints",
    r"^\s*pwlobj\s*$": "piecewise linear costs",
    r"^\s*scenario\s+\w+\s*$": "several scenarios",
    r"^\s*lazy constraints?\s*$": "lazy constraints",
    r"^\s*user cuts?\s*$": "user cuts",
    r"\bmulti-objectives\s*$": "several objectives",
}
_TOKEN = re.compile(
    r"(?P<number>(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)|(?P<relation>[<>=]+)|(?P<colon>:)|(?P<sign>[+-])"
    r"|(?P<name>subject\s+to\b|such\s+that\b|[^\s+\-*/^:<>=]+)",
    re.IGNORECASE,
)


class _Token(NamedTuple):
    kind: str
    text: str
    place: int


_Tokens = list[_Token]
_Mistakes = Iterator[tuple[_Token, str]]


def check_lp(text: str, name: str) -> None:
    r"""Raise an `InputError` with the line if HiGHS would read something else than the file says.

    A quadratic term in brackets is left to HiGHS, and so are all sums in a file with other brackets, which it refuses.

    >>> check_lp("min\n cost: x + x\nst\n c1: x >= 2\nend\n", "plan.lp")
    Traceback (most recent call last):
    decidewise.kit.errors.InputError: plan.lp, line 2: 'x' is in the objective twice. Write one cost, the sum.
    """
    if re.search(r"(?<![\w.])nan(?![\w.])", text, flags=re.IGNORECASE):
        raise InputError(f"{name} has NaN, which is not a number.")
    text = re.sub(r"\\.*", "", text)  # comments
    for pattern, part in _REFUSED.items():
        if found := re.search(pattern, text, flags=re.IGNORECASE | re.MULTILINE):
            raise InputError(refused(name, f"{part} (line {1 + text.count(chr(10), 0, found.end())})"))
    text = _without_quadratic(text, name)
    tokens = _tokens(text)
    if not tokens or tokens[0].text.lower() not in _SENSES:
        got = repr(tokens[0].text) if tokens else "nothing"
        raise InputError(f"{name} must start with the sense of its objective, Minimize or Maximize; got {got}.")
    if all(token.text.lower() != "end" for token in tokens):
        raise InputError(f"{name} does not end with the word End. Is it complete?")
    if "[" in text:
        return
    objective, constraints = _sections(tokens[1:])
    for token, mistake in (*_in_objective(objective), *_in_constraints(constraints)):
        raise InputError(f"{name}, line {1 + text.count(chr(10), 0, token.place)}: {mistake}")


def _tokens(text: str) -> _Tokens:
    return [_Token(str(match.lastgroup), match.group(), match.start()) for match in _TOKEN.finditer(text)]


def _without_quadratic(text: str, name: str) -> str:
    """Return the text with blanks in place of the quadratic term of the objective; refuse any other."""
    for found in reversed([*_QUADRATIC.finditer(text)]):
        line = 1 + text.count("\n", 0, found.start())
        if any(" ".join(token.text.lower().split()) in _CONSTRAINTS for token in _tokens(text[: found.start()])):
            raise InputError(refused(name, f"quadratic terms in constraints (line {line})"))
        if found["half"] is None:
            raise InputError(f"{name}, line {line}: the quadratic term of the objective must end in ] / 2.")
        blank = re.sub(r"[^\n]", " ", found.group())
        sign = re.search(r"\+\s*$", text[: found.start()])
        start = sign.start() if sign else found.start()
        text = text[:start] + " " * (found.start() - start) + blank + text[found.end() :]
    return text


def _sections(tokens: _Tokens) -> tuple[_Tokens, _Tokens]:
    """Return the objective, after its sense, and the constraints."""
    objective: _Tokens = []
    constraints: _Tokens = []
    section = objective
    for token in tokens:
        word = " ".join(token.text.lower().split())
        if section is objective and word in _CONSTRAINTS:
            section = constraints
        elif word in _OTHERS:
            break
        else:
            section.append(token)
    return objective, constraints


def _in_objective(tokens: _Tokens) -> _Mistakes:
    seen: set[str] = set()
    for token in _variables(tokens):
        yield from _in_name(token)
        if token.text in seen:
            yield token, f"{token.text!r} is in the objective twice. Write one cost, the sum."
        seen.add(token.text)


def _in_constraints(tokens: _Tokens) -> _Mistakes:
    for token in _variables(tokens):
        yield from _in_name(token)
    is_left = True
    for token, after in pairwise((*tokens, _Token("end", "", 0))):
        if token.kind == "relation":
            is_left = False
        elif not is_left:
            is_left = token.kind != "sign"  # the one number on the right
        elif token.kind == "number" and after.kind not in ("name", "colon") and float(token.text) != 0:
            yield (
                token,
                f"the number {token.text} is on the left of a constraint, and not that of a variable. Write all "
                "variables on the left and one number on the right; what has two sides, as two constraints.",
            )


def _variables(tokens: _Tokens) -> Iterator[_Token]:
    """Yield the names but for those that a colon follows."""
    for token, after in pairwise((*tokens, _Token("end", "", 0))):
        if token.kind == "name" and after.kind != "colon":
            yield token


def _in_name(token: _Token) -> _Mistakes:
    if token.text.count("(") != token.text.count(")"):
        yield token, f"{token.text!r} has a parenthesis without the other one. Multiply sums in parentheses out."
