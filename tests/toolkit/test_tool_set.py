"""A plain list of tools as a plugin."""

from __future__ import annotations

import pytest

from noeta.toolkit.function_tool import function_tool
from noeta.toolkit.tool_set import ToolSet


@function_tool
def read(path: str) -> str:
    """Read a file."""
    return path


def plain(path: str) -> str:
    return path


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="two tools have the name 'read'"):
        ToolSet([read, read])


def test_a_function_that_is_no_tool_yet_is_refused() -> None:
    with pytest.raises(TypeError, match="'plain' is a function and no tool; write @function_tool"):
        ToolSet([plain])  # type: ignore[list-item]
