"""Conversations, holders and trajectories, a page at a time."""

from typing import Annotated

import msgspec
from fastapi import APIRouter, Path, Query, Request

from stream.gateway import documents, telling
from stream.gateway.access import ReadsEvents
from stream.gateway.keyring import Access
from stream.gateway.pages import cursor as as_cursor
from stream.gateway.pages import key_of
from stream.gateway.parts import parts
from stream.gateway.problems import Kind, Problem
from stream.gateway.shapes import (
    ConversationDetail,
    ConversationPage,
    HolderPage,
    Limit,
    Name,
    Trajectory,
)
from stream.views.port import PAGE, Activity, HolderKey, PointKey

router = APIRouter(tags=["conversations"])

_ACTIVITY = msgspec.json.Decoder(Activity)
_HOLDER: msgspec.json.Decoder[HolderKey] = msgspec.json.Decoder(HolderKey)
_POINT: msgspec.json.Decoder[PointKey] = msgspec.json.Decoder(PointKey)

Cursor = Annotated[str | None, Query(max_length=4096, description="`next` of the page before.")]
Size = Annotated[Limit, Query()]


@router.get(
    "/v1/conversations", responses=documents.answers(422), summary="Conversations, latest active first"
)
async def list_conversations(
    request: Request, access: ReadsEvents, cursor: Cursor = None, limit: Size = PAGE
) -> ConversationPage:
    """The tenant's conversations."""
    behind = key_of(cursor, _ACTIVITY)
    rows = await parts(request).views.conversations(access.tenant, behind=behind, limit=limit)
    following = as_cursor(rows[-1].activity) if len(rows) == limit else None
    found = [telling.conversation_summary(row) for row in rows]
    return ConversationPage(conversations=found, next=following)


@router.get(
    "/v1/conversations/{conversation:path}", responses=documents.answers(404, 422), summary="One conversation"
)
async def get_conversation(
    request: Request, access: ReadsEvents, conversation: Annotated[Name, Path()]
) -> ConversationDetail:
    """A conversation with its targets, and how many holders have which stance."""
    found = await parts(request).views.conversation(access.tenant, conversation)
    if found is None:
        raise Problem(Kind.NOT_FOUND, "no such conversation", field="path.conversation")
    return telling.conversation_detail(found)


@router.get("/v1/holders", responses=documents.answers(422), summary="Holders' stances")
async def list_holders(
    request: Request,
    access: ReadsEvents,
    conversation: Annotated[Name | None, Query()] = None,
    holder: Annotated[Name | None, Query()] = None,
    cursor: Cursor = None,
    limit: Size = PAGE,
) -> HolderPage:
    """Stances by conversation, holder and target: of one conversation, of one holder, or of all."""
    return await _holders(request, access, conversation, holder, cursor, limit)


@router.get("/v1/holders/{holder:path}", responses=documents.answers(422), summary="One holder's stances")
async def get_holder(
    request: Request,
    access: ReadsEvents,
    holder: Annotated[Name, Path()],
    cursor: Cursor = None,
    limit: Size = PAGE,
) -> HolderPage:
    """A holder's stances in all conversations; an empty page where there are none."""
    return await _holders(request, access, None, holder, cursor, limit)


async def _holders(
    request: Request,
    access: Access,
    conversation: str | None,
    holder: str | None,
    cursor: str | None,
    limit: int,
) -> HolderPage:
    own = parts(request)
    named = holder and own.names.holder(access.tenant, holder)
    behind = key_of(cursor, _HOLDER)
    rows = await own.views.holders(
        access.tenant, conversation=conversation, holder=named, behind=behind, limit=limit
    )
    following = None
    if len(rows) == limit:
        last = rows[-1]
        following = as_cursor((last.conversation, last.holder, last.target))
    return HolderPage(holders=[telling.holder_stance(row) for row in rows], next=following)


@router.get("/v1/trajectories", responses=documents.answers(422), summary="A holder's way on a target")
async def get_trajectory(
    request: Request,
    access: ReadsEvents,
    conversation: Annotated[Name, Query()],
    holder: Annotated[Name, Query()],
    target: Annotated[Name, Query()],
    cursor: Cursor = None,
    limit: Size = PAGE,
) -> Trajectory:
    """What was told of a holder and a target, step by step; a retraction shows on what it takes back."""
    own = parts(request)
    named = own.names.holder(access.tenant, holder)
    behind = key_of(cursor, _POINT)
    points = await own.views.trajectory(
        access.tenant, conversation, named, target, behind=behind, limit=limit
    )
    return Trajectory(
        conversation=conversation,
        holder=named,
        target=target,
        steps=[telling.step(point) for point in points],
        next=as_cursor(points[-1].key) if len(points) == limit else None,
    )
