"""The core knows no feature: what an agent can do comes from plugins."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CORE = sorted((ROOT / "kernel" / "noeta" / "core").glob("*.py"))

# Names of tools, plugins, vendors, protocols, databases and front ends. The words of the extension contract
# (command, reminder, compacted, plan mode's flag) are the core's own, so they are not here.
FEATURES = set(
    """
    acp anthropic aws azure bash bedrock browser chat claude cli cohere cron deepseek diff docker duckdb
    embedding gemini git github glob google gpt grep groq html httpx jupyter kubernetes langchain llama
    llamacpp markdown mcp memories memory mistral mysql notebook ollama openai opentelemetry otel pdf
    permission permissions podman postgres postgresql psycopg rag redis sandbox shell skill skills slack
    sql sqlite sqlite3 ssh subagent subagents subprocess summarize summarizer telegram telemetry todo
    todos vertex web webhook websocket yaml
    """.split()
)
# What the extension contract says word for word: where a reminder comes from, and how results may be shown.
CONTRACT = {"memory", "markdown", "diff"}


def words(name: str) -> list[str]:
    """Split an identifier or a text into lower-case words: `ToolSearch` is `tool`, `search`."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])\d*|[A-Z]?[a-z]+\d*", name)]


def spoken(source: str) -> list[tuple[int, str]]:
    """Return the identifiers and strings of a module with their lines, without comments and docstrings."""
    tree = ast.parse(source)
    found: list[tuple[int, str]] = []
    quiet: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            quiet.add(id(node.value))
        line = getattr(node, "lineno", 0)
        match node:
            case ast.Constant(value=str(text)) if id(node) not in quiet and text not in CONTRACT:
                found.append((line, text))
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.alias(name=name):
                found.append((line, name))
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found.append((line, name))
            case ast.keyword(arg=str(name)):
                found.append((line, name))
    return found


def features(source: str) -> list[str]:
    """Return `line: word` for every feature that a module names."""
    return [f"{line}: {word}" for line, text in spoken(source) for word in words(text) if word in FEATURES]


@pytest.mark.parametrize(
    "source",
    [
        "import sqlite3",
        "def run_bash(): ...",
        "class McpServer: ...",
        "if name == 'Bash': pass",
        "x = 'the git branch'",
        "check(permission_mode=1)",
        "self.todoList = []",
        "def f(openai): ...",
        "raise ValueError(f'no {x} in the sandbox')",
    ],
)
def test_a_named_feature_is_found(source: str) -> None:
    assert len(features(source)) == 1


@pytest.mark.parametrize(
    "source",
    [
        '"""A permission layer may allow it."""',
        "x = 1  # bash would park here",
        "def digit(): ...",
        "safe_while_planning = True",
        "origin = 'memory'",
        "view = memoryview(data)",
        "class Compacted: ...",
        "async def run_command(self): ...",
    ],
)
def test_the_words_of_the_contract_are_no_features(source: str) -> None:
    assert features(source) == []


@pytest.mark.parametrize("path", CORE, ids=lambda path: path.name)
def test_the_core_names_no_feature(path: Path) -> None:
    assert features(path.read_text()) == []
