"""From the views' rows to what is answered."""

from stream.gateway.shapes import ConversationDetail, ConversationSummary, HolderStance, Step, TargetSummary
from stream.views.port import ConversationRow, ConversationView, HolderRow, Point, TargetRow


def conversation_summary(row: ConversationRow) -> ConversationSummary:
    """A conversation."""
    return ConversationSummary(
        conversation=row.conversation, active_at=row.activity.active_at, events=row.events, flips=row.flips
    )


def conversation_detail(found: ConversationView) -> ConversationDetail:
    """A conversation with its targets."""
    summary = conversation_summary(found.row)
    return ConversationDetail(**summary.model_dump(), targets=[target_summary(row) for row in found.targets])


def target_summary(row: TargetRow) -> TargetSummary:
    """A target."""
    return TargetSummary(
        target=row.target, proposition=row.proposition, status=row.status, holders=dict(row.holders)
    )


def holder_stance(row: HolderRow) -> HolderStance:
    """A holder's stance."""
    return HolderStance.model_validate(row, from_attributes=True)


def step(point: Point) -> Step:
    """A step of a trajectory."""
    return Step.model_validate(point, from_attributes=True)
