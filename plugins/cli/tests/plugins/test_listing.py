"""`noeta plugins list`, `show`, `why` and `conflicts`: what there is, and why an agent has it or not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Desk

TOOL = """
    def tools(self, view):
        @function_tool(read_only=True)
        def look(at: str) -> str:
            "Look at something."
            return at
        return [look]
"""
TOOL_OF_A_PACKAGE = f"""\
from noeta import Extension, function_tool

class Plugin(Extension):
    name = "packaged"
{TOOL}
"""


def entries(desk: Desk, *options: str) -> dict[str, dict[str, object]]:
    run = desk.noeta("list", "--json", *options)
    assert run.status == 0
    return {entry["name"]: entry for entry in run.json}


def test_each_entry_has_its_state_and_the_agents_that_have_it(desk: Desk) -> None:
    own, theirs = desk.plugin("own"), desk.plugin("theirs", own=False)
    off, broken = desk.plugin("off"), desk.plugin("broken", "):")
    desk.install("noeta-packaged", "packaged", TOOL_OF_A_PACKAGE)
    desk.own('[agents.looker]\nplugins = ["packaged", "off"]\n[plugins.off]\nenabled = false\n')
    found = entries(desk)
    kept = {name: (found[name]["state"], found[name]["agents"], found[name]["path"]) for name in found}
    assert kept["own"] == ("not imported", ["coder", "looker"], str(own))
    assert kept["theirs"] == ("untrusted", [], str(theirs))
    assert kept["off"] == ("disabled", [], str(off))
    assert kept["broken"] == ("failed", [], str(broken))
    assert kept["packaged"] == ("not imported", ["looker"], "")
    assert found["packaged"]["distribution"] == "noeta-packaged"
    assert "it is not trusted" in str(found["theirs"]["reason"])
    assert "enabled = false" in str(found["off"]["reason"])
    assert "line 8" in str(found["broken"]["reason"])


def test_a_list_imports_nothing_and_with_import_it_says_how_long_that_took(desk: Desk) -> None:
    desk.install("noeta-packaged", "packaged", f"print('imported')\n{TOOL_OF_A_PACKAGE}")
    desk.install("noeta-bad", "bad", "import no_such_module\n")
    run = desk.run("list")
    assert (run.status, "imported" in run.out.replace("not imported", "")) == (0, False)
    assert "ms" not in run.out
    run = desk.run("list", "--import", "--json")
    found = {entry["name"]: entry for entry in run.json}
    assert (found["packaged"]["state"], found["packaged"]["seconds"] > 0) == ("imported", True)
    assert found["bad"]["state"] == "failed"
    assert "no_such_module" in found["bad"]["reason"]
    # What a plugin prints is no part of the answer.
    assert "imported" in run.err


def test_the_list_for_people_has_the_same_and_the_reasons(desk: Desk) -> None:
    desk.plugin("own")
    desk.plugin("broken", "):")
    run = desk.noeta("list", "--import")
    lines = {line.split()[0]: line for line in run.out.splitlines()}
    assert lines["NAME"].split() == ["NAME", "KIND", "STATE", "VERSION", "AGENTS", "IMPORT", "FROM"]
    assert "imported" in lines["own"]
    assert " ms " in lines["own"]
    assert "failed" in lines["broken"]
    assert lines["broken"].endswith("broken.py")
    assert "plugin 'broken' is failed: it could not be imported" in run.err


def test_the_name_of_a_project_cannot_steer_the_terminal(desk: Desk) -> None:
    desk.write(".noeta/plugins/a\x1b[2Jb.py", "x = 1")
    for run in (desk.noeta("list"), desk.noeta("trust")):
        assert "\x1b" not in run.out
        assert "ab.py" in run.out


def test_a_reader_that_has_seen_enough_ends_the_list_quietly(desk: Desk) -> None:
    process = desk.process("list")
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    process.wait(60)
    assert process.stderr.read() == ""
    process.stderr.close()


def test_a_plugin_is_shown_with_its_settings_and_where_their_values_are_from(desk: Desk) -> None:
    body = """
    class Settings(msgspec.Struct):
        most: int = 3
        api_key: str = ""
        place: str = "here"
    record_types = {"looked": msgspec.defstruct("Looked", [("at", str)])}
    async def on_start(self, view): ...
    """
    file = desk.plugin("own", f"{body}\n{TOOL}")
    desk.own('[plugins.own]\nmost = 5\napi_key = "geheim"\n')
    [shown] = desk.noeta("show", "own", "--json").json
    assert (shown["from"], shown["state"], shown["agents"]) == (str(file), "imported", ["coder"])
    assert sorted(shown["hooks"]) == ["on_start", "tools"]
    assert [tool["name"] for tool in shown["tools"]] == ["look"]
    assert shown["records"] == {"looked": {"at": "str"}}
    assert len(shown["sha256"]) == 64
    assert shown["about"] == "A plugin called own."
    place = str(desk.home / "noeta.toml")
    assert shown["settings"] == [
        {"name": "most", "type": "int", "default": 3, "value": 5, "place": place},
        {"name": "api_key", "type": "str", "default": "", "value": "***", "place": place},
        {"name": "place", "type": "str", "default": "here"},
    ]
    text = desk.noeta("show", "own").out
    assert f"most: int = 3; is 5, from {place}" in text
    assert "looked(at)" in text
    assert "look (read only)" in text
    assert "geheim" not in text


@pytest.mark.parametrize(
    "body",
    [
        "record_types = 3",
        'class Settings(msgspec.Struct):\n    most: "Nothing" = 3',
        "def tools(self, view): return [3]",
    ],
)
def test_a_plugin_that_is_not_as_it_should_be_is_shown_as_far_as_it_goes(desk: Desk, body: str) -> None:
    desk.plugin("own", body)
    run = desk.noeta("show", "own")
    assert (run.status, run.out.splitlines()[1]) == (0, "  A plugin called own.")
    assert "Traceback" not in run.err


def test_a_plugin_that_needs_a_setting_is_shown_with_what_is_missing(desk: Desk) -> None:
    desk.plugin("own", "class Settings(msgspec.Struct):\n    place: str")
    run = desk.noeta("show", "own")
    assert run.status == 0
    assert "place: str (needed)" in run.out
    assert "it is missing" in run.out


def test_what_must_not_run_is_shown_without_running_it(desk: Desk) -> None:
    desk.write(".noeta/plugins/theirs.py", "raise SystemExit('it ran')")
    run = desk.noeta("show", "theirs")
    assert run.status == 0
    assert "untrusted (it is not trusted" in run.out
    assert "it ran" not in run.out + run.err


def test_a_plugin_that_fails_is_shown_with_the_reason(desk: Desk) -> None:
    desk.install("noeta-bad", "bad", "import no_such_module\n")
    run = desk.noeta("show", "bad")
    assert run.status == 0
    assert "failed (it could not be imported: ModuleNotFoundError" in run.out


def test_why_is_a_sentence_for_each_agent(desk: Desk) -> None:
    desk.install("noeta-packaged", "packaged", TOOL_OF_A_PACKAGE)
    desk.own('[agents.looker]\nplugins = ["packaged"]\n')
    run = desk.noeta("why", "packaged")
    assert (run.status, run.out.splitlines()) == (
        0,
        [
            (
                "Plugin 'packaged' is not in agent 'coder': its list does not name it. It is installed with"
                " noeta-packaged 1.0."
            ),
            "Plugin 'packaged' is in agent 'looker': its list names it, and noeta-packaged 1.0 has it.",
        ],
    )
    assert desk.noeta("why", "packaged", "--agent", "looker").out.count("\n") == 1
    assert desk.noeta("why", "coder", "--agent", "coder").status == 0


def test_an_agent_that_cannot_be_put_together_is_the_reason(desk: Desk) -> None:
    desk.install("noeta-bad", "bad", "import no_such_module\n")
    desk.own('[agents.looker]\nplugins = ["bad"]\n')
    run = desk.noeta("why", "bad")
    assert run.status == 1
    assert "is not in agent 'coder'" in run.out
    assert "Agent 'looker' cannot be put together" in run.out
    run = desk.noeta("conflicts")
    assert (run.status, "agent 'looker' cannot be put together" in run.err) == (2, True)


def test_a_tool_that_two_plugins_offer_is_a_conflict_until_settings_say_whose_it_is(desk: Desk) -> None:
    assert desk.noeta("conflicts").status == 0
    desk.plugin("one", TOOL)
    desk.plugin("two", TOOL)
    run = desk.noeta("conflicts")
    assert (run.status, run.out) == (
        1,
        (
            "agent 'coder': tool 'look' is offered by one and two; one has it, being first. "
            'Choose in settings: prefer.look = "two"\n'
        ),
    )
    desk.own('prefer.look = "two"')
    [conflict] = desk.noeta("conflicts", "--agent", "coder", "--json").json
    assert (conflict["winner"], conflict["losers"]) == ("two", ["one"])
    run = desk.noeta("conflicts")
    assert (run.status, "two has it, as prefer.look" in run.out) == (0, True)


def test_a_tool_that_the_lists_of_the_agent_refuse_is_no_conflict(desk: Desk) -> None:
    desk.plugin("one", TOOL)
    desk.plugin("two", TOOL)
    desk.own('[agents.coder]\ndenied = ["look"]\n')
    assert desk.noeta("conflicts").status == 0


def test_a_name_that_two_places_offer_is_a_conflict(desk: Desk) -> None:
    file = desk.plugin("packaged")
    desk.install("noeta-packaged", "packaged", TOOL_OF_A_PACKAGE)
    [conflict] = desk.noeta("conflicts", "--json").json
    assert (conflict["what"], conflict["winner"], conflict["losers"]) == (
        "plugin",
        str(file),
        ["noeta-packaged"],
    )
    run = desk.noeta("conflicts")
    assert (run.status, "Rename or remove the other one." in run.out) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["show"], "Missing argument 'NAME'"),
        (["show", "chekclist"], "nothing here has the name 'chekclist'"),
        (["show", "onw"], "(did you mean 'own'?)"),
        (["why"], "Missing argument 'NAME'"),
        (["why", "onw"], "(did you mean 'own'?)"),
        (["why", "own", "--agent", "codr"], "there is no agent 'codr' (did you mean 'coder'?)"),
        (["why", "own", "--agent", "zzz"], "there is no agent 'zzz'; there are coder"),
        (["conflicts", "--agent", "codr"], "(did you mean 'coder'?)"),
        (["conflicts", "one"], "unexpected extra argument"),
        (["list", "own"], "unexpected extra argument"),
        (["list", "--jsno"], "No such option"),
        ([], "Missing command"),
        (["lst"], "there is no command 'plugins lst' (did you mean 'list'?)"),
    ],
)
def test_a_wrong_command_is_one_sentence(desk: Desk, arguments: list[str], said: str) -> None:
    desk.plugin("own")
    run = desk.noeta(*arguments)
    assert (run.status, run.out) == (2, "")
    first, *rest = run.err.splitlines()
    assert first.startswith("noeta: ")
    assert said in first
    assert all(line.startswith("Try 'noeta plugins") for line in rest)


@pytest.mark.parametrize("command", [["list"], ["show", "own"], ["why", "own"], ["conflicts"]])
def test_settings_that_cannot_be_read_are_one_sentence(desk: Desk, command: list[str]) -> None:
    desk.own("agnet = 3")
    run = desk.noeta(*command)
    assert (run.status, run.out) == (2, "")
    assert "did you mean 'agent'" in run.err
    assert run.err.count("\n") == 1


def test_help_lists_the_commands_in_the_order_of_need(desk: Desk) -> None:
    out = desk.noeta("--help").out
    listed = [line.split()[0] for line in out.partition("Commands:")[2].splitlines() if line.strip()]
    assert listed == ["list", "show", "why", "conflicts", "trust", "new", "check"]
