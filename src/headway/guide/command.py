"""One training command of a guide, from its first line to its last."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from headway.config import load_config
from headway.errors import HeadwayError, UsageError
from headway.guide.checkpoints import NamedCheckpoints, Source, Writer, keep_earlier
from headway.guide.follow import copy_output, finishing, follow, headway
from headway.guide.lines import Story, Voice
from headway.guide.log import GuideLog, Level
from headway.guide.size import Choice, changed_words
from headway.guide.sources import find_source
from headway.guide.trouble import Advice, facts_of, find_trouble, trouble_of, write_trouble
from headway.messages import say
from headway.task import find_recipe
from headway.telemetry import RunDir, list_runs, run_state

RUNS = Path("runs")
OF_RUN = ("batch.", "ema.", "eval.", "guard.", "lr.", "optimizer.", "parallel.", "save.", "train.")
"""What may be other when a run is resumed than when it began; model and data may not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """A training command, decided."""

    choice: Choice
    voice: Voice
    advice: Advice
    writer: Writer
    folder: Path
    """Where the guide's checkpoints go."""
    out: Path = RUNS
    words: Sequence[str] = ()
    """More words behind the choice's."""
    resume: Path | None = None
    """A guide's checkpoint to continue from."""
    may_change: tuple[str, ...] = OF_RUN
    continued: RunDir | None = None
    """A run that continues in its own directory from its newest checkpoint."""
    typed: Sequence[str] | None = None
    """What was typed or edited, where settings are flags: a run that continues changes only these. None: they are in a
    config file, and what it says now holds."""
    proceed: str
    """The guide's command that continues a run that was stopped: `{file}`, its newest checkpoint; `{run}`, its name."""


def train(log: GuideLog, training: Training) -> tuple[int, RunDir | None]:
    """Train, or continue from a checkpoint; lines and files appear as the guide promises."""
    for line in training.choice.notes:
        log.write(line)
    source = find_source(training.resume, training.out, log.write) if training.resume is not None else None
    words = _words(training, source)
    voice = training.voice
    files = NamedCheckpoints(
        training.folder,
        writer=training.writer,
        write=log.write,
        warn=lambda line: log.write(line, "WARN"),
        best=voice.best,
        tell=voice.saved,
    )
    # Once there is a run, and not before: a command that is refused changes nothing.
    story = Story(voice, files, log.write, partial(_clear, log, training, source, files))
    code = 1
    with finishing(lambda: log.write(say("guide/finishing", folder=f"{training.folder}/"), "WARN")):
        try:
            code, run = follow(words, log, story.listener(), out=training.out)
        finally:
            story.close(is_done=code == 0)
    if is_stopped(code):
        is_kept = run is not None and files.last is not None
        text = "guide/stopped" if is_kept else "guide/stopped-early"
        log.write(say(text, command=training.proceed.format(file=files.last, run=_name_of(run, training.out))), "WARN")
    elif code:
        write_trouble(log, training.advice, find_trouble(log.last, run), facts_of(training.choice.config))
    return code, run


def _name_of(run: RunDir | None, out: Path) -> str:
    """Return how a run is named to be continued: another terminal may have begun a newer one meanwhile."""
    newest = next(iter(list_runs(out)), None)
    return "latest" if run is None or newest is None or newest.name == run.name else run.name


def _clear(log: GuideLog, training: Training, source: Source | None, files: NamedCheckpoints, run: RunDir) -> None:
    """Move the files of earlier runs out of the way; each later file looks for its own place in any case."""
    try:
        other = files.begin(run)
        if other is not None:
            place = f"{training.folder / run.name}/"
            log.write(say("guide/beside", run=other.name, folder=f"{training.folder}/", place=place), "WARN")
        elif training.continued is None:
            for line in keep_earlier(training.folder, out=training.out, best=training.voice.best, since=source):
                log.write(line)
    except OSError as error:
        log.write(say("guide/not-moved", why=str(error)), "WARN")


def _words(training: Training, source: Source | None) -> list[str]:
    choice = training.choice
    if source is None and training.continued is None:
        return ["train", choice.source, *choice.words, *training.words]
    run = source.run if source is not None else training.continued
    assert run is not None
    changes = training.typed
    if changes is None:  # what is said now and was not when the run began
        before = load_config(run.config, recipe=find_recipe).config
        changes = changed_words(before, choice.config, training.may_change)
    return ["resume", str(run.root), *(["--step", str(source.step)] if source is not None else []), *changes]


def show_best(log: GuideLog, run: RunDir, *words: str) -> None:
    """Write what the best model of a run produces, as `headway predict` says it."""
    step = ["--step", "best"] if run_state(run).best is not None else []
    copy_output(headway("predict", str(run.root), *step, *words), log.write)


def newest_run(out: Path, name: str = "latest") -> RunDir:
    """Return the newest run, or one by its name or the path of its directory."""
    runs = [run for run in list_runs(out) if name in ("latest", "true") or run.name == Path(name).name]
    if not runs:
        raise UsageError("guide/no-run", name=name, out=out)
    return runs[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    """Where a command continues; neither: it begins."""

    resume: Path | None = None
    continued: RunDir | None = None

    @classmethod
    def of(cls, asked: str | None, out: Path) -> Resumed:
        """Read the value of `--resume` of a guide without a name of its own for it: a run, or one of its files."""
        if asked is None:
            return cls()
        is_run = asked in ("latest", "true", *(run.name for run in list_runs(out))) or (out / Path(asked).name).is_dir()
        if not is_run and ("/" in asked or Path(asked).suffix):
            return cls(resume=Path(asked))
        return cls(continued=newest_run(out, asked))


def is_stopped(code: int) -> bool:
    """Say whether somebody stopped the run on purpose, and it saved."""
    return code in (130, 143)


def level_of(code: int) -> Level:
    """Return the level of the line about an end; a stop on purpose is not an error."""
    return "SUCCESS" if code == 0 else "WARN" if is_stopped(code) else "ERROR"


def with_log(advice: Advice, log: GuideLog, do: Callable[[GuideLog], int]) -> int:
    """Return what `do` returns, with the log closed behind it; a refusal is explained in the log too."""
    try:
        return do(log)
    except HeadwayError as error:
        write_trouble(log, advice, trouble_of(error), {})
        if error.hint():
            log.keep(say("cli/hint", text=error.hint()))
        raise
    except KeyboardInterrupt:  # before the run, or behind it
        log.write(say("guide/interrupted"), "WARN")
        raise
    finally:
        log.close()
