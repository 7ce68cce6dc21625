"""What the tests of the toolkit share: a context to run a tool in."""

from __future__ import annotations

from typing import Any, cast

import pytest

from noeta import ToolContext


@pytest.fixture
def ctx() -> ToolContext:
    """Return the context of a call that records nowhere and has no environment."""

    def record(extension: str, kind: str, data: Any = None) -> None:
        raise AssertionError("this tool records nothing")

    return ToolContext("t", "c5_0_00000000", cast("Any", None), record, state={})
