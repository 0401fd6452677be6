"""Start and supervise: a run directory with its job comes in; ranks run, fail, are restarted; an `Outcome` goes out.

The ranks are forked from a nursery that has imported the framework once; nothing of a run outlives its supervisor.
"""

from headway.launch.blame import incident_facts
from headway.launch.claims import Claims
from headway.launch.detach import Detached, detach, request_stop
from headway.launch.failure import failure_text
from headway.launch.foreign.line import COERCED, EXEC_ENTRY, Foreign, has_given
from headway.launch.foreign.printed import Progress, ProgressReader
from headway.launch.lease import Lease, find_holder, refuse_held
from headway.launch.nursery import Nursery, start_nursery
from headway.launch.outcome import Incident, Observer, Outcome, SilentObserver
from headway.launch.processes import die_with_parent
from headway.launch.run import launch_run

__all__ = [
    "COERCED",
    "EXEC_ENTRY",
    "Claims",
    "Detached",
    "Foreign",
    "Incident",
    "Lease",
    "Nursery",
    "Observer",
    "Outcome",
    "Progress",
    "ProgressReader",
    "SilentObserver",
    "detach",
    "die_with_parent",
    "failure_text",
    "find_holder",
    "has_given",
    "incident_facts",
    "launch_run",
    "refuse_held",
    "request_stop",
    "start_nursery",
]
