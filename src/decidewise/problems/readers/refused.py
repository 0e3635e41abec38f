"""What the readers of linear programs say about a part of a model that they do not translate."""

from __future__ import annotations


def refused(model: str, part: str) -> str:
    """Return the message that a model cannot be taken over, since it has such a part.

    >>> refused("plan.mps", "special ordered sets")[:77]
    'plan.mps has special ordered sets, and only linear programs, also in whole nu'
    """
    return (
        f"{model} has {part}, and only linear programs, also in whole numbers, can be taken over. Write it linearly, "
        "with binary variables where need be, or solve the problem by a function of your own: from_function."
    )
