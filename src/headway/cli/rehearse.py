"""`headway rehearse`: faults raised on purpose, and what this machine makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from headway.cli.bilingual import command, echo_json, option
from headway.cli.options import JSON, WORDS
from headway.errors import TrainError
from headway.messages import say
from headway.rehearse import FAULTS, Rehearsal, Storage, Survival, look_at_storage, raise_faults
from headway.ui.console_safe import make_console
from headway.ui.output import unblocked
from headway.ui.text import clean_text
from headway.units import ABSENT


@command("rehearse", help="rehearse/help", context_settings=WORDS)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[CONFIG] [KEY=VALUE]…")
@option("--fault", "faults", multiple=True, type=click.Choice(list(FAULTS)), help="rehearse/option-fault")
@option("--out", default="runs", type=click.Path(path_type=Path), help="rehearse/option-out")
@option("--keep", is_flag=True, help="rehearse/option-keep")
@JSON
@unblocked
def rehearse(words: tuple[str, ...], faults: tuple[str, ...], out: Path, keep: bool, as_json: bool) -> int:
    """See the message `rehearse/help`."""
    wanted = faults or tuple(FAULTS)
    if not as_json:
        click.echo(say("rehearse/begins", num=len(wanted)), err=True)
    storage = look_at_storage(out)
    own = [str(Path(word).absolute()) if Path(word).exists() else word for word in words]
    found = raise_faults(
        own, faults=wanted, storage=storage, keep=keep, tell=_tell if not as_json else lambda one: None
    )
    if as_json:
        echo_json(found.to_json(), indent=2)
    else:
        _show(found)
    return 0 if found.has_survived else TrainError.exit_code


def _tell(one: Survival) -> None:
    click.echo(f"{say(f'rehearse/fault-{one.fault}')}: {_state(one)}", err=True)


def _state(one: Survival) -> str:
    return say(f"rehearse/state-{one.state}")


def _show(found: Rehearsal) -> None:
    table = Table(box=None)
    for head in ("fault", "state", "detect", "recover", "redone"):
        is_number = head in ("detect", "recover", "redone")
        table.add_column(say(f"rehearse/head-{head}"), justify="right" if is_number else "left", overflow="fold")
    for one in found.faults:
        redone = ABSENT if one.redone is None else str(one.redone)
        cells = [say(f"rehearse/fault-{one.fault}"), _state(one), _seconds(one.detect_s), _seconds(one.recover_s)]
        table.add_row(*cells, redone)
    console = make_console()
    console.print(table)
    for line in _lines(found):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _seconds(value: float | None) -> str:
    return ABSENT if value is None else f"{value:.2f} s"


def _lines(found: Rehearsal) -> Sequence[str]:
    lines = [""]
    for one in found.faults:
        if one.code:
            lines.append(f"{say(f'rehearse/fault-{one.fault}')}: {clean_text(say(one.code, **one.facts))}")
    if found.is_data_exact is not None:
        lines.append(say("rehearse/data-exact" if found.is_data_exact else "rehearse/data-wrong"))
    if found.storage is not None:
        lines += _storage_lines(found.storage)
    if found.log:
        lines.append(say("rehearse/kept", place=found.log))
    num = sum(one.state == "survived" for one in found.faults)
    facts: dict[str, Any] = {"num": num, "of": len(found.faults), "seconds": f"{found.seconds:.0f}"}
    return [*lines, "", say("rehearse/ended" if found.has_survived else "rehearse/failed", **facts)]


def _storage_lines(storage: Storage) -> list[str]:
    """Return what the disk guarantees, a line for each question."""
    facts = {"ms": ABSENT if storage.fsync_ms is None else f"{storage.fsync_ms:.3g}", "cache": storage.cache or ABSENT}
    lines = [
        say("rehearse/storage", place=storage.place, kind=storage.kind or ABSENT),
        "  " + say(f"rehearse/fsync-{storage.fsync}", **facts),
        "  " + say("rehearse/folders-synced" if storage.syncs_folders else "rehearse/folders-not-synced"),
    ]
    code = "rehearse/rename-torn" if storage.torn else "rehearse/rename-atomic"
    lines.append("  " + say(code, num=storage.renames, torn=storage.torn))
    lines.append("  " + say("rehearse/locks-kept" if storage.locks else "rehearse/locks-broken"))
    if storage.write_mb_s is not None:
        lines.append("  " + say("rehearse/write-rate", rate=f"{storage.write_mb_s:.0f}"))
    return lines
