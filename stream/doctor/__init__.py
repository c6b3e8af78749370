"""What `volteface doctor` finds: each check says what stands there and, where it is wrong, what to do."""

from stream.doctor.checks import Check, Status
from stream.doctor.examination import Report, examine

__all__ = ["Check", "Report", "Status", "examine"]
