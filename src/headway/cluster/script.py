"""The batch file of a job: short enough to be read, and right for every word that a command may have."""

from __future__ import annotations

import math
import shlex
from typing import Final

from headway.cluster.request import MARGIN_S, Request

SCRIPT_NAME: Final = "job.sh"
OUTPUT_NAME: Final = "output-%j.log"
ARRAY_OUTPUT: Final = "output-%A_%a.log"
ARRAY_WORD: Final = "{array}"
"""In the words of an array's command: the number of the element."""

_ARRAY_LINE: Final = 'words=("${words[@]//\\{array\\}/$SLURM_ARRAY_TASK_ID}")\n'

_BODY: Final = """
cd -- {cwd} || exit 3
{setup}folder={folder}
run_file=$folder/run-{job}    # the run that this job has begun
headway=({python} -P -m headway --lang {lang})
words=({words})
{array}if [ -s "$run_file" ]; then    # queued again: the same run continues
    {again}
fi

# When the job is cancelled, this shell is signalled too: it stays until the command below has ended.
trap : TERM
srun {srun} \\
    "${{headway[@]}}" "${{words[0]}}" --run-file "$run_file" "${{words[@]:1}}"
code=$?

# 6 and 143: stopped, and can continue. Everything else, 93 above all, is final.
case $code in
6 | 143) "${{headway[@]}}" requeue "$folder" --exit-code "$code"; code=$? ;;
esac
exit "$code"
"""


def write_script(request: Request) -> str:
    """Return the batch file."""
    srun = ["--input=none", f"--nodes={request.nodes}", f"--ntasks={request.nodes}", "--ntasks-per-node=1"]
    # Slurm does not hand the number of CPUs from the job to its steps.
    srun += [f"--cpus-per-task={request.cpus_per_task}"] if request.cpus_per_task else []
    srun += ["--kill-on-bad-exit=0", "--wait=0"]  # a node that has ended does not end one that still saves
    again = 'words=(resume "$(<"$run_file")")'
    if request.words[0] == "run":
        again = ":    # a script of your own is started with the same line, and continues by its own means"
    body = _BODY.format(
        cwd=shlex.quote(request.cwd),
        setup=f"{request.setup.rstrip()}\n" if request.setup.strip() else "",
        folder=shlex.quote(str(request.folder)),
        python=shlex.quote(request.python),
        lang=request.lang,
        words=" ".join(map(shlex.quote, request.words)),
        job="$SLURM_JOB_ID" if request.array is None else "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID",
        array="" if request.array is None else _ARRAY_LINE,
        again=again,
        srun=" ".join(srun),
    )
    return "\n".join(["#!/bin/bash", *(f"#SBATCH {shlex.quote(one)}" for one in _options(request)), body.lstrip("\n")])


def _options(request: Request) -> list[str]:
    asked = {
        "job-name": request.name,
        "partition": request.partition,
        "account": request.account,
        "qos": request.qos,
        "time": request.time,
        "nodes": request.nodes,
        "ntasks-per-node": 1,
        "gpus-per-node": request.gpus_per_node,
        "cpus-per-task": request.cpus_per_task,
        "array": request.array,
        "signal": f"TERM@{math.ceil(request.grace_s) + MARGIN_S}",
        "open-mode": "append",
        "output": OUTPUT_NAME if request.array is None else ARRAY_OUTPUT,
    }
    return [*(f"--{key}={value}" for key, value in asked.items() if value is not None), "--requeue", *request.options]
