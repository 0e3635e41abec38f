"""Kernels under abuse: signals, folders that cannot be written to, full disks, damaged and stale files."""

import errno
import importlib
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from numba.core.caching import CacheImpl, IndexDataCacheFile

from decidewise.kit import compilation
from decidewise.kit.kernels import kernel
from decidewise.problems.rounding import common_divisor

#: What a function returns decides how a signal inside it surfaces.
BUSY = """
def busy(steps):
    total = 1.0
    for i in range(steps):
        total += np.sqrt(i) * np.sin(total)
    return {}
"""


def double(value):
    return 2 * value


def inverse(value):
    return 1 / value


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path):
    """Give every test an empty cache, and its own first warning."""
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(compilation, "_warned", type(compilation._warned)())


def cached(tmp_path, ending):
    return sorted((tmp_path / "cache").rglob(f"*{ending}"))


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="needs the alarm of POSIX")
@pytest.mark.parametrize("returns", ["np.array([total]), total", "np.array([total]), np.array([total])", "total"])
def test_a_signal_inside_a_kernel_is_an_interrupt_not_an_error_of_the_system(returns):
    scope = {"np": np}
    exec(BUSY.format(returns), scope)  # noqa: S102
    work = kernel(scope["busy"])
    work(1)

    def interrupt(number, frame):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(KeyboardInterrupt):
            work(10_000_000)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_an_error_of_the_function_itself_comes_through():
    with pytest.raises(ZeroDivisionError):
        kernel(inverse)(0)


def test_without_any_folder_kernels_work_and_one_warning_says_so(monkeypatch):
    monkeypatch.setattr(CacheImpl, "_locator_classes", [])
    with pytest.warns(RuntimeWarning, match=r"cannot be cached .*no locator.*NUMBA_CACHE_DIR") as warnings:
        answers = kernel(double)(2), kernel(inverse)(2)
    assert answers == (4, 0.5)
    assert len(warnings) == 1


def test_on_a_full_disk_kernels_work_and_one_warning_says_so(monkeypatch):
    def full(self, name, data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(IndexDataCacheFile, "_save_data", full)
    with pytest.warns(RuntimeWarning, match="No space left") as warnings:
        answers = kernel(double)(2), kernel(inverse)(2)
    assert answers == (4, 0.5)
    assert len(warnings) == 1


@pytest.mark.parametrize("ending", [".nbi", ".nbc"])
@pytest.mark.parametrize("content", [b"", b"damaged", b"\x80\x05."])
def test_a_damaged_file_is_replaced(tmp_path, ending, content):
    kernel(double)(2)
    (file,) = cached(tmp_path, ending)
    whole = file.read_bytes()
    file.write_bytes(content)
    assert kernel(double)(2) == 4
    assert len(file.read_bytes()) >= len(whole) // 2  # written anew, and used by the next
    third = kernel(double)
    assert third(2) == 4
    assert sum(third.compiled.stats.cache_hits.values()) == 1


def test_compiled_code_is_used_again_until_anything_that_it_uses_changes(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    parts = tmp_path / "kernel_parts.py"
    parts.write_text(
        "from decidewise.kit.kernels import kernel\nFACTOR = 2\n\n"
        "@kernel\ndef scale(value):\n    return FACTOR * value\n"
    )
    (tmp_path / "kernel_whole.py").write_text(
        "from decidewise.kit.kernels import kernel\nfrom kernel_parts import FACTOR, scale\n\n"
        "@kernel\ndef twice(value):\n    return scale(value), FACTOR * value\n"
    )

    def run():
        for name in ("kernel_parts", "kernel_whole"):
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        twice = importlib.import_module("kernel_whole").twice
        return twice(10), sum(twice.compiled.stats.cache_hits.values())

    assert run() == ((20, 20), 0)
    assert run() == ((20, 20), 1)
    parts.write_text(parts.read_text().replace("FACTOR = 2", "FACTOR = 345"))
    assert run() == ((3450, 3450), 0)


def test_compiling_that_takes_long_is_announced(monkeypatch, capfd):
    monkeypatch.setattr(compilation, "PATIENCE", 0.0)
    ours = kernel(common_divisor.py_func)
    ours(np.ones(3))
    assert "decidewise: compiling problems.rounding for this machine, once" in capfd.readouterr().err
    ours(np.ones(3))
    kernel(double)(2)  # not one of ours
    assert "compiling" not in capfd.readouterr().err


def test_what_needs_no_kernel_never_touches_numba():
    code = """
import sys
import numpy as np
from decidewise import WiseRegressor
X = np.arange(12.0).reshape(6, 2)
WiseRegressor().fit(X, X + 1).predict(X)
import decidewise.problems, decidewise.losses, decidewise.evaluate
decidewise.problems.TopK(2, 1).solve(X)
assert "numba" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
