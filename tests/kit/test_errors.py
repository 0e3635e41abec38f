"""The warning about decisions that are not optimal, said once."""

import pytest

from decidewise.kit.errors import OptimalityWarning, doubt, said_once


@said_once()
def score(fails):
    for number in range(3):
        doubt(f"doubt {number}", stacklevel=1)
    if fails:
        raise ValueError("no model")


def test_the_first_of_many_doubts_is_said():
    with pytest.warns(OptimalityWarning, match="doubt 0") as warned:
        score(fails=False)
    assert [warning.filename for warning in warned] == [__file__]


def test_an_error_says_the_doubt():
    with pytest.raises(ValueError, match="no model") as failed:
        score(fails=True)
    assert failed.value.__notes__ == ["doubt 0"]
