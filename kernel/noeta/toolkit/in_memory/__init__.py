"""The store of one process: everything in dictionaries, nothing on disk."""

from noeta.toolkit.in_memory.store import InMemoryStore as InMemoryStore
