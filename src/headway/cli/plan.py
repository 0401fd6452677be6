"""`headway plan`: how a run would be laid out on this machine."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import click

from headway.cli.bilingual import command, echo_json, option
from headway.cli.consent import ask_trust
from headway.cli.options import WORDS
from headway.config import LoadedConfig, RunConfig
from headway.errors import PlanError, UsageError
from headway.machine import MachineReport, find_machine, has_bf16, wished_devices
from headway.messages import say
from headway.planner import Model, Plan, fit_preset, foresee_script, look_ahead, make_plan, needs_trace, study_model
from headway.planner.models.public import find_named, foresee_named, largest_batch, list_models, read_settings
from headway.start.framework import settle_framework
from headway.start.source import load_words
from headway.ui.console_safe import make_console
from headway.ui.terminal.cards import list_cards, show_cards
from headway.ui.terminal.forecast import (
    refuse_model,
    refuse_script,
    show_model,
    show_names,
    show_script,
    show_script_variants,
)
from headway.ui.terminal.machine import show_notes
from headway.ui.terminal.plan import show_holders, show_plan, show_variants


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where a plan is made for: this machine, a recorded one, or one that is wished for."""

    record: Path | None
    wanted: str | None
    network: float | None
    """Gb/s of a node to the others."""

    @property
    def words(self) -> list[str]:
        """Return the options that say so."""
        named = {"--on": self.wanted, "--machine": self.record, "--network": self.network}
        return [str(word) for option, value in named.items() if value is not None for word in (option, value)]

    def find(self, out: Path, config: RunConfig | None = None) -> MachineReport:
        """Return the machine."""
        machine = find_machine(out, config, record=self.record, wanted=self.wanted)
        if self.network is None:
            return machine
        if machine.nodes == 1:
            raise UsageError("plan/network-alone", network=f"{self.network:g}")
        return replace(machine, network_gb_s=self.network / 8)


_PROBE_S = 120.0
"""What the bar of `--probe` counts to."""


@command("plan", help="plan/help", context_settings=WORDS)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[SOURCE] [KEY=VALUE]…")
@option("--machine", "record", default=None, type=click.Path(path_type=Path), help="machine/help-machine")
@option("--on", "wanted", default=None, help="machine/help-on")
@option("--network", "network", type=click.FloatRange(0.01, 100_000), help="plan/help-network")
@option("--script", "script", default=None, help="plan/help-script")
@option("--model", "model_name", default=None, help="plan/help-model")
@option("--trace/--no-trace", default=None, help="plan/help-trace")
@option("--probe", is_flag=True, help="plan/help-probe")
@option("--what-if", "what_if", is_flag=True, help="plan/help-what-if")
@option("--json", "as_json", is_flag=True, help="plan/help-json")
def plan(
    words: tuple[str, ...],
    record: Path | None,
    wanted: str | None,
    network: float | None,
    script: str | None,
    model_name: str | None,
    trace: bool | None,
    probe: bool,
    what_if: bool,
    as_json: bool,
) -> None:
    """See the message `plan/help`."""
    if wanted == "list":
        _list_cards(as_json=as_json)
        return
    place = _Place(record=record, wanted=wanted, network=network)
    if model_name is not None:
        if script is not None:
            raise UsageError("plan/model-and-script")
        _plan_model(model_name, words, place, as_json=as_json)
        return
    if script is not None:
        if words:
            raise UsageError("plan/script-and-source", words=shlex.join(words))
        _plan_script(script, place, what_if=what_if, as_json=as_json)
        return
    loaded = load_words(words, ask=ask_trust)
    if place.record is None and place.wanted is None:
        loaded = settle_framework(loaded, lambda text: click.echo(text, err=True))
    machine = place.find(Path(loaded.config.out), loaded.config)
    loaded = fit_preset(loaded, machine)
    made = make_plan(loaded, machine, loaded.recipe)
    if probe:
        if record is not None or wanted is not None:
            raise UsageError("plan/probe-elsewhere")
        _probe_first(loaded, machine, made)
        made = make_plan(loaded, machine, loaded.recipe)  # now that its data is there
    if trace is None:
        # It is kept, so the next plan has it at once.
        trace = loaded.framework == "torch" and needs_trace(made, loaded.config, loaded.recipe)
    made, model = look_ahead(made, loaded, machine, loaded.recipe, trace=trace)
    if as_json:
        echo_json(made.to_json(), indent=2)
        return
    show_notes((("warn", code, facts) for code, facts in loaded.warnings), make_console(stderr=True))
    console = make_console()
    show_plan(made, loaded.recipe.name, console)
    if what_if and model is not None:
        show_holders(made.forecast, console, on_gpu=bool(made.gpus))

        def study(other: Plan, config: RunConfig) -> Model | None:
            try:
                return study_model(other, config, machine, loaded.recipe, trace=trace)
            except PlanError:  # one row less in a table of what else could be
                return None

        show_variants(made, loaded.config, machine, model, console, study)
    more = ("--nodes", str(machine.nodes)) if machine.nodes > 1 else ()
    click.echo(say("plan/next", args=shlex.join((*words, *more))).rstrip())


def _probe_first(loaded: LoadedConfig, machine: MachineReport, plan: Plan) -> None:
    """Time the plan by a short real run; a probe that fails is reported and costs the plan nothing else."""
    # A plan must be there at once; what starts ranks is imported only where ranks are started.
    from headway.start.decide import prepare_data
    from headway.tune import Question, make_place, probe_nursery, probe_plan
    from headway.ui.terminal.deciding import DecisionScreen
    from headway.ui.terminal.tune import ProbeScreen

    tell = DecisionScreen(make_console(stderr=True)).tell
    prepare_data(loaded, tell)
    question = Question(loaded=loaded, machine=machine, plan=plan, place=make_place(loaded), budget_s=_PROBE_S)
    with ProbeScreen(sys.stderr, _PROBE_S) as screen:
        probe_plan(question, start_nursery=lambda: probe_nursery(loaded, tell), watcher=screen)


def _list_cards(*, as_json: bool) -> None:
    """Print the cards of `--on`."""
    if as_json:
        echo_json({"schema": "plan-cards/1", "cards": list_cards()}, indent=2)
    else:
        show_cards(make_console())


def _plan_model(name: str, words: Sequence[str], place: _Place, *, as_json: bool) -> None:
    """Print what the model's step takes and gives, and what a single change would; refuse what does not fit."""
    if name == "list":
        if as_json:
            echo_json({"schema": "plan-models/1", "models": list_models()}, indent=2)
        else:
            show_names(list_models(), make_console())
        return
    machine = place.find(Path())
    if place.wanted is not None:
        machine = replace(machine, gpus=wished_devices(place.wanted))
    try:
        model = find_named(name)
    except UsageError as unknown:
        if unknown.code == "plan/model-unread":
            raise
        _plan_library(name, words, machine, unknown, as_json=as_json)
        return
    settings = read_settings(words, model)
    old = next((gpu for gpu in machine.gpus if has_bf16(gpu) is False), None)
    if old is not None and not any(word.removeprefix("--").startswith("precision=") for word in words):
        settings = replace(settings, precision="fp16")
    found = foresee_named(model, settings, machine)
    if old is not None and settings.precision.startswith("bf16"):
        facts = {"gpu": old.name or "GPU", "command": _with_fp16(name, words, place)}
        show_notes([("warn", "plan/model-bf16-emulated", facts)], make_console(stderr=True))
    if not model.is_vision and model.positions is not None and settings.seq > model.positions:
        facts = {"name": name, "most": str(model.positions), "seq": str(settings.seq)}
        show_notes([("warn", "plan/model-positions", facts)], make_console(stderr=True))
    if as_json:
        echo_json({**found.to_json(), "largest_batch": largest_batch(found, machine)}, indent=2)
    else:
        show_model(found, machine, make_console())
    if found.verdict == "will-not-fit":
        raise refuse_model(found, machine)


def _plan_library(
    name: str, words: Sequence[str], machine: MachineReport, unknown: UsageError, *, as_json: bool
) -> None:
    """Print the trace of a model that only the ranks' transformers or timm knows; refuse what does not fit."""
    from headway.planner.library_trace import foresee_library  # starts a child, only where no formula is enough

    tell = partial(click.echo, say("plan/model-tracing", name=name), err=True)
    found = foresee_library(name, words, machine, unknown, tell)
    if as_json:
        echo_json(found.to_json(), indent=2)
    else:
        show_script(found, make_console())
        show_script_variants(found, make_console())
    if found.verdict == "will-not-fit":
        raise refuse_script(found)


def _with_fp16(name: str, words: Sequence[str], place: _Place) -> str:
    """Return the same command in fp16."""
    kept = ["precision=fp16" if word.removeprefix("--").startswith("precision=") else word for word in words]
    return shlex.join(["headway", "plan", "--model", name, *place.words, *kept])


def _plan_script(line: str, place: _Place, *, what_if: bool, as_json: bool) -> None:
    """Trace the script of a launch line, print its memory breakdown, and refuse what does not fit."""
    from headway.start.script_line import read_script  # the reader of launch lines, only where there is a line

    machine = place.find(Path())
    num_gpus = sum(not gpu.lost for gpu in machine.gpus)
    asked = read_script(line, num_gpus=num_gpus)
    if machine.nodes > 1 and asked.ranks != asked.local_ranks * machine.nodes:
        raise UsageError("plan/script-nodes", wanted=place.wanted, nodes=machine.nodes, ranks=asked.ranks)
    found = foresee_script(asked, machine)
    if as_json:
        echo_json(found.to_json(), indent=2)
    else:
        show_script(found, make_console())
        if what_if:
            show_script_variants(found, make_console())
    if found.verdict == "will-not-fit":
        raise refuse_script(found)
    if not as_json:
        click.echo(say("plan/script-next", line=found.line.text))
