"""Methods of the literature that have a name and no loss here, each with the reason and with what to use instead."""

from __future__ import annotations

#: By name; `as_loss` says it.
NOT_OFFERED = {
    "mipaal": (
        "MIPaaL adds cutting planes to the relaxation and then smooths it as Qptl does. The limit of all cuts is the "
        'hull of the decisions, on which Rfwo projects without any cut: use "rfwo".'
    ),
    "projectnet": (
        "ProjectNet unrolls projections of which a matrix is trained before the model. A layer of the same kind that "
        'needs no training is Dys: use "dys".'
    ),
    "compact": (
        "compact surrogates reduce the decision to a few columns, which has no feasible point once the equations "
        'outnumber the columns, as on every grid of paths. Use "qptl", or "spo-relax", where a solve takes too long.'
    ),
    "egl": (
        "EGL trains one network from features to the weights of squared errors, and only its abstract defines how. "
        'The loss it generalises is Lodl, with weights of each row: use "lodl"; or "lancer" for a network.'
    ),
    "dgl": (
        "DGL relaxes groups of which one is chosen by multipliers, and no complete definition is public. Use "
        '"spo-relax" or "intopt".'
    ),
}
