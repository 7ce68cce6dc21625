"""The exit codes of every command."""

from __future__ import annotations

DONE = 0
FAILED = 1
"""The turn failed."""
USAGE = 2
"""The command line or the settings are wrong, or name what is not there."""
WAITS_FOR_PERSON = 3
WAITS_FOR_TIME = 4
"""For a provider or a timer."""
INTERRUPTED = 130
TERMINATED = 143
