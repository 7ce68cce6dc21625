"""The process that runs a plugin's code for `noeta plugins check`: one stage of it, then it ends.

    python -m noeta_cli.plugins.stages FD < order

It writes what it is at, and the results at last, as lines of JSON to the file with the number FD.
"""

from __future__ import annotations

import inspect
import math
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

import msgspec

from noeta import Extension
from noeta_cli.plugins.child import Order, Told
from noeta_cli.plugins.results import Result, State

At = Callable[[str], None]
SLOW = 2.0
"""The seconds that an import may take: everyone who starts an agent waits for it."""
LONG = 20.0
"""After a check that failed and took longer than that, the others would fail as slowly."""


def main() -> None:
    """Do what standard input orders."""
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=Order)
    answers = int(sys.argv[1])

    # Whoever waits for it may be gone by then.
    signal.alarm(math.ceil(order.limit) + 5)

    def tell(told: Told) -> None:
        os.write(answers, msgspec.json.encode(told) + b"\n")

    def result(state: State, text: str, check: str = order.stage) -> Result:
        return Result(check, order.plugin, state, text)

    def at(what: str) -> None:
        tell(Told(at=what))

    at("the import")
    offered = _load(order)
    if order.stage == "import":
        found = [result(*each) for each in _import(offered, order)]
    elif order.stage == "conformance":
        found = [result(*each) for each in _conformance(offered.thing, order, at)]
    else:
        from noeta_cli.plugins.crashes import crashes

        found = [result(*each) for each in crashes(lambda: _made(offered.thing, order), at)]
    tell(Told(results=found))


def _load(order: Order) -> Any:
    """The plugin, imported as a host imports it."""
    if not order.folder:
        from noeta.host.plugin_files import Filed, PluginFile
        from noeta.host.plugin_source import declared
        from noeta.host.trust import Looked
        from noeta.toolkit.trust import digest

        path = Path(order.path)
        data = path.read_bytes()
        said = [each for each in declared(data, str(path)) if each.name == order.plugin]
        file = PluginFile(Looked(path=path, kind="plugin file", data=data, sha256=digest(data)))
        offered: Any = Filed(file, said[0])
    else:
        from importlib_metadata import EntryPoint

        from noeta.host.offered import EXTENSIONS, Packaged

        sys.path.insert(0, order.folder)
        point = EntryPoint(order.plugin, order.point, EXTENSIONS)
        offered = Packaged(point, order.distribution, order.version)
    offered.load()
    return offered


def _import(offered: Any, order: Order) -> Iterator[tuple[State, str] | tuple[State, str, str]]:
    """Whether it is imported, in time, and what its class says of itself."""
    if offered.reason:
        yield "fail", f"{offered.reason[0].upper()}{offered.reason[1:]}. Mend {order.point or order.path}."
        return
    if offered.seconds > SLOW:
        yield (
            "fail",
            (
                f"It takes {offered.seconds:.1f} s, and at most {SLOW:g} s are fine: whoever starts an agent"
                " waits for it. Import what is large inside the functions that need it."
            ),
        )
    else:
        yield "ok", f"{offered.seconds * 1000:.0f} ms"
    why = next(_undeclared(offered.thing), "")
    yield ("fail", why, "class") if why else ("ok", "it has a docstring, and typed settings", "class")


def _undeclared(cls: type[Extension]) -> Iterator[str]:
    """What a class does not say of itself, and should."""
    if not (vars(cls).get("__doc__") or "").strip():
        yield f"{cls.__name__} has no docstring: say in a line what it is for. 'noeta plugins show' shows it."
    if cls.Settings is None:
        taken = [*inspect.signature(cls.__init__).parameters.values()][1:]
        if taken := [each for each in taken if each.kind is not each.VAR_KEYWORD]:
            yield (
                f"{cls.__name__} takes {taken[0].name!r}, and settings cannot give it: declare it in a struct"
                " Settings."
            )
        return
    for name, hint in get_type_hints(cls.Settings).items():
        if _is_anything(hint):
            yield f"The setting {name!r} may be anything: give it a type, so that a wrong value is refused."


def _is_anything(hint: Any) -> bool:
    return hint in (Any, object) or any(_is_anything(each) for each in get_args(hint) if each is not ...)


def _made(cls: type[Extension], order: Order) -> Extension:
    return cls(**order.settings)


def _conformance(cls: type[Extension], order: Order, at: At) -> Iterator[tuple[State, str]]:
    """Every promise of a plugin, those that are not kept each with its sentence."""
    try:
        import hypothesis  # noqa: F401
    except ModuleNotFoundError:
        yield "fail", "It needs hypothesis, which is not installed. Run: pip install 'noeta[testing]'"
        return
    from noeta.testing import EXTENSION_CHECKS, Subject

    subject = Subject(lambda: _made(cls, order), [line.encode() for line in order.samples])
    faults: dict[str, None] = {}
    kept = 0
    for check in EXTENSION_CHECKS:
        promise = check.__name__.replace("_", " ")
        at(promise)
        began = time.monotonic()
        try:
            check(subject)
        except AssertionError as error:
            faults[str(error)] = None
            if time.monotonic() - began > LONG:
                break
        except Exception as error:
            faults[f"{promise}: {type(error).__name__}: {error}"] = None
        else:
            kept += 1
    for fault in faults:
        yield "fail", fault
    if not faults:
        yield "ok", f"all {kept} promises are kept"


if __name__ == "__main__":
    main()
