"""Losses: prediction and target in, value and gradient out; one loss, or one family, per file.

`registry` maps names to classes. To use a loss of your own by name, add it: `registry["mine"] = MyLoss`.
"""

from inspect import signature
from typing import Any

from decidewise.kit.checks import nearest_names
from decidewise.losses.aimle import Aimle
from decidewise.losses.base import Loss
from decidewise.losses.cave import Cave, CaveHybrid, CavePlus
from decidewise.losses.cilp import Cilp
from decidewise.losses.compact import Compact
from decidewise.losses.contrastive import Cmap, Nce
from decidewise.losses.cosine import Cosine, cosine
from decidewise.losses.dbb import Dbb
from decidewise.losses.dys import Dys
from decidewise.losses.egl import Egl
from decidewise.losses.imle import Imle
from decidewise.losses.implicit import Implicit
from decidewise.losses.intopt import IntOpt
from decidewise.losses.lancer import Lancer
from decidewise.losses.lava import Lava
from decidewise.losses.lodl import Lodl
from decidewise.losses.ltr import LtrListwise, LtrPairwise, LtrPointwise
from decidewise.losses.mipaal import Mipaal
from decidewise.losses.mom import Mom
from decidewise.losses.mse import Mse, mse
from decidewise.losses.nid import Nid
from decidewise.losses.one_sided import OneSided
from decidewise.losses.parts.target import SHARED, DecisionTarget, Target, row_dot, solve_labels
from decidewise.losses.pear import Pear
from decidewise.losses.perturbed import Dpo, Pfy
from decidewise.losses.pg import Pg, PgAdaptive, PgDca
from decidewise.losses.project_net import ProjectNet
from decidewise.losses.qptl import Qptl
from decidewise.losses.rfwo import Rfwo
from decidewise.losses.rfy import Rfy
from decidewise.losses.sce import Sce
from decidewise.losses.sfge import Sfge
from decidewise.losses.spo_plus import SpoPlus
from decidewise.losses.spo_relax import SpoRelax
from decidewise.losses.wise import Wise, wise

registry: dict[str, type[Loss]] = {
    "mse": Mse,
    "wise": Wise,
    "spo+": SpoPlus,
    "pfy": Pfy,
    "dbb": Dbb,
    "pg": Pg,
    "nid": Nid,
    "dpo": Dpo,
    "imle": Imle,
    "aimle": Aimle,
    "rfy": Rfy,
    "rfwo": Rfwo,
    "nce": Nce,
    "cmap": Cmap,
    "ltr-pointwise": LtrPointwise,
    "ltr-pairwise": LtrPairwise,
    "ltr-listwise": LtrListwise,
    "cave": Cave,
    "cave+": CavePlus,
    "cave-hybrid": CaveHybrid,
    "lava": Lava,
    "mom": Mom,
    "cilp": Cilp,
    "one-sided": OneSided,
    "cosine": Cosine,
    "sce": Sce,
    "pear": Pear,
    "qptl": Qptl,
    "intopt": IntOpt,
    "spo-relax": SpoRelax,
    "pg-dca": PgDca,
    "pg-adaptive": PgAdaptive,
    "sfge": Sfge,
    "lodl": Lodl,
    "lancer": Lancer,
    "implicit": Implicit,
    "dys": Dys,
    "projectnet": ProjectNet,
    "mipaal": Mipaal,
    "compact": Compact,
    "egl": Egl,
}

#: Methods of the literature that have a name and no loss here, each with the reason and with what to use instead.
NOT_OFFERED = {
    "dgl": (
        "DGL relaxes groups of which one is chosen by multipliers, and no complete definition is public. Use "
        '"spo-relax" or "intopt".'
    ),
}


def as_loss(loss: str | Loss, **parameters: Any) -> Loss:
    """Return the registered loss of that name, in any case, with the given parameters; return a `Loss` as it is.

    >>> as_loss("PFY", sigma=0.5)
    Pfy(n_samples=10, sigma=0.5)
    """
    if isinstance(loss, Loss):
        if parameters:
            raise ValueError(
                f"parameters are for a loss given by its name; got loss={loss!r}. Set {', '.join(parameters)} in it."
            )
        return loss
    if isinstance(loss, str) and loss not in registry:
        loss = next((name for name in (*registry, *NOT_OFFERED) if name.lower() == loss.lower()), loss)
    if isinstance(loss, str) and loss in NOT_OFFERED and loss not in registry:
        raise ValueError(f"there is no loss {loss!r}: {NOT_OFFERED[loss]}")
    if not (isinstance(loss, str) and loss in registry):
        near = nearest_names(loss.lower(), registry) if isinstance(loss, str) else "."
        names = f"the {len(registry)} names of decidewise.losses.registry"
        raise ValueError(f"loss must be one of {names}, or a Loss such as SpoPlus(); got {loss!r}{near}")
    known = signature(registry[loss])
    try:
        known.bind(**parameters)
    except TypeError as reason:
        its = f"its parameters are {', '.join(known.parameters)}" if known.parameters else "it has no parameters"
        raise TypeError(f"loss {loss!r} {reason}; {its}.") from reason
    return registry[loss](**parameters)


__all__ = [
    "NOT_OFFERED", "SHARED", "DecisionTarget", "Loss", "Target", "as_loss", "cosine", "mse", "registry", "row_dot",
    "solve_labels", "wise",
]  # fmt: skip
__all__ += [loss.__name__ for loss in registry.values()]
