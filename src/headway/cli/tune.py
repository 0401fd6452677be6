"""`headway tune`: the fastest settings, by short real runs."""

from __future__ import annotations

import os
import shlex
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import click

from headway.cli.bilingual import command, echo_json, option
from headway.cli.consent import ask_trust
from headway.cli.options import WORDS
from headway.config import LoadedConfig, RunConfig, load_config, redact
from headway.errors import HeadwayError, UsageError
from headway.launch import Claims
from headway.machine import MachineReport
from headway.messages import say
from headway.planner import Plan, fit_preset, make_plan
from headway.start.decide import look_at_machine, prepare_data, refuse_stops
from headway.start.source import load_words, split_source
from headway.task import find_recipe
from headway.tune import (
    Probe,
    Question,
    RateAdvice,
    Tuned,
    Value,
    compose,
    edit_file,
    find_differences,
    list_changes,
    make_place,
    probe_nursery,
    read_budget,
    refuse_unwritable,
    rehearse_changes,
    write_checked,
    write_value,
    written_beside,
)
from headway.tune import tune as find_best
from headway.ui.console_safe import make_console
from headway.ui.terminal.deciding import DecisionScreen
from headway.ui.terminal.machine import show_notes
from headway.ui.terminal.tune import ProbeScreen, show_result, show_space, space_record


@command("tune", help="tune/help", context_settings=WORDS)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[SOURCE] [KEY=VALUE]…")
@option("--budget", default="10m", help="tune/help-budget")
@option("--lr-range", "has_rates", is_flag=True, help="tune/help-lr-range")
@option("--write-to", "target", type=click.Path(path_type=Path, dir_okay=False), help="tune/help-write-to")
@option("--dry-run", is_flag=True, help="tune/help-dry-run")
@option("--yes", "is_sure", is_flag=True, help="tune/help-yes")
@option("--json", "as_json", is_flag=True, help="tune/help-json")
def tune(
    words: tuple[str, ...],
    budget: str,
    has_rates: bool,
    target: Path | None,
    dry_run: bool,
    is_sure: bool,
    as_json: bool,
) -> None:
    """See the message `tune/help`."""
    began = time.monotonic()
    budget_s = read_budget(budget)
    source, overrides = split_source(words)
    refuse_unwritable(source, target)
    loaded = load_words(words, is_order=True, ask=ask_trust)
    if has_rates and loaded.framework != "torch":
        raise UsageError("tune/rates-torch-only", framework=loaded.framework)
    console = make_console(stderr=True)
    show_notes((("warn", code, facts) for code, facts in loaded.warnings), console)
    screen = DecisionScreen(console)
    prepare_data(loaded, screen.tell)
    machine = look_at_machine(loaded, Claims("tune"), screen.tell)
    refuse_stops(machine)
    loaded = fit_preset(loaded, machine)
    plan = make_plan(loaded, machine, loaded.recipe)
    question = Question(loaded=loaded, machine=machine, plan=plan, place=Path(), budget_s=budget_s)
    if dry_run and as_json:
        echo_json(space_record(question.space()))
        return
    if dry_run:
        show_space(question.space(), make_console())
        return
    written = load_config(source, recipe=find_recipe, overrides=overrides, environ=os.environ).config
    pen = _Pen(loaded=loaded, written=written, machine=machine, plan=plan, source=source, overrides=tuple(overrides))
    target = target or (Path(source) if source is not None else None)
    if target is not None:
        pen.rehearse(target, question)
    place = make_place(loaded)
    question = replace(question, place=place)
    show_space(question.space(), console)
    with ProbeScreen(sys.stderr, budget_s) as probes:
        found, advice = find_best(
            question, start_nursery=lambda: probe_nursery(loaded, screen.tell), watcher=probes, has_rates=has_rates
        )
    changes = list_changes(found.best.settings, found.start.settings, plan, loaded.config)
    result: dict[str, Any] = {"record": str(place), "changes": changes, "written": None, "lr": None}
    if isinstance(advice, RateAdvice):
        result["lr"] = {"base": loaded.config.lr.base * advice.factor, "breaks_at": advice.breaks_at}
    # The talk goes to stderr, so that with --json stdout is one object and nothing else.
    told: RateAdvice | Probe | Literal[False] | None = advice if has_rates else False
    show_result(found, told, loaded.config.lr.base, budget_s, began, console, plan, question.space().skips)
    if target is not None and changes and (is_sure or as_json or _is_agreed(changes, target)):
        pen.write(target, changes, found)
        result["written"] = str(target)
        console.print(say("tune/written", words=_typed(changes), path=target), markup=False)
    console.print(say("tune/record", path=place / "tune.jsonl"), style="dim", markup=False)
    if as_json:
        echo_json({**found.to_json(), **result})
    else:
        kept = overrides if target is not None and str(target) == source else []  # a new file holds them
        typed = [str(target), *kept] if result["written"] else [*words, *_typed(changes).split()]
        click.echo(say("tune/next", words=shlex.join(typed)).rstrip())


def _typed(changes: dict[str, Value]) -> str:
    return " ".join(f"{key}={write_value(value)}" for key, value in changes.items())


def _is_agreed(changes: dict[str, Value], target: Path) -> bool:
    """Ask on a terminal; elsewhere the command itself was the wish."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return True
    return click.confirm(say("tune/ask", words=_typed(changes), path=target), default=True, err=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pen:
    """Writes the winning values and makes sure that they read back as what was measured."""

    loaded: LoadedConfig
    written: RunConfig
    """The config as file, words and environment give it, before the machine had a say."""
    machine: MachineReport
    plan: Plan
    source: str | None
    overrides: tuple[str, ...]

    def rehearse(self, target: Path, question: Question) -> None:
        """Refuse a file that could not take what the search may find, before minutes are spent on it."""
        if not self._is_source(target):
            return
        for changes in rehearse_changes(question.space(), question.start(), self.plan, self.loaded.config):
            try:
                content = edit_file(target, changes, self.loaded.recipe)
                with written_beside(target, content) as part:
                    load_config(part, recipe=find_recipe, overrides=self.overrides, environ=os.environ)
            except (HeadwayError, OSError) as error:
                why = error.text() if isinstance(error, HeadwayError) else error.strerror
                near = target.with_name(f"{target.stem}-tuned.yaml")
                raise UsageError("tune/source-unwritable", path=target, why=why, near=near) from error

    def write(self, target: Path, changes: dict[str, Value], found: Tuned) -> None:
        """Change the file, or make one."""
        if self._is_source(target):
            content, words = edit_file(target, changes, self.loaded.recipe), self.overrides
        else:
            content, words = compose(self.loaded, changes).encode("utf-8"), ()
        write_checked(target, content, lambda path: self._find_fault(path, words, found, changes))

    def _is_source(self, target: Path) -> bool:
        return self.source is not None and target == Path(self.source)

    def _find_fault(self, path: Path, words: tuple[str, ...], found: Tuned, changes: dict[str, Value]) -> str:
        """Return how the file differs from what was measured or from what nobody meant to change; empty: not at all."""
        try:
            loaded = load_config(path, recipe=find_recipe, overrides=words, environ=os.environ)
            wrong = find_differences(self.written, loaded.config, changes)
            plan = make_plan(fit_preset(loaded, self.machine), self.machine, loaded.recipe)
        except HeadwayError as error:
            return error.text()
        best = found.best.settings
        got: dict[str, tuple[Value, Value]] = {
            "batch.per_device": (plan.micro_batch, best.micro_batch),
            "batch.total": (plan.batch_samples, self.plan.batch_samples),
            "train.precision": (plan.precision, best.precision),
            "train.compile": (loaded.config.train.compile, best.compile),
            "train.activation_checkpoint": (loaded.config.train.activation_checkpoint, best.activation_checkpoint),
            "parallel.threads": (plan.threads, best.threads),
            "parallel.workers": (plan.workers, best.workers),
            "parallel.prefetch": (loaded.config.parallel.prefetch, best.prefetch),
        }
        section = loaded.config.model_dump(mode="json")["task"] if best.own else {}
        got |= {key: (section[key.removeprefix("task.")], value) for key, value in best.own}
        wrong += [f"{key}={is_now} ≠ {wanted}" for key, (is_now, wanted) in got.items() if is_now != wanted]
        return redact(", ".join(dict.fromkeys(wrong)))
