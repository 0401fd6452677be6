"""A command comes in; a job of the cluster's scheduler goes out, which ends resumable and is queued again.

`request` (what is asked for), `site` (settings of a cluster, by name), `script` (the batch file), `slurm` (Slurm's own
commands), `jobs` (what was submitted from a folder of runs), `requeue` (whether a job that was stopped goes back into
the queue).
"""

from headway.cluster.jobs import JOB_ID, SubmittedJob, job_of_run, list_jobs, own_job, record_job, recorded_jobs
from headway.cluster.request import Request, refuse_request
from headway.cluster.requeue import MOST_IDLE, End, judge_end, note_end
from headway.cluster.script import write_script
from headway.cluster.site import SITES_NAME, read_site, sites_file
from headway.cluster.slurm import (
    JobState,
    cancel_job,
    interrupt_job,
    parse_sacct,
    parse_squeue,
    query_job,
    query_jobs,
    requeue_job,
    submit_script,
)

__all__ = [
    "JOB_ID",
    "MOST_IDLE",
    "SITES_NAME",
    "End",
    "JobState",
    "Request",
    "SubmittedJob",
    "cancel_job",
    "interrupt_job",
    "job_of_run",
    "judge_end",
    "list_jobs",
    "note_end",
    "own_job",
    "parse_sacct",
    "parse_squeue",
    "query_job",
    "query_jobs",
    "read_site",
    "record_job",
    "recorded_jobs",
    "refuse_request",
    "requeue_job",
    "sites_file",
    "submit_script",
    "write_script",
]
