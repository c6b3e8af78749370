"""StanceFlip appendix D.1: the normalisation N of predicted and gold outputs before they are compared."""

import re

# Whole strings only: a person may be called "Us3r".
_SPEAKER = re.compile(
    r"(?:speaker|spk|participant|person|user|s|u|hablante|usuario|usuaria|说话人|说话者|發言人|发言人|用户)"
    r"[\s_#.:-]*0*(\d+)",
)


def normalised(text: str) -> str:
    """Lowercase, without leading or trailing whitespace (D.1, case folding and whitespace)."""
    return text.lower().strip()


def holder(name: str) -> str:
    """A holder's canonical form: "Speaker 1", "s1" and "user 1" are "speaker 1" (D.1, alias resolution).

    A name that is no numbered identifier is itself, normalised.
    """
    plain = normalised(name)
    found = _SPEAKER.fullmatch(plain)
    return f"speaker {found.group(1)}" if found else plain
