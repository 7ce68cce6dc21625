"""The program that the checks run: whatever they need done inside an environment, one act a run."""

from __future__ import annotations

import sys

SOURCE = r"""
import fcntl, json, os, signal, sys, time

def say(text):
    # A signal may come in the middle of this, and its handler says something too.
    os.write(1, text.encode() + b"\n")

def hold(path):
    file = open(path, "w")
    fcntl.flock(file, fcntl.LOCK_EX)
    say("held")
    while True:
        time.sleep(60)

act, words = sys.argv[1], sys.argv[2:]
if act == "show":
    given = {"words": words, "cwd": os.getcwd(), "env": dict(os.environ)}
    print(json.dumps({**given, "stdin": sys.stdin.buffer.read().decode("latin-1")}))
elif act == "end":
    sys.exit(int(words[0]))
elif act == "both":
    say("out")
    sys.stderr.write("err\n")
elif act == "talk":
    say("one")
    while not os.path.exists(words[0]):
        time.sleep(0.01)
    say("two")
elif act == "flood":
    for number in range(int(words[0])):
        sys.stdout.buffer.write(b"%07d\n" % number * 128)
elif act == "link":
    os.symlink(words[0], words[1])
elif act == "chmod":
    os.chmod(words[1], int(words[0], 8))
elif act == "hold":
    hold(words[0])
elif act == "free":
    with open(words[0], "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
    say("free")
elif act == "signal":
    os.kill(os.getpid(), int(words[0]))
elif act == "polite":
    def bye(*_):
        say("bye")
        os._exit(7)
    signal.signal(signal.SIGTERM, bye)
    say("ready")
    while True:
        time.sleep(60)
elif act == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    hold(words[0])
elif act == "leave":
    ready, done = os.pipe()
    if os.fork() == 0:
        if "stubborn" in words:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        file = open(words[0], "w")
        fcntl.flock(file, fcntl.LOCK_EX)
        os.write(done, b"!")
        while True:
            time.sleep(60)
    os.read(ready, 1)
    say("left")
else:
    sys.exit("There is no act " + act)
"""
"""What the program does, in Python: its first argument is the act.

- ``show WORDS``: print its words, folder, variables and standard input (as latin-1) as JSON.
- ``end STATUS``, ``signal NUMBER``: end with this status, or by this signal.
- ``both``: write ``out`` to standard output and ``err`` to standard error.
- ``talk PATH``: write ``one``, wait until there is a file, write ``two``.
- ``flood COUNT``: write that many KiB, of numbered lines.
- ``link TARGET PATH``, ``chmod MODE PATH``: make a link, change a mode (octal).
- ``hold PATH``: lock the file, write ``held`` and never end. ``stubborn PATH``: that too, and ignore TERM.
- ``free PATH``: wait until nobody holds the lock, and write ``free``.
- ``polite``: write ``ready``; at a TERM write ``bye`` and end with status 7.
- ``leave PATH [stubborn]``: start another process that holds the lock and never ends, write ``left``, end.
"""


def python_probe(python: str = sys.executable) -> tuple[str, ...]:
    """The program, run by this Python of the environment."""
    return (python, "-I", "-S", "-c", SOURCE)
