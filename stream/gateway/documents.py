"""What the OpenAPI document says beside the routes: problems, events and records, as others define them."""

from collections.abc import Mapping
from typing import Any

import msgspec
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from stream.gateway import problems
from tracker.events import Event
from tracker.records import ClearTurns, CreateTurn, DeleteTurn, EditTurn

Answers = dict[int | str, dict[str, Any]]

_REF = "#/components/schemas/{name}"
_TURNS = (CreateTurn, EditTurn, DeleteTurn, ClearTurns)
_ALWAYS = (401, 403, 429, 500, 503)
_WORDS = {
    400: "The request cannot be read.",
    401: "No key that holds.",
    403: "The key lacks the scope.",
    404: "There is no such thing.",
    406: "None of the media types asked for is served.",
    408: "The body did not come in time.",
    413: "The body is too large, or has too many records.",
    422: "What was sent is not allowed; `field` and `remedy` say what to mend.",
    429: "Asked too often; come again as Retry-After says.",
    500: "The gateway failed.",
    503: "Broker or database is away; send the same again as Retry-After says.",
}
_RETRY = {"Retry-After": {"description": "Seconds.", "schema": {"type": "integer", "minimum": 1}}}


def ref(name: str) -> dict[str, str]:
    """A reference to one of the document's schemas."""
    return {"$ref": _REF.format(name=name)}


def answers(*statuses: int) -> Answers:
    """The problems that a route answers with, beside those that every route does."""
    content = {problems.MEDIA_TYPE: {"schema": ref("Problem")}}
    return {
        status: {"description": _WORDS[status], "content": content}
        | ({"headers": _RETRY} if status in {429, 503} else {})
        for status in sorted({*statuses, *_ALWAYS})
    }


def body(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The body of a route that reads its body itself."""
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


TURNS = {
    "oneOf": [
        {"anyOf": [ref(of.__name__) for of in _TURNS]},
        {"type": "array", "minItems": 1, "items": {"anyOf": [ref(of.__name__) for of in _TURNS]}},
    ]
}


def install(app: FastAPI) -> None:
    """Have the application tell its whole document."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            made = get_openapi(
                title=app.title, version=app.version, description=app.description, routes=app.routes
            )
            made["components"]["schemas"] |= _schemas()
            app.openapi_schema = made
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]


def _schemas() -> dict[str, Any]:
    _, found = msgspec.json.schema_components((*_TURNS, Event, problems.Document), ref_template=_REF)
    for of in _TURNS:  # the tenant is the key's; the operation and an id have defaults here
        found[of.__name__]["properties"].pop("tenant")
        left_out = {"op"} if of is CreateTurn else {"id"}
        found[of.__name__]["required"] = [
            name for name in found[of.__name__]["required"] if name not in left_out
        ]
    found["Problem"] = found.pop("Document")
    found["CloudEvent"] = found.pop("Event")
    return found
