"""The end of a solve, on the clock."""

from __future__ import annotations

import math
import time

__all__ = ["Deadline"]


class Deadline:
    """When a solve has to end.

    Handed on to whatever may take long. What has an answer that serves, though not the best,
    asks what is `left`; everything else ends with the `TimeoutError` of :meth:`check`.

    Parameters
    ----------
    seconds : float or None, default=None
        From now; None is without end.
    """

    def __init__(self, seconds: float | None = None) -> None:
        self._end = math.inf if seconds is None else time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds to go, at least 0."""
        return max(self._end - time.monotonic(), 0.0)

    def check(self) -> None:
        """Raise TimeoutError where nothing is left."""
        if not self.left:
            raise TimeoutError
