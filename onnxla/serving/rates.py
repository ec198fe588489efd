"""How many requests a client may send in a second: a bucket of tokens for each."""

import time
from collections import OrderedDict

from onnxla.serving.errors import OverloadedError


class Rates:
    """Each client has a second's worth of requests, which come back at `rate`. The least recent are forgotten."""

    def __init__(self, rate: float, clients: int = 10_000) -> None:
        """`rate`: requests per second; 0 for any number. `clients`: how many are remembered."""
        self._rate, self._clients = rate, clients
        self._burst = max(1.0, rate)
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, client: str) -> None:
        """Count one request. Raises OverloadedError that says when the next may come."""
        if not self._rate:
            return
        now = time.monotonic()
        left, then = self._buckets.pop(client, (self._burst, now))
        left = min(self._burst, left + (now - then) * self._rate)
        taken = left >= 1.0
        self._buckets[client] = (left - taken, now)
        if len(self._buckets) > self._clients:
            self._buckets.popitem(last=False)
        if not taken:
            raise OverloadedError(
                f"more than {self._rate:g} requests per second from one client", retry_after=(1.0 - left) / self._rate
            )
