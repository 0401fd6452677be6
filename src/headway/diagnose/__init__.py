"""Why it happened: from a rank's last words, its exit and its log to a class, a code and whether trying again helps.

In: the error report of one rank (or none), its exit status, the end of its output. Out: a `Diagnosis`.
"""

from headway.diagnose.classify import classify
from headway.diagnose.record import Diagnosis, ExitStatus

__all__ = ["Diagnosis", "ExitStatus", "classify"]
