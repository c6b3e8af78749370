"""The marks that depend on the request alone, whatever engine reads it."""

from models.reader import ObserveRequest
from tracker.observations import Mark


def missing(request: ObserveRequest) -> tuple[Mark, ...]:
    """What the reader was not shown: the turn replied to, or media that nobody described."""
    turn = request.turn
    if turn.reply_to is None and not turn.media:
        return ()
    marks = []
    if turn.reply_to is not None and request.reply is None:
        marks.append(Mark.REPLY_MISSING)
    if not all(media.description for media in turn.media):
        marks.append(Mark.MEDIA_MISSING)
    return tuple(marks)
