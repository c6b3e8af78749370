"""Label probabilities out of tokens, as vLLM, OpenAI and llama.cpp tell them."""

import json
import math

import msgspec
import pytest

from models.remote import wire
from models.remote.forms import label_at
from models.remote.shares import shares
from tests.models.remote.faulty_server import token

NEARLY_0 = pytest.approx(0.0, abs=1e-9)
IMPOSSIBLE = [
    {"content": [{"token": "a", "logprob": -1.0, "bytes": [999]}]},
    {"content": [{"token": "a", "logprob": 1e6}]},
]
LABELS = ("support", "oppose", "neutral", "none")


def told(*tokens: dict[str, object]) -> list[wire.Token]:
    choice = {"message": {"content": "x"}, "logprobs": {"content": list(tokens)}}
    return wire.tokens(msgspec.json.decode(json.dumps(choice), type=wire.Choice))


def log(share: float) -> float:
    return math.log(share)


def test_labels_share_what_is_said_of_them_and_other_words_count_for_nothing() -> None:
    first = token("support", ("oppose", log(0.2)), ("The", log(0.4)), logprob=log(0.2))
    found = shares(told(first), "support", 0, LABELS, "support")
    assert found == {
        "support": pytest.approx(0.5),
        "oppose": pytest.approx(0.5),
        "neutral": NEARLY_0,
        "none": NEARLY_0,
    }


def test_a_label_inside_json_is_found_where_it_begins() -> None:
    content = '{"position": "oppose"}'
    parts = [token('{"'), token("position"), token('":'), token(' "')]
    label = token("oppose", ("support", log(0.25)), logprob=log(0.75))
    found = shares(
        told(*parts, label, token('"}')), content, label_at(content, "position") or 0, LABELS, "oppose"
    )
    assert found["oppose"] == pytest.approx(0.75)
    assert found["support"] == pytest.approx(0.25)


def test_a_token_may_hold_the_quotation_mark_and_the_labels_beginning() -> None:
    content = '{"position":"oppose"}'
    label = token('"opp', ('"support', log(0.5)), ("support", log(0.1)), logprob=log(0.5))
    found = shares(told(token('{"position":'), label, token('ose"}')), content, 13, LABELS, "oppose")
    assert found == {
        "support": pytest.approx(0.5),
        "oppose": pytest.approx(0.5),
        "neutral": NEARLY_0,
        "none": NEARLY_0,
    }


def test_where_a_token_leaves_several_open_the_next_one_decides() -> None:
    first = token("n", ("support", log(0.4)), logprob=log(0.6))
    second = token("one", ("eutral", log(0.25)), logprob=log(0.75))
    found = shares(told(first, second), "none", 0, LABELS, "none")
    assert found["support"] == pytest.approx(0.4)
    assert found["none"] == pytest.approx(0.45)
    assert found["neutral"] == pytest.approx(0.15)


def test_what_might_have_become_several_is_shared_evenly() -> None:
    first = token("support", ("n", log(0.5)), logprob=log(0.5))
    found = shares(told(first), "support", 0, LABELS, "support")
    assert (found["neutral"], found["none"]) == (pytest.approx(0.25), pytest.approx(0.25))


def test_a_label_that_begins_another_is_told_from_it_by_the_end() -> None:
    labels = ("1", "12")
    end = token("", ("2", log(0.3)), logprob=log(0.7))
    found = shares(told(token("1"), end), "1", 0, labels, "1")
    assert found == {"1": pytest.approx(0.7), "12": pytest.approx(0.3)}
    found = shares(told(token("1"), token("2", ('"', log(0.3)), logprob=log(0.7))), "12", 0, labels, "12")
    assert found == {"1": pytest.approx(0.3), "12": pytest.approx(0.7)}


def test_what_a_grammar_chose_against_the_odds_is_not_sure() -> None:
    unlikely = token("support", ("The", log(0.9)), logprob=log(1e-4))
    unlikely["top_logprobs"] = [{"token": "The", "logprob": log(0.9)}, {"token": "I", "logprob": log(0.01)}]
    found = shares(told(unlikely), "support", 0, LABELS, "support")
    assert found == {"support": pytest.approx(0.4), **dict.fromkeys(LABELS[1:], pytest.approx(0.2))}


def test_a_letter_cut_between_tokens_behind_the_label_costs_nothing() -> None:
    content = '{"cause": "facts", "rationale": "狗"}'
    label = token("facts", ("feelings", log(0.25)), logprob=log(0.75))
    halves = [
        {"token": "?", "logprob": -0.1, "bytes": [*part]} for part in ("狗".encode()[:2], "狗".encode()[2:])
    ]
    tokens = told(token('{"cause": "'), label, token('", "rationale": "'), *halves, token('"}'))
    found = shares(tokens, content, label_at(content, "cause") or 0, ("facts", "feelings"), "facts")
    assert found == {"facts": pytest.approx(0.75), "feelings": pytest.approx(0.25)}


def test_what_was_thought_aloud_before_is_no_answer() -> None:
    answer = token("no", ("yes", log(0.25)), logprob=log(0.75))
    tokens = told(token("<think>"), token("no"), token("?</think>"), token("\n"), answer)
    assert shares(tokens, "no", 0, ("yes", "no"), "no")["no"] == pytest.approx(0.75)


def test_case_does_not_matter() -> None:
    found = shares(
        told(token("Support", ("none", log(0.5)), logprob=log(0.5))), "Support", 0, LABELS, "support"
    )
    assert found["support"] == pytest.approx(0.5)


@pytest.mark.parametrize("tokens", [[], [token("something"), token("else")]])
def test_a_server_that_does_not_tell_gives_all_to_what_was_named(tokens: list[dict[str, object]]) -> None:
    found = shares(told(*tokens), "oppose", 0, LABELS, "oppose")
    assert found == {"support": 0.0, "oppose": 1.0, "neutral": 0.0, "none": 0.0}


@pytest.mark.parametrize(
    "logprobs", [None, {"content": None}, {"tokens": ["a"], "top_logprobs": []}, 3, *IMPOSSIBLE]
)
def test_another_shape_of_log_probabilities_is_none_at_all(logprobs: object) -> None:
    choice = msgspec.json.decode(
        json.dumps({"message": {"content": "x"}, "logprobs": logprobs}), type=wire.Choice
    )
    assert wire.tokens(choice) == []
