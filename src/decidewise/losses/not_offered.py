"""Methods of the literature that have a name and no loss here, each with the reason and with what to use instead."""

from __future__ import annotations

#: By name; `as_loss` says it.
NOT_OFFERED = {
    "dgl": (
        "DGL relaxes groups of which one is chosen by multipliers, and no complete definition is public. Use "
        '"spo-relax" or "intopt".'
    ),
}
