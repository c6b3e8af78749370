"""Targets, corrections and erasures: each a record on its conversation's log, never written aside of it."""

import datetime as dt
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request

from stream.gateway import documents, turns
from stream.gateway.access import Administers, ReadsEvents, WritesCorrections
from stream.gateway.keyring import Access
from stream.gateway.parts import parts
from stream.gateway.posting import IdempotencyKey
from stream.gateway.problems import Kind, Problem
from stream.gateway.shapes import Accepted, Erasure, Name, NewTarget, Override, TargetList
from stream.gateway.telling import target_summary
from tracker import keys, records
from tracker.records import DeclareTarget, EraseHolder, OverrideStance, Record, TargetStatus

router = APIRouter()

_CHANGES = documents.answers(400, 408, 413, 422)


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


def _ident(access: Access, purpose: str, given: str | None, key: str | None) -> str:
    return given or turns.idents(access.principal, purpose, key)[0]


async def _append(request: Request, record: Record) -> Accepted:
    """Write a record, and say so. Raises Refused and LogUnavailable."""
    own = parts(request)
    await own.log.append([own.names.concealed(records.check(record))])
    own.metrics.records.labels("accepted").inc()
    return Accepted(id=records.record_id(record), conversation=record.conversation)


@router.post(
    "/v1/targets", status_code=202, tags=["targets"], summary="Declare or rename a target", responses=_CHANGES
)
async def declare_target(
    request: Request, access: WritesCorrections, asked: NewTarget, idempotency_key: IdempotencyKey = None
) -> Accepted:
    """Have a conversation's turns read for a proposition; up to three are read at a time.

    A fourth is refused when it is applied, and stands among the dead letters. With `replaces` the new target
    takes over the states of that one, which is retired.
    """
    record = DeclareTarget(
        tenant=access.tenant,
        conversation=asked.conversation,
        sent_at=_now(),
        id=_ident(access, "targets", asked.id, idempotency_key),
        proposition=asked.proposition,
        replaces=asked.replaces,
    )
    accepted = await _append(request, record)
    ident = keys.target_id(access.tenant, asked.conversation, asked.proposition)
    return accepted.model_copy(update={"target": ident})


@router.get(
    "/v1/targets", tags=["targets"], summary="A conversation's targets", responses=documents.answers(404, 422)
)
async def list_targets(
    request: Request, access: ReadsEvents, conversation: Annotated[Name, Query()]
) -> TargetList:
    """The targets of a conversation, retired ones included."""
    found = await parts(request).views.conversation(access.tenant, conversation)
    if found is None:
        raise Problem(Kind.NOT_FOUND, "no such conversation", field="query.conversation")
    return TargetList(conversation=conversation, targets=[target_summary(row) for row in found.targets])


@router.delete(
    "/v1/targets/{target}",
    status_code=202,
    tags=["targets"],
    summary="Retire a target",
    responses=documents.answers(404, 422),
)
async def retire_target(
    request: Request,
    access: WritesCorrections,
    target: Annotated[Name, Path()],
    conversation: Annotated[Name, Query()],
    idempotency_key: IdempotencyKey = None,
) -> Accepted:
    """Read no more turns for a target; its states stay."""
    found = await parts(request).views.conversation(access.tenant, conversation)
    rows = () if found is None else found.targets
    proposition = next((row.proposition for row in rows if row.target == target), None)
    if proposition is None:
        remedy = "see GET /v1/targets for those of the conversation; a new one takes a moment"
        raise Problem(
            Kind.NOT_FOUND, "the conversation has no such target", field="path.target", remedy=remedy
        )
    record = DeclareTarget(
        tenant=access.tenant,
        conversation=conversation,
        sent_at=_now(),
        id=_ident(access, "retire", None, idempotency_key),
        proposition=proposition,
        status=TargetStatus.RETIRED,
    )
    accepted = await _append(request, record)
    return accepted.model_copy(update={"target": target})


@router.post(
    "/v1/corrections",
    status_code=202,
    tags=["corrections"],
    summary="Override a stance or a turn, or lift that",
    responses=_CHANGES,
)
async def correct(
    request: Request, access: WritesCorrections, asked: Override, idempotency_key: IdempotencyKey = None
) -> Accepted:
    """Put a person's word over the model's; events say that it was this key's principal.

    With `turn`, it replaces what that turn says. With `holder` and `target`, it pins the state until it is
    lifted by another with `to: null`, or until a turn comes at or after `expires_at`.
    """
    holder = asked.holder and parts(request).names.holder(access.tenant, asked.holder)
    record = OverrideStance(
        tenant=access.tenant,
        conversation=asked.conversation,
        sent_at=_now(),
        id=_ident(access, "corrections", asked.id, idempotency_key),
        by=access.principal,
        reason=asked.reason,
        to=asked.to,
        turn=asked.turn,
        holder=holder,
        target=asked.target,
        expires_at=asked.expires_at,
    )
    return await _append(request, record)


@router.post(
    "/v1/erasures",
    status_code=202,
    tags=["rights"],
    summary="Erase a holder from a conversation",
    responses=_CHANGES,
)
async def erase(
    request: Request, access: Administers, asked: Erasure, idempotency_key: IdempotencyKey = None
) -> Accepted:
    """Forget a holder in one conversation: states, turns, and what events said of the person or quoted."""
    record = EraseHolder(
        tenant=access.tenant,
        conversation=asked.conversation,
        sent_at=_now(),
        id=_ident(access, "erasures", asked.id, idempotency_key),
        holder=asked.holder,
    )
    return await _append(request, record)
