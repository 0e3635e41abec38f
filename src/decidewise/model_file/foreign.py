"""Parts of a model that only their own libraries can read: estimators through skops, trees of LightGBM as its text.

Such libraries are not hardened against hostile input, and a type may run code of its own when it is built. So they
never see a byte of a file unless the caller has named the types as trusted.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Collection
from typing import Any

from decidewise.kit.errors import InputError
from decidewise.kit.lazy import require

FORMS = ("skops", "lightgbm")
_BOOSTER = "lightgbm.Booster"


def to_bytes(value: Any, where: str) -> tuple[str, bytes, set[str]]:
    """Return the form of a part, its bytes and the types that a reader must trust; raise if no form can hold it."""
    if type(value).__module__.startswith("lightgbm.") and type(value).__name__ == "Booster":
        return "lightgbm", value.model_to_string(num_iteration=-1).encode("utf-8"), {_BOOSTER}
    name = type(value).__name__
    if not callable(getattr(value, "get_params", None)):
        raise TypeError(f"a model file cannot hold {where}, which is of type {name}.")
    require("skops", by=f"saving {where}, a {name},")
    import skops.io  # noqa: PLC0415

    try:
        content = skops.io.dumps(value)
        types = {_root(content), *skops.io.get_untrusted_types(data=content)}
    except Exception as reason:  # skops raises many kinds for what it cannot hold
        raise TypeError(f"a model file cannot hold {where}, a {name}: {reason}") from reason
    return "skops", content, types


def from_bytes(form: str, content: bytes, trusted: Collection[str]) -> Any:
    """Return the object of a part, after checking that all of its types are trusted."""
    if form == "lightgbm":
        _check_trusted([_BOOSTER], trusted)
        require("boosting", by="this model")
        from lightgbm import Booster  # noqa: PLC0415

        return Booster(model_str=content.decode("utf-8"))
    _check_trusted([_root(content)], trusted)
    require("skops", by="this model")
    import skops.io  # noqa: PLC0415

    try:
        _check_trusted(skops.io.get_untrusted_types(data=content), trusted)
        return skops.io.loads(content, trusted=list(trusted))
    except InputError:
        raise
    except Exception as reason:  # skops raises many kinds
        raise ValueError(f"skops cannot read a part of it ({type(reason).__name__}: {reason})") from reason


def _check_trusted(types: Collection[str], trusted: Collection[str]) -> None:
    unknown = sorted({*types} - {*trusted})
    if unknown:
        raise UntrustedTypesError(unknown)


class UntrustedTypesError(InputError):
    """A file holds types that the caller has not named as trusted.

    Attributes
    ----------
    types : list of str
    """

    def __init__(self, types: Collection[str], sentence: str = "") -> None:
        super().__init__(sentence or f"these types must be trusted: {', '.join(types)}.")
        self.types = list(types)


def _root(content: bytes) -> str:
    """Return the type of the object in a file of skops, read without skops; raise if the file is not plain."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = archive.infolist()
            # skops writes entries without compression: with it, a small file could fill the memory.
            plain = all(entry.compress_type == zipfile.ZIP_STORED for entry in entries)
            if not plain or sum(entry.file_size for entry in entries) > len(content):
                raise ValueError("its entries are compressed")
            schema = json.loads(archive.read("schema.json"))
            return f"{schema['__module__']}.{schema['__class__']}"
    except (zipfile.BadZipFile, ValueError, KeyError, TypeError, RecursionError, NotImplementedError) as reason:
        raise ValueError(f"a part of it is not a file of skops ({reason})") from reason
