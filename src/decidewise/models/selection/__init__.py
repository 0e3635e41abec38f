"""Choose among models by their decisions on held-out rows."""
