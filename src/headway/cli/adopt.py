"""`headway adopt`: what an old launch line, script or guide means, and the clean file."""

from __future__ import annotations

import importlib.metadata
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from headway.adopt import (
    Finding,
    Meaning,
    check,
    hide_secrets,
    is_guide,
    parse_version,
    read_guide,
    understand,
    write_clean,
)
from headway.cli.bilingual import command, echo_json, option
from headway.cli.options import JSON
from headway.config.files import read_file
from headway.errors import UsageError
from headway.messages import say
from headway.ui.retype import retype
from headway.ui.terminal.adopt import meaning_lines

_LINE = {"ignore_unknown_options": True, "allow_interspersed_args": False, "help_option_names": ["-h", "--help"]}
"""Options of ours are before a line, because everything behind its first word is the line's own."""
_FILE_ENDINGS = (".sh", ".bash", ".slurm", ".sbatch", ".md", ".markdown", ".txt", ".job", ".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What the command line asks for."""

    as_json: bool
    to: str | None
    torch: str | None
    is_dry: bool
    is_sure: bool


@command("adopt", help="adopt/help", context_settings=_LINE)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="WHAT…")
@JSON
@option("--to", help="adopt/option-to")
@option("--torch", help="adopt/option-torch")
@option("--dry-run", "is_dry", is_flag=True, help="adopt/option-dry-run")
@option("--yes", "is_sure", is_flag=True, help="adopt/option-yes")
def adopt(
    words: tuple[str, ...], as_json: bool, to: str | None, torch: str | None, is_dry: bool, is_sure: bool
) -> None:
    """See the message `adopt/help`."""
    wanted = _Wanted(as_json, to, torch, is_dry, is_sure)
    source, text, wanted = _read_source(words, wanted)
    version = parse_version(wanted.torch or _installed_torch())
    if is_guide(text, source):
        guide = read_guide(text, torch=version)
        meaning, findings = guide.meaning, list(guide.findings)
    else:
        meaning = understand(text)
        findings = check(meaning, torch=version)
    if source not in ("-", "line"):
        findings = [replace(one, facts={**one.facts, "path": source}) for one in findings]
    if not meaning.launches and not findings:
        raise UsageError("adopt/nothing-found", source=source)
    clean = ""
    if meaning.launch is not None:
        clean = write_clean(meaning.launch, findings, one_line=meaning.one_line, defaulted=meaning.defaulted)
    if wanted.as_json:
        echo_json(_record(source, meaning, findings, clean), indent=2)
    else:
        click.echo("\n".join(meaning_lines(meaning, findings)), err=True)
        if not wanted.to:
            click.echo(clean, nl=False)
    if wanted.to:
        _write(Path(wanted.to), clean, wanted)


def _read_source(words: Sequence[str], wanted: _Wanted) -> tuple[str, str, _Wanted]:
    """Return a name for the source, its text, and the options; behind a file, options may follow."""
    if not words:
        raise UsageError("adopt/nothing-given")
    first, rest = words[0], words[1:]
    if first == "-":
        return "-", sys.stdin.buffer.read().decode("utf-8", "replace"), _read_rest(rest, wanted)
    path = Path(first)
    if "\n" not in first and len(first) < 4096 and path.is_file():
        return first, read_file(path).decode("utf-8", "replace"), _read_rest(rest, wanted)
    if len(first.split()) > 1:
        return "line", first, _read_rest(rest, wanted)
    if not rest or (first.endswith(_FILE_ENDINGS) and rest[0] in ("--json", "--to", "--torch", "--dry-run", "--yes")):
        raise UsageError("adopt/no-file", path=first)
    return "line", shlex.join(words), wanted


def _read_rest(rest: Sequence[str], wanted: _Wanted) -> _Wanted:
    """Read our options where they follow a file."""
    words = list(rest)
    while words:
        word = words.pop(0)
        name, sign, value = word.partition("=")
        if name in ("--to", "--torch"):
            if not sign and not words:
                raise UsageError("cli/option-needs-value", option=name, command="headway adopt", again="")
            value = value if sign else words.pop(0)
            wanted = replace(wanted, to=value) if name == "--to" else replace(wanted, torch=value)
        elif word == "--json":
            wanted = replace(wanted, as_json=True)
        elif word == "--dry-run":
            wanted = replace(wanted, is_dry=True)
        elif word == "--yes":
            wanted = replace(wanted, is_sure=True)
        else:
            raise UsageError("cli/extra-words", command="headway adopt", words=word, again=retype(drop=[word]))
    return wanted


def _installed_torch() -> str:
    """Return the version of torch beside us, from its metadata alone; an empty text without one."""
    try:
        return importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return ""


def _record(source: str, meaning: Meaning, findings: Sequence[Finding], clean: str) -> dict[str, Any]:
    """Any: plain JSON."""
    return {
        "schema": "adopt/1",
        "source": source,
        "launch": None if meaning.launch is None else hide_secrets(meaning.launch).to_json(),
        "more": [hide_secrets(one).to_json() for one in meaning.more],
        "unresolved": meaning.unresolved,
        "findings": [one.to_json() for one in findings],
        "config": clean,
    }


def _write(path: Path, clean: str, wanted: _Wanted) -> None:
    if wanted.is_dry:
        click.echo(say("adopt/would-write", path=path), err=True)
        if not wanted.as_json:
            click.echo(clean, nl=False)
        return
    if path.exists() and not wanted.is_sure:
        raise UsageError("adopt/exists", path=path)
    try:
        path.write_text(clean, encoding="utf-8")
    except OSError as error:
        raise UsageError("adopt/cannot-write", path=path, why=error.strerror or "?") from error
    click.echo(say("adopt/written", path=path), err=True)
