"""`headway submit`: the same command as here, as a job of a cluster."""

from __future__ import annotations

import os
import secrets
import shlex
import sys
import time as clock
from pathlib import Path
from typing import Any

import click

from headway.cli.bilingual import command, echo_json, option
from headway.cli.queue import follow_job
from headway.cli.submit_pods import PodWish, kubernetes_options, refuse_of_slurm, submit_pods
from headway.cluster import (
    Request,
    SubmittedJob,
    query_job,
    read_site,
    record_job,
    refuse_request,
    sites_file,
    submit_script,
    write_script,
)
from headway.cluster.script import ARRAY_WORD, SCRIPT_NAME
from headway.errors import UsageError
from headway.launch import read_job
from headway.messages import language, say
from headway.start.source import load_words, refuse_foreign
from headway.telemetry import find_run

_COMMANDS = ("train", "run", "resume")
_NOT_INSIDE = ("detach", "is_detached", "dry_run", "as_json", "nodes", "meet", "run_file")


@command(
    "submit",
    help="cluster/help",
    context_settings={"allow_interspersed_args": False, "help_option_names": ["-h", "--help"]},
)
@click.argument("words", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- LINE…")
@option("--slurm", is_flag=True, help="cluster/option-slurm")
@option("--kubernetes", is_flag=True, help="cluster/option-kubernetes")
@kubernetes_options
@option("--nodes", type=click.IntRange(1, 100_000), help="cluster/option-nodes")
@option("--gpus-per-node", type=click.IntRange(0, 1024), help="cluster/option-gpus")
@option("--cpus-per-task", type=click.IntRange(1, 4096), help="cluster/option-cpus")
@option("--array", metavar="0-9", help="cluster/option-array")
@option("--time", metavar="2:00:00", help="cluster/option-time")
@option("--partition", help="cluster/option-partition")
@option("--site", help="cluster/option-site")
@option("--runs", "--out", "out", type=click.Path(path_type=Path), default=Path("runs"), help="cluster/option-runs")
@option("--follow", is_flag=True, help="cluster/option-follow")
@option("--dry-run", is_flag=True, help="cluster/option-dry-run")
@option("--json", "as_json", is_flag=True, help="cluster/option-json")
def submit(
    words: tuple[str, ...],
    slurm: bool,
    kubernetes: bool,
    pods: PodWish,
    site: str | None,
    out: Path,
    follow: bool,
    dry_run: bool,
    as_json: bool,
    **asked: Any,
) -> int:
    """See the message `cluster/help`."""  # Any: fields of a Request
    if slurm + kubernetes != 1:
        raise UsageError("cluster/no-engine", typed=shlex.join(["headway", "submit", "--slurm", "--", *words]))
    if kubernetes:
        refuse_of_slurm(asked, site=site, follow=follow)
    elif pods.given:
        raise UsageError("cluster/of-kubernetes", option=pods.given)
    words = _as_command(words)
    name, grace_s, words = _look_into(words, is_array=asked["array"] is not None)
    if kubernetes:
        return submit_pods(name, grace_s, words, pods, asked, dry_run=dry_run, as_json=as_json)
    from_site = read_site(sites_file(os.environ), site) if site is not None else {}
    values = {**from_site, **{key: value for key, value in asked.items() if value is not None}}
    stamp = f"{clock.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"
    request = Request(
        name=name,
        words=words,
        folder=out.absolute() / "slurm" / stamp,
        cwd=os.getcwd(),
        python=sys.executable,
        lang=language(),
        grace_s=grace_s,
        **{**values, "options": tuple(values.get("options", ()))},
    )
    refuse_request(request)
    text = write_script(request)
    shown = {key: f"site {site}" if asked.get(key) is None else "option" for key in values}
    if dry_run:
        return _show(request, text, shown, as_json)
    if follow and as_json:
        raise UsageError("cluster/follow-json")
    job = _submit(request, text, shown, as_json)
    return follow_job(job) if follow else 0


def _as_command(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return a command of ours; a launch line of the user's own is one of `run`."""
    root = click.get_current_context().find_root()
    assert isinstance(root.command, click.Group)
    if words[0] in _COMMANDS:
        return words
    if words[0] in root.command.list_commands(root):
        raise UsageError("cluster/not-a-command", word=words[0], names=", ".join(_COMMANDS))
    return ("run", *words)


def _look_into(given: tuple[str, ...], *, is_array: bool) -> tuple[str, float, tuple[str, ...]]:
    """Return the name, the grace and the words of a command; what cannot start is refused here, not after the queue."""
    root = click.get_current_context().find_root()
    words = tuple(word.replace(ARRAY_WORD, "0") for word in given) if is_array else given
    assert isinstance(root.command, click.Group)
    inner = root.command.get_command(root, words[0])
    assert inner is not None
    params = inner.make_context(words[0], list(words[1:]), parent=root).params
    for key in _NOT_INSIDE:
        if params.get(key):
            raise UsageError("cluster/not-inside", option=f"--{key.removeprefix('is_').replace('_', '-')}")
    if words[0] == "run":
        return _name_of(params["line"]), params["grace"], given
    if words[0] == "train":
        loaded = load_words(params["words"], is_order=True)
        return loaded.config.name or loaded.recipe.name, loaded.config.launch.grace_s, given
    named = params["words"][0] if params["words"] and "=" not in params["words"][0] else None
    run = find_run(named, params["out"])
    refuse_foreign(run)
    # The newest run may be another one by the time the job starts.
    kept = given if named is not None else (given[0], str(run.root.absolute()), *given[1:])
    return run.name, read_job(run).grace_s, kept


def _name_of(line: tuple[str, ...]) -> str:
    """Return what a job of a line is called: its script where that is seen, else its program."""
    return next((Path(word).name for word in line if word.endswith((".py", ".sh"))), Path(line[0]).name)


def _show(request: Request, text: str, origins: dict[str, str], as_json: bool) -> int:
    if as_json:
        echo_json({**_record(request, origins), "job": None, "text": text}, indent=2)
    else:
        click.echo(os.fsencode(text))
    return 0


def _submit(request: Request, text: str, origins: dict[str, str], as_json: bool) -> SubmittedJob:
    request.folder.mkdir(parents=True, mode=0o700)
    script = request.folder / SCRIPT_NAME
    script.write_bytes(os.fsencode(text))
    job = submit_script(script)
    record_job(request.folder, job, request.name)
    submitted = SubmittedJob(job=job, name=request.name, folder=request.folder, submitted=clock.time())
    found = query_job(job) if request.array is None else None
    if as_json:
        queue = {"state": found.state if found else None, "reason": found.reason if found else None}
        echo_json({**_record(request, origins), "job": job, **queue}, indent=2)
        return submitted
    for key, origin in origins.items():
        click.echo(say("cluster/value", key=key, value=getattr(request, key), origin=origin), err=True)
    click.echo(job)
    state, reason = (found.state, found.reason or "") if found else ("n/a", "")
    click.echo(say("cluster/submitted", job=job, state=f"{state} {reason}".strip()), err=True)
    if request.array is not None:
        click.echo(say("cluster/follow-array", typed="headway runs", folder=request.folder), err=True)
        return submitted
    click.echo(say("cluster/follow", typed=f"tail -F {shlex.quote(str(submitted.output))}", job=job), err=True)
    return submitted


def _record(request: Request, origins: dict[str, str]) -> dict[str, Any]:
    """Return what scripts want to know. Any: plain JSON."""
    kept = ("name", "nodes", "gpus_per_node", "cpus_per_task", "time", "partition", "account", "qos", "array")
    return {
        "schema": "submit/1",
        "folder": str(request.folder),
        "words": list(request.words),
        **{key: getattr(request, key) for key in kept},
        "origins": origins,
    }
