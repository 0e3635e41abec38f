"""What can go wrong that is not a bad argument."""


class SolverError(RuntimeError):
    """A solver ended without an optimal decision.

    Attributes
    ----------
    row : int
        The row of the batch that could not be solved.
    """

    def __init__(self, message: str, *, row: int) -> None:
        super().__init__(f"row {row}: {message}")
        self.row = row


class CalibrationWarning(UserWarning):
    """A learner's loss is not calibrated to the conditional mean, so its decisions need not be optimal."""
