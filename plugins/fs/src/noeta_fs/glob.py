"""The tool Glob: files whose paths match a pattern, newest first."""

from __future__ import annotations

from typing import Any

import anyio

from noeta import TaskView, Text, ToolContext, ToolFlags, ToolOutput, text_output
from noeta.toolkit.sanitize import storable_text
from noeta_fs.paths import absolute, inside
from noeta_fs.patterns import Pattern
from noeta_fs.rule_inputs import Others, other_inputs
from noeta_fs.settings import FilesSettings
from noeta_fs.walk import Walk


class Glob:
    """Finds files by their paths."""

    name = "Glob"
    description = (
        "Finds files by a pattern, such as **/*.py or src/**/*.{ts,tsx}. Gives their absolute paths, the "
        "newest first. * stands for any letters of a name, ** for any number of folders. Hidden and ignored "
        "files are found too."
    )
    input_schema: dict[str, Any] = {  # noqa: RUF012
        "type": "object",
        "properties": {
            "pattern": {"type": "string", "minLength": 1, "description": "What the paths are to match."},
            "path": {
                "type": "string",
                "description": "The folder to look in; the pattern cannot lead out of it. Leave it out for "
                "the current folder.",
            },
        },
        "required": ["pattern"],
        "additionalProperties": False,
    }
    read_only = True
    clearable = True
    # What is given is bounded by the settings.
    flags = ToolFlags(max_result_chars=None)

    def __init__(self, settings: FilesSettings, cwd: str) -> None:
        self._settings, self._cwd = settings, cwd

    async def rule_inputs(self, input: dict[str, Any], view: TaskView) -> Others:
        """The call with the folder that it means, and with the one where links lead."""
        return await other_inputs(input, "path", view, self._cwd)

    async def run(self, input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        """Look. A folder that is not there, and a pattern that makes no sense, are errors."""
        try:
            pattern = Pattern(input["pattern"])
            folder = absolute(ctx.env, self._cwd, input.get("path", ""))
            found = await ctx.env.stat(folder)
            if found is None or found.kind != "dir":
                why = "There is no folder" if found is None else "This is a file and no folder:"
                return text_output(storable_text(f"{why} {folder}."), is_error=True)
            base = absolute(ctx.env, folder, pattern.base)
            real = await ctx.env.real(folder)
            if not inside(await ctx.env.real(base), real):
                # Permission rules judge `path`, so the pattern must not lead elsewhere.
                why = f"The pattern leads to {base}, which is not in {folder}. Give that folder as path."
                return text_output(storable_text(why), is_error=True)
        except ValueError as error:
            return text_output(storable_text(str(error)), is_error=True)
        except OSError as error:
            why = f"{input.get('path', input['pattern'])} cannot be searched: {error.strerror or error}."
            return text_output(storable_text(why), is_error=True)
        walk = Walk(ctx.env, pattern, self._settings.glob_files)
        with anyio.move_on_after(self._settings.glob_seconds):
            await walk.run(base, real)
        return self._output(walk, input["pattern"], base, pattern)

    def _output(self, walk: Walk, text: str, base: str, pattern: Pattern) -> ToolOutput:
        names, notes = walk.newest, []
        if not names:
            notes.append("No files found.")
            if walk.whole and not pattern.deep and "{" not in text:
                above, slash, name = text.rpartition("/")
                below = f"{above}{slash}**/{name}"
                notes.append(f"[This looked in {base} alone. To look in the folders below write {below}.]")
        if walk.total > len(names):
            notes.append(f"[The newest {len(names):,} of {walk.total:,} files. Use a narrower pattern.]")
        if not walk.whole:
            spent = f"after {self._settings.glob_seconds:g} seconds"
            notes.append(f"[The search was stopped {spent}, so there may be more. Use a narrower pattern.]")
        if walk.unreadable:
            notes.append(f"[Not searched, since they cannot be read: {_some(walk.unreadable)}.]")
        if walk.leaving:
            notes.append(
                f"[Not searched, since these links lead out of the folder: {_some(walk.leaving)}. "
                "Give such a folder as path.]"
            )
        meta = {"files": len(names), "total": walk.total, "whole": walk.whole}
        text = storable_text("\n".join([*names, *notes]))
        return ToolOutput(content=[Text(text=text)], meta=meta)


def _some(folders: list[str]) -> str:
    more = f" and {len(folders) - 3:,} more" if len(folders) > 3 else ""
    return ", ".join(folders[:3]) + more
