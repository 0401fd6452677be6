"""Is what `headway run` starts what bash starts? Lines made by chance, run by both, and everything compared.

    python bench/same_as_bash.py [--seed 1] [--lines 2000] [--skip 0] [--real 60] [--torchrun 4]

Each line is run by bash and by Headway in equal folders. Every program in it is a probe that writes down its argv,
environment, working directory and input; files written and the exit code are compared too. Most lines go through
Headway's own decision and its own last step (`launch/foreign/exec.py`, in a fork), without a supervisor in between;
`--real` lines through the whole command. `--torchrun` lines compare the ranks of Headway with those of torch's own
torchrun.

The last line is JSON: `lines`, `same`, `refused_clearly`, `different`. Exit code 1 if anything differs.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from headway.adopt import check, read_line, understand, write_clean
from headway.errors import HeadwayError
from headway.launch import Claims
from headway.launch.foreign.exec import main as become
from headway.launch.history import History
from headway.launch.hook import HOOK_SITE
from headway.launch.job import ranks_environ, write_job
from headway.launch.outcome import SilentObserver
from headway.launch.program import RankOrder, Seat
from headway.launch.run import make_program
from headway.start.decide_line import LineWish, decide_line
from headway.telemetry import EventLog, RunDir
from same_as_bash_lines import LAUNCHERS, WRAPPERS, Line, make_lines

PROBE = """#!{python} -IS
import json, os, sys
read = lambda name: open(f"/proc/self/{{name}}", "rb").read().decode("utf-8", "surrogateescape").split("\\0")[:-1]
words, environ = read("cmdline")[2:], dict(one.partition("=")[::2] for one in read("environ"))
code = next((word[7:] for word in words if word.startswith("--exit=")), "0")
try:
    typed = os.read(0, 100).decode() if not code.startswith("k") else ""
except OSError as error:
    typed = str(error)
seen = {{"argv": words, "environ": environ, "cwd": os.getcwd(), "stdin": typed}}
with open("{record}", "ab", 0) as file:
    file.write(json.dumps(seen).encode() + b"\\n")
print(os.path.basename(words[0]), *words[1:])
if os.path.basename(words[0]) == "numactl":
    rest = [word for word in sys.argv[1:] if not word.startswith("--cpunode") and not word.startswith("--membind")]
    os.execvp(rest[0], rest)
sys.exit(int(code) if code.isdigit() else 0)
"""
SCRIPT = 'SOURCED="from $0"\npython inner.py "$@" $LR\n'
OWN = ("HEADWAY_", "TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE")
"""Variables that Headway documents as its own; its folder at the front of PYTHONPATH is the last of them."""
ELASTIC = (
    *("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_USE_AGENT_STORE", "TORCHELASTIC_ERROR_FILE"),
    "TORCHELASTIC_SIGNALS_TO_HANDLE",
)
"""Where ranks meet and report, and what the agent listens to, is the supervisor's: another value, or none."""
LINE_S = 180.0
_TIMES = re.compile(r"(?m)^(?:real|user|sys)\s[\d.ms]+$|^[\d.]+user .*$|^\d+inputs.*$")
"""What `time` has measured; no two runs agree."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What one way of running a line has done."""

    programs: list[str]
    files: dict[str, str]
    code: int


class World:
    """A folder with probes for programs, made again for every line."""

    def __init__(self, root: Path) -> None:
        self.root, self.record = root, root / "record"
        self.work, self.side = root / "work", root / "side"
        names = {word for line in (*LAUNCHERS, *WRAPPERS) for word in line.split()[:1]} | {"python", "python3"}
        own = {name for name in names if shutil.which(name, path="/usr/bin:/bin") is None or name.startswith("python")}
        (root / "bin").mkdir()
        probe = PROBE.format(python=os.path.realpath(sys.executable), record=self.record)
        bashs = {"env", "exec", "time", "command", "builtin"}
        plain = {name for name in own - bashs if re.fullmatch(r"[\w.-]+", name)}
        for name in sorted(plain | {"numactl"}):
            (root / "bin" / name).write_text(probe)
            (root / "bin" / name).chmod(0o755)
        self.probe = probe
        self.environ = {
            "PATH": f"{root}/bin:/usr/bin:/bin",
            "HOME": f"{root}/home",
            "TERM": "dumb",
            "SHLVL": "1",
            "PWD": str(self.work),
            "GPUS": "3",
            "LR": "0.5",
            "NGPU": "2",
            "DEBUG": "1",
            "EMPTY": "",
            "SPACED": "a b  c",
            "STAR": "*.txt",
            "REF": "LR",
            "X": "x",
            "HEADWAY_CLAIMS": f"{root}/claims",
        }

    def fresh(self) -> None:
        """Make the working folder again."""
        for place in (self.work, self.side, self.root / "home"):
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
        self.record.unlink(missing_ok=True)
        (self.work / "sub").mkdir()
        (self.work / "tools").mkdir()
        (self.work / "g").mkdir()
        (self.work / "数据").mkdir()
        for name in ("a.txt", "b.txt", "c d.txt", "g/1.bin", "g/2.bin", "数据/一.txt", ".arc", "sub/x.py"):
            (self.work / name).write_text(name)
        (self.work / "in.txt").write_text("first line\nsecond\n")
        (self.work / "x.sh").write_text(SCRIPT)
        (self.work / "tools" / "dist_train.sh").write_text(SCRIPT)
        (self.work / "tool.py").write_text(self.probe)
        (self.work / "tool.py").chmod(0o755)
        (self.work / "数据" / "我的 程序.py").write_text(self.probe)
        (self.work / "数据" / "我的 程序.py").chmod(0o755)
        (self.side / "stdin").write_text("typed\n")

    def look(self, code: int) -> Seen:
        """Return what was done since it was made."""
        text = self.record.read_text() if self.record.exists() else ""
        files = {
            str(path.relative_to(self.work)): _TIMES.sub("", path.read_text(errors="surrogateescape"))
            for path in sorted(self.work.rglob("*"))
            if path.is_file()
        }
        return Seen(sorted(_plain(json.loads(line)) for line in text.splitlines()), files, code)


def _plain(seen: dict[str, Any]) -> str:
    """Return a probe's record without what Headway documents as its own."""
    environ = {name: value for name, value in seen["environ"].items() if not name.startswith(OWN)}
    path = [one for one in environ.get("PYTHONPATH", "").split(":") if one not in ("", str(HOOK_SITE))]
    environ["PYTHONPATH"] = ":".join(path)
    if not environ["PYTHONPATH"]:
        del environ["PYTHONPATH"]
    return json.dumps({**seen, "environ": environ}, sort_keys=True, ensure_ascii=False)


def by_bash(world: World, line: Line) -> Seen:
    """Run a line as bash does."""
    world.fresh()
    environ = {**world.environ, **line.surroundings}
    # Headway waits for what was put in the background, and says so.
    command = ["bash", "-c", f"{line.text}\nwait $!" if _is_behind(line) else line.text]
    if line.mode == "script":
        (world.work / "run.sh").write_text(line.text)
        command = ["bash", "run.sh"]
    with open(world.side / "stdin", "rb") as stdin:
        # What a line starts in the background must not hold our pipes.
        done = subprocess.run(
            command, cwd=world.work, env=environ, stdin=stdin, capture_output=True, timeout=LINE_S, check=False
        )
    return world.look(done.returncode if done.returncode >= 0 else 128 - done.returncode)


def _words_of(world: World, line: Line) -> tuple[str, ...]:
    """Return what is typed behind `headway run`."""
    if line.mode == "words":
        return line.words
    if line.mode == "script":
        (world.work / "run.sh").write_text(line.text)
        return ("run.sh",)
    if line.mode == "clean":
        meaning = understand(line.text)
        launch = meaning.launch
        if launch is None:
            return (line.text,)
        path = world.side / "launch.yaml"
        path.write_text(write_clean(launch, check(meaning), one_line=meaning.one_line), encoding="utf-8")
        return (str(path),)
    return (line.text,)


@contextlib.contextmanager
def _as_started(world: World, surroundings: Mapping[str, str]) -> Iterator[None]:
    """Be, for a moment, in the line's folder with the line's environment and nothing else."""
    before, place = dict(os.environ), os.getcwd()
    os.environ.clear()
    os.environ.update({**world.environ, **surroundings})
    os.chdir(world.work)
    try:
        yield
    finally:
        os.chdir(place)
        os.environ.clear()
        os.environ.update(before)


def by_decision(world: World, line: Line) -> Seen:
    """Run a line through Headway's decision and its last step, in forks of this process.

    Raises:
        HeadwayError: it is refused.
    """
    world.fresh()
    words = _words_of(world, line)
    with _as_started(world, line.surroundings):
        code = run_decided(world, words)
    return world.look(code)


def run_decided(world: World, words: tuple[str, ...]) -> int:
    """Decide, then become each rank in turn; return the first exit code that is not 0."""
    read = read_line(words)
    place = RunDir(world.side / "run")
    place.root.mkdir()
    job = decide_line(read, LineWish(grace=1.0, out=world.side), Claims("same-as-bash"), print).job
    write_job(place, job)
    log = EventLog(place.events)
    log.close()
    program = make_program(place, job, History(log, SilentObserver()))
    seats = [
        Seat(attempt=1, rank=rank, local_rank=rank, world_size=job.world_size, port=29400)
        for rank in range(job.world_size)
    ]
    codes = [_become(program.order(seat), ranks_environ(job), world.side / "stdin") for seat in seats]
    return next((code for code in codes if code), 0)


def _become(order: RankOrder, environ: dict[str, str], typed: Path) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            os.dup2(os.open(typed, os.O_RDONLY), 0)
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, 1)
            os.dup2(nothing, 2)
            os.environ.clear()
            os.environ.update({**environ, **order.env})
            become(dict(order.call))
        finally:
            os._exit(126)
    with _deadline(pid):
        status = os.waitpid(pid, 0)[1]
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


@contextlib.contextmanager
def _deadline(pid: int) -> Iterator[None]:
    def end(signum: int, frame: object) -> None:
        os.kill(pid, signal.SIGKILL)

    signal.signal(signal.SIGALRM, end)
    signal.alarm(int(LINE_S))
    try:
        yield
    finally:
        signal.alarm(0)


def by_command(world: World, line: Line) -> Seen:
    """Run a line through the whole command.

    Raises:
        HeadwayError: it is refused.
    """
    world.fresh()
    words = _words_of(world, line)
    runs = world.side / "runs"
    command = [sys.executable, "-m", "headway", "run", "--out", str(runs), *words]
    environ = {**world.environ, **line.surroundings}
    with open(world.side / "stdin", "rb") as stdin:
        done = subprocess.run(
            command, cwd=world.work, env=environ, stdin=stdin, capture_output=True, timeout=LINE_S, check=False
        )
    if not runs.exists() and done.returncode == 2 and b"error" in done.stderr:
        raise HeadwayError("cli/bug", version=done.stderr.decode("utf-8", "replace")[:200])
    return world.look(done.returncode)


def compare(line: Line, one: Seen, other: Seen) -> list[str]:
    """Return what differs, in words."""
    found = []
    if one.code != other.code:
        found.append(f"exit code {one.code} / {other.code}")
    if one.files != other.files:
        names = {name for name in one.files | other.files if one.files.get(name) != other.files.get(name)}
        found.append(f"files {sorted(names)}")
    left, right = (_without_level(seen.programs, line) for seen in (one, other))
    for mine, yours in zip(left, right, strict=False):
        if mine != yours:
            a, b = json.loads(mine), json.loads(yours)
            names = [key for key in a if key != "environ" and a[key] != b[key]]
            names += [key for key in a["environ"] | b["environ"] if a["environ"].get(key) != b["environ"].get(key)]
            pairs = [(key, a.get(key, a["environ"].get(key)), b.get(key, b["environ"].get(key))) for key in names]
            found.append(f"program {pairs}")
    if len(left) != len(right):
        found.append(f"{len(left)} / {len(right)} programs")
    return found


def _is_behind(line: Line) -> bool:
    return line.mode != "script" and line.text.rstrip().endswith("&")


def _without_level(programs: list[str], line: Line) -> list[str]:
    """Leave out what a shell sets for its programs where the user's own has made the words, or bash one for `&`."""
    if line.mode != "words" and not _is_behind(line):
        return programs
    kept = [json.loads(one) for one in programs]
    for one in kept:
        for name in ("SHLVL", "_", "SHELLOPTS", "BASHOPTS", "IFS", "PS4"):
            one["environ"].pop(name, None)
        if _is_behind(line):  # bash gives it no input, since a terminal could not be shared
            one.pop("stdin", None)
    return sorted(json.dumps(one, sort_keys=True, ensure_ascii=False) for one in kept)


RANK = "import json, os, sys; print(json.dumps([sys.orig_argv, dict(os.environ)]))\n"
RANK_LINES = (
    ("torchrun --nproc_per_node=2 rank.py --lr 0.1 'a b' 'r${local_rank}' '$$'", {}),
    ("torchrun --standalone --role=train -m rank x", {"PET_NPROC_PER_NODE": "2"}),
    ("python -m torch.distributed.launch --master_port=29511 --nproc_per_node=2 rank.py a", {"OMP_NUM_THREADS": "3"}),
    ("python -m torch.distributed.run --max-restarts=2 --no_python ./prog a b", {"PET_NNODES": "1:1"}),
)


def ranks_of_torchrun(world: World, number: int) -> Iterator[tuple[str, list[str]]]:
    """Compare the ranks that Headway starts with those of torch's own launcher."""
    programs = Path(sys.executable).parent
    for text, more in RANK_LINES[:number]:
        world.fresh()
        (world.work / "rank.py").write_text(RANK)
        (world.work / "prog").write_text(f"#!{programs}/python\n{RANK}")
        (world.work / "prog").chmod(0o755)
        environ = {**world.environ, **more, "PATH": f"{programs}:/usr/bin:/bin"}
        by_torch = subprocess.run(
            ["bash", "-c", text], cwd=world.work, env=environ, capture_output=True, text=True, timeout=300, check=False
        )
        ours = subprocess.run(
            [sys.executable, "-m", "headway", "run", "--out", str(world.side / "runs"), text],
            cwd=world.work,
            env=environ,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        runs = sorted((world.side / "runs").glob("2*"))
        logs = sorted((runs[-1] / "ranks").glob("*/stdout*")) if runs else []
        mine = [line for log in logs for line in log.read_text().splitlines()]
        theirs = [line for line in by_torch.stdout.splitlines() if line.startswith("[[")]
        left, right = (sorted(map(_rank_record, lines)) for lines in (theirs, mine))
        found = [f"{one} / {other}" for one, other in zip(left, right, strict=False) if one != other]
        if len(left) != len(right) or not left:
            found.append(f"{len(left)} / {len(right)} ranks: {by_torch.stderr[-300:]} {ours.stderr[-300:]}")
        yield text, found


def _rank_record(line: str) -> str:
    argv, environ = json.loads(line)
    seen = {"argv": argv, "environ": {name: value for name, value in environ.items() if name not in ELASTIC}}
    seen["environ"].pop("LC_CTYPE", None)  # Python's own, set by each rank for itself
    return _plain(seen)


def main() -> int:
    """Run, print the table and the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=2000)
    parser.add_argument("--skip", type=int, default=0, help="of the seed's lines, those before this one")
    parser.add_argument("--real", type=int, default=60, help="of them through the whole command")
    parser.add_argument("--torchrun", type=int, default=4, help="lines compared with torch's own launcher")
    parser.add_argument("--seed", type=int, default=1)
    wanted = parser.parse_args()
    random = Random(wanted.seed)
    counts: Counter[tuple[str, str]] = Counter()
    shown = 0
    with tempfile.TemporaryDirectory(prefix="same-as-bash-") as folder:
        world = World(Path(folder).resolve())
        for number, line in enumerate(make_lines(random, wanted.skip + wanted.lines)[wanted.skip :]):
            is_real = number < wanted.real
            verdict, why = judge(world, line, is_real=is_real)
            counts[("command" if is_real else line.mode, verdict)] += 1
            if number % 100 == 99:
                print(f"{number + 1} lines", file=sys.stderr, flush=True)
            if verdict != "same" and shown < 40:
                shown += verdict == "different"
                print(f"{verdict} {line.mode} {line.text!r}\n    {why}", file=sys.stderr)
        for text, found in ranks_of_torchrun(world, wanted.torchrun):
            counts[("torchrun", "different" if found else "same")] += 1
            for one in found:
                print(f"different ranks {text!r}\n    {one}", file=sys.stderr)
    return tell(counts, wanted.seed)


def judge(world: World, line: Line, *, is_real: bool) -> tuple[str, str]:
    """Return the verdict on one line, and why."""
    reference = by_bash(world, line)
    try:
        ours = (by_command if is_real else by_decision)(world, line)
    except HeadwayError as refused:
        return "refused_clearly", f"{refused.code} {refused}"
    found = compare(line, reference, ours)
    return ("different", "; ".join(found)) if found else ("same", "")


def tell(counts: Counter[tuple[str, str]], seed: int) -> int:
    """Print the table and, last, the figures."""
    verdicts = ("same", "refused_clearly", "different")
    print(f"{'given as':<12}{''.join(f'{verdict:>18}' for verdict in verdicts)}")
    for mode in sorted({mode for mode, _ in counts}):
        print(f"{mode:<12}{''.join(f'{counts[(mode, verdict)]:>18,}' for verdict in verdicts)}")
    sums = {verdict: sum(counts[key] for key in counts if key[1] == verdict) for verdict in verdicts}
    print(json.dumps({"seed": seed, "lines": sum(sums.values()), **sums}))
    return 1 if sums["different"] else 0


if __name__ == "__main__":
    sys.exit(main())
