"""`headway run`: any launch line, supervised."""

from __future__ import annotations

import os
import re
import shlex
import sys
from pathlib import Path
from typing import Any, Final

import click

from headway.cli.bilingual import command, echo_json, option
from headway.cli.run_devices import choose_devices, read_gpus, wait_for_devices
from headway.cli.run_line import ReadLine, count_cpus, read_line
from headway.cli.run_screen import RunScreen
from headway.config import redact_words
from headway.errors import UsageError
from headway.launch import (
    COERCED,
    EXEC_ENTRY,
    Claims,
    ForeignLine,
    Job,
    Outcome,
    has_given,
    launch_run,
    start_nursery,
    write_job,
)
from headway.messages import say
from headway.process import make_lease
from headway.start.detach import detach
from headway.start.write import describe_command
from headway.telemetry import EventLog, RunDir, new_run_dir, write_json
from headway.ui.output import unblocked
from headway.ui.terminal.ending import typed
from headway.ui.terminal.failure import failure_text
from headway.ui.text import clean_text

_GRACE_S: Final = 30.0
_DETACH_S: Final = 2.0
"""How long a start in the background is watched for an early end."""
_FRAME: Final = re.compile(r'^\s*File "([^"]+)", line (\d+), in (.+)$', re.MULTILINE)
_LIBRARY: Final = re.compile(r"/(?:site|dist)-packages/|/lib/python3\.\d+/|^<|/headway/launch/hook/site/")


@command(
    "run",
    help="run/help",
    context_settings={
        "ignore_unknown_options": False,
        "allow_interspersed_args": False,
        "help_option_names": ["-h", "--help"],
    },
)
@click.argument("line", nargs=-1, required=True, type=click.UNPROCESSED, metavar="LINE…")
@option("--gpus", help="run/option-gpus")
@option("--cpus", type=click.IntRange(1, 1024), help="run/option-cpus")
@option("--launcher", type=click.Choice(("native", "original")), help="run/option-launcher")
@option("--restarts", type=click.IntRange(0, 1000), help="run/option-restarts")
@option("--on-hang", type=click.Choice(("wait", "restart", "stop")), default="wait", help="run/option-on-hang")
@option("--hang-after", type=click.FloatRange(1), default=10.0, help="run/option-hang-after")
@option("--when-free", type=click.IntRange(1, 1024), help="run/option-when-free")
@option("--grace", type=click.FloatRange(0), default=_GRACE_S, help="run/option-grace")
@option("--no-hook", is_flag=True, help="run/option-no-hook")
@option("--no-training", is_flag=True, help="run/option-no-training")
@option("--runs", "--out", "out", type=click.Path(path_type=Path), default=Path("runs"), help="run/option-out")
@option("--detach", "is_detached", is_flag=True, help="cli/option-detach")
@option("--dry-run", is_flag=True, help="run/option-dry-run")
@option("--json", "as_json", is_flag=True, help="run/option-json")
@click.option("--into", type=click.Path(path_type=Path, exists=True), hidden=True)
@unblocked
def run(
    line: tuple[str, ...], is_detached: bool, dry_run: bool, as_json: bool, into: Path | None, **options: Any
) -> int:
    """See the message `run/help`."""
    _give_back_environment(click.get_current_context())
    if as_json and not dry_run:
        raise UsageError("run/json-without-dry-run", line=shlex.join(line))
    read = read_line(line, options["launcher"])
    if dry_run:
        return _show(read, options, as_json=as_json)
    if into is None:  # in the background it has been said already, and a log is no place for a line as it was typed
        for note in (*read.notes, *_notes_on(read, options)):
            click.echo(say("run/note", text=note), err=True)
    place = RunDir(into.absolute()) if into is not None else new_run_dir(options["out"], read.name)
    if is_detached:
        return _detach(place, line)
    _set_environment(read)
    claims = Claims(place.name)
    try:
        job = _decide(read, options, claims, place)
        _write_decisions(place, job)
        return _supervise(place, job, claims, is_watched=into is None)
    finally:
        claims.release()


def _notes_on(read: ReadLine, options: dict[str, Any]) -> list[str]:
    """Return what of the options has no effect on a line that keeps its own launcher."""
    if read.is_native or not options["cpus"] or options["cpus"] == 1:
        return []
    return [say("run/cpus-original", cpus=options["cpus"], why=read.why_original or read.launcher)]


def _set_environment(read: ReadLine) -> None:
    """Make our environment the one in which the line's program is started."""
    for name in read.unset:
        os.environ.pop(name, None)
    os.environ.update(read.env)


def _give_back_environment(context: click.Context) -> None:
    """Undo what our entry has set for colours, and Python for its locale: the program must not see it."""
    before = dict(context.find_root().obj or {})
    if COERCED in os.environ and not has_given(COERCED):
        before[COERCED] = None
    for name, value in before.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def _own_stdin() -> int | None:
    """Return our own input for the program; None where it is closed, or the terminal's and we are in the background."""
    try:
        is_foreign = os.isatty(0) and os.tcgetpgrp(0) != os.getpgrp()
        os.fstat(0)
    except OSError:
        return None
    return None if is_foreign else 0


def _decide(read: ReadLine, options: dict[str, Any], claims: Claims, place: RunDir) -> Job:
    """Settle ranks and devices."""
    devices = _devices(options, claims)
    world_size = _world_size(read, options, devices)
    line = ForeignLine(
        argv=read.argv,
        cwd=os.getcwd(),
        mode="native" if read.is_native else "original",
        launcher=read.launcher,
        is_distributed=read.is_native and (read.is_distributed or world_size > 1),
        has_macros=read.has_macros,
        run_id=read.run_id or place.name,
        role=read.role or "default",
        has_hook=not options["no_hook"],
        must_train=not options["no_training"],
        line=read.text,
    )
    return Job(
        program=line,
        world_size=world_size,
        threads=None,
        devices=devices,
        restarts=options["restarts"] if options["restarts"] is not None else read.restarts or 0,
        grace_s=options["grace"],
        on_hang=options["on_hang"],
        hang_s=options["hang_after"],
        environment={**dict.fromkeys(read.unset), **read.env},
        env_names=tuple(read.set_names),
    )


def _devices(options: dict[str, Any], claims: Claims) -> tuple[str, ...] | None:
    if options["gpus"] and options["cpus"]:
        raise UsageError("run/gpus-or-cpus")
    if options["cpus"]:
        return ()
    if options["when_free"]:
        return wait_for_devices(options["when_free"], claims, lambda text: click.echo(text, err=True))
    return choose_devices(options["gpus"], claims) if options["gpus"] else None


def _world_size(read: ReadLine, options: dict[str, Any], devices: tuple[str, ...] | None) -> int:
    """Return the ranks to start: what was asked for here, else what the line says, by torchrun's own rules."""
    if not read.is_native:
        return 1
    if options["cpus"]:
        return int(options["cpus"])
    if devices is not None:
        # A plain `python x.py` is one process with all of them (DataParallel); torchrun starts one a GPU.
        return len(devices) if read.is_distributed else 1
    if isinstance(read.num_ranks, int):
        return read.num_ranks
    if read.num_ranks is None:
        return 1
    return _counted(read.num_ranks)


def _counted(words: str) -> int:
    if words.isdigit():
        return int(words)
    gpus = len(_visible(len(read_gpus())))
    if words == "gpu" and not gpus:
        raise UsageError("run/no-gpus", words=words)
    return gpus if words in ("gpu", "auto") and gpus else count_cpus()


def _visible(gpus: int) -> list[str]:
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    return [str(gpu) for gpu in range(gpus)] if named is None else [name for name in named.split(",") if name.strip()]


def _write_decisions(place: RunDir, job: Job) -> None:
    write_job(place, job)
    write_json(place.command, describe_command())
    log = EventLog(place.events)
    log.append("run_started", command=describe_command()["argv"], starter=make_lease())
    log.close()


def _supervise(place: RunDir, job: Job, claims: Claims, *, is_watched: bool) -> int:
    screen = RunScreen(sys.stdout, sys.stderr, job.world_size, log=None if is_watched else place.log)
    click.echo(say("run/made", run=place.root), err=True)
    try:
        nursery = start_nursery(entry=EXEC_ENTRY, env=job.environment, stdin=_own_stdin())
        nursery.keep_claims(claims.files())
        outcome = launch_run(place, observer=screen, nursery=nursery, job=job)
    finally:
        screen.close()
    _say_end(place, outcome)
    return outcome.exit_code


def _say_end(place: RunDir, outcome: Outcome) -> None:
    """Say how it ended; after a failure the user's own line comes last."""
    if outcome.state == "done":
        code = "run/done" if outcome.steps else "run/done-unseen"
        click.echo(say(code, steps=outcome.steps, log=place.log), err=True)
        return
    lines = ["", say("run/log", log=place.log), *failure_text(outcome)]
    own = _own_place(outcome.incident.traceback) if outcome.incident is not None else None
    if own is not None:
        lines.append(say("run/own-place", place=clean_text(own)))
    click.echo("\n".join(lines), err=True)


def _own_place(traceback: str) -> str | None:
    """Return the last frame of the user's own code in a Python traceback, as `file:line in function`."""
    frames = [frame for frame in _FRAME.findall(traceback) if not _LIBRARY.search(frame[0])]
    return None if not frames else f"{frames[-1][0]}:{frames[-1][1]} in {frames[-1][2]}"


def _detach(place: RunDir, line: tuple[str, ...]) -> int:
    """Type the same command once more in a session of its own, into the same directory."""
    # The user's line is the end of what was typed; a --detach of its own stays in it.
    own = [word for word in sys.argv[1 : len(sys.argv) - len(line)] if word != "--detach"]
    at = own.index("run") + 1
    again = [*own[:at], "--into", str(place.root.absolute()), *own[at:], *line]
    started = detach(place, [sys.executable, "-P", "-m", "headway", *again], wait_s=_DETACH_S)
    if started.state == "ended" and started.exit_code:
        click.echo((place.root / "supervisor.log").read_text(encoding="utf-8", errors="replace").rstrip(), err=True)
        return started.exit_code
    click.echo(say("cli/detached", run=place.name))
    click.echo(say("cli/next", command=typed("watch", place)))
    return 0


def _show(read: ReadLine, options: dict[str, Any], *, as_json: bool) -> int:
    """Print what would be started."""
    words = read.num_ranks if read.num_ranks is not None else 1
    ranks = options["cpus"] or options["gpus"] or options["when_free"] or words
    mode = "native" if read.is_native else "original"
    if as_json:
        record = {
            "schema": "run-line/1",
            "mode": mode,
            "launcher": read.launcher,
            "ranks": ranks if read.is_native else None,
            "argv": redact_words(read.argv),
            "cwd": os.getcwd(),
            "env_names": read.set_names,
            "why_original": read.why_original or None,
            "notes": list(read.notes),
        }
        echo_json(record, indent=2)
        return 0
    for note in read.notes:
        click.echo(say("run/note", text=note), err=True)
    click.echo(say("run/dry", mode=mode, ranks=ranks if read.is_native else say("run/dry-own"), launcher=read.launcher))
    if read.why_original:
        click.echo(say("run/dry-original", why=read.why_original))
    for name in read.set_names:
        click.echo(f"  {name}=…")
    click.echo("  " + shlex.join(read.argv))
    return 0
