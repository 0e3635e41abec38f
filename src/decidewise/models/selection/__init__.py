"""Choosing among models by the decisions they lead to on rows they have not seen."""
