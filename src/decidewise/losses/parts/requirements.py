"""What a loss may require of a problem or of a fit, and the sentences that say what is missing.

A loss declares it, as `requires = frozenset({"polyhedron"})`; one that derives from another adds to what that one
requires, as `Cmap.requires | {"features"}`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

from decidewise.problems.contract import Problem
from decidewise.problems.views import relaxation

if TYPE_CHECKING:
    from decidewise.losses.base import Loss

#: "polyhedron": linear constraints; "relaxation": the same, also where only some variables are in whole numbers;
#: "polytope": flat faces (see `Problem.faces`); "derivative": a curved region whose derivative is known;
#: "common region": decisions of one row are feasible in every other row, because the loss compares them;
#: "features": `label` uses the features.
Requirement = Literal["polyhedron", "relaxation", "polytope", "derivative", "common region", "features"]


def check_declaration(name: str, requires: object) -> None:
    """Raise unless what a class of losses declares is a set of requirements."""
    if not isinstance(requires, frozenset) or not requires <= frozenset(get_args(Requirement)):
        raise TypeError(
            f"{name}.requires must be a frozenset of some of {', '.join(map(repr, get_args(Requirement)))}; got "
            f"{requires!r}."
        )


def check_requirements(loss: Loss, problem: Problem, seen: Problem) -> None:
    """Raise an error that says what to do if a problem lacks what a loss requires.

    Parameters
    ----------
    loss : Loss
    problem : Problem
    seen : Problem
        The view of the problem that the loss works on.
    """
    name, its, requires = type(loss).__name__, type(problem).__name__, loss.requires
    if loss.directions and problem.has_known:
        raise ValueError(
            f"{name} predicts directions, which cannot be added to the known costs of {its}. Choose a loss whose "
            "predictions are costs, such as SpoPlus or Mse, or fit WiseRegressor(lifted=True)."
        )
    if "common region" in requires and problem.n_rows is not None:
        raise ValueError(
            f"{name} compares each row with decisions of other rows, and {its} differs by row, so there they may "
            "not be feasible, or not cost the same. Choose a loss that solves each row by itself, such as SpoPlus "
            "or Pfy."
        )
    is_flat = problem.faces == "flat" or problem.is_integer or problem.polyhedron is not None
    if "polytope" in requires and not is_flat:
        raise ValueError(
            f"{name} needs a region with flat faces, and {its} is not known to be one. If it is, set faces = "
            "'flat' in its class; otherwise choose a loss that works on any region, such as Rfy, SpoPlus or Pfy."
        )
    lacks = (
        "polyhedron" in requires and seen.polyhedron is None,
        "relaxation" in requires and relaxation(seen) is None,
    )
    if any(lacks):
        raise ValueError(
            f"{name} needs linear constraints, and {its} {_without_polyhedron(problem, seen)}. Choose a loss that "
            f"works on any region, such as {'' if problem.has_known else 'Wise, '}SpoPlus or Pfy."
        )
    if "derivative" in requires and seen.faces != "curved":
        if is_flat:
            raise ValueError(
                f"{name} differentiates the decision itself, and on the polytope of {its} that is constant almost "
                "everywhere, so its gradient would be zero. Choose Qptl (or Rfwo), which adds a quadratic term."
            )
        its += " with known costs" if problem.has_known else ""
        why = problem.missing.get("derivative", "it does not set faces = 'curved'")
        raise ValueError(
            f"{name} needs a curved region whose derivative is known, and {its} has none: {why}. Write its "
            "derivative, or choose a loss that works on any region, such as SpoPlus or Pfy."
        )


def _without_polyhedron(problem: Problem, seen: Problem) -> str:
    """Say what a problem has instead of linear constraints."""
    why = seen.missing.get("polyhedron") or problem.missing.get("polyhedron")
    if why is not None:
        return f"has no polyhedron ({why})"
    if problem.n_rows is not None:
        return "differs by row, so there is no polyhedron for all rows"
    if problem.has_known and problem.polyhedron is not None:
        return "has one only for its decisions, without the known part of its costs"
    return "has no polyhedron"
