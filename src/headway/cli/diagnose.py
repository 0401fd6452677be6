"""`headway diagnose`: why a run, or the program behind any log, has failed, and what to change."""

from __future__ import annotations

import difflib
import shlex
import sys
from pathlib import Path
from typing import Any, Final

import click

from headway.cli.bilingual import command, echo_json, option
from headway.cli.options import SHOWN_JSON, SHOWN_RUNS
from headway.config.scalar import read_scalar
from headway.diagnosis import (
    Diagnosis,
    LogDiagnosis,
    Rulebook,
    diagnose_file,
    diagnose_folder,
    diagnose_log,
    diagnose_run,
    is_capsule,
    load_rules,
    open_capsule,
    unpack_capsule,
    user_rules_folder,
    write_capsule,
)
from headway.errors import UsageError
from headway.launch import diagnosis_text
from headway.messages import Language, fill, language, say
from headway.redact import redact
from headway.task import find_recipe
from headway.telemetry import RunDir, find_run, is_run, read_record, run_state
from headway.tune import edit_file, written_beside
from headway.ui.terminal.diagnosis import consequence_json, diagnosis_lines
from headway.ui.text import clean_text

_FAILED: Final = 5
"""Exit code when a failure was found, as of training that failed."""


@command("diagnose", help="cli/diagnose-help")
@click.argument("what", required=False, metavar="[RUN|LOG|-]")
@option("--apply", "is_applied", is_flag=True, help="cli/option-apply")
@option("--yes", "is_sure", is_flag=True, help="cli/option-apply-yes")
@option("--rules", type=click.Path(path_type=Path, file_okay=False, exists=True), help="cli/option-rules")
@option("--capsule", type=click.Path(path_type=Path, dir_okay=False), help="diagnose/option-capsule")
@option("--unpack", type=click.Path(path_type=Path, file_okay=False), help="diagnose/option-unpack")
@SHOWN_RUNS
@SHOWN_JSON
def diagnose(
    what: str | None,
    is_applied: bool,
    is_sure: bool,
    rules: Path | None,
    capsule: Path | None,
    unpack: Path | None,
    out: Path,
    as_json: bool,
) -> int:
    """See the message `cli/diagnose-help`."""
    book = load_rules(user_rules_folder(), *([rules] if rules else []))
    run = None
    if what == "-":
        found = diagnose_log(sys.stdin.buffer, book)
    elif what is not None and is_capsule(Path(what)):
        found = _diagnose_capsule(Path(what), unpack, book)
    elif what is not None and Path(what).is_file():
        found = diagnose_file(Path(what), book)
    elif what is not None and Path(what).is_dir() and not is_run(Path(what)):
        found = diagnose_folder(Path(what), book)
    else:
        run = find_run(what, out)
        found = diagnose_run(run, book)
        if capsule is not None:
            click.echo(say("diagnose/capsule-written", path=write_capsule(run, capsule)), err=True)
    if as_json:
        echo_json(_record(what, found, book), indent=2)
    else:
        if run is not None and found.cause is None:
            click.echo(say("ui/run-is", run=clean_text(run.name), state=say(f"ui/state-{run_state(run).state}")))
        click.echo("\n".join(diagnosis_lines(found, _words(found.cause, book) if found.cause else "")))
    if is_applied:
        _apply(run, found.cause, is_sure=is_sure)
    return 0 if found.cause is None else _FAILED


def _diagnose_capsule(file: Path, unpack: Path | None, book: Rulebook) -> LogDiagnosis:
    """Diagnose a black box; unpacked, every other screen shows it too."""
    if unpack is None:
        with open_capsule(file) as run:
            return diagnose_run(run, book)
    run = unpack_capsule(file, unpack)
    command = f"headway report {run.name} --runs {shlex.quote(str(unpack))}"
    click.echo(say("diagnose/capsule-unpacked", path=run.root, command=command), err=True)
    return diagnose_run(run, book)


def _words(cause: Diagnosis, book: Rulebook, lang: Language | None = None) -> str:
    """Return a cause in words; those of a rule of the user's are in its own file."""
    rule = book.rules.get(cause.code.removeprefix("diagnose/"))
    if rule is None or "signal" in cause.facts:
        return diagnosis_text(cause, lang)
    return fill(rule.text(lang).replace("{text}", "{text:said}"), cause.facts, lang or language())


def _record(what: str | None, found: LogDiagnosis, book: Rulebook) -> dict[str, Any]:
    """Any: plain JSON."""
    causes = [] if found.cause is None else [found.cause, *found.cause.others]
    return {
        "schema": "diagnose/1",
        "source": what,
        "failed": found.cause is not None,
        "lines": found.num_lines,
        "bytes": found.num_bytes,
        "causes": [_plain(cause, book) for cause in causes],
        "survived": [consequence_json(one) for one in found.survived],
    }


def _plain(cause: Diagnosis, book: Rulebook) -> dict[str, Any]:
    """Return a cause with its words in both languages, secrets hidden. Any: plain JSON."""
    words = {"text_en": _words(cause, book, "en"), "text_zh": _words(cause, book, "zh")}
    return {key: _hidden(value) for key, value in (words | cause.to_json()).items()}


def _hidden(data: Any) -> Any:
    if isinstance(data, str):
        return redact(data)
    if isinstance(data, dict):
        return {key: _hidden(value) for key, value in data.items()}
    return [_hidden(value) for value in data] if isinstance(data, list) else data


def _apply(run: RunDir | None, cause: Diagnosis | None, *, is_sure: bool) -> None:
    """Write the cheapest fix that is a setting into the config file that the run was started with, after a diff."""
    setting = next((one.setting for one in cause.remedies if one.setting), None) if cause else None
    if run is None or setting is None:
        raise UsageError("cli/nothing-to-apply")
    source = _config_file(run)
    if source is None:
        raise UsageError("cli/no-file-to-apply", run=run.name, setting=setting)
    key, _, value = setting.partition("=")
    before = source.read_bytes()
    after = edit_file(source, {key: _value(value)}, find_recipe(str(read_record(run.job)["recipe"])))
    old, new = (one.decode("utf-8", "replace").splitlines() for one in (before, after))
    click.echo("\n".join(difflib.unified_diff(old, new, str(source), str(source), lineterm="", n=1)))
    if not is_sure and not (sys.stdin.isatty() and click.confirm(say("cli/ask-apply", path=source), err=True)):
        raise UsageError("cli/not-applied", path=source)
    with written_beside(source, after) as part:
        part.chmod(source.stat().st_mode & 0o777)
        part.replace(source.resolve())
    click.echo(say("cli/applied", path=source), err=True)
    click.echo(say("cli/next", command=f"headway resume {run.name} {setting}"), err=True)


def _value(text: str) -> bool | int | str:
    """Return a setting's value in its type."""
    value = read_scalar(text)
    return value if isinstance(value, bool | int) else text


def _config_file(run: RunDir) -> Path | None:
    """Return the config file among the words that started a run."""
    words = read_record(run.command).get("argv")
    for word in words if isinstance(words, list) else []:
        path = Path(str(word))
        if path.suffix.lower() in (".yaml", ".yml", ".toml", ".json", ".py") and path.is_file():
            return path
    return None
