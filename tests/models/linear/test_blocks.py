from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
from threadpoolctl import threadpool_info

from decidewise.models import GeneralizedLinear
from decidewise.models.linear.blocks import one_library_thread


def n_threads():
    return [library["num_threads"] for library in threadpool_info()]


def test_blas_has_its_threads_back_whoever_leaves_last():
    before = n_threads()
    entered, left = Barrier(2), Barrier(2)

    def first():
        with one_library_thread():
            entered.wait()
        left.wait()

    def second():
        entered.wait()
        with one_library_thread() as available:
            left.wait()
            blas = [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]
        return available, blas

    # The second comes while the first is inside or has just left, and leaves after it.
    with ThreadPoolExecutor(2) as pool:
        pool.submit(first)
        available, blas = pool.submit(second).result(timeout=60)
    assert available == max(before)
    assert set(blas) == {1}
    assert n_threads() == before


def test_fits_from_several_threads_leave_blas_as_it_was():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(9_000, 4)), rng.uniform(1, 2, size=(9_000, 2))
    before = n_threads()
    with ThreadPoolExecutor(2) as pool:
        models = list(pool.map(lambda _: GeneralizedLinear("gamma").fit(X, y), range(6)))
    assert n_threads() == before
    assert all((model.coef_ == models[0].coef_).all() for model in models)
