"""Why it happened: from a log, a run or one rank's end to a cause, its proof, what follows from it, and what to do.

In: a log of any size, ours or anybody's. Out: a `LogDiagnosis`: the root cause with its evidence, or no failure.
In: the error report of one rank (or none), its exit status, the end of its output. Out: a `Diagnosis`.
In: a picture of all ranks that hang. Out: a `Hang` that names the odd one out.
The words by which a fault is known are data: one file per finding in `rules/`, and in the user's own folder.
"""

from headway.diagnosis.capsule import NAME as CAPSULE_NAME
from headway.diagnosis.capsule import is_capsule, open_capsule, unpack_capsule, write_capsule
from headway.diagnosis.find_cause import LogDiagnosis, diagnose_log
from headway.diagnosis.hang import Hang, RankView, judge_hang
from headway.diagnosis.log_folder import diagnose_file, diagnose_folder
from headway.diagnosis.match import classify, settle_illegal
from headway.diagnosis.printed_error import find_last_words
from headway.diagnosis.record import Consequence, Diagnosis, Evidence, ExitStatus, Remedy
from headway.diagnosis.rulebook import Fix, Rule, Rulebook, load_rules, user_rules_folder
from headway.diagnosis.run_cause import diagnose_run

__all__ = [
    "CAPSULE_NAME",
    "Consequence",
    "Diagnosis",
    "Evidence",
    "ExitStatus",
    "Fix",
    "Hang",
    "LogDiagnosis",
    "RankView",
    "Remedy",
    "Rule",
    "Rulebook",
    "classify",
    "diagnose_file",
    "diagnose_folder",
    "diagnose_log",
    "diagnose_run",
    "find_last_words",
    "is_capsule",
    "judge_hang",
    "load_rules",
    "open_capsule",
    "settle_illegal",
    "unpack_capsule",
    "user_rules_folder",
    "write_capsule",
]
