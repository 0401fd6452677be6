"""Start and supervise: a run directory with its job comes in; ranks run, fail, are restarted; an `Outcome` goes out.

The ranks are forked from a nursery that has imported the framework once; nothing of a run outlives its supervisor.
"""

from headway.launch.blame import diagnosis_text, incident_facts
from headway.launch.claims import Claims
from headway.launch.foreign.knobs import refuse_unknown_knobs
from headway.launch.foreign.line import COERCED, EXEC_ENTRY, has_given
from headway.launch.foreign.printed import Progress, ProgressReader
from headway.launch.foreign.resume_words import refuse_bad_words
from headway.launch.hook import HOOK_SITE
from headway.launch.job import ForeignLine, Job, Training, read_job, training_job, write_job
from headway.launch.lease import FOREIGN_EXPIRES_S, Lease, clear_abandoned, find_holder, refuse_held
from headway.launch.lost_ranks import ask_back
from headway.launch.nursery import Nursery, start_nursery
from headway.launch.outcome import Incident, Observer, Outcome, SilentObserver
from headway.launch.program import Crew
from headway.launch.run import launch_run
from headway.launch.stop import request_save, request_stop
from headway.launch.terminal import LOG_NAME

__all__ = [
    "COERCED",
    "EXEC_ENTRY",
    "FOREIGN_EXPIRES_S",
    "HOOK_SITE",
    "LOG_NAME",
    "Claims",
    "Crew",
    "ForeignLine",
    "Incident",
    "Job",
    "Lease",
    "Nursery",
    "Observer",
    "Outcome",
    "Progress",
    "ProgressReader",
    "SilentObserver",
    "Training",
    "ask_back",
    "clear_abandoned",
    "diagnosis_text",
    "find_holder",
    "has_given",
    "incident_facts",
    "launch_run",
    "read_job",
    "refuse_bad_words",
    "refuse_held",
    "refuse_unknown_knobs",
    "request_save",
    "request_stop",
    "start_nursery",
    "training_job",
    "write_job",
]
