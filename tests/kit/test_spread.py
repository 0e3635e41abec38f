"""Calls in other processes leave Ctrl-C to the process that waits for them."""

import os
import signal

import pytest

from decidewise.kit.interrupts import raise_noted
from decidewise.kit.machine import spread_calls


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="needs the signals of POSIX")
def test_a_signal_to_a_worker_changes_nothing():
    def interrupted(parent, number):  # as a terminal does, which sends Ctrl-C to all processes
        os.kill(os.getpid(), signal.SIGINT)
        return os.getppid() == parent, number

    assert list(spread_calls(interrupted, os.getpid(), [(1,), (2,), (3,)], n_jobs=2)) == [(True, k) for k in (1, 2, 3)]
    assert not signal.pthread_sigmask(signal.SIG_BLOCK, [])
    # The workers are kept for the next calls, which the signals of these do not end.
    assert list(spread_calls(lambda _, number: raise_noted() or number, None, [(1,), (2,)], n_jobs=2)) == [1, 2]
