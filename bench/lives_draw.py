"""Draws the lives of `run_lives.py`: what a run is started with, and what happens to it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from random import Random
from typing import Literal

from headway.task.order import Order

PHASES = (
    *("data", "backward", "optimizer", "ended"),
    *("eval", "eval", "validated", "validated", "save", "saving", "saving", "saved", "trial", "tried"),
)
"""Where a kill may hit. `ended`: the step is saved, if that was due; `saving`: while files are written."""
Change = Literal["plain", "ranks", "micro", "total", "longer", "shorter", "fork", "precision", "strategy"]
Precision = Literal["fp32", "bf16", "fp16"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """ranks * micro * turns samples per step."""

    ranks: int
    micro: int
    turns: int

    @property
    def total(self) -> int:
        """Samples of one step."""
        return self.ranks * self.micro * self.turns


@dataclass(frozen=True, slots=True, kw_only=True)
class Length:
    """The run's length as it is written."""

    key: Literal["steps", "samples", "epochs"]
    value: float

    def word(self) -> str:
        """Return the setting."""
        return f"train.{self.key}={self.value:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """What a run is started with."""

    batch: Batch
    length: Length
    size: int
    """Training samples."""
    base: float = 0.01
    warmup: tuple[Literal["steps", "samples"], int] | None = None
    schedule: Literal["constant", "cosine", "linear", "multistep"] = "constant"
    decay: float = 1.0
    final: float = 0.0
    milestones: tuple[float, ...] = ()
    ema: float | None = None
    norm: bool = False
    dropout: float = 0.0
    policy: Literal["stop", "skip", "rollback"] = "stop"
    bad: tuple[int, ...] = ()
    """Samples that are not numbers."""
    eval_every: int = 0
    eval_epochs: float | None = None
    patience: int | None = None
    trial_every: int = 0
    save_every: int = 0
    save_epochs: float | None = None
    save_s: float | None = None
    keep_best: bool = True
    keep_last: int = 2
    precision: Precision = "fp32"
    strategy: Literal["auto", "fsdp"] = "auto"
    optimizer: Literal["adamw", "adam", "muon"] = "adamw"
    workers: int = 0

    def words(self) -> list[str]:
        """Return the settings, ready to type."""
        values: dict[str, object] = {
            "parallel.cpus": self.batch.ranks,
            "batch.per_device": self.batch.micro,
            "batch.accumulation": self.batch.turns,
            "task.samples": self.size,
            "lr.base": self.base,
            "lr.schedule": self.schedule,
            "lr.decay": self.decay,
            "lr.final": self.final,
            "ema.decay": self.ema,
            "task.norm": str(self.norm).lower(),
            "task.dropout": self.dropout,
            "guard.policy": self.policy,
            "eval.every": self.eval_every,
            "eval.every_epochs": self.eval_epochs,
            "eval.patience": self.patience,
            "eval.trial_every": self.trial_every,
            "save.every": self.save_every,
            "save.every_epochs": self.save_epochs,
            "save.every_s": self.save_s,
            "save.keep_best": str(self.keep_best).lower(),
            "save.keep_last": self.keep_last,
            "train.precision": self.precision,
            "optimizer.name": self.optimizer,
            "parallel.workers": self.workers,
            "parallel.strategy": self.strategy,
        }
        words = [f"{key}={'null' if value is None else value}" for key, value in values.items()]
        if self.warmup is not None:
            words.append(f"lr.warmup_{self.warmup[0]}={self.warmup[1]}")
        if self.milestones:
            words.append(f"lr.milestones={list(self.milestones)}")
        if self.bad:
            words.append(f"task.nan_samples={list(self.bad)}")
        return [*words, self.length.word()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Strike:
    """Something that happens to a command while it runs."""

    kind: Literal["stop", "term", "now", "kill", "kill-all", "supervisor"]
    at: int
    """Not before this many steps are done."""
    phase: str

    @property
    def ends(self) -> bool:
        """Whether the command ends with it."""
        return self.kind in ("stop", "term", "now", "supervisor")


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One command: how it changes the run, and what happens to it."""

    change: Change = "plain"
    also: tuple[Change, ...] = ()
    """What the same command changes besides."""
    strikes: tuple[Strike, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """A run from its start to its end."""

    seed: int
    keys: Keys
    turns: tuple[Turn, ...]
    in_file: frozenset[str] = field(default_factory=frozenset)
    """Settings of the start that are in a file."""
    is_real: bool = False
    """Every command is a process of its own."""

    @property
    def num_events(self) -> int:
        """Strikes, and commands after the first."""
        return sum(len(turn.strikes) for turn in self.turns) + len(self.turns) - 1


def draw_life(seed: int, *, is_real: bool) -> Life:
    """Return the life of a seed."""
    rng = Random(seed)
    keys = _draw_keys(rng)
    if is_real and keys.precision == "fp16":
        keys = replace(
            keys, precision="bf16"
        )  # a plan for CPU ranks refuses it; `lives_ranks.py` alone can let it pass
    words = keys.words()
    share = rng.choice((0.0, 0.0, 0.5, 1.0))
    in_file = frozenset(word for word in words if rng.random() < share)
    turns = tuple(_draw_turns(rng, keys, rng.randint(2, 6), is_real=is_real))
    # Drawn apart, so that a life keeps its number and all else when this is drawn differently.
    more = Random(f"{seed} and more")
    if more.random() < 0.2:
        keys = replace(keys, strategy="fsdp")
    turns = tuple(
        replace(turn, also=_draw_also(more, keys, turn)) if place else turn for place, turn in enumerate(turns)
    )
    return Life(seed=seed, keys=keys, turns=turns, in_file=in_file, is_real=is_real)


def changed_batch(rng: Random, batch: Batch, change: Change) -> Batch | None:
    """Return another batch: of the same total on other ranks or with another micro-batch, or of another total."""
    if change == "ranks":
        ranks = [one for one in (1, 2, 3, 4) if one != batch.ranks and batch.total % one == 0]
        if not ranks:
            return None
        one = rng.choice(ranks)
        return Batch(ranks=one, micro=0, turns=0)  # the rest is for the run to decide
    if change == "micro":
        share = batch.total // batch.ranks
        micros = [one for one in range(1, share + 1) if share % one == 0 and one != batch.micro]
        if not micros:
            return None
        micro = rng.choice(micros)
        return replace(batch, micro=micro, turns=share // micro)
    turns = rng.choice((1, 2, 3))
    return replace(batch, micro=rng.choice((1, 2, 4)), turns=turns)


def _draw_also(rng: Random, keys: Keys, turn: Turn) -> tuple[Change, ...]:
    """Return what a command that continues changes besides: mostly nothing."""
    if rng.random() < 0.7:
        return ()
    batches: tuple[Change, ...] = () if keys.norm or turn.change in ("ranks", "micro", "total") else ("ranks", "micro")
    others: tuple[Change, ...] = ("fork", "longer", "shorter", "precision", "precision", "strategy", *batches)
    drawn = {rng.choice(others), rng.choice(others)} - {turn.change}
    if {"ranks", "micro"} <= drawn:
        drawn.remove("micro")
    if "shorter" in drawn:
        drawn.discard("longer")
    if turn.change == "longer":
        drawn.discard("shorter")
    return tuple(sorted(drawn))


def other_precision(rng: Random, precision: Precision, *, is_real: bool) -> Precision:
    """Return another precision; a plan for CPU ranks refuses fp16."""
    all_of_them: tuple[Precision, ...] = ("fp32", "bf16") if is_real else ("fp32", "bf16", "fp16")
    return rng.choice([one for one in all_of_them if one != precision])


def _draw_keys(rng: Random) -> Keys:
    ranks = rng.choices((1, 2, 3, 4), (4, 4, 1, 1))[0]
    batch = Batch(ranks=ranks, micro=rng.choice((1, 2, 2, 4)), turns=rng.choice((1, 1, 2, 3)))
    size = rng.choice((61, 97))
    steps = rng.randint(8, 18)
    samples = steps * batch.total - rng.randrange(batch.total)
    epochs = round(samples / size, 2)
    length = rng.choice(
        (Length(key="steps", value=steps), Length(key="samples", value=samples), Length(key="epochs", value=epochs))
    )
    policy = rng.choice(("stop", "skip", "rollback"))
    save_every = rng.choice((0, 1, 2, 3, 5))
    bad: tuple[int, ...] = ()
    if (policy != "stop" and rng.random() < 0.6) or (policy == "stop" and rng.random() < 0.1):
        bad = tuple(_draw_bad(rng, batch, size))
        save_every = rng.choice((1, 2, 3))
    warmup = rng.choice((None, None, ("steps", rng.randint(1, 6)), ("samples", rng.randint(1, 6 * batch.total))))
    schedule = rng.choice(("constant", "cosine", "linear", "linear", "multistep"))
    is_plain = rng.random() < 0.5
    eval_every = rng.choice((0, 1, 2, 3, 5))
    return Keys(
        batch=batch,
        length=length,
        size=size,
        warmup=warmup,
        schedule=schedule,
        decay=rng.choice((1.0, 0.4)),
        final=rng.choice((0.0, 0.1)),
        milestones=(0.3, 0.7) if schedule == "multistep" else (),
        ema=rng.choice((None, None, 0.9)),
        norm=not is_plain and batch.micro > 1 and rng.random() < 0.5,
        dropout=0.0 if is_plain else rng.choice((0.0, 0.1)),
        policy=policy,
        bad=bad,
        eval_every=eval_every,
        eval_epochs=rng.choice((None, None, 0.5, 1.0)),
        patience=rng.choice((None, None, 1, 2, 3)),
        trial_every=rng.choice((0, 0, 4)),
        save_every=save_every,
        save_epochs=rng.choice((None, None, None, 0.5)),
        save_s=rng.choice((None, None, None, 0.05)),
        keep_best=rng.random() < 0.7,
        keep_last=rng.choice((1, 2, 3)),
        precision="fp32" if is_plain else rng.choice(("fp32", "bf16", "fp16")),
        optimizer="adamw" if is_plain else rng.choice(("adamw", "adam", "muon")),
        workers=rng.choice((0,) * 9 + (1,)),
    )


def _draw_bad(rng: Random, batch: Batch, size: int) -> Iterator[int]:
    """Yield one or two samples that come after the first four steps: before there may be nothing to go back to."""
    import numpy as np

    first = 4 * batch.total
    if first >= size:
        return  # every sample comes within the first steps
    ids, _ = Order(size, 0).samples(np.arange(first, size))
    yield from rng.sample(sorted(int(one) for one in ids), min(len(ids), rng.choice((1, 1, 2))))


def _draw_turns(rng: Random, keys: Keys, events: int, *, is_real: bool) -> Iterator[Turn]:
    """Yield commands until so many events have happened; the last one is left in peace."""
    change: Change = "plain"
    at, left = 0, events
    while left > 0:
        strikes = []
        while left > 0:
            at = at + rng.randint(0, 6)
            ends: tuple[str, ...] = ("stop", "stop", "term", "now", *(("supervisor", "supervisor") if is_real else ()))
            kind = rng.choice(("kill", "kill-all", *ends))
            strikes.append(Strike(kind=kind, at=at, phase=rng.choice(PHASES)))
            left -= 1
            if strikes[-1].ends or len(strikes) == 2:
                break
        yield Turn(change=change, strikes=tuple(strikes))
        left -= 1
        change = rng.choice(("plain", "plain", "ranks", "micro", "longer", "fork", "total"))
        # Batch norm needs two samples in a micro-batch; a bad sample that has come nearer the beginning may come before
        # there is anything to go back to.
        if (change in ("ranks", "micro", "total") and keys.norm) or (change == "total" and keys.policy == "stop"):
            change = "plain"
        if change == "fork":
            at = rng.randint(0, 6)
    yield Turn(change=change)
