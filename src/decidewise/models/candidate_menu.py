"""A menu of models to choose among, with the reasons why each family is on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


class Candidates(dict[str, Any]):
    """Candidates by name, from the simplest to the most complex: a dictionary that can be changed.

    Attributes
    ----------
    notes : dict of str to str
        For each family of models, why it is among the candidates or why not.
    families : dict of str to str
        The family of each candidate.
    leads : dict of str to str
        Candidates that are costly or rarely best, each with the lead of its family. They are first tried on one fold:
        the lead, and the others if the lead is not clearly worse than the best so far.
    previews : dict of str to estimator
        For leads that take long, a quicker model of the same kind. It is tried before the lead, which is dropped if
        this model is far worse than the best so far.

    Examples
    --------
    >>> from decidewise import GeneralizedLinear
    >>> candidates = Candidates({"least squares": GeneralizedLinear()})
    >>> candidates["gamma"] = GeneralizedLinear("gamma")
    >>> list(candidates)
    ['least squares', 'gamma']
    """

    def __init__(self, candidates: Mapping[str, Any] | None = None) -> None:
        super().__init__(candidates or {})
        self.notes: dict[str, str] = {}
        self.families: dict[str, str] = {}
        self.leads: dict[str, str] = {}
        self.previews: dict[str, Any] = {}

    def serve(
        self,
        family: str,
        note: str,
        *,
        groups: Sequence[Mapping[str, Any]] = (),
        on_trial: bool = False,
        previews: Mapping[str, Any] | None = None,
    ) -> None:
        """Add a family of models, with the reason; on trial, the first member of a group is the lead of the group."""
        self.notes[family] = note
        self.previews |= previews or {}
        for group in groups:
            self |= group
            self.families |= dict.fromkeys(group, family)
            if on_trial:
                self.leads |= dict.fromkeys(group, next(iter(group)))

    def renewed(self, candidates: Mapping[str, Any]) -> Candidates:
        """Return other candidates with the same notes, and the same candidates on trial as far as they are there."""
        menu = Candidates(candidates)
        menu.notes, menu.families = dict(self.notes), dict(self.families)
        menu.leads, menu.previews = dict(self.leads), dict(self.previews)
        return menu
