"""How many small wrong changes of the code the tests notice, by folder.

`python bench/mutants.py [--seed 1] [--count 300] [--folders launch,checkpoint,…] [--limit 60] [--show]`

The unit tests run once with a record of which test runs which line (kept in --work for the next call on the same
files). Then each mutant is put into a copy of the repository and met with the tests that run its lines, the quickest
first, until one fails. A mutant that no unit test notices meets the tests of processes of its folder (--procs).
"""

from __future__ import annotations

import argparse
import collections
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from mutants_make import Mutant, draw

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = "launch,checkpoint,engine,planner,telemetry,config,diagnosis"
PROCS = {
    "launch": "launch_ failures run_signals run_streams run_torch nodes faults",
    "checkpoint": "checkpoint_ last_step real_sizes engine_matrix",
    "engine": "engine_ last_step run_lives",
    "planner": "plan_",
    "telemetry": "run_told watch_ run_torch",
    "config": "run_lives hints",
    "diagnosis": "launch_failures faults hints",
}
"""Which tests of processes are about a folder: the beginnings of their names."""
MOST = 400
"""Tests for one mutant: a line that more tests run is noticed by these or by none."""


def main() -> None:
    """Draw, run, and print a row per survivor and a table by folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--folders", default=FOLDERS)
    parser.add_argument("--limit", type=float, default=90.0, help="seconds per mutant; a test that hangs notices it")
    parser.add_argument("--procs", action="store_true", help="let survivors meet the tests of processes, too")
    parser.add_argument("--only", type=int, nargs="*", help="run these mutants of the draw")
    parser.add_argument("--show", action="store_true", help="print the mutants, and run none")
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "headway-mutants")
    words = parser.parse_args()
    folders = words.folders.split(",")
    drawn = draw(ROOT, folders, words.count, words.seed)
    numbered = [(n, one) for n, one in enumerate(drawn) if words.only is None or n in words.only]
    if words.show:
        for number, one in numbered:
            print(_row(number, one, ""))
        return
    began = time.monotonic()
    runner = Runner(words.work, words.limit)
    by_folder: dict[str, collections.Counter[str]] = {folder: collections.Counter() for folder in folders}
    ends: collections.Counter[str] = collections.Counter()
    for number, one in numbered:
        end = runner.meet(one, is_whole=words.procs)
        ends[end] += 1
        by_folder[_folder(one)]["killed" if end in ("killed", "hung") else "survived"] += 1
        if end not in ("killed", "hung"):
            print(_row(number, one, end), flush=True)
    killed = ends["killed"] + ends["hung"]
    print(f"\n{'folder':12} mutants  killed   share")
    for folder, counts in by_folder.items():
        total = counts.total()
        print(f"{folder:12} {total:7}  {counts['killed']:6}  {counts['killed'] / max(1, total):6.1%}")
    result = {
        "mutants": len(numbered),
        "killed": killed,
        "killed_share": round(killed / max(1, len(numbered)), 3),
        "hung": ends["hung"],
        "not_run_by_a_unit_test": ends["no test"],
        "by_folder": {name: round(one["killed"] / max(1, one.total()), 3) for name, one in by_folder.items()},
        "seed": words.seed,
        "seconds": round(time.monotonic() - began),
    }
    print(json.dumps(result))


class Runner:
    """A copy of the repository, what its tests run, and a process that has read pytest and torch already."""

    def __init__(self, work: Path, limit: float) -> None:
        """Copy the files, and learn which test runs which line."""
        self._limit = limit
        files = subprocess.check_output(["git", "ls-files", "-z"], cwd=ROOT, text=True).split("\0")
        files = [one for one in files if one and (ROOT / one).is_file()]
        state = hashlib.sha256()
        for one in files:
            if one.startswith(("src/", "tests/")):
                state.update(one.encode() + (ROOT / one).read_bytes())
        self._copy = work / state.hexdigest()[:16]
        if not (self._copy / "lines.json").exists():
            shutil.rmtree(self._copy, ignore_errors=True)
            for one in files:
                (self._copy / one).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / one, self._copy / one)
            shared = ROOT.parent / "shared"
            if shared.exists() and not (work / "shared").exists():
                (work / "shared").symlink_to(shared)
            learn(self._copy)
        kept = json.loads((self._copy / "lines.json").read_text())
        self._lines: dict[str, dict[str, list[int]]] = kept["lines"]
        self._names: list[str] = kept["tests"]
        self._seconds: dict[str, float] = kept["seconds"]

    def meet(self, mutant: Mutant, *, is_whole: bool) -> str:
        """Return "killed", "hung", "survived" or "no test"."""
        place = self._copy / mutant.path
        whole, times = place.read_bytes(), place.stat()
        text = mutant.source(ROOT)
        assert text is not None
        place.write_text(text, encoding="utf-8")
        try:
            tests = self._tests_of(mutant)
            end = self._run(tests) if tests else "no test"
            if end in ("survived", "no test") and is_whole:
                starts = PROCS[_folder(mutant)].split()
                found = sorted((self._copy / "tests" / "procs").glob("test_*.py"))
                found = [one for one in found if one.stem.removeprefix("test_").startswith(tuple(starts))]
                whole_end = self._run([str(one.relative_to(self._copy)) for one in found], 10 * self._limit)
                end = whole_end if whole_end != "survived" else end
            return end
        finally:
            place.write_bytes(whole)
            os.utime(place, ns=(times.st_atime_ns, times.st_mtime_ns))

    def _tests_of(self, mutant: Mutant) -> list[str]:
        lines = self._lines.get(mutant.path, {})
        found = {n for line in range(mutant.line, mutant.last_line + 1) for n in lines.get(str(line), [])}
        names = [self._names[n] for n in found]
        folder = f"tests/unit/{_folder(mutant)}/"
        return sorted(names, key=lambda one: (not one.startswith(folder), self._seconds.get(one, 1.0)))[:MOST]

    def _run(self, tests: list[str], limit: float | None = None) -> str:
        environment = {**os.environ, **_environment(self._copy)}
        # In this order, and the first failure is enough.
        line = [
            sys.executable,
            "-m",
            "pytest",
            "-x",
            "-q",
            "--no-header",
            "-p",
            "no:randomly",
            "-p",
            "no:cacheprovider",
        ]
        with tempfile.TemporaryDirectory() as place:
            names = Path(place) / "tests"
            names.write_text("\n".join(tests))
            child = subprocess.Popen(
                [*line, f"--basetemp={place}/base", "-m", "not alone", f"@{names}"],
                cwd=self._copy,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            try:
                code = child.wait(limit or self._limit)
            except subprocess.TimeoutExpired:
                return "hung"
            finally:
                try:
                    os.killpg(child.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
                child.wait()
        return "survived" if code == 0 else "killed"


def learn(copy: Path) -> None:
    """Run the unit tests once, with a note of which test runs which line."""
    with tempfile.TemporaryDirectory() as place:
        environment = {**os.environ, **_environment(copy), "HEADWAY_MUTANTS": place}
        environment["PYTHONPATH"] += os.pathsep + str(Path(__file__).parent)
        line = [sys.executable, "-m", "pytest", "-q", "-p", "mutants_lines", "-p", "no:randomly", "-n", "2"]
        code = subprocess.call(
            [*line, "--dist", "loadfile", "-m", "not alone", "tests/unit"], cwd=copy, env=environment, stdout=sys.stderr
        )
        lines: dict[str, dict[str, set[int]]] = {}
        names: dict[str, int] = {}
        seconds: dict[str, float] = {}
        failed: set[str] = set()
        for part in Path(place).glob("*.json"):
            one = json.loads(part.read_text())
            seconds |= one["seconds"]
            failed |= set(one["failed"])
            for path, by_line in one["lines"].items():
                for number, tests in by_line.items():
                    kept = lines.setdefault(path, {}).setdefault(number, set())
                    kept.update(names.setdefault(name, len(names)) for name in tests)
    print(f"unit tests: exit code {code}, {len(seconds)} tests, {len(failed)} failed (left out)", file=sys.stderr)
    bad = {names[name] for name in failed if name in names}
    found = {path: {n: sorted(one - bad) for n, one in by.items()} for path, by in lines.items()}
    (copy / "lines.json").write_text(json.dumps({"lines": found, "tests": list(names), "seconds": seconds}))


def _environment(copy: Path) -> dict[str, str]:
    return {"PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}


def _folder(mutant: Mutant) -> str:
    return mutant.path.split("/")[2]


def _row(number: int, mutant: Mutant, end: str) -> str:
    was, now = (" ".join(one.split())[:70] for one in (mutant.before, mutant.after))
    return f"{number:4} {end:9} {mutant.path}:{mutant.line}  {mutant.kind}: {was}  ->  {now}"


if __name__ == "__main__":
    main()
