"""The prompts that tiny models get."""

from __future__ import annotations

import json

import pytest

from noeta.toolkit.provider import Message, ModelRequest, Text, ToolResult, ToolSpec, ToolUse, user
from noeta_llamacpp.small import prompt_of


def spec(name: str, *required: str, **properties: str) -> ToolSpec:
    schema = {
        "type": "object",
        "properties": {key: {"type": type_} for key, type_ in properties.items()},
        "required": list(required),
    }
    return ToolSpec(name=name, description="What it does.", input_schema=schema)


READ = spec("Read", "file_path", file_path="string", offset="integer")
GLOB = spec("Glob", "pattern", pattern="string", path="string")
BOTH = (READ, GLOB)


def asking(text: str, *more: Message, **fields: object) -> ModelRequest:
    return ModelRequest(model="m", messages=[user(text), *more], tools=BOTH, **fields)  # type: ignore[arg-type]


def result(text: str) -> list[Message]:
    call = ToolUse(id="c1", name="Read", input={"file_path": "a.txt"})
    given = ToolResult(call="c1", content=[Text(text=text)])
    return [Message(role="assistant", content=[call]), Message(role="user", content=[given])]


@pytest.mark.parametrize(
    ("said", "paths"),
    [
        ("What does notes.txt say?", ["notes.txt"]),
        ("Compare `src/a.py` and src/b.py!", ["src/a.py", "src/b.py"]),
        ("Look at *.md", ["*.md"]),
        ('Open "my-file.tar.gz", please.', ["my-file.tar.gz"]),
    ],
)
def test_an_argument_can_only_be_a_path_of_the_message(said: str, paths: list[str]) -> None:
    prompt = prompt_of(asking(said))
    assert prompt.calls
    grammar = prompt.body["grammar"]
    assert all(json.dumps(json.dumps(path)) in grammar for path in paths)
    assert "Compare" not in grammar
    assert prompt.text.endswith(f"<|im_start|>user\n{said}<|im_end|>\n<|im_start|>assistant\n")


def test_the_examples_are_those_of_the_tools_that_are_offered() -> None:
    both = prompt_of(asking("Read a.txt")).text
    assert both.count('Read {"file_path"') == 3
    assert both.count('Glob {"pattern"') == 2
    read = prompt_of(ModelRequest(model="m", messages=[user("Read a.txt")], tools=[READ])).text
    assert "Glob" not in read


def test_a_question_about_files_without_a_path_looks_for_all_of_them() -> None:
    prompt = prompt_of(asking("Which files are here?"))
    assert prompt.calls
    assert "Read" not in prompt.body["grammar"]
    assert "**/*" in prompt.body["grammar"]


@pytest.mark.parametrize("said", ["Hello!", "What is 2 + 2?", "That was good. Thank you.", "Is 3 < 4 ?"])
def test_a_message_about_no_file_is_only_answered(said: str) -> None:
    prompt = prompt_of(asking(said))
    assert not prompt.calls
    assert "grammar" not in prompt.body


def test_a_choice_of_none_calls_nothing_and_a_named_tool_is_the_only_one() -> None:
    assert not prompt_of(asking("Read a.txt", tool_choice="none")).calls
    grammar = prompt_of(asking("Read a.txt", tool_choice="Glob")).body["grammar"]
    assert "Read" not in grammar


def test_an_answer_is_asked_for_with_the_result_and_the_question_alone() -> None:
    first = [user("Hello."), Message(role="assistant", content=[Text(text="Hi.")])]
    numbered = "     1\tport = 80\n    12→host = x"
    asked = [*first, user("What is the port in a.txt?"), *result(numbered)]
    prompt = prompt_of(ModelRequest(model="m", messages=asked, tools=BOTH))
    assert prompt.text == (
        "<|im_start|>user\nport = 80\nhost = x\n\nWhat is the port in a.txt?<|im_end|>\n"
        "<|im_start|>assistant\n"
    )
    assert not prompt.calls
    assert prompt.body["max_tokens"] == 60


def test_a_new_question_is_not_answered_from_an_old_result() -> None:
    answered = [*result("port = 80"), Message(role="assistant", content=[Text(text="80")])]
    assert prompt_of(asking("What is the port in a.txt?", *answered, user("And in b.txt?"))).calls


def test_what_plugins_add_to_a_conversation_is_no_question() -> None:
    reminder = Message(role="user", content=[Text(text="Remember c.txt.")], origin="system")
    prompt = prompt_of(asking("Read a.txt", reminder))
    assert "c.txt" not in prompt.body["grammar"]


def test_a_long_result_is_cut_to_what_a_tiny_model_can_hold() -> None:
    prompt = prompt_of(asking("What does a.txt say?", *result("word " * 10_000)))
    assert len(prompt.text) < 4_000


def test_a_tool_with_other_arguments_is_not_called() -> None:
    edit = spec("Edit", "path", "old", path="string", old="string")
    count = spec("Count", "n", n="integer")
    request = ModelRequest(model="m", messages=[user("Change a.txt")], tools=[edit, count])
    assert not prompt_of(request).calls


def test_quotes_in_a_message_do_not_break_out_of_the_grammar() -> None:
    grammar = prompt_of(asking('Read a"b\\c.txt now')).body["grammar"]
    assert grammar.count("\n") == 1
    assert json.dumps(json.dumps('a"b\\c.txt')) in grammar
