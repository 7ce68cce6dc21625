"""The port of the place where tools act, for those who write another one."""

from noeta.core.errors import Changed as Changed
from noeta.core.ports import DirEntry as DirEntry
from noeta.core.ports import ExecEnv as ExecEnv
from noeta.core.ports import FileStat as FileStat
from noeta.core.ports import Process as Process
