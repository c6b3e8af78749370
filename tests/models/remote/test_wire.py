"""What servers write that is not what was asked for, or not even JSON."""

import json
from typing import Any

import pytest

from models.remote import wire
from models.remote.shares import shares


def written(logprobs: str = "null", **more: Any) -> bytes:
    choices = f'"choices": [{{"message": {{"content": "yes"}}, "logprobs": {logprobs}}}]'
    rest = "".join(f', "{key}": {json.dumps(value)}' for key, value in more.items())
    return f"{{{choices}{rest}}}".encode()


def test_a_token_that_a_grammar_forbids_is_impossible_and_costs_no_other_its_share() -> None:
    """SGLang and others write `-Infinity`, which is no JSON."""
    others = '{"token": "no", "logprob": -Infinity}, {"token": "maybe", "logprob": -0.7}'
    told = f'{{"content": [{{"token": "yes", "logprob": -0.7, "top_logprobs": [{others}]}}]}}'
    answer = wire.completion(written(told))
    found = shares(wire.tokens(answer.choices[0]), "yes", 0, ("yes", "no", "maybe"), "yes")
    assert found == {"yes": pytest.approx(0.5), "no": 0.0, "maybe": pytest.approx(0.5)}


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999", "-1e999", '"-0.1"', "null"])
def test_log_probabilities_that_are_no_numbers_are_none_at_all(number: str) -> None:
    answer = wire.completion(written(f'{{"content": [{{"token": "yes", "logprob": {number}}}]}}'))
    assert answer.choices[0].message.content == "yes"
    assert wire.tokens(answer.choices[0]) == []


@pytest.mark.parametrize(
    "usage",
    [
        None,
        "much",
        {"prompt_tokens": None},
        {"prompt_tokens": -1},
        {"prompt_tokens": 10**30},
        {"prompt_tokens_details": 3},
    ],
)
def test_what_was_spent_in_another_shape_is_nothing_and_costs_no_answer(usage: object) -> None:
    assert wire.usage(wire.completion(written(usage=usage))) == wire.Usage()


@pytest.mark.parametrize(
    ("told", "found"), [("fp-1", "fp-1"), (None, ""), (3, ""), ({"a": 1}, ""), ("x" * 10_000, "x" * 128)]
)
def test_a_fingerprint_is_a_short_word_or_none(told: object, found: str) -> None:
    assert wire.fingerprint(wire.completion(written(system_fingerprint=told))) == found


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b"<html>",
        b'data: {"choices": []}',
        written()[:-5],
        b'{"choices": null}',
        b'{"choices": [{}]}',
        b'{"choices": [{"message": {"content": "\xff\xfe"}}]}',
        b'{"choices": [{"message": {"content": "\\ud800"}}]}',
        b'{"choices": [{"message": {"content": "x"}}], "more": ' + b"[" * 100_000,
    ],
    ids=lambda body: body[:40],
)
def test_what_is_no_completion_says_so(body: bytes) -> None:
    with pytest.raises((ValueError, RecursionError)):
        wire.completion(body)
    assert wire.refusal(body) == ""
    assert wire.excuse(body) is None


def test_brackets_without_end_in_a_refusal_are_no_word() -> None:
    assert wire.refusal(b'{"error": ' + b'{"error": ' * 100_000) == ""
    assert wire.refusal(b'{"error": {"code": "too_long"}, "more": ' + b"[" * 100_000) == ""


@pytest.mark.parametrize(
    ("error", "status"),
    [({"code": 429}, 429), ({"code": 503, "message": "x"}, 503), ({"code": 200}, None), ("no", None)],
)
def test_an_error_in_the_place_of_an_answer_has_its_status(error: object, status: int | None) -> None:
    assert wire.excuse(json.dumps({"error": error}).encode()) == status
    assert wire.excuse(written(error=None)) is None
