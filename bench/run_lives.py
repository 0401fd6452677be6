"""Does a run end as it must, whatever happens to it on the way?

Draws random lives of a run: keys (length in steps, epochs or samples; warm-up; schedule; average; batch norm; guard
with samples that are not numbers; patience; best; saves by steps, epochs and seconds; accumulation; precision;
optimizer; strategy), then two to six events on 1 to 4 CPU ranks: stops, kills of one rank or all in any phase, resumes
as it is, on other ranks, with another micro-batch, another total batch, precision or strategy, more or fewer steps, and
forks, also several of these by one command. A life whose commands change nothing must end bit-equal to the undisturbed
run; one whose ranks, micro-batch or strategy change, equal but for rounding where the model allows it. Every life is
compared with arithmetic of its own (`lives_oracle.py`): total batch, learning rate of every step, samples exactly once
an epoch, validations, best step, early stop, final state and exit code.

Most lives run the commands inside this process up to where they would supervise, with real ranks that are struck at an
exact place (`lives_ranks.py`): these are the same every time. `--real` of a hundred are typed as commands, each a
process of its own with its supervisor, which may be killed too; where those are hit depends on the clock.

    python bench/run_lives.py [--lives 300] [--first 0] [--seed 1] [--real 10] [--seconds S] [--only N …] [--keep]
                              [--at-once 1]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from fakes.engine_run import TINY, read_tensors
from headway.checkpoint import list_checkpoints, read_manifest
from headway.telemetry import Beat, RunDir, read_beat, read_events, read_json, read_metrics, run_state
from lives_draw import (
    Batch,
    Change,
    Length,
    Life,
    Precision,
    Strike,
    Turn,
    changed_batch,
    draw_life,
    other_precision,
)
from lives_oracle import Book, Facts, Part, bad_step, find_wrong
from lives_ranks import Attempts

_LIMIT_S = 1800.0
"""Only what hangs takes so long: on a machine with twenty times its work a command of a few seconds takes minutes."""
_PACE = ("task.sleep_s=0.004", "task.eval_sleep_s=0.002", "launch.restarts=20")
"""Steps slow enough to be hit; and no life is given up because kills came faster than saves."""
_EXITS = {"stop": 130, "term": 143, "now": 130, "supervisor": -9}


@dataclass(slots=True)
class Tally:
    """What was seen."""

    lives: int = 0
    events: int = 0
    hits: dict[str, int] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)


def main() -> None:
    """Live, and print what is wrong and, last, the figures as JSON; end with 1 when anything is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lives", type=int, default=300)
    parser.add_argument("--first", type=int, default=0, help="number of the first life, to live them in several goes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--real", type=int, default=10, help="of a hundred lives, how many are typed as commands")
    parser.add_argument("--seconds", type=float, default=math.inf, help="no life begins after this time")
    parser.add_argument("--only", type=int, nargs="+", help="the numbers of single lives")
    parser.add_argument("--at-once", type=int, default=1, help="lives that are lived side by side")
    parser.add_argument("--keep", action="store_true", help="leave the runs of wrong lives where they are")
    args = parser.parse_args()
    first = args.seed * 100_000 + args.first
    numbers: Sequence[int] = range(first, first + args.lives)
    numbers = args.only or numbers
    tally = live_side_by_side(numbers, args.at_once, real=args.real, keep=args.keep, seconds=args.seconds)
    hits = ", ".join(f"{name} {count}" for name, count in sorted(tally.hits.items()))
    print(f"{tally.lives} lives, {tally.events} events ({hits})")
    print(json.dumps({"lives": tally.lives, "events": tally.events, "wrong": len(tally.wrong)}))
    sys.exit(1 if tally.wrong else 0)


def live_side_by_side(numbers: Sequence[int], at_once: int, *, real: int, keep: bool, seconds: float) -> Tally:
    """Live the lives of these seeds in as many processes, each a share of them."""
    if at_once == 1:
        return live_all(numbers, real=real, keep=keep, seconds=seconds)
    tally = Tally()
    with ProcessPoolExecutor(at_once, get_context("fork")) as pool:
        alone = partial(live_all, real=real, keep=keep, seconds=seconds)
        for part in pool.map(alone, [numbers[first::at_once] for first in range(at_once)]):
            tally.lives, tally.events = tally.lives + part.lives, tally.events + part.events
            tally.wrong += part.wrong
            for name, count in part.hits.items():
                tally.hits[name] = tally.hits.get(name, 0) + count
    return tally


def live_all(numbers: Sequence[int], *, real: int, keep: bool = False, seconds: float = math.inf) -> Tally:
    """Live the lives of these seeds and return what was seen."""
    tally = Tally()
    place, began = Path(tempfile.mkdtemp(prefix="headway-lives-")), time.monotonic()
    ranks = Attempts()
    with _home(place):
        try:
            for number in numbers:
                if time.monotonic() - began > seconds:
                    break
                life = draw_life(number, is_real=Random(number).random() * 100 < real)
                try:
                    wrong = live(place / str(number), life, ranks, tally)
                except Exception:  # border: one life that cannot be judged must not end the others
                    wrong = [traceback.format_exc()]
                tally.lives += 1
                tally.wrong += [f"{number}: {line}" for line in wrong[:1]]
                for line in wrong:
                    print(f"life {number}: {line}", flush=True)
                if not (keep and wrong):
                    shutil.rmtree(place / str(number))
        finally:
            if not (keep and tally.wrong):
                shutil.rmtree(place)
    if place.exists():
        print(f"the wrong ones are in {place}")
    return tally


@contextlib.contextmanager
def _home(place: Path) -> Iterator[None]:
    """Keep what commands remember between runs out of the user's home."""
    names = ("HOME", "LANG", "OMP_NUM_THREADS", "TMPDIR")
    before = {name: os.environ.get(name) for name in names}
    cache = Path.home() / ".cache" / "headway"
    if cache.is_dir():  # what this processor computes: found out once, and slow to find
        shutil.copytree(cache, place / ".cache" / "headway", ignore_dangling_symlinks=True)
    os.environ.update({"HOME": str(place), "LANG": "C.UTF-8", "OMP_NUM_THREADS": "1", "TMPDIR": str(place)})
    tempfile.tempdir = str(place)
    try:
        yield
    finally:
        tempfile.tempdir = None
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def run_command(words: list[str], place: Path, strikes: tuple[Strike, ...]) -> tuple[int, list[tuple[Strike, str]]]:
    """Run a command as a process of its own while it is struck; return its exit code and what has hit it."""
    with (place / "screen").open("ab") as screen:
        process = subprocess.Popen([sys.executable, "-m", "headway", *words], cwd=place, stderr=screen, stdout=screen)
    striker = Striker(place, strikes, process.pid)
    striker.start()
    try:
        code = process.wait(_LIMIT_S)
        if code == -signal.SIGKILL:  # its ranks find out by themselves, and may end a save first
            _wait_for_ranks(place)
        return code, striker.hit
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGQUIT)
        process.wait()
        return -1, striker.hit
    finally:
        striker.end()


def _wait_for_ranks(place: Path) -> None:
    deadline = time.monotonic() + _LIMIT_S
    beats = [RunDir(job.parent).heartbeat(rank) for job in place.glob("runs/*/job.json") for rank in range(4)]
    pids = [beat.pid for path in beats if path.exists() and (beat := read_beat(path))]
    while any(map(_is_alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)


class Striker(threading.Thread):
    """Watches heartbeats and folders, and hits what it is told to, one thing after the other."""

    def __init__(self, place: Path, strikes: tuple[Strike, ...], supervisor: int) -> None:
        super().__init__(daemon=True)
        self.hit: list[tuple[Strike, str]] = []
        """What has hit, and in which phase."""
        self._place, self._strikes, self._supervisor = place, strikes, supervisor
        self._is_over = threading.Event()

    def end(self) -> None:
        """The command has ended: nothing is left to hit."""
        self._is_over.set()
        self.join()

    def run(self) -> None:
        """Strike."""
        attempt = 0
        began = time.monotonic()
        for strike in self._strikes:
            while (aimed := self._aim(strike, attempt)) is None:
                if self._is_over.wait(0.0005) or time.monotonic() - began > _LIMIT_S:
                    return
            beats, phase = aimed
            self.hit.append((strike, phase))
            attempt = beats[0].attempt
            self._act(strike, beats)

    def _aim(self, strike: Strike, attempt: int) -> tuple[list[Beat], str] | None:
        """Return the ranks and the phase they are in, once that is what the strike waits for."""
        for lease in self._place.glob("runs/*/lease.json"):
            run = RunDir(lease.parent)
            with contextlib.suppress(OSError, ValueError):
                ranks = int(read_json(run.plan)["world_size"])
                beats = [beat for rank in range(ranks) if (beat := read_beat(run.heartbeat(rank)))]
                if len(beats) < ranks or len({beat.attempt for beat in beats}) > 1 or beats[0].attempt <= attempt:
                    continue
                if not all(_is_alive(beat.pid) for beat in beats) or any(beat.phase == "ended" for beat in beats):
                    continue
                step = max(beat.step for beat in beats)
                phase = "saving" if list(run.checkpoints.glob("*.tmp-*")) else beats[-1].phase
                if step >= strike.at and (strike.phase == phase or step >= strike.at + 2):
                    return beats, phase
        return None

    def _act(self, strike: Strike, beats: list[Beat]) -> None:
        signals = {"stop": signal.SIGINT, "term": signal.SIGTERM, "now": signal.SIGQUIT, "supervisor": signal.SIGKILL}
        if strike.kind in signals:
            os.kill(self._supervisor, signals[strike.kind])
            return
        for beat in beats if strike.kind == "kill-all" else [beats[strike.at % len(beats)]]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(beat.pid, signal.SIGKILL)


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@dataclass(slots=True)
class Record:
    """A life while it is lived."""

    life: Life
    place: Path
    book: Book
    batch: Batch
    """As the last plan has it."""
    total: int
    """Samples of one step, as they must be."""
    length: Length
    precision: Precision
    strategy: str
    runs: list[tuple[RunDir, int]] = field(default_factory=list)
    """Each run of the life and the step at which it began."""
    changes: set[Change] = field(default_factory=set)
    former_ends: set[int] = field(default_factory=set)
    wrong: list[str] = field(default_factory=list)
    is_over: bool = False

    @property
    def run(self) -> RunDir:
        """The last one."""
        return self.runs[-1][0]

    def standing(self) -> tuple[list[Part], int, Length, Precision, str, set[Change]]:
        """Return what a command that is refused must not have changed."""
        return list(self.book.parts), self.total, self.length, self.precision, self.strategy, set(self.changes)


def live(place: Path, life: Life, ranks: Attempts, tally: Tally) -> list[str]:
    """Live one life and return what is wrong with it."""
    place.mkdir()
    keys = life.keys
    book, batch = Book(keys), keys.batch
    record = Record(
        life=life,
        place=place,
        book=book,
        batch=batch,
        total=batch.total,
        length=keys.length,
        precision=keys.precision,
        strategy=keys.strategy,
    )
    rng = Random(life.seed + 1)
    for number, turn in enumerate(life.turns):
        before = record.standing()
        words = start_words(record) if number == 0 else resume_words(record, turn, rng)
        tally.events += number > 0
        code, hit = run_command(words, place, turn.strikes) if life.is_real else ranks.run(words, place, turn.strikes)
        tally.events += len(hit)
        for strike, phase in hit:
            name = f"{strike.kind} in {phase}" if "kill" in strike.kind else strike.kind
            tally.hits[name] = tally.hits.get(name, 0) + 1
        if number > 0:
            for change in (turn.change, *turn.also):
                tally.hits[f"resume {change}"] = tally.hits.get(f"resume {change}", 0) + 1
        if number > 0 and code == 2 and is_rightly_refused(record):
            record.book.parts, record.total, record.length, record.precision, record.strategy, record.changes = before
            continue
        note_end(record, turn, code, hit, is_first=number == 0)
        if record.wrong or record.is_over:
            break
    if not record.wrong:
        record.wrong += judge_life(record, ranks)
    return record.wrong


def start_words(record: Record) -> list[str]:
    """Return the command that starts the run, with some of its settings in a file."""
    life = record.life
    typed = [word for word in life.keys.words() if word not in life.in_file]
    record.book.begin(0, record.total, record.length, record.precision)
    if not life.in_file:
        return ["train", TINY, *typed, *_PACE]
    lines = [f"{key}: {value}" for key, _, value in (word.partition("=") for word in sorted(life.in_file))]
    (record.place / "run.yaml").write_text("\n".join([f"recipe: {TINY}", *lines]) + "\n")
    return ["train", "run.yaml", *typed, *_PACE]


def resume_words(record: Record, turn: Turn, rng: Random) -> list[str]:
    """Return the command that continues the life, and note what it changes: nothing, where that is not possible."""
    steps = sorted({info.step for info in list_checkpoints(record.run.checkpoints)})
    at = steps[-1] if steps else 0
    words = ["resume", str(record.run.root)]
    if "fork" in (turn.change, *turn.also) and steps:
        at = rng.choice(steps)
        words += ["--step", str(at)]
        record.changes.add("fork")
    # The batch first: how many samples are left depends on it.
    for change in sorted({turn.change, *turn.also} - {"fork", "plain"}, key=("longer", "shorter").__contains__):
        words += change_words(record, change, at, rng, is_saved=bool(steps))
    record.book.begin(at, record.total, record.length, record.precision)
    return words


def change_words(record: Record, change: Change, at: int, rng: Random, *, is_saved: bool) -> list[str]:
    """Return the settings that change a run which continues after a step, and note them."""
    if change == "longer":
        steps_then = max(record.book.total_steps(), at) + rng.randint(1, 6)
        record.former_ends.add(record.book.total_steps())
        record.length = Length(key="steps", value=steps_then)
        if rng.random() < 0.5:
            record.length = Length(key="samples", value=record.book.trained(at) + (steps_then - at) * record.total)
        words = [record.length.word()]
    elif change == "shorter":
        # No longer than it is: the newest step becomes the last one, and owes what a last one owes.
        record.former_ends |= {record.book.total_steps(), at}
        record.length = Length(key="steps", value=max(1, at - rng.randint(0, 2)))
        words = [record.length.word()]
    elif change == "precision":
        record.precision = other_precision(rng, record.precision, is_real=record.life.is_real)
        words = [f"train.precision={record.precision}"]
    elif change == "strategy":
        record.strategy = "auto" if record.strategy == "fsdp" else "fsdp"
        words = [f"parallel.strategy={record.strategy}"]
    else:
        words = _batch_words(record, change, rng, is_saved=is_saved)
    if words:
        record.changes.add(change)
    return words


def _batch_words(record: Record, change: Change, rng: Random, *, is_saved: bool) -> list[str]:
    batch = changed_batch(rng, record.batch, change)
    if batch is None:
        return []
    if change == "ranks":
        return [f"parallel.cpus={batch.ranks}"]
    if change == "micro":
        return [f"batch.per_device={batch.micro}"]
    if record.life.keys.bad and (not is_saved or 6 * batch.total > record.life.keys.size):
        # A bad sample might come before there is anything to go back to; or hardly a batch would be without one, and
        # the guard's limit is soon reached.
        return []
    record.total = batch.total
    record.former_ends.add(record.book.total_steps())
    return [f"batch.per_device={batch.micro}", f"batch.total={batch.total}"]


def is_rightly_refused(record: Record) -> bool:
    """Say whether a resume that was refused had nothing to do: the run is over, or the forked step was its last."""
    if "resume-done" not in (record.place / "screen").read_text()[-2000:]:
        return False
    part = record.book.parts[-1]
    return run_state(record.run).state == "done" or part.step >= record.book.total_steps()


def note_end(record: Record, turn: Turn, code: int, hit: list[tuple[Strike, str]], *, is_first: bool) -> None:
    """Note how a command ended, and whether that is how it had to."""
    known = {run.root for run, _ in record.runs}
    made = [RunDir(job.parent) for job in sorted((record.place / "runs").glob("*/job.json"))]
    new = [run for run in made if run.root not in known]
    at = record.book.parts[-1].step
    if is_first or new:
        if len(new) != 1:
            record.wrong.append(f"{len(new)} new runs")
            return
        record.runs.append((new[0], at))
    ended = [strike for strike, _ in hit if strike.ends]
    keys = record.life.keys
    wanted = {0}
    if ended:
        wanted.add(_EXITS[ended[-1].kind])
    if keys.bad and keys.policy == "stop" and code == 5:
        record.is_over = True
        wanted.add(5)
    if code not in wanted:
        record.wrong.append(f"{turn.change} ended with exit code {code}, not {sorted(wanted)}: {_tail(record.place)}")
    numbers = [event["seq"] for event in read_events(record.run.events)]
    if numbers != list(range(1, len(numbers) + 1)):
        record.wrong.append(f"the history is not numbered in order: {numbers}")
    if code != -9 and any((record.run.root / name).exists() for name in ("lease.json", ".lease-lock")):
        record.wrong.append("a lease or its lock is left")
    plan = read_json(record.run.plan)
    record.batch = Batch(ranks=plan["world_size"], micro=plan["micro_batch"], turns=plan["accumulation"])
    if record.batch.total != record.total:
        record.wrong.append(f"the batch after {turn.change} is {record.batch}, not {record.total} samples")


def _tail(place: Path) -> str:
    return " | ".join((place / "screen").read_text(errors="replace").splitlines()[-4:])


def judge_life(record: Record, ranks: Attempts) -> list[str]:
    """Compare what a life left behind with what it must have."""
    book = record.book
    if record.is_over:
        (incident, *_) = [event for event in reversed(read_events(record.run.events)) if event["kind"] == "incident"]
        at = bad_step(book, book.total_steps())
        return (
            [] if incident["facts"].get("step") in (at, str(at)) else [f"failed at {incident['facts']}, not step {at}"]
        )
    facts = gather(record)
    wrong = list(find_wrong(book, facts, frozenset(record.former_ends)))
    if not wrong:
        wrong += compare(record, facts, ranks)
    return wrong


def gather(record: Record) -> Facts:
    """Read what the runs of a life left behind."""
    rows: dict[int, dict[str, float]] = {}
    validations: dict[int, float] = {}
    guards: set[int] = set()
    for run, began in record.runs:
        columns = read_metrics(run.metrics(0))
        rows = {step: row for step, row in rows.items() if step <= began}
        for place, step in enumerate(columns["step"]):
            rows[int(step)] = {name: float(columns[name][place]) for name in ("samples", "loss", "lr")}
        validations = {step: value for step, value in validations.items() if step <= began}
        guards = {step for step in guards if step <= began}
        for event in read_events(run.events):
            if event["kind"] == "validation":
                value = event["measures"][event["measure"]]
                validations[event["step"]] = float(value) if value is not None else math.nan
            elif event["kind"] in ("training_started", "rolled_back"):
                validations = {step: value for step, value in validations.items() if step <= event["step"]}
            elif event["kind"] == "guard":
                guards.add(event["step"])
    run, began = record.runs[-1]
    saved = {info.step: info.path for info in list_checkpoints(run.checkpoints)}
    assert saved, f"no checkpoint, and the last words are {_tail(record.place)}"
    manifest = read_manifest(saved[max(saved)])
    state = run_state(run)
    return Facts(
        rows=rows,
        validations=validations,
        guard_steps=frozenset(guards),
        step=manifest.step,
        samples=manifest.samples,
        ledger=manifest.ledger,
        progress=manifest.meta["progress"],
        scale=manifest.meta["scale"][0] if manifest.meta["scale"] else None,
        saved=frozenset(saved),
        began=began,
        state=state.state,
        exit_code=state.exit_code if state.exit_code is not None else -1,
        shown_best=state.best.step if state.best is not None else None,
    )


def compare(record: Record, facts: Facts, ranks: Attempts) -> list[str]:
    """Compare a life with the undisturbed run, where it promises to be equal to it."""
    keys, changes = record.life.keys, record.changes
    is_exact = changes <= {"plain", "fork"}
    is_near = changes <= {"plain", "fork", "ranks", "micro", "strategy"} and not keys.norm and keys.dropout == 0
    is_near = is_near and keys.precision == "fp32"
    if not is_exact and not is_near:
        return []
    place = record.place / "peace"
    place.mkdir()
    code, _ = ranks.run(["train", TINY, *keys.words()], place, ())
    if code != 0:
        return [f"the undisturbed run ended with exit code {code}: {_tail(place)}"]
    (job,) = place.glob("runs/*/job.json")
    peace = replace(record, place=place, runs=[])
    peace.runs.append((RunDir(job.parent), 0))
    calm = gather(peace)
    wrong = []
    if is_exact:
        for name, one, other in (
            (
                "losses",
                {step: row["loss"] for step, row in facts.rows.items()},
                {s: r["loss"] for s, r in calm.rows.items()},
            ),
            ("validations", facts.validations, calm.validations),
            ("samples", facts.samples, calm.samples),
            ("tensors", read_tensors(record.run), read_tensors(peace.run)),
        ):
            if one != other:
                wrong.append(f"{name} differ from the undisturbed run's{_first_difference(one, other)}")
        return wrong
    far = [
        step
        for step in calm.rows
        if not math.isclose(facts.rows[step]["loss"], calm.rows[step]["loss"], rel_tol=5e-3, abs_tol=1e-3)
    ]
    return [f"losses are far from the undisturbed run's from step {min(far)}"] if far else []


def _first_difference(one: object, other: object) -> str:
    if not isinstance(one, dict) or not isinstance(other, dict):
        return ""
    names = [name for name in {**one, **other} if one.get(name) != other.get(name)]
    shown = f" ({one.get(names[0])} and {other.get(names[0])})" if not isinstance(names[0], str) else ""
    return f" at {names[0]}{shown}, {len(names)} of {len(other)}"


if __name__ == "__main__":
    main()
