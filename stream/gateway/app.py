"""The application: routes, problems, limits and the OpenAPI document put together."""

from fastapi import FastAPI

from stream.gateway import changing, documents, posting, probing, problems, reading, subscribing
from stream.gateway.measuring import Bodies, Measuring
from stream.gateway.parts import Parts

DESCRIPTION = "Tells a chat platform, live, when someone changes their mind, about what, and what moved them."


def make_app(parts: Parts) -> FastAPI:
    """The application of these parts."""
    app = FastAPI(
        title="Volteface",
        version=probing.VERSION,
        description=DESCRIPTION,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.parts = parts
    problems.install(app)
    documents.install(app)
    app.add_middleware(Bodies, most=parts.limits.body_bytes, seconds=parts.limits.body_seconds)
    for module in (posting, subscribing, reading, changing, probing):
        app.include_router(module.router)
    return app


def served(parts: Parts) -> Measuring:
    """The application as a server runs it."""
    return Measuring(make_app(parts), parts.metrics)
