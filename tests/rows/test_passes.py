"""Fits as passes over rows: many share them, one that fails does not end the others, and none leaves anything open."""

import numpy as np
import pytest

from decidewise import GeneralizedLinear, WiseRegressor
from decidewise.kit.errors import InputError
from decidewise.rows import ArrayRows
from decidewise.rows.passes import Pass, changed, in_memory, run, together


class Counted(ArrayRows):
    """Rows that count the passes over them."""

    def __init__(self, n=500):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(n, 2))
        super().__init__(X, np.exp(0.3 * X @ rng.normal(size=(2, 3))), block_rows=60)
        self.n_passes = 0

    def reduce(self, *work):
        self.n_passes += 1
        return super().reduce(*work)


def total(column):
    return (yield Pass(lambda rows: (rows.costs[:, column].sum(),)))


def fails_in_a_pass():
    def bad(rows):
        raise ValueError("no such sum")

    return (yield Pass(bad))


def fails_between():
    yield from total(0)
    raise ArithmeticError("no such fit")


def test_many_fits_take_the_passes_of_the_longest_and_have_the_digits_of_one():
    models = [WiseRegressor(), WiseRegressor(scale="iterated"), WiseRegressor(GeneralizedLinear("gamma"))]
    alone, n_passes = [], []
    for model in models:
        source = Counted()
        alone.append(model.fit_rows(source).estimator_.coef_.copy())
        n_passes.append(source.n_passes)
    source = Counted()
    found = run(together([model.passes(source) for model in models]), source)
    assert source.n_passes == max(n_passes)
    for model, coefficients in zip(found, alone, strict=True):
        assert (model.estimator_.coef_ == coefficients).all()


def test_together_can_be_nested():
    source = Counted()
    (first, second), third = run(together([together([total(0), total(1)]), total(2)]), source)
    assert source.n_passes == 1
    np.testing.assert_allclose(np.ravel([first, second, third]), source.costs.sum(axis=0))


def test_a_fit_that_fails_does_not_end_the_others():
    source = Counted()
    found = run(together([total(0), fails_in_a_pass(), fails_between(), total(1)]), source)
    assert isinstance(found[1], ValueError)
    assert "no such sum" in str(found[1])
    assert isinstance(found[2], ArithmeticError)
    np.testing.assert_allclose(np.ravel([found[0], found[3]]), source.costs[:, :2].sum(axis=0))


@pytest.mark.parametrize("error", [InputError, KeyboardInterrupt, MemoryError])
def test_what_ends_all_fits_closes_them(error):
    closed = []

    def fit():
        try:
            yield Pass(lambda rows: (np.zeros(1),))
        finally:
            closed.append(True)

    class Broken(Counted):
        def reduce(self, *work):
            raise error("gone")

    with pytest.raises(error):
        run(together([fit(), fit()]), Broken())
    assert closed == [True, True]


def test_passes_can_be_changed_and_errors_reach_the_fit():
    source = Counted()
    doubled = changed(total(0), lambda wanted: Pass(lambda rows: tuple(2 * array for array in wanted.add(rows))))
    np.testing.assert_allclose(run(doubled, source), [2 * source.costs[:, 0].sum()])

    def recovers():
        try:
            yield from fails_in_a_pass()
        except ValueError:
            return (yield from total(0))

    np.testing.assert_allclose(run(changed(recovers(), lambda wanted: wanted), source), [source.costs[:, 0].sum()])


def test_rows_in_memory_need_no_pass():
    def fit():
        yield from ()
        return 3

    assert in_memory(fit()) == 3
    with pytest.raises(TypeError, match="need `run`"):
        in_memory(total(0))
