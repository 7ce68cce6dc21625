"""Every installed plugin keeps the promises of a plugin, found as a host finds it."""

from __future__ import annotations

from functools import partial

from noeta.host.catalog import EXTENSIONS, Catalog
from noeta.testing.check_extension import check_extension


def test_every_installed_plugin_keeps_its_promises() -> None:
    catalog = Catalog()
    found = [
        entry.name for entry in catalog.entries() if entry.group == EXTENSIONS and entry.state != "shadowed"
    ]
    assert "checklist" in found
    for name in found:
        check_extension(partial(catalog.extension, name))
