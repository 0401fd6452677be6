"""How often a healthy run is called ill, and how many planted faults are found, over seeds of made-up noisy runs.

`python bench/live_findings.py [--seeds 20] [--first 0] [--steps 10000]`
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from fakes.noisy_runs import FAULTS, Made


def main() -> None:
    """Play every seed healthy, and once with every fault."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--steps", type=int, default=10_000)
    words = parser.parse_args()
    seeds = range(words.first, words.first + words.seeds)
    began, false_alarms, found, missed, others = time.process_time(), 0, 0, 0, 0
    for seed in seeds:
        run = Made(seed=seed, steps=words.steps)
        run.play()
        false_alarms += len(run.codes())
        for code in sorted(run.codes()):
            print(f"false alarm  seed {seed:4}  {code}")
    print(f"{'fault':16} found  missed  beside it")
    for fault, wanted in FAULTS.items():
        hits, beside = 0, set()
        for seed in seeds:
            run = Made(seed=seed, steps=words.steps, fault=fault)
            run.play()
            codes = run.codes()
            hits += bool(codes & set(wanted))
            beside |= codes - set(wanted)
        found, missed, others = found + hits, missed + len(seeds) - hits, others + len(beside)
        print(f"{fault:16} {hits:5}  {len(seeds) - hits:6}  {', '.join(sorted(beside)) or '-'}")
    result = {
        "seeds": len(seeds),
        "steps": words.steps,
        "false_alarms": false_alarms,
        "found": found,
        "missed": missed,
        "seconds": round(time.process_time() - began, 1),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
