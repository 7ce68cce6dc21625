"""Many opinions about a call become one decision."""

from __future__ import annotations

from itertools import product

import pytest

from noeta.core.gates import (
    MAX_REWRITES,
    Allow,
    Ask,
    Decision,
    Deny,
    Gate,
    Rewrite,
    opinions,
    resolve,
    resolve_asks,
)
from noeta.core.messages import ToolUse
from noeta.core.records import Opinion

CALL = ToolUse(id="c1", name="write", input={"path": "a"})
OTHER = Rewrite({"path": "b"})
EVERY: tuple[Gate | None, ...] = (
    None,
    Allow(),
    Allow(approve=True),
    Allow(outright=True),
    Deny("no"),
    Ask("sure?"),
    Ask("really?", firm=True),
    Rewrite({"path": "a"}),
    Rewrite({"path": "a"}, "write"),
    OTHER,
    Rewrite({"path": "a"}, "edit"),
)


def expected(gates: tuple[Gate | None, ...], rewrites: int, approved: bool) -> tuple[str, Gate | None, int]:
    """The rule in its shortest form: verdict, deciding answer, number of asks left."""
    given = [gate for gate in gates if gate is not None]
    for gate in given:
        if isinstance(gate, Deny):
            return "deny", gate, 0
    for gate in given:
        if isinstance(gate, Rewrite) and (gate.name or "write", gate.input) != ("write", {"path": "a"}):
            return ("rewrite", gate, 0) if rewrites < 3 else ("deny", None, 0)
    vouched = Allow(approve=True) in given
    left = [] if approved else [g for g in given if isinstance(g, Ask) and (g.firm or not vouched)]
    return ("ask", left[0], len(left)) if left else ("run", None, 0)


@pytest.mark.parametrize("approved", [False, True])
@pytest.mark.parametrize("rewrites", [0, MAX_REWRITES - 1, MAX_REWRITES])
def test_every_way_to_answer_up_to_four_plugins_is_decided_by_the_rule(rewrites: int, approved: bool) -> None:
    for count in range(5):
        for gates in product(EVERY, repeat=count):
            answers = [(f"p{i}", gate) for i, gate in enumerate(gates)]
            decision = resolve(CALL, answers, rewrites=rewrites, approved=approved)
            verdict, gate, left = expected(gates, rewrites, approved)
            assert (decision.verdict, len(decision.asks)) == (verdict, left), gates
            if gate is not None:
                assert decision.gate is gate, gates
            if decision.winner is not None and gate is not None:
                assert opinions(answers)[decision.winner].by == f"p{gates.index(gate)}"


def test_the_fourth_rewrite_is_a_deny_that_says_so() -> None:
    decision = resolve(CALL, [("p", OTHER)], rewrites=MAX_REWRITES)
    assert decision.verdict == "deny"
    assert decision.winner == 0
    assert decision.gate == Deny("The call was rewritten 3 times already.")


def test_a_rewrite_to_what_the_call_is_already_is_no_opinion() -> None:
    assert resolve(CALL, [("p", Rewrite({"path": "a"}))]) == Decision(verdict="run")


def test_a_call_is_outright_allowed_only_when_nobody_was_asked() -> None:
    outright = ("p", Allow(outright=True))
    assert resolve(CALL, [outright]).outright
    assert resolve(CALL, [("q", Ask()), ("r", Allow(approve=True)), outright]).outright
    assert not resolve(CALL, [("q", Ask()), outright], approved=True).outright
    assert not resolve(CALL, [("p", Allow(approve=True))]).outright


def test_a_firm_ask_is_satisfied_by_a_person_and_by_nobody_else() -> None:
    answers = [("p", Ask(firm=True)), ("q", Allow(approve=True, outright=True))]
    assert resolve(CALL, answers).verdict == "ask"
    assert resolve(CALL, answers, approved=True).verdict == "run"


def test_the_question_shows_the_first_ask_that_is_left_and_carries_them_all() -> None:
    answers = [
        ("p", Ask("soft")),
        ("q", Ask("one", firm=True)),
        ("r", Ask("two", firm=True)),
        ("s", Allow(True)),
    ]
    decision = resolve(CALL, answers)
    assert decision.gate == Ask("one", firm=True)
    assert [ask.prompt for ask in decision.asks] == ["one", "two"]
    assert opinions(answers)[decision.winner or 0].by == "q"


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        (None, "ask"),
        (Allow(), "run"),
        (Deny("no"), "deny"),
        (OTHER, "rewrite"),
        (Rewrite({"path": "a"}), "ask"),
        (Ask("other"), "ask"),
    ],
)
def test_what_a_plugin_answers_in_the_persons_place_decides(answer: Gate | None, verdict: str) -> None:
    asked = resolve(CALL, [("p", Ask("sure?", firm=True))])
    decision = resolve_asks(CALL, asked, answer)
    assert decision.verdict == verdict
    assert (decision == asked) == (answer is None or answer == Rewrite({"path": "a"}))


def test_an_ask_in_the_persons_place_replaces_the_asks() -> None:
    asked = resolve(CALL, [("p", Ask("one")), ("q", Ask("two"))])
    decision = resolve_asks(CALL, asked, Ask("three"))
    assert [ask.prompt for ask in decision.asks] == ["three"]


def test_a_rewrite_in_the_persons_place_counts_like_any_other() -> None:
    asked = resolve(CALL, [("p", Ask())])
    assert resolve_asks(CALL, asked, OTHER, rewrites=MAX_REWRITES).verdict == "deny"


def test_what_is_recorded_of_opinions_names_plugin_reason_and_source() -> None:
    answers = [
        ("a", None),
        ("b", Allow(outright=True, source="rules.toml:3")),
        ("c", Deny("no", "house rules")),
        ("d", Ask("sure?", {"risk": 2}, firm=True)),
        ("e", Rewrite({"path": "b"}, "edit")),
    ]
    assert opinions(answers) == [
        Opinion(by="b", verdict="allow", source="rules.toml:3", detail={"outright": True}),
        Opinion(by="c", verdict="deny", reason="no", source="house rules"),
        Opinion(by="d", verdict="ask", detail={"prompt": "sure?", "detail": {"risk": 2}, "firm": True}),
        Opinion(by="e", verdict="rewrite", detail={"input": {"path": "b"}, "name": "edit"}),
    ]


@pytest.mark.parametrize("value", [True, 1.0, "1", None])
def test_a_rewrite_to_what_python_alone_takes_for_the_same_is_a_rewrite(value: object) -> None:
    call = ToolUse(id="c", name="write", input={"a": 1, "b": [0]})
    assert resolve(call, [("p", Rewrite({"a": value, "b": [0]}))]).verdict == "rewrite"
    assert resolve(call, [("p", Rewrite({"b": [0], "a": 1}))]).verdict == "run"
