"""Tools of an agent that read and find files, wherever it acts."""

from noeta_fs.extension import Files as Files
from noeta_fs.settings import FilesSettings as FilesSettings
from noeta_fs.state import Reads as Reads
from noeta_fs.state import Seen as Seen

__all__ = ["Files", "FilesSettings", "Reads", "Seen"]
