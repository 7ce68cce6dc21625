"""Which disks a store can live on: SQLite's write-ahead log needs memory that all its processes share."""

from __future__ import annotations

import re
from pathlib import Path

from noeta.toolkit.store import Unavailable

MOUNTS = Path("/proc/self/mounts")
NETWORK = frozenset(
    "nfs nfs3 nfs4 cifs smb2 smb3 smbfs afs ncpfs coda ceph lustre gpfs beegfs pvfs2 orangefs ocfs2 gfs2"
    " glusterfs davfs webdav fuse.sshfs fuse.ceph fuse.ceph-fuse fuse.glusterfs fuse.davfs2 fuse.rclone"
    " fuse.s3fs fuse.gcsfuse fuse.blobfuse2 fuse.juicefs fuse.cifs fuse.smbnetfs".split()
)
"""File systems that several machines may share. One that is not listed is taken for local."""


def file_system(path: Path, table: str) -> str:
    """The type of the file system that holds the absolute `path`, by a mount table; empty when unknown."""
    found, kind = -1, ""
    for line in table.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        point = Path(_unescaped(fields[1]))
        # Of two mounts at one place the later hides the earlier.
        if path.is_relative_to(point) and len(point.parts) >= found:
            found, kind = len(point.parts), fields[2]
    return kind


def _unescaped(name: str) -> str:
    """A name of the table, which writes blanks and the like as three octal digits."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), name)


def refuse_network(path: Path) -> None:
    """Raise `Unavailable` when `path` is on a network file system. Where there is no mount table, trust."""
    try:
        table = MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return
    kind = file_system(path, table)
    if kind in NETWORK:
        raise Unavailable(
            f"{path} is on a network file system ({kind}), where two machines can destroy it. Choose a local"
            " disk. If only one machine ever opens it, add network=allow to its URL.",
            reason="network",
        )
