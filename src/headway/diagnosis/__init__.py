"""Why it happened: from a rank's last words, its exit and its log to a class, a code and whether trying again helps.

In: the error report of one rank (or none), its exit status, the end of its output. Out: a `Diagnosis`.
In: a picture of all ranks that stand still. Out: a `Hang` that names the odd one out.
"""

from headway.diagnosis.hang import Hang, RankView, judge_hang
from headway.diagnosis.match import classify, settle_illegal
from headway.diagnosis.printed_error import find_last_words
from headway.diagnosis.record import Diagnosis, ExitStatus

__all__ = ["Diagnosis", "ExitStatus", "Hang", "RankView", "classify", "find_last_words", "judge_hang", "settle_illegal"]
