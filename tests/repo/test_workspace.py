"""Every plugin of the checkout is known to each place that lists plugins."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
FOLDERS = [path.parent for group in ("plugins", "contrib") for path in ROOT.glob(f"{group}/*/pyproject.toml")]


def complaints(project: dict[str, Any], plugins: set[str]) -> list[str]:
    """Say where the project file lists other plugins than these (`fs`: `noeta-fs`, `noeta_fs`)."""
    distributions = {f"noeta-{name}" for name in plugins}
    packages = {f"noeta_{name.replace('-', '_')}" for name in plugins}
    linter = project["tool"]["importlinter"]
    contracts = {contract["id"]: contract for contract in linter["contracts"]}

    def listed(contract: str, key: str) -> set[str]:
        return set(contracts.get(contract, {}).get(key, ()))

    places = {
        "tool.uv.sources": (set(project["tool"]["uv"]["sources"]) - {"noeta"}, distributions),
        "dependency-groups.members": (set(project["dependency-groups"]["members"]), distributions),
        "tool.importlinter.root_packages": (set(linter["root_packages"]) - {"noeta"}, packages),
        "contract no-plugin-in-noeta": (listed("no-plugin-in-noeta", "forbidden_modules"), packages),
        "contract no-core-in-plugins": (listed("no-core-in-plugins", "source_modules"), packages),
        "contract strangers": (listed("strangers", "modules"), packages if len(packages) > 1 else set()),
    }
    return [
        f"{place}: missing {sorted(wanted - found)}, too many {sorted(found - wanted)}"
        for place, (found, wanted) in places.items()
        if found != wanted
    ]


def a_project(*plugins: str) -> dict[str, Any]:
    distributions = [f"noeta-{name}" for name in plugins]
    packages = [f"noeta_{name}" for name in plugins]
    contracts = [
        {"id": "no-plugin-in-noeta", "forbidden_modules": packages},
        {"id": "no-core-in-plugins", "source_modules": packages},
        {"id": "strangers", "modules": packages},
    ]
    return {
        "dependency-groups": {"members": distributions},
        "tool": {
            "uv": {"sources": dict.fromkeys(["noeta", *distributions])},
            "importlinter": {"root_packages": ["noeta", *packages], "contracts": contracts},
        },
    }


def test_each_place_lists_every_plugin_and_no_other() -> None:
    assert complaints(PROJECT, {path.name for path in FOLDERS}) == []


def test_each_plugin_of_ours_is_an_extra_by_its_name() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    ours = {path.name for path in FOLDERS if path.parent.name == "plugins"}
    named = {name: [f"noeta-{name}"] for name in ours}
    assert {name: extras[name] for name in extras.keys() - {"default", "testing"}} == named
    assert set(extras["default"]) <= {f"noeta-{name}" for name in ours}


def test_a_plugin_that_is_listed_nowhere_is_reported_at_each_place() -> None:
    assert len(complaints(a_project("fs", "shell"), {"fs", "shell", "memory"})) == 6


def test_a_plugin_that_is_gone_is_reported_at_each_place() -> None:
    assert len(complaints(a_project("fs", "shell", "memory"), {"fs", "shell"})) == 6


def test_a_single_plugin_needs_no_contract_about_its_neighbours() -> None:
    project = a_project("fs")
    project["tool"]["importlinter"]["contracts"].pop()
    assert complaints(project, {"fs"}) == []


def test_a_contract_about_plugins_has_the_right_kind() -> None:
    kinds = {
        contract["id"]: (contract["type"], contract.get("forbidden_modules"))
        for contract in PROJECT["tool"]["importlinter"]["contracts"]
    }
    assert kinds.get("strangers", ("independence", None)) == ("independence", None)
    assert kinds.get("no-core-in-plugins", ("forbidden", ["noeta.core"])) == ("forbidden", ["noeta.core"])
    assert kinds.get("no-plugin-in-noeta", ("forbidden",))[0] == "forbidden"


def test_each_plugin_folder_has_the_name_of_its_distribution_and_package() -> None:
    for folder in FOLDERS:
        assert (
            tomllib.loads((folder / "pyproject.toml").read_text())["project"]["name"]
            == f"noeta-{folder.name}"
        )
        assert (folder / "src" / f"noeta_{folder.name.replace('-', '_')}" / "py.typed").exists()


def test_each_direct_dependency_has_one_pinned_version() -> None:
    groups = PROJECT["dependency-groups"]
    wanted = [name for group in groups if group != "members" for name in groups[group]]
    for project in (PROJECT, *(tomllib.loads((path / "pyproject.toml").read_text()) for path in FOLDERS)):
        wanted += project["project"]["dependencies"]
    names = {re.split(r"[^\w-]", item)[0] for item in wanted} - {"noeta"}
    pins = dict(pin.split("==") for pin in PROJECT["tool"]["uv"]["constraint-dependencies"])
    assert set(pins) == names


def test_the_launcher_and_the_project_name_the_same_uv() -> None:
    assert f'VERSION = "{uv_pin()}"' in (ROOT / ".ci" / "uv").read_text()


def test_the_build_backend_has_the_version_of_uv() -> None:
    assert PROJECT["tool"]["uv"]["build-constraint-dependencies"] == [f"uv-build=={uv_pin()}"]


def uv_pin() -> str:
    pins: list[str] = PROJECT["tool"]["uv"]["constraint-dependencies"]
    return next(pin for pin in pins if pin.startswith("uv==")).removeprefix("uv==")
