"""What `compilation` touches of Numba without being promised it: raise the cap in `pyproject.toml` when these pass."""

import inspect
from uuid import uuid4

from numba import njit
from numba.core import event
from numba.core.caching import FunctionCache

from decidewise.kit.compilation import KernelCache, dispatcher


def double(value):
    return 2 * value


def test_a_dispatcher_has_the_part_that_is_replaced():
    assert hasattr(njit(double), "_cache")


def test_the_cache_compares_the_stamp_that_is_set():
    cache = KernelCache(double, "a stamp")
    assert cache._cache_file._source_stamp == "a stamp"
    assert "_source_stamp" in inspect.getsource(type(cache._cache_file))
    assert isinstance(cache._cache_file._index_path, str)
    for method in ("load_overload", "save_overload"):
        ours, theirs = (inspect.signature(getattr(made, method)) for made in (KernelCache, FunctionCache))
        assert list(ours.parameters) == list(theirs.parameters)


def test_compiling_is_announced_with_the_function():
    heard = []

    class Listener(event.Listener):
        def on_start(self, event):
            heard.append(event.data["dispatcher"].py_func)

        def on_end(self, event):
            pass

    compiled = dispatcher(double, {}, str(uuid4()))  # a new stamp: nothing in the cache is used
    with event.install_listener("numba:compile", Listener()):
        compiled.compile("complex64(complex64)")
    assert heard == [double]
