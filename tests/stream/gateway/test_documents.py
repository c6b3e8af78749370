"""The OpenAPI document: whole, and what it refers to is there."""

import json
from typing import Any

import pytest

from stream.gateway.app import make_app
from tests.stream.gateway.stand import parts_of


@pytest.fixture(scope="module")
async def document() -> dict[str, Any]:
    return make_app(parts_of()).openapi()


def _operations(document: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [
        (f"{method} {path}", operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]


def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    parts = json.dumps(document).split('"$ref": "#/components/schemas/')[1:]
    wanted = {part.partition('"')[0] for part in parts}
    assert wanted and wanted <= set(document["components"]["schemas"])
    assert "HTTPValidationError" not in wanted


def test_every_route_says_what_it_needs_and_every_problem_it_answers(document: dict[str, Any]) -> None:
    for name, operation in _operations(document):
        if "/v1/" not in name:
            continue
        [[scopes]] = [list(each.values()) for each in operation["security"]]
        assert len(scopes) == 1, name
        assert {"401", "403", "422", "429", "500", "503"} <= set(operation["responses"]), name
        for status, answer in operation["responses"].items():
            content = answer["content"]
            if int(status) >= 400:
                assert list(content) == ["application/problem+json"], (name, status)
        assert operation["summary"] and operation["description"]


def test_flips_are_a_page_or_a_stream(document: dict[str, Any]) -> None:
    content = document["paths"]["/v1/flips"]["get"]["responses"]["200"]["content"]
    assert set(content) == {"application/json", "text/event-stream"}


def test_turns_are_described_as_they_are_taken(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    create, clear = schemas["CreateTurn"], schemas["ClearTurns"]
    assert set(create["required"]) == {"conversation", "sent_at", "turn", "holder", "text"}
    assert set(clear["required"]) == {"conversation", "sent_at", "op"}
    assert "tenant" not in create["properties"]
