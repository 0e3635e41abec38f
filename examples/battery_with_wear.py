"""Trade a battery whose wear grows with the square of its power, at predicted prices.

Without wear it is either idle or at full power; with it, it takes several hours in which the price is almost as good.

    python examples/battery_with_wear.py
"""

import numpy as np

from decidewise.problems import QuadraticProgram

HOURS, POWER, ENERGY, EFFICIENCY = 24, 1.0, 4.0, 0.9


def battery(wear: float) -> QuadraticProgram:
    """Return a battery with this wear in euros per hour at a power of 1: charge, sell and level of each hour."""
    hour, zero = np.eye(HOURS), np.zeros((HOURS, HOURS))
    used = np.diag([1.0] * 2 * HOURS + [0.0] * HOURS)
    return QuadraticProgram(
        -2 * wear * used,  # - wear · power² of charge and of sale
        A_eq=np.hstack([-EFFICIENCY * hour, hour, hour - np.eye(HOURS, k=-1)]),
        b_eq=np.zeros(HOURS),
        upper=[POWER] * 2 * HOURS + [ENERGY] * HOURS,
        costs=np.hstack([-hour, hour, zero]),  # what is sold less what is bought
        sense="max",
    )


def main() -> None:
    """Print the plan for one day, by wear."""
    prices = 50 + 20 * np.sin(np.arange(HOURS) * 2 * np.pi / 12) + np.random.default_rng(0).normal(0, 3, HOURS)
    for wear in (0.0, 5.0, 20.0):
        sales = battery(wear).solve(prices)
        hours = (np.abs(sales) > 1e-6).sum()
        print(
            f"wear {wear:4.0f}: {hours:2d} hours in use, {prices @ sales:6.1f} earned before wear, sales",
            sales.round(2) + 0.0,
        )


if __name__ == "__main__":
    main()
