"""Attack Headway with what users, other users and failing disks can do to it; count what it does wrong.

    python bench/attack.py [--tries 10000] [--seconds S] [--seed 0] [--at-once 2] [--family NAME] [--show 20]

A try is one command against one hostile thing that its family makes from the seed: a bad command line, a config with
one wrong value, a run directory that is damaged, links planted in it, secrets in the environment, a stream that breaks,
a disk that fails, a run that lives, a script, a page, weights or a recipe from others, a signal. Most commands run
inside a forked worker, which costs milliseconds; a share of them are real processes that start ranks. Every try has its
own number, so `--seed 3 --only 4711` repeats one.

Wrong are: a traceback or exit code 1 (`tracebacks`), an exit code that is not documented, an answer that is not JSON,
a file touched that no command may touch, a run that ends otherwise than undisturbed (`wrong_results`), a secret or a
control character that gets out (`leaks`), a command that does not end (`hangs`). The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests")]

from attack_families import FAMILIES, Field, Verdict, make_field  # noqa: E402 - the path above

KINDS = ("tracebacks", "wrong_results", "leaks", "hangs")


def attack(field: Field, seed: int, number: int, family: str | None = None) -> Verdict:
    """Carry out one try."""
    chance = random.Random(f"{seed}/{number}")
    names = list(FAMILIES)
    name = family or chance.choices(names, [FAMILIES[one].weight for one in names])[0]
    place = Path(tempfile.mkdtemp(dir=field.place, prefix="try-"))
    try:
        return FAMILIES[name].attack(field, chance, place)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def campaign(
    field: Field,
    seed: int,
    tries: int,
    seconds: float,
    at_once: int = 1,
    family: str | None = None,
    on_wrong: Callable[[int, Verdict | None], None] = lambda number, verdict: None,
) -> dict:
    """Try until the number or the time is used up; return the counts and what was found."""
    until = time.monotonic() + seconds
    found: Counter[str] = Counter()
    examples: list[tuple[int, Verdict]] = []

    def one(number: int) -> None:
        if time.monotonic() >= until:
            return
        verdict = attack(field, seed, number, family)
        found["tried"] += 1
        found[f"family {verdict.family}"] += 1
        for kind in verdict.wrong:
            found[kind] += 1
        if verdict.wrong:
            examples.append((number, verdict))
            on_wrong(number, verdict)
        if found["tried"] % 500 == 0:
            on_wrong(number, None)

    with ThreadPoolExecutor(at_once) as pool:
        list(pool.map(one, range(tries)))
    return {"found": found, "examples": examples}


def main() -> None:
    """Attack, print what was found, and the counts."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tries", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=7200.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--at-once", type=int, default=2)
    parser.add_argument("--family", choices=tuple(FAMILIES))
    parser.add_argument("--only", type=int, help="repeat the try of this number and show all of it")
    parser.add_argument("--show", type=int, default=20, help="examples to print")
    given = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="headway-attack-") as temp, make_field(Path(temp)) as field:
        if given.only is not None:
            print(attack(field, given.seed, given.only, given.family).text(10_000))
            return
        shown = 0

        def tell(number: int, verdict: Verdict | None) -> None:
            nonlocal shown
            if verdict is None:
                print(f"try {number} after {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
            elif (shown := shown + 1) <= given.show:
                print(f"--seed {given.seed} --only {number}\n{verdict.text(1500)}\n", flush=True)

        words = (given.seed, given.tries, given.seconds, given.at_once, given.family, tell)
        done = campaign(field, *words)
    found = done["found"]
    for name in FAMILIES:
        print(f"{name:10} {found[f'family {name}']:6}")
    print(f"{time.monotonic() - began:.0f} s")
    print(json.dumps({"tried": found["tried"], **{kind: found[kind] for kind in KINDS}}))


if __name__ == "__main__":
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    main()
