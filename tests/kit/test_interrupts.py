import os
import signal
import subprocess
import sys

import pytest

from decidewise.kit.interrupts import Terminated, deferred, interruptible, is_interrupt, raise_noted


@pytest.mark.parametrize(("number", "kind"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Terminated)])
def test_a_signal_raises_and_is_noted(number, kind):
    before = signal.getsignal(number)
    with interruptible():
        with pytest.raises(kind):
            signal.raise_signal(number)
        with pytest.raises(kind):
            raise_noted()
    raise_noted()  # it ends with the context, as the handlers do
    assert signal.getsignal(number) == before


def test_a_signal_keeps_its_kind_where_it_was_replaced_by_a_plain_interrupt():
    def training():
        try:
            signal.raise_signal(signal.SIGTERM)
        except KeyboardInterrupt:
            raise KeyboardInterrupt from None

    with pytest.raises(Terminated), interruptible():
        training()


def test_a_deferred_signal_waits_to_be_asked_for():
    with interruptible(), deferred():
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            raise_noted()


def test_a_signal_that_python_itself_swallows_is_noted_in_silence(monkeypatch):
    class Final:
        def __del__(self):
            signal.raise_signal(signal.SIGINT)

    told = []
    monkeypatch.setattr(sys, "unraisablehook", told.append)
    with interruptible():
        Final()
        with pytest.raises(KeyboardInterrupt):
            raise_noted()
    assert told == []


def test_an_ignored_signal_stays_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with interruptible():
            signal.raise_signal(signal.SIGINT)
            raise_noted()
    finally:
        signal.signal(signal.SIGINT, before)


def test_an_interrupt_is_known_by_its_causes():
    error = SystemError()
    error.__context__ = ImportError()
    error.__context__.__cause__ = KeyboardInterrupt()
    assert is_interrupt(error)
    error.__context__.__cause__ = error  # a circle
    assert not is_interrupt(error)


def test_a_worker_ends_with_its_parent_even_before_it_has_work():
    begin = f"from decidewise.kit.interrupts import begin_worker; begin_worker({os.getppid()})"
    code = f"import time; {begin}; time.sleep(600)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 1
