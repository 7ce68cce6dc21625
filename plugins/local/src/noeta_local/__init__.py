"""This machine as the place where tools act: its files, and programs in groups of their own."""

from noeta_local.env import LocalEnv as LocalEnv
from noeta_local.env import open_env as open_env
from noeta_local.settings import LocalSettings as LocalSettings

__all__ = ["LocalEnv", "LocalSettings", "open_env"]
