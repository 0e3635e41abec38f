"""Values of a model as JSON and arrays, and back.

Plain values stand for themselves. A JSON object has one key, which says what it is: `{"array": 3}` is the array with
number 3, `{"tuple": [...]}` a tuple, `{"object": ["WiseRegressor", {...}]}` an object of a class from `classes.py`.

Parts that only their own libraries can read are estimators, through skops, and trees of LightGBM, as its text. Such
libraries are not hardened against hostile input, and a type may run code of its own when it is built. So they never see
a byte of a file unless the caller has named the types as trusted.
"""

from __future__ import annotations

import io
import json
import math
import re
import zipfile
from collections.abc import Callable, Collection, Sequence
from dataclasses import fields
from functools import partial
from types import NoneType
from typing import Any

import numpy as np

from decidewise.kit.errors import InputError
from decidewise.kit.lazy import require
from decidewise.losses import Loss, registry
from decidewise.model_file.classes import build, check_object, library_of, name_of, state_of
from decidewise.model_file.container import can_hold

_FORMS = ("skops", "lightgbm")
_BOOSTER = "lightgbm.Booster"
#: Functions of scikit-learn's transformers that a file may name.
_FUNCTIONS = {f"numpy.{name}": getattr(np, name) for name in ("log", "exp", "log1p", "expm1", "sqrt", "square", "abs")}
_LARGEST_INTEGER = 2**63
_DEEPEST = 50


class Encoder:
    """Turn a value into JSON and collect its arrays in `arrays`, and the types that a reader must trust in `types`."""

    def __init__(self) -> None:
        self.arrays: list[np.ndarray] = []
        self.types: set[str] = set()
        self._known: dict[int, int] = {}
        numbers = (int, float, np.bool_, np.int64, np.float64)
        self._kinds: tuple[tuple[Any, Callable[[Any, str], Any]], ...] = (
            ((NoneType, bool, str), lambda value, _: str(value) if isinstance(value, str) else value),
            (numbers, _number),
            ((np.ndarray, np.generic), self._array),
            (list, self._list),
            (dict, lambda value, where: {"dict": self._list([list(pair) for pair in value.items()], where)}),
            (slice, lambda value, where: {"slice": self._list([value.start, value.stop, value.step], where)}),
            (np.dtype, lambda value, _: {"dtype": value.str}),
        )

    def encode(self, value: Any, where: str) -> Any:
        """Return JSON for a value; `where` names it in a message if a file cannot hold it."""
        if type(value) is tuple:
            return {"tuple": self._list(value, where)}
        if isinstance(value, type) and issubclass(value, np.generic):
            return {"type": np.dtype(value).str}
        for types, form in self._kinds:
            if isinstance(value, types):
                return form(value, where)
        return self._object(value, where)

    def _list(self, entries: Sequence[Any], where: str) -> list[Any]:
        return [self.encode(entry, f"{where}[{k}]") for k, entry in enumerate(entries)]

    def _array(self, value: np.ndarray | np.generic, where: str) -> Any:
        array = np.asarray(value)
        if isinstance(value, np.ma.MaskedArray):
            raise TypeError(f"a model file cannot hold {where}, an array with masked entries.")
        if array.dtype.kind in "OU":
            kind = "objects" if array.dtype.kind == "O" else "texts"
            return {kind: [list(array.shape), [self.encode(entry, where) for entry in array.ravel().tolist()]]}
        if not can_hold(array):
            raise TypeError(f"a model file cannot hold {where}, an array of type {array.dtype}.")
        # `arrays` keeps the array alive, so that no other gets its id.
        place = self._known.setdefault(id(array), len(self.arrays))
        if place == len(self.arrays):
            self.arrays.append(array)
        return {"array" if isinstance(value, np.ndarray) else "scalar": place}

    def _object(self, value: Any, where: str) -> Any:
        name = name_of(value)
        if name is not None:
            try:
                check_object(value)
            except (ValueError, TypeError, AttributeError) as reason:
                raise TypeError(f"a model file cannot hold {where}, a {name}: {reason}.") from reason
            state = {key: self.encode(part, f"{where}.{key}") for key, part in state_of(value).items()}
            return {"object": [name, state]}
        if isinstance(value, Loss):
            return self._loss(value, where)
        named = [function for function, known in _FUNCTIONS.items() if known is value]
        if named:
            return {"function": named[0]}
        form, content, types = _to_bytes(value, where)
        self.types |= types
        self.arrays.append(np.frombuffer(content, dtype=np.uint8))
        return {form: len(self.arrays) - 1}

    def _loss(self, loss: Loss, where: str) -> Any:
        named = [name for name, known in registry.items() if known is type(loss)]
        if not named:
            raise TypeError(
                f"a model file cannot hold {where}, a loss {type(loss).__name__} that is not in the registry."
            )
        values = {field.name: getattr(loss, field.name) for field in fields(loss) if field.init}  # type: ignore[arg-type]
        return {"loss": [named[0], {key: self.encode(part, f"{where}.{key}") for key, part in values.items()}]}


class Decoder:
    """Turn JSON from a file, which may be hostile, back into values; raise a `ValueError` if it is not valid."""

    def __init__(self, arrays: Sequence[np.ndarray], trusted: Collection[str]) -> None:
        self.arrays, self.trusted = arrays, trusted
        self.libraries: set[str] = set()
        self._kinds: dict[str, Callable[[Any, int], Any]] = {
            "float": lambda text, _: {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[text],
            "array": lambda number, _: self._at(number),
            "scalar": lambda number, _: self._at(number).reshape(())[()],
            "tuple": lambda entries, depth: tuple(self._list(entries, depth)),
            "dict": lambda pairs, depth: dict(map(_pair, self._list(pairs, depth))),
            "slice": lambda ends, depth: slice(*_three(self._list(ends, depth))),
            "dtype": lambda text, _: _dtype(text),
            "type": lambda text, _: _dtype(text).type,
            "objects": lambda given, depth: self._entries(given, object, depth),
            "texts": lambda given, depth: self._entries(given, str, depth),
            "function": lambda name, _: _FUNCTIONS[name],
            "loss": self._loss,
            "object": self._object,
            **{form: partial(self._foreign, form) for form in _FORMS},
        }

    def decode(self, given: Any, depth: int = 0) -> Any:
        """Return the value that JSON stands for."""
        if depth > _DEEPEST:
            raise ValueError("it is nested too deeply")
        if isinstance(given, list):
            return self._list(given, depth)
        if not isinstance(given, dict):
            if type(given) is int and not -_LARGEST_INTEGER <= given < _LARGEST_INTEGER:
                raise ValueError("an integer is too large")
            return given
        [(kind, content)] = given.items() if len(given) == 1 else [("", None)]
        if kind not in self._kinds:
            raise ValueError(f"this format has no value of kind {str(kind)[:40]!r}")
        try:
            return self._kinds[kind](content, depth + 1)
        except (KeyError, IndexError, TypeError, AttributeError, OverflowError) as reason:
            raise ValueError(f"a value of kind {kind!r} is malformed ({type(reason).__name__}: {reason})") from reason

    def _list(self, entries: Any, depth: int) -> list[Any]:
        if not isinstance(entries, list):
            raise TypeError("expected a list")
        return [self.decode(entry, depth + 1) for entry in entries]

    def _at(self, number: Any) -> np.ndarray:
        if type(number) is not int or not 0 <= number < len(self.arrays):
            raise IndexError("there is no such array")
        return self.arrays[number]

    def _entries(self, given: Any, dtype: type, depth: int) -> np.ndarray:
        shape, entries = given
        values = self._list(entries, depth)
        if any(not isinstance(value, str if dtype is str else str | int | float | None) for value in values):
            raise TypeError("expected texts and numbers")
        longest = max((len(value) for value in values if isinstance(value, str)), default=0)
        if dtype is str and longest * len(values) > 64 * sum(len(value) + 1 for value in values) + 2**20:
            raise ValueError("texts of very different lengths would take too much memory")
        array = np.empty(len(values), dtype=object)
        array[:] = values
        return array.astype(dtype).reshape(shape)

    def _loss(self, given: Any, depth: int) -> Loss:
        name, values = given
        return registry[name](**{key: self.decode(value, depth + 1) for key, value in values.items()})

    def _object(self, given: Any, depth: int) -> Any:
        name, state = given
        self.libraries.add(library_of(name))
        return build(name, {key: self.decode(value, depth + 1) for key, value in state.items()})

    def _foreign(self, form: str, number: Any, _: int) -> Any:
        content = self._at(number)
        if content.dtype != np.uint8 or content.ndim != 1:
            raise TypeError("expected bytes")
        self.libraries.add("sklearn")
        return _from_bytes(form, content.tobytes(), self.trusted)


def _number(value: Any, where: str) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"float": repr(float(value))}
    if not -_LARGEST_INTEGER <= value < _LARGEST_INTEGER:
        raise TypeError(f"a model file cannot hold {where}, an integer beyond 64 bits.")
    return value if isinstance(value, bool) else int(value)


def _pair(entry: Any) -> tuple[Any, Any]:
    key, value = entry
    return key, value


def _three(ends: list[Any]) -> list[Any]:
    if len(ends) != 3 or not all(end is None or type(end) is int for end in ends):
        raise TypeError("expected three ends")
    return ends


def _dtype(text: Any) -> np.dtype[Any]:
    if not isinstance(text, str) or not re.fullmatch(r"<[fiu][248]|<U[0-9]{1,4}|\|[iub]1|\|O", text):
        raise TypeError("expected the type of an array")
    return np.dtype(text)


def _to_bytes(value: Any, where: str) -> tuple[str, bytes, set[str]]:
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


def _from_bytes(form: str, content: bytes, trusted: Collection[str]) -> Any:
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
