"""The table of hooks, and the mark that puts an implementation ahead of others."""

import pluggy

from noeta.core.hooks import HOOKS as HOOKS
from noeta.core.hooks import Hook as Hook

hookimpl: pluggy.HookimplMarker = pluggy.HookimplMarker("noeta")
"""Marks a hook ``tryfirst`` or ``trylast``: a tier of its own, ahead of or behind the plain one."""
