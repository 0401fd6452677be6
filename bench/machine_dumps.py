"""How well recorded machines are read and judged: facts, verdicts, and whether anything crashes.

A case counts when all three hold: its command is recognised, every expected fact is found with its exact value, and the
verdict agrees. A verdict agrees when a machine without problems gets no warning, and when each expected problem is told
by a finding of its subject. Problems are sentences, so a table of subjects (below) says which findings may answer one;
a sentence of no known subject must share a telling word or number with a finding. Sentences about the recording itself
("rows elided", "old layout") are answered by the facts alone.

    python bench/machine_dumps.py --index path/to/index.jsonl [--fuzz 100000] [--seed 1]
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headway.machine import Finding, judge_machine, read_dump, report_from
from headway.messages import hint, say

SAME = {"nvidia_smi_and_nvcc": ("nvidia_smi", "nvcc")}
RECORDING = re.compile(
    r"header wording|escape code|old layout|old table|elided|\[N/A\]|reads NA\b|cut by|truncated|without HBM", re.I
)
SUBJECTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"no process is visible|process list is empty|no process table|invisible", ("gpu-memory-unseen", "gpu-busy")),
    (r"vgpu", ("vgpu-host", "driver-no-cuda")),
    (r"desktop|xorg|compositor|gnome|display", ("gpu-desktop", "gpu-busy")),
    (r"no MIG device", ("mig-empty",)),
    (r"\bMIG\b", ("mig-on", "mig-empty")),
    (r"persistence", ("gpu-persistence-off",)),
    (r"mixed|different (?:gpu )?models", ("gpus-differ",)),
    (r"nvlinks? inactive|nvlinks? down|lost its nvlink", ("nvlink-down",)),
    (r"no nvlink|PHB|\bSYS\b|PCIe only", ("links-slow", "links-pcie", "p2p-closed")),
    (r"forward-compat|compat(?:ibility)? librar", ("cuda-compat",)),
    (r"nvidia-smi .*differs from driver", ("smi-differs",)),
    (r"kepler|maxwell|compute capability|no current torch support", ("gpu-too-old", "driver-old", "gpu-no-bf16")),
    (r"toolkit .*(?:newer|than the driver)", ("toolkit-newer",)),
    (r"cudatoolkit", ("packages-disagree",)),
    (r"torchvision", ("vision-pair",)),
    (r"debug build", ("torch-debug",)),
    (r"toolkit|runtime \d|nvcc", ("toolkit-differs", "toolkit-old", "toolkit-newer")),
    (r"driver/library|version mismatch", ("driver-mismatch",)),
    (r"old driver|driver \d+: CUDA|too old|at most", ("driver-old", "driver-too-old")),
    (r"remap failed|remapping failure", ("gpu-remap-failed", "xid-remap-failed")),
    (r"remap|reset needed", ("gpu-remap-pending", "xid-remap", "gpu-needs")),
    (r"retired|page blacklist", ("gpu-pages-pending", "gpu-pages-retired")),
    (r"uncorrect|double.bit", ("gpu-uncorrected", "xid-memory")),
    (r"correctable|single.bit", ("gpu-corrected", "gpu-uncorrected")),
    (r"ECC (?:is )?(?:disabled|off)", ("gpu-ecc-off",)),
    (r"ECC mode", ("gpu-ecc-pending",)),
    (r"slowdown|throttl|power brake", ("gpu-throttled", "gpu-power-capped")),
    (r"exclusive|compute mode|prohibited", ("gpu-exclusive", "gpu-prohibited")),
    (r"ERR!|sensor", ("gpu-sensor-broken", "gpu-lost")),
    (r"pcie.*(?:lane|width|x\d|link)", ("gpu-pcie-narrow",)),
    (r"fabric", ("gpu-fabric",)),
    (r"WSL|WDDM", ("wsl", "gpu-wddm")),
    (r"SXid", ("sxid",)),
    (r"Xid", ("xid-", "gpu-fallen")),
    (r"fallen off", ("gpu-fallen", "gpu-lost")),
    (r"is lost|does not answer|unknown error", ("gpu-lost", "container-lost", "gpu-fallen")),
    (r"container lost", ("container-lost",)),
    (r"no gpu found|no devices?|not? .*initiali", ("no-devices", "driver-not-loaded", "gpu-init-failed")),
    (r"killed|out of memory", ("oom-",)),
    (r"swap exhausted|swap (?:is )?full", ("swap-full",)),
    (r"no swap", ("no-swap",)),
    (r"/dev/shm|shm", ("shm-",)),
    (r"locked memory|memlock", ("memlock-low",)),
    (r"open files", ("nofile-low",)),
    (r"user processes|nproc", ("nproc-low",)),
    (r"quota", ("quota-low",)),
    (r"inode", ("mount-filling", "disk-")),
    (r"infiniband|\bIB\b|\bHCA\b|port .*(?:down|polling)", ("ib-down",)),
    (r"infoROM", ("gpu-inforom",)),
    (
        r"\b(?:RAM|memory)\b.*|^[\d.]+ ?G\w* of",
        ("memory-small", "memory-low", "gpu-memory-unseen", "gpu-busy", "gpu-small"),
    ),
    (r"only \d+ CPU|few cores|\d+ CPUs", ("few-cores",)),
    (r"% full|left|disk", ("mount-filling", "disk-", "gpu-busy")),
    (r"runtime is runc|default runtime", ("docker-default",)),
    (r"nvidia runtime", ("docker-no-nvidia",)),
    (r"CPU-only|CUDA not available|cpu build", ("torch-cpu-build", "cuda-unavailable")),
    (r"not compatible|incompatible", ("ops-missing",)),
    (r"low-power", ("rocm-low-power",)),
    (r"health|warning|alarm", ("npu-unwell",)),
    (r"\d+ ?°?C\b|hot", ("gpu-hot", "npu-hot", "gpu-busy")),
    (r"busy|process|services?|held|hold|occupied|load|is full|in use|\d+ %", ("gpu-busy", "npu-busy", "gpu-desktop")),
    (r"laptop|\d+ GB|small", ("gpu-small",)),
)


SPLINTERS = ["|", "N/A", "ERR!", "\0", "\x1b[4m", "é", "９", "²", ":", ",", "-1", "(", "%"]


@dataclass(frozen=True)
class Case:
    """One recorded text and what should be found in it."""

    name: str
    kind: str
    text: str
    facts: dict[str, Any]
    problems: list[str]


def load(index: Path) -> list[Case]:
    """Return the cases of an index; texts are beside it."""
    cases = []
    for line in index.read_text(encoding="utf-8").splitlines():
        if not line.strip():
            continue
        row = json.loads(line)
        text = (index.parent / row["file"]).read_text(encoding="utf-8", errors="replace")
        facts = {key: value for key, value in row["expected"].items() if key != "problems"}
        cases.append(Case(row["id"], row["kind"], text, facts, row["expected"].get("problems", [])))
    return cases


def differences(want: Any, have: Any, place: str = "") -> Iterator[str]:
    """Yield every expected value that is absent or other; what we found beyond it is not a fault."""
    if isinstance(want, dict):
        if not isinstance(have, dict):
            yield f"{place}: want {want!r}, have {have!r}"
            return
        for key, value in want.items():
            if key not in have and value is not None:
                yield f"{place}.{key}: want {value!r}, not found"
            else:
                yield from differences(value, have.get(key), f"{place}.{key}")
    elif isinstance(want, list):
        if not isinstance(have, list) or len(want) != len(have):
            yield f"{place}: want {want!r}, have {have!r}"
            return
        for number, (one, other) in enumerate(zip(want, have, strict=True)):
            yield from differences(one, other, f"{place}[{number}]")
    elif want != have:
        yield f"{place}: want {want!r}, have {have!r}"


def answers(problem: str, findings: tuple[Finding, ...]) -> bool:
    """Whether one of the findings tells this problem."""
    if RECORDING.search(problem):
        return True
    for pattern, names in SUBJECTS:
        if re.search(pattern, problem, re.I):
            return any(finding.code.removeprefix("machine/").startswith(names) for finding in findings)
    words = {word for word in re.findall(r"[\w.:]{3,}", problem.lower()) if any(c.isdigit() for c in word)}
    return any(words & set(re.findall(r"[\w.:]{3,}", _text(one).lower())) for one in findings)


def _text(finding: Finding) -> str:
    return say(finding.code, "en", **finding.facts)


def grade(case: Case) -> tuple[list[str], list[str]]:
    """Return what is wrong with the facts and with the verdict of one case."""
    dump = read_dump(case.text)
    kinds = SAME.get(case.kind, (case.kind,))
    have = {key: value for kind in kinds for key, value in dump.parts.get(kind, {}).items()}
    facts = [] if dump.kinds[:1] == kinds[:1] else [f"recognised as {dump.kinds}, not {case.kind}"]
    facts += differences(case.facts, have)
    findings = tuple(one for one in judge_machine(report_from(dump)) if one.level != "ok")
    for finding in findings:
        for lang in ("en", "zh"):
            say(finding.code, lang, **finding.facts), hint(finding.code, lang, **finding.facts)
    loud = [finding for finding in findings if finding.level in ("warn", "stop")]
    verdict = [f"not told: {problem}" for problem in case.problems if not answers(problem, findings)]
    if not case.problems:
        verdict += [f"false alarm: {_text(finding)}" for finding in loud]
    return facts, verdict


def mutate(text: str, others: list[str], dice: random.Random) -> str:
    """Return a damaged variant: cut, mixed, repeated, with wrong numbers, bytes and lines."""
    for _ in range(dice.randint(1, 4)):
        place = dice.randrange(len(text) + 1)
        match dice.randrange(9):
            case 0:
                text = text[:place]
            case 1:
                text = text[place:]
            case 2:
                text = text[:place] + dice.choice(SPLINTERS) + text[place:]
            case 3:
                end = place + dice.randrange(200)
                text = text[:place] + text[end:]
            case 4:
                lines = text.splitlines()
                dice.shuffle(lines)
                text = "\n".join(lines)
            case 5:
                text = re.sub(
                    r"\d+",
                    lambda found: dice.choice(["", "0", "9" * 40, "1e9", found[0]]),
                    text,
                    count=dice.randint(1, 9),
                )
            case 6:
                other = dice.choice(others)
                text = text[:place] + other[dice.randrange(len(other) + 1) :]
            case 7:
                text = text.replace(dice.choice([" ", "\n", "|", ":", "GPU"]), dice.choice(["", "\t", "  ", "||"]))[
                    :200_000
                ]
            case _:
                line = text[place : place + 120]
                text = text[:place] + line * dice.randint(2, 30) + text[place:]
    return text[:200_000]


def fuzz(cases: list[Case], number: int, seed: int) -> tuple[int, float, list[str]]:
    """Return (crashes, slowest variant in seconds, the first tracebacks)."""
    dice = random.Random(seed)
    texts = [case.text for case in cases]
    crashes, slowest, shown = 0, 0.0, []
    for _ in range(number):
        # Short texts more often: a crash in one is quicker to find and to read.
        text = mutate(min(dice.choices(texts, k=2), key=len), texts, dice)
        began = time.perf_counter()
        try:
            dump = read_dump(text)
            for finding in judge_machine(report_from(dump)):
                say(finding.code, "zh", **finding.facts), hint(finding.code, "en", **finding.facts)
        except Exception:
            crashes += 1
            if len(shown) < 5:
                shown.append(f"{traceback.format_exc()}\n{text[:400]!r}")
        slowest = max(slowest, time.perf_counter() - began)
    return crashes, slowest, shown


def main() -> int:
    """Print every miss, a table and the figures."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--index", type=Path, required=True)
    options.add_argument("--fuzz", type=int, default=0, help="damaged variants to try")
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    cases = load(given.index)
    rows: dict[str, Counter[str]] = {}
    for case in cases:
        facts, verdict = grade(case)
        row = rows.setdefault(case.kind, Counter())
        row.update(cases=1, facts=not facts, verdict=not verdict, right=not facts and not verdict)
        for miss in (*(f"fact     {one}" for one in facts), *(f"verdict  {one}" for one in verdict)):
            print(f"miss  {case.name:28} {miss}")
    print(f"{'kind':24}{'cases':>7}{'facts':>7}{'verdict':>9}{'right':>7}")
    for kind, row in rows.items():
        print(f"{kind:24}{row['cases']:>7}{row['facts']:>7}{row['verdict']:>9}{row['right']:>7}")
    total = sum(rows.values(), Counter())
    figures: dict[str, Any] = {
        "cases": total["cases"],
        "facts_accuracy": round(total["facts"] / total["cases"], 4),
        "verdict_accuracy": round(total["verdict"] / total["cases"], 4),
        "accuracy": round(total["right"] / total["cases"], 4),
    }
    if given.fuzz:
        crashes, slowest, shown = fuzz(cases, given.fuzz, given.seed)
        print(*shown, sep="\n")
        figures |= {"fuzzed": given.fuzz, "crashes": crashes, "slowest_s": round(slowest, 3)}
    print(json.dumps(figures))
    return 0 if figures["accuracy"] >= 0.95 and not figures.get("crashes") else 1


if __name__ == "__main__":
    sys.exit(main())
