"""A command comes in; a job of the cluster's scheduler goes out, which ends resumable and is queued again.

`request` (what is asked for), `site` (settings of a cluster, by name), `script` (the batch file), `slurm` (Slurm's own
commands), `requeue` (whether a job that was stopped goes back into the queue).
"""

from headway.cluster.request import Request, refuse_request
from headway.cluster.requeue import MOST_IDLE, End, judge_end, note_end
from headway.cluster.script import write_script
from headway.cluster.site import SITES_NAME, read_site, sites_file
from headway.cluster.slurm import JobState, parse_sacct, parse_squeue, query_job, requeue_job, submit_script

__all__ = [
    "MOST_IDLE",
    "SITES_NAME",
    "End",
    "JobState",
    "Request",
    "judge_end",
    "note_end",
    "parse_sacct",
    "parse_squeue",
    "query_job",
    "read_site",
    "refuse_request",
    "requeue_job",
    "sites_file",
    "submit_script",
    "write_script",
]
