"""A copy of a state costs the same whatever the length of its conversation."""

from __future__ import annotations

from logs import log
from measure import Value, fresh, ratios, rounds, spread
from plugins import PLUGINS

from noeta.core.codec import decode
from noeta.core.fold import Folder
from noeta.core.state import TaskState

SIZES = (100, 100_000)
LOOPS = 2_000


def _state(messages: int) -> TaskState:
    """A state with so many messages."""
    folder = Folder(PLUGINS)
    state = folder.start()
    for line in log(2 * messages):
        folder.apply(state, decode(line))
        if len(state.conversation) == messages:
            break
    return state


def _step(state: TaskState) -> None:
    """A hook is shown a message on its way into the log; then it is there, and the next reply too."""
    seen, seq = state.copy(), state.conversation.last_seq
    seen.conversation.add(seq + 1, b"{}")
    state.conversation.add(seq + 1, b"{}")
    state.conversation.add_reply(seq + 2, b"{}", seq + 1)


def one() -> dict[str, list[float]]:
    """CPU ns of a copy, and of a step in which a copy grows, by the length of the conversation."""
    small, large = (_state(size) for size in SIZES)
    copies = rounds({"small": small.copy, "large": large.copy}, 9, loops=LOOPS)
    # The conversation is longer after each step, so there are few of them.
    steps = rounds({"small_step": lambda: _step(small), "large_step": lambda: _step(large)}, 9, loops=20)
    return {name: [x * 1e9 for x in xs] for name, xs in (copies | steps).items()}


def measure(quick: bool) -> list[Value]:
    """Values of this subject."""
    taken = fresh("state_copy", "one")
    values = []
    for end, of in (("", "copy of a state"), ("_step", "copy with a message of its own, then a step")):
        values += [
            Value(f"{name}{end}", f"{of}, {size:,} messages", spread(taken[f"{name}{end}"]), "ns")
            for name, size in zip(("small", "large"), SIZES, strict=True)
        ]
        ratio = ratios(taken[f"large{end}"], taken[f"small{end}"])
        values.append(Value(f"ratio{end}", "the second over the first", ratio, "x"))
    return values
