"""What a host is given, looked at before anything is opened or run."""

from __future__ import annotations

import math

LEAST_LEASE_SECONDS = 1.0
"""With a shorter lease, a worker that is only busy would lose its tasks, or end its process."""


def nonsense(capacity: int, queues: object, lease: float, grace: float) -> str:
    """What is wrong with the settings of a worker, else the empty text."""
    if capacity < 1:
        return f"the capacity is {capacity}; a worker runs 1 task at least"
    if isinstance(queues, str):
        return f"queues is a text; write [{queues!r}]"
    if not LEAST_LEASE_SECONDS <= lease < math.inf:
        return f"the lease is {lease:g} s; it has to be {LEAST_LEASE_SECONDS:g} s at least, and to end"
    return "" if 0 <= grace < math.inf else f"the grace is {grace:g} s; it has to be 0 or more, and to end"
