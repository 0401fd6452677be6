"""Does a sharded run train as a replicated one, whatever else it does?

Every recipe at a tiny size on CPU ranks, under each feature of a run alone and under combinations that together hold
every pair of them: validation, moving average, accumulation, the guard's skip and roll-back, saves, a stop and resume,
and a resume on another number of ranks; Muon and state in host memory alone and with everything else.
A case is one recipe, one strategy, one combination. It is right when

- every loss, measure and learning rate is that of the other strategy (within 1e-5 of the value, and of 1);
- what only looks on (validation, average, saves, a stop and resume) has changed no loss by one bit;
- the samples taken, the ranges left out and the blamed rank are what arithmetic says.

    python bench/fsdp_matrix.py [--recipes nanochat rdt] [--seed 0] [--worlds 1 4]
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import json
import math
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from fakes.atlas_set import TOY, write_toy
from fakes.engine_run import TINY
from fakes.rank_lives import Life, live_on
from fakes.rdt_demos import write_demos
from fakes.tfnet_set import SMALL, write_small
from headway.checkpoint import find_resumable
from headway.config import load_config
from headway.task import find_recipe
from headway.task.order import Order, expected_ledger

STEPS, STOP, WORLD = 6, 3, 2
STRATEGIES = ("ddp", "fsdp")
SWITCHES = ("validation", "ema", "accumulation", "save", "resume")
MATHS = {"accumulation", "skip", "rollback", "muon"}
"""What changes the losses; the rest only looks on."""
GUARDS = ("", "skip", "rollback")
CLOSE = 1e-5
WORDS = {
    "validation": ("eval.every=2",),
    "ema": ("ema.decay=0.9",),
    "accumulation": ("batch.accumulation=2",),
    "save": ("save.every=1",),
    "skip": ("guard.policy=skip",),
    "rollback": ("guard.policy=rollback", "save.every=2"),
    "muon": ("optimizer.name=muon",),
    "offload": ("parallel.offload=true",),
}
COMMON = (f"train.steps={STEPS}", "save.every=0", "eval.every=0", "eval.samples=4", "batch.accumulation=1")
COMMON += (
    "ema.decay=null",
    "guard.limit=20",
    "lr.schedule=linear",
    "lr.decay=1",
    "lr.final=0",
    "lr.warmup_samples=0",
    "save.keep_last=9",
)
SINGLE = [frozenset[str](), *(frozenset({one}) for one in (*SWITCHES, *GUARDS[1:], "muon", "offload"))]
MOVED = [frozenset({"muon", "offload", *SWITCHES, "skip"}), frozenset({"offload", "validation", "resume", "rollback"})]
"""State in host memory, and matrices dealt out, with everything else."""
DENSE = [frozenset({*SWITCHES, "skip"}), frozenset({"validation", "ema", "resume", "rollback"}), *MOVED]
Found = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """One combination of features for one recipe and strategy."""

    recipe: str
    strategy: str
    features: frozenset[str]
    worlds: tuple[int, ...] = (WORLD,)
    """Ranks of the lives; the first is stopped where there is a second."""

    @property
    def name(self) -> str:
        """The combination in words."""
        return "+".join(sorted(self.features)) or "plain"

    @property
    def each(self) -> int:
        """Samples of a micro-batch. Batch norm over two samples says +1 and -1 whatever they are: rounding rules."""
        return 4 if self.recipe == "tiny" else 2

    @property
    def total(self) -> int:
        """Samples of a step."""
        return WORLD * self.each * (2 if "accumulation" in self.features else 1)

    @property
    def poison(self) -> tuple[int, ...]:
        """Bad positions: rank 0 in the third step, rank 1 in the sixth, or the fifth after a roll-back."""
        is_guarded = self.features & {"skip", "rollback"}
        return (2 * self.total, 5 * self.total + self.each) if is_guarded else ()


def main() -> int:
    """Print the table and, last, the figures as JSON; end with 1 when anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipes", nargs="+", default=["tiny", "nanochat", "layoutmaster", "atlas", "tfnet", "rdt"])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--worlds", type=int, nargs="*", default=[1, 4])
    parser.add_argument("--quick", action="store_true", help="two dense combinations instead of every pair")
    args = parser.parse_args()
    place, rows = Path(tempfile.mkdtemp(prefix="headway-matrix-")), []
    try:
        for recipe in args.recipes:
            began = time.monotonic()
            combinations = DENSE if args.quick else [*SINGLE, *MOVED, *cover_pairs(random.Random(args.seed))]
            rows += compare(place / recipe, recipe, combinations, args.worlds)
            done = [row for row in rows if row[0].recipe == recipe]
            wrong = sum(bool(why) for _, why in done)
            print(f"{recipe:>14} {len(done):>4} cases {wrong:>3} wrong {time.monotonic() - began:>6.0f} s", flush=True)
            for case, why in done:
                if why:
                    print(f"{'':>14} {case.strategy} {case.name} {case.worlds}: {'; '.join(why)[:400]}", flush=True)
    finally:
        shutil.rmtree(place)
    wrong = sum(bool(why) for _, why in rows)
    print(json.dumps({"cases": len(rows), "right": len(rows) - wrong, "wrong": wrong}))
    return int(wrong > 0)


def compare(
    place: Path, recipe: str, combinations: list[frozenset[str]], worlds: list[int]
) -> list[tuple[Case, list[str]]]:
    """Train every case of a recipe; return each with what is wrong about it."""
    words = RECIPES[recipe](place)
    cores = [features & MATHS for features in combinations]
    every = list(dict.fromkeys([*combinations, *cores]))
    cases = [Case(recipe, strategy, features) for features in every for strategy in STRATEGIES]
    found = train_all(place, words, cases)
    moved = [
        Case(recipe, strategy, features, (WORLD, world))
        for world in worlds
        for features in (frozenset({"resume"}), frozenset({"resume", "ema", "validation", "rollback"}))
        for strategy in STRATEGIES
    ]
    found |= train_all(place, words, moved)
    size = found[cases[0]]["size"]
    return [(case, judge(case, found, size)) for case in found]


def cover_pairs(dice: random.Random) -> list[frozenset[str]]:
    """Return combinations that together hold every pair of switches and guards, each on and off."""
    columns: list[tuple[str, ...]] = [*(("", name) for name in SWITCHES), GUARDS]
    places = range(len(columns))
    left = {
        (a, one, b, other) for a, b in itertools.combinations(places, 2) for one in columns[a] for other in columns[b]
    }
    rows = []
    while left:
        tries = [tuple(dice.choice(column) for column in columns) for _ in range(60)]
        held = [{(a, row[a], b, row[b]) for a, b in itertools.combinations(places, 2)} & left for row in tries]
        best = max(range(len(tries)), key=lambda n: len(held[n]))
        left -= held[best]
        rows.append(frozenset(filter(None, tries[best])))
    return rows


def train_all(place: Path, words: tuple[str, ...], cases: list[Case]) -> dict[Case, Found]:
    """Return what each case comes to; all lives on as many ranks share their processes."""
    found: dict[Case, Found] = {}
    lives = {case: make_lives(place, words, case) for case in cases}
    for turn in range(max(map(len, lives.values()), default=0)):
        worlds = {case: case.worlds[min(turn, len(case.worlds) - 1)] for case in cases if len(lives[case]) > turn}
        for world in sorted(set(worlds.values())):
            mine = [case for case in worlds if worlds[case] == world]
            for case, one in zip(mine, live_on(world, [lives[case][turn] for case in mine]), strict=True):
                found[case] = one
    for case in cases:
        manifest = find_resumable(Path(lives[case][0].place) / "checkpoints").manifest
        found[case]["size"] = manifest.meta["data_size"] if manifest else None
    return found


def make_lives(place: Path, words: tuple[str, ...], case: Case) -> list[Life]:
    """Return the attempts of a case."""
    mine = case.features - ({"offload"} if case.strategy == "ddp" else set())  # replicas have nothing to offload
    more = [word for name in sorted(mine) for word in WORDS.get(name, ())]
    folder = place / "-".join([case.strategy, case.name, *map(str, case.worlds)])
    life = Life(
        str(folder),
        (*words, *COMMON, f"batch.per_device={case.each}", f"parallel.strategy={case.strategy}", *more),
        poison=case.poison,
        poison_in="gradient" if "rollback" in case.features else "loss",
    )
    if "resume" not in case.features:
        return [life]
    again = replace(life, attempt=2)
    if case.worlds[-1] != WORLD:
        each = case.total // case.worlds[-1]
        strategy = "single" if case.worlds[-1] == 1 else case.strategy
        moved = (f"batch.per_device={each}", "batch.accumulation=1", f"parallel.strategy={strategy}")
        again = replace(again, words=(*life.words, *moved))
    return [replace(life, stop_at=STOP), again]


def judge(case: Case, found: dict[Case, Found], size: int) -> list[str]:
    """Return what is wrong with a case; nothing when it is right."""
    mine = found[case]
    if mine["end"] != "done":
        return [f"ended: {mine['end']}"]
    why = differ(mine, found[replace(case, strategy="ddp" if case.strategy == "fsdp" else "fsdp")])
    core = Case(case.recipe, case.strategy, case.features & MATHS)
    if case.worlds == (WORLD,) and by_step(mine, "losses") != by_step(found[core], "losses"):
        why.append(f"losses are not those of {core.name}")
    step, position, updates, ledger, skips = mine["place"]
    skips = [tuple(pair) for pair in skips]
    wanted = [(2 * case.total, 3 * case.total), (5 * case.total, 6 * case.total)] if "rollback" in case.features else []
    if skips != wanted:
        why.append(f"left out {skips}, not {wanted}")
    if (step, position) != (STEPS, (STEPS + len(wanted)) * case.total):
        why.append(f"ended at {step}, {position}")
    if updates != STEPS - (2 if "skip" in case.features else 0):
        why.append(f"{updates} updates")
    if ledger != expected_ledger(Order(size, 0), position, skips):
        why.append("samples are not each taken once")
    rates = by_step(mine, "rates")
    if 1 not in rates:
        why.append(f"the metrics begin at step {min(rates, default=None)}")
    elif any(not math.isclose(rates[n] * STEPS, rates[1] * (STEPS + 1 - n), rel_tol=1e-9) for n in rates):
        why.append(f"learning rates {rates}")
    if case.poison and case.worlds == (WORLD,) and {event["rank"] for event in mine["guard"]} != {0, 1}:
        why.append(f"blamed {mine['guard']}")
    return why


def differ(one: Found, other: Found) -> list[str]:
    """Return in what two runs differ by more than rounding."""
    why = []
    for what in ("losses", "rates"):
        mine, theirs = by_step(one, what), by_step(other, what)
        if mine.keys() != theirs.keys() or any(not is_close(mine[n], theirs[n]) for n in mine):
            why.append(f"{what} {mine} and {theirs}")
    measured = [{step: measures for step, measures, _ in run["validations"]} for run in (one, other)]
    if measured[0].keys() != measured[1].keys():
        return [*why, f"validated at {list(measured[0])} and {list(measured[1])}"]
    for step in measured[0]:
        mine, theirs = (run[step] for run in measured)
        why += [
            f"{name} at {step}: {mine[name]} and {theirs[name]}"
            for name in mine
            if not is_close(mine[name], theirs[name])
        ]
    if one["place"] != other["place"]:
        why.append(f"places {one['place']} and {other['place']}")
    blamed = [[(event["step"], event["rank"], event["what"]) for event in run["guard"]] for run in (one, other)]
    return why if blamed[0] == blamed[1] else [*why, f"blamed {blamed[0]} and {blamed[1]}"]


def by_step(run: Found, what: str) -> dict[int, float]:
    """Return a row of the metrics by step; of a step that was taken twice, the last."""
    return {int(step): value for step, value in zip(run["steps"], run[what], strict=True)}


def is_close(one: float, other: float) -> bool:
    """Tell whether two numbers are the same but for rounding."""
    return one == other or (math.isnan(one) and math.isnan(other)) or abs(one - other) <= CLOSE * max(1.0, abs(other))


def prepare(name: str, *words: str) -> tuple[str, ...]:
    """Make or check a recipe's data; return the words that choose recipe and data."""
    recipe = find_recipe(name)
    section = load_config(recipe=recipe, overrides=list(words)).config.task
    importlib.import_module(recipe.prepare).prepare(section, lambda line: None)
    return (f"recipe={name}", *words)


def prepare_nanochat(place: Path) -> tuple[str, ...]:
    """Two small layers, Muon and AdamW."""
    return prepare("nanochat", f"task.data_dir={place / 'data'}", "task.depth=2", "task.max_seq_len=32")


def prepare_layoutmaster(place: Path) -> tuple[str, ...]:
    """Two narrow blocks: of the default network 44 cases keep 100 GB of checkpoints, and a full disk judges none."""
    words = ("task.hidden_dim=32", "task.num_layers=2", "task.num_heads=2", "task.visual_dim=32", "task.image_size=32")
    return prepare("layoutmaster", *words, f"task.data_dir={place / 'data'}", "task.num_steps=2", "task.eval_steps=2")


def prepare_atlas(place: Path) -> tuple[str, ...]:
    """The toy, above frozen encoders."""
    place.mkdir(parents=True)
    write_toy(place, episodes=80)
    own = [f"task.{key}={list(value) if isinstance(value, tuple) else value}".lower() for key, value in TOY.items()]
    return prepare("atlas", *own, f"task.data_dir={place / 'data'}", f"task.cache_dir={place / 'cache'}")


def prepare_tfnet(place: Path) -> tuple[str, ...]:
    """Few frames and channels; batch norm, LSTM and CTC."""
    write_small(place / "data", clips=80)
    words = (*SMALL, "task.framework=torch", f"task.data_dir={place / 'data'}", "task.synthetic=true")
    return prepare("tfnet", *(word for word in words if not word.startswith("batch.")))


def prepare_rdt(place: Path) -> tuple[str, ...]:
    """Two narrow blocks; noise, hidden conditions and changed colours."""
    write_demos(place / "data", demos=3)
    words = (
        "task.hidden_size=16",
        "task.depth=2",
        "task.num_heads=2",
        "task.state_noise_snr=30",
        "task.image_aug=true",
    )
    trial = ("task.sample.batches=1", "task.sample.batch=2", "task.rollout.episodes=0")
    return prepare("rdt", *words, *trial, f"task.data_dir={place / 'data'}")


def prepare_tiny(place: Path) -> tuple[str, ...]:
    """The recipe of the tests, with batch norm, dropout and Muon."""
    return (f"recipe={TINY}", "task.norm=true", "optimizer.name=muon", "task.samples=4999")


RECIPES: dict[str, Callable[[Path], tuple[str, ...]]] = {
    name.removeprefix("prepare_"): function for name, function in list(globals().items()) if name.startswith("prepare_")
}

if __name__ == "__main__":
    sys.exit(main())
