from threading import Barrier, Thread

from threadpoolctl import ThreadpoolController, threadpool_limits

from decidewise.models.threads import OneLibraryThread


def library_threads():
    return max(library["num_threads"] for library in ThreadpoolController().select(user_api="blas").info())


def test_the_limit_is_lifted_by_the_last_to_leave():
    context, inside, first_out = OneLibraryThread(), Barrier(2), Barrier(2)
    seen = {}

    def leave_first():
        with context as n_threads:
            inside.wait()
            seen["first"] = n_threads
        first_out.wait()

    def leave_last():
        with context as n_threads:
            inside.wait()
            first_out.wait()
            seen["last"], seen["while limited"] = n_threads, library_threads()

    with threadpool_limits(2):
        before = library_threads()
        threads = [Thread(target=leave_first), Thread(target=leave_last)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert seen == {"first": before, "last": before, "while limited": 1}
        assert library_threads() == before
