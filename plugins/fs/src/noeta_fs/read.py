"""The tool Read: a file as numbered lines, or as the image that it is."""

from __future__ import annotations

import difflib
import posixpath
from hashlib import sha256
from typing import Any

import anyio.to_thread
from msgspec import Struct

from noeta import Image, TaskView, Text, ToolContext, ToolFlags, ToolOutput, text_output
from noeta.toolkit.env import ExecEnv, FileStat
from noeta.toolkit.sanitize import storable_text
from noeta_fs.decoding import encoding_of, image_type
from noeta_fs.pages import Page, Wanted
from noeta_fs.paths import absolute
from noeta_fs.records import NAME, FileRead
from noeta_fs.rule_inputs import Others, other_inputs
from noeta_fs.settings import FilesSettings

WHOLE = 16 << 20
"""A file up to this size is read at once, so that all of it is of one moment; a larger one in pieces."""
PIECE = 1 << 20
AT_ONCE = 1 << 18
"""More bytes than these are looked at in a thread, so that other tasks go on meanwhile."""
LIKE = 3
"""How many similar names are told when a file is missing."""


class Read:
    """Shows a file, and records what it was."""

    name = "Read"
    description = (
        "Reads a file. Lines come numbered, as `     1<tab>text`; the number and the tab are not part of the "
        "file. Without offset and limit it begins at the first line. Images come as images. It cannot list a "
        "folder."
    )
    input_schema: dict[str, Any] = {  # noqa: RUF012
        "type": "object",
        "properties": {
            "file_path": {"type": "string", "minLength": 1, "description": "The absolute path of the file."},
            "offset": {"type": "integer", "minimum": 1, "description": "The line to begin at, from 1."},
            "limit": {"type": "integer", "minimum": 1, "description": "How many lines to read."},
        },
        "required": ["file_path"],
        "additionalProperties": False,
    }
    read_only = True
    clearable = True
    # What is given is bounded by the settings.
    flags = ToolFlags(max_result_chars=None)

    def __init__(self, settings: FilesSettings, cwd: str) -> None:
        self._settings, self._cwd = settings, cwd

    async def rule_inputs(self, input: dict[str, Any], view: TaskView) -> Others:
        """The call with the path that it means, and with the one where links lead."""
        return await other_inputs(input, "file_path", view, self._cwd)

    async def run(self, input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        """Read. What cannot be read is an error that says why and what to do."""
        try:
            path = absolute(ctx.env, self._cwd, input["file_path"])
            found = await ctx.env.stat(path)
            if found is None:
                return _error(await _missing(ctx.env, path))
            if found.kind == "dir":
                return _error(f"{path} is a folder, not a file. Glob finds files, a shell lists folders.")
            if found.kind == "other":
                return _error(f"{path} is no regular file (a pipe, device or socket), so it is not read.")
            # The size may be told wrong, as in /proc, so it decides nothing.
            head = await ctx.env.read(path, 0, WHOLE + 1)
            return await self._shown(ctx, path, found, head, input)
        except ValueError as error:
            return _error(str(error))
        except OSError as error:
            return _error(f"{input['file_path']} cannot be read: {error.strerror or error}.")

    async def _shown(
        self, ctx: ToolContext, path: str, found: FileStat, head: bytes, input: dict[str, Any]
    ) -> ToolOutput:
        """What the bytes are, as far as it can be shown."""
        size = f"{max(found.size, len(head)):,} bytes"
        chosen = self._settings
        meta: dict[str, Any] = {"path": storable_text(path)}
        if media_type := image_type(head):
            if len(head) > chosen.image_bytes:
                most = f"the setting image_bytes allows {chosen.image_bytes:,} bytes"
                return _error(f"{path} is an image of {size}, and {most}. Make it smaller.")
            await self._record(ctx, path, found, sha256(head).hexdigest())
            return ToolOutput(content=[Image(media_type=media_type, data=head)], meta=meta)
        asked = "offset" in input or "limit" in input
        first, lines = input.get("offset", 1), input.get("limit", chosen.read_lines)
        wanted = Wanted(first=first, lines=lines, chars=chosen.line_chars, tokens=chosen.read_tokens)
        if len(head) <= AT_ONCE:
            view = _view(head, wanted)
        else:
            view = await anyio.to_thread.run_sync(_view, head, wanted, abandon_on_cancel=True)
        if view is None:
            return _error(f"{path} is a binary file of {size}, so there is no text to show.")
        page, known = view.page, await _rest(view, ctx.env, path)
        if page.full and asked:
            most = f"more than the {chosen.read_tokens:,} tokens that one Read may give"
            return _error(f"The lines of {path} from {first} on are {most}. Use limit={page.count} or less.")
        last = first + page.count - 1
        partial = page.full or page.cut > 0 or (not asked and not (known and page.count == page.total))
        await self._record(ctx, path, found, view.sha256, partial=partial)
        text = "\n".join([*page.shown, *_notes(page, first, last, known=known, asked=asked)])
        told = {"first": first, "lines": page.count, "total": page.total if known else None}
        meta |= {"encoding": view.encoding, "crlf": page.crlf, "partial": partial, **told}
        return ToolOutput(content=[Text(text=storable_text(text))], meta=meta)

    async def _record(
        self, ctx: ToolContext, path: str, found: FileStat, digest: str, *, partial: bool = False
    ) -> None:
        real = await ctx.env.real(path)
        # No log can hold a name that is no Unicode, and no model can repeat it.
        if storable_text(real) == real:
            read = FileRead(path=real, sha256=digest, changed=found.changed, partial=partial)
            ctx.record(NAME, "file_read", read)


class View(Struct):
    """What the first bytes of a text are; those of a small file are all, and then `whole`."""

    page: Page
    encoding: str
    whole: bool
    sha256: str


def _view(head: bytes, wanted: Wanted) -> View | None:
    """Look at the first bytes of a file; None when they are no text."""
    whole = len(head) <= WHOLE
    encoding = encoding_of(head, whole=whole)
    if encoding is None:
        return None
    page = Page(wanted, encoding)
    page.feed(head, last=whole)
    return View(page, encoding, whole, sha256(head).hexdigest() if whole else "")


async def _rest(view: View, env: ExecEnv, path: str) -> bool:
    """Feed the page until it needs no more; True when the end was reached, so that the total is known."""
    page, offset = view.page, WHOLE + 1
    while not (view.whole or page.done):
        piece = await env.read(path, offset, PIECE)
        page.feed(piece, last=not piece)
        view.whole = not piece
        offset += len(piece)
    return view.whole


def _notes(page: Page, first: int, last: int, *, known: bool, asked: bool) -> list[str]:
    """What the model has to know besides the lines."""
    notes = []
    of = f" of {page.total}" if known else ""
    if known and page.total == 0:
        notes.append("[The file exists and is empty.]")
    elif known and page.count == 0 and not page.full:
        notes.append(f"[The file has {page.total} lines, so there is nothing from line {first} on.]")
    elif not known or last < page.total:
        what = "" if asked else "PARTIAL view: "
        notes.append(f"[{what}lines {first} to {last}{of}. Go on with offset={last + 1}.]")
    if page.cut:
        plural = "line is" if page.cut == 1 else "lines are"
        notes.append(f"[{page.cut} {plural} too long to be shown whole.]")
    return notes


async def _missing(env: ExecEnv, path: str) -> str:
    """Say that a file is not there, and what may be meant."""
    folder, name = posixpath.split(path)
    said = f"There is no file {path}."
    try:
        names = [entry.name for entry in await env.listdir(folder)]
    except OSError:
        return f"{said} There is no folder {folder} either. The current folder is {env.cwd}."
    # The case of letters is the likeliest slip.
    by_case = {each.casefold(): each for each in names}
    stems = {posixpath.splitext(each)[0].casefold(): each for each in names}
    close = difflib.get_close_matches(name.casefold(), by_case, LIKE, 0.6)
    like = [by_case[each] for each in close]
    if not like and (other := stems.get(posixpath.splitext(name)[0].casefold())):
        like = [other]
    if not like:
        return said
    return f"{said} Did you mean {' or '.join(posixpath.join(folder, each) for each in like)}?"


def _error(text: str) -> ToolOutput:
    return text_output(storable_text(text), is_error=True)
