"""The sessions that check noeta. Without arguments nox runs all that a change must pass."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import nox

ROOT = Path(__file__).parent
MEMBERS = [path.parent for group in ("plugins", "contrib") for path in ROOT.glob(f"{group}/*/pyproject.toml")]
MEMBERS.sort()
RUNNING = f"{sys.version_info.major}.{sys.version_info.minor}"
DECLARED = nox.project.python_versions(nox.project.load_toml("pyproject.toml"))

# The tests of a run share the processors.
SPREAD = ("--numprocesses=auto", "--dist=worksteal")

nox.needs_version = ">=2025.10"
nox.options.default_venv_backend = "uv"
nox.options.reuse_venv = "yes"
# A Python that this machine does not have is reported as skipped. It is neither downloaded nor an error.
nox.options.error_on_missing_interpreters = False
nox.options.download_python = "never"
os.environ["UV_PYTHON_DOWNLOADS"] = "never"
if shutil.which("pyenv"):
    # pyenv's `python3.12` runs only while that version is switched on.
    found = subprocess.run(["pyenv", "versions", "--bare"], capture_output=True, text=True, check=True)
    usable = [version for version in found.stdout.split() if version.rpartition(".")[0] in DECLARED]
    os.environ["PYENV_VERSION"] = ":".join(usable)


def sync(session: nox.Session, *options: str) -> None:
    """Make the session's environment hold what the options name, and nothing else."""
    place = session.virtualenv.location
    uv = ("uv", "sync", "--quiet", f"--python={place}")
    session.run_install(*uv, *options, env={"UV_PROJECT_ENVIRONMENT": place}, external=True)


def run_script(session: nox.Session, script: str, *arguments: str, group: str = "bench") -> None:
    """Run one of the scripts that measure noeta, on an installed copy of it."""
    if not Path(script).exists():
        session.log(f"There is nothing to do yet: {script} is not written.")
        return
    # An editable install would measure the import hook too, and uv does not see that a source file changed.
    fresh = [f"--reinstall-package={name}" for name in ("noeta", *(f"noeta-{path.name}" for path in MEMBERS))]
    sync(session, f"--group={group}", "--no-editable", *fresh)
    # Without compiled files an import takes three times as long, and no user runs it that way.
    session.run("python", script, *arguments, *session.posargs, env={"PYTHONDONTWRITEBYTECODE": None})


@nox.session
def lint(session: nox.Session) -> None:
    """Check style and format."""
    sync(session, "--only-group=lint")
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")


@nox.session
def types(session: nox.Session) -> None:
    """Check the sources with mypy, and what users see with pyright."""
    # The kit for property tests builds on hypothesis.
    sync(session, "--group=types", "--group=test")
    session.run("mypy")
    for path in MEMBERS:
        session.run("mypy", str(path / "src"))
    session.run("pyright", "--verifytypes", "noeta", "--ignoreexternal")
    if Path("tests/typing").exists():
        session.run("pyright")
        session.run("mypy", "tests/typing")


@nox.session
def imports(session: nox.Session) -> None:
    """Check who imports what."""
    sync(session, "--group=imports")
    session.run("lint-imports")


@nox.session(python=sorted({RUNNING, *DECLARED}))
def tests(session: nox.Session) -> None:
    """Run every test on the Python that runs nox, and the kernel's tests on each other one."""
    if session.python == RUNNING:
        sync(session, "--group=test")
        # These two have sessions of their own.
        others = ["--ignore=tests/conformance", "--ignore=tests/docs"]
        session.run("pytest", *SPREAD, *(session.posargs or others))
    else:
        sync(session, "--no-default-groups", "--group=test")
        session.run("pytest", *SPREAD, *(session.posargs or ["tests/kernel"]))


@nox.session
@nox.parametrize("version", ["1.6.0", "newest"])
def pluggy(session: nox.Session, version: str) -> None:
    """Run the tests of the hooks on the oldest pluggy that noeta takes, and on the newest there is."""
    hooks = ["tests/toolkit/test_hooks.py", "tests/host/test_registry.py", "tests/host/test_pluggy.py"]
    sync(session, "--no-default-groups", "--group=test")
    wanted = "pluggy" if version == "newest" else f"pluggy=={version}"
    # The project pins one pluggy, so its configuration has to stand aside.
    session.install("--no-config", "--upgrade", wanted)
    session.run("pytest", *hooks)


@nox.session(reuse_venv=False)
@nox.parametrize("member", MEMBERS or [None], ids=[path.name for path in MEMBERS] or ["none"])
def alone(session: nox.Session, member: Path | None) -> None:
    """Run the tests of one plugin with the kernel and no other plugin but what its group `test` names."""
    if member is None:
        session.log("There is nothing to do yet: no plugin is written.")
        return
    # A front end shows what a store keeps, so its own tests need one.
    groups = nox.project.load_toml(member / "pyproject.toml").get("dependency-groups", {})
    own = [f"--group={member / 'pyproject.toml'}:test"] if "test" in groups else []
    session.install("--group=test", "--group=model", *own, "--editable", str(member))
    # These show something about the tests and the store, or take minutes in processes of their own, and say
    # nothing about standing alone.
    others = [f"--ignore={member / 'tests' / name}" for name in ("mutants", "chaos", "plugins", "running")]
    session.run("pytest", *SPREAD, *others, str(member))


@nox.session
def conformance(session: nox.Session) -> None:
    """Run the conformance kit over everything installed."""
    sync(session, "--group=test")
    session.run("pytest", *SPREAD, *(session.posargs or ["tests/conformance"]))


@nox.session
def docs(session: nox.Session) -> None:
    """Build the documentation, where a warning is an error, and run its examples."""
    sync(session, "--group=docs", "--group=test")
    options = ("--fail-on-warning", "--keep-going", "--fresh-env", "--quiet")
    session.run("sphinx-build", *options, "docs", "build/docs")
    if Path("tests/docs").exists():
        session.run("pytest", *SPREAD, "tests/docs")


@nox.session(reuse_venv=False)
def build(session: nox.Session) -> None:
    """Build every distribution, install the kernel's wheel and use it away from the checkout."""
    dist = Path(session.create_tmp()).resolve() / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    session.run_install("uv", "build", "--quiet", "--all-packages", f"--out-dir={dist}", external=True)
    for wheel in dist.glob("*.whl"):
        name = wheel.name.split("-")[0]
        folders = {entry.split("/")[0] for entry in zipfile.ZipFile(wheel).namelist()}
        if {folder for folder in folders if not folder.endswith(".dist-info")} != {name}:
            session.error(f"{wheel.name} holds {sorted(folders)}, and should hold {name} alone.")
    session.install(*map(str, dist.glob("noeta-*.whl")))
    where = "import noeta, sys; sys.exit(None if noeta.__file__.startswith(sys.prefix) else noeta.__file__)"
    with session.chdir(dist):
        session.run("python", "-I", "-c", where)
        session.run("noeta", "--version")
        # The kernel has no command line of its own, and says so.
        session.run("noeta", success_codes=[2])


@nox.session(default=False)
def bench(session: nox.Session) -> None:
    """Measure noeta, and fail beyond a gate."""
    run_script(session, "tests/benchmarks/run.py")


@nox.session(default=False)
def sim(session: nox.Session) -> None:
    """Run the simulation with many seeds."""
    run_script(session, "tests/simulation/run.py", "--seeds=20000", group="test")


@nox.session(default=False)
def chaos(session: nox.Session) -> None:
    """Kill real processes at random and compare what they leave."""
    run_script(session, "tests/chaos/run.py")
