"""Provoke errors by real commands, in both languages, and type what their hints say.

    python bench/hints.py [--only TEXT] [--lang en|zh] [--part K/N] [--every N] [--seed 0] [--show]

Every row of `rows/hints.jsonl` is a command (`type`; its last line is the command, those above it stay in its shell)
and what is done `before` it. It is run in a copy of a small folder with one finished run. The printed lines that are to
be typed are then run as they are on the screen: `bash -n` first, then the line itself in another copy. Training lines
get `--dry-run`; programs that change the machine or that are not here (sudo, pip, nvidia-smi) are answered by a stub
that takes any arguments. A line claims a cure when it is the user's own command put right, or when it changes a file, a
variable or a limit: then the error must be gone afterwards.

Last line: `codes` (different ones seen that have a hint), `hints` (codes and languages), `commands` (lines to type),
`runnable`, `claims`, `cured` (shares of the commands, of the claims), and `lost` (hints not printed whole).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from headway.cli.main import main as headway_main
from headway.machine.cpu import LIMITS
from headway.messages import LANGUAGES, find_text

ROOT = Path(__file__).resolve().parent.parent
ROWS = ROOT / "bench" / "rows" / "hints.jsonl"

LIMIT_S = 240
"""A command that takes longer hangs; it makes its data first, and other work may share the cores."""
_CODE = re.compile(r"\[([a-z]+/[a-z0-9.-]+)\]")
_STUBS = (
    *("sudo", "pip", "nvidia-smi", "npu-smi", "reboot", "dmesg", "lspci", "ibstat", "quota", "ds_report", "scontrol"),
    *("systemctl", "lsof", "free", "ps"),
)
"""Programs that change the machine, or that are not on every machine."""
_LOOKS = ("python", "ls", "df", "du", "cat", "kill", "./train_dual_gpu.sh", "bash")
_CHANGES = ("sed", "iconv", "expand", "mkdir", "rm", "chmod", "unset", "export", "ulimit", "cd")
_PLACEHOLDER = re.compile(r"(?<![\w./-])(FILE|RUN|DIR|NAME|VALUE|PATH|N)(?![\w=])|…|<[a-z]|[，；：（）]")
_NOT_FOUND = (126, 127)


@dataclass
class Said:
    """What a command printed and how it ended."""

    code: int
    text: str

    @property
    def codes(self) -> list[str]:
        """Return the codes of what it printed, in order."""
        return list(dict.fromkeys(_CODE.findall(self.text)))


@dataclass
class Tally:
    """What was found."""

    codes: set[str] = field(default_factory=set)
    hints: set[tuple[str, str]] = field(default_factory=set)
    commands: int = 0
    runnable: int = 0
    claims: int = 0
    cured: int = 0
    lost: int = 0
    wrong: list[str] = field(default_factory=list)


def make_field(place: Path) -> Path:
    """Make the folder that every row begins with: the tests' small recipe, and one finished run of it."""
    place.mkdir()
    shutil.copytree(ROOT / "tests" / "fakes" / "tiny", place / "tiny", ignore=shutil.ignore_patterns("__pycache__"))
    words = ["train", "tiny", "train.steps=4", "save.every=2", "parallel.cpus=1", "name=good", "save.keep_last=2"]
    made = subprocess.run(
        [sys.executable, "-m", "headway", *words], cwd=place, env=_environment(place), capture_output=True
    )
    (run,) = (place / "runs").iterdir()
    if made.returncode:
        raise SystemExit(made.stderr.decode())
    run.rename(place / "runs" / "good")
    stubs = place / "stubs"
    stubs.mkdir()
    for name in _STUBS:
        (stubs / name).write_text("#!/bin/sh\nexit 0\n", encoding="utf-8")
    (place / "bin").mkdir()
    for name, words in (("headway", f"{sys.executable} -m headway"), ("python", sys.executable)):
        (place / "bin" / name).write_text(f'#!/bin/sh\nexec {words} "$@"\n', encoding="utf-8")
    for stub in [*stubs.iterdir(), *(place / "bin").iterdir()]:
        stub.chmod(0o755)
    return place


def _environment(home: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in (*LIMITS, "LD_LIBRARY_PATH") if name in os.environ}
    return {
        **kept,
        "PATH": f"{home / 'bin'}:{os.environ['PATH']}",
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "COLUMNS": "80",
    }


def type_line(line: str, place: Path, lang: str, *, shell: bool = False, with_stubs: bool = False) -> Said:
    """Run one line as typed in a folder: inside a fork of this process where that is the same, else by bash."""
    words = shlex.split(line, comments=True) if not shell else []
    is_ours = bool(words) and words[0] == "headway" and words[1:2] not in (["run"], ["train"], ["resume"], ["tune"])
    is_plain = is_ours and not re.search(r"(?<![\\'\w])[;&|><`$~]|[*]", line)
    env = _environment(place)
    if with_stubs:
        env["PATH"] = f"{place / 'stubs'}:{env['PATH']}"
    env = {**env, "LANG": "zh_CN.UTF-8" if lang == "zh" else "C.UTF-8"}
    with tempfile.TemporaryFile() as screen:
        child = os.fork()
        if child == 0:
            _be_child(words if is_plain else None, line, place, env, screen.fileno())
        code = _wait(child)
        screen.seek(0)
        return Said(code, screen.read().decode("utf-8", "replace"))


def _be_child(words: list[str] | None, line: str, place: Path, env: dict[str, str], screen: int) -> None:
    try:
        os.setsid()
        os.chdir(place)
        os.environ.clear()
        os.environ.update(env)
        for stream in (1, 2):
            os.dup2(screen, stream)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        if words is None:
            os.execvpe("bash", ["bash", "-c", line], env)
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - until the process ends
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        headway_main(words[1:])
    except SystemExit as end:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(end.code if isinstance(end.code, int) else 1)
    finally:
        os._exit(99)


def _wait(child: int) -> int:
    until = time.monotonic() + LIMIT_S
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.killpg(child, signal.SIGTERM)
    time.sleep(3)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return 124


def read_commands(said: Said) -> Iterator[tuple[str, str]]:
    """Yield (code, line) of everything that is to be typed, by the code printed above it."""
    code = ""
    for line in said.text.splitlines():
        found = _CODE.findall(line)
        code = found[-1] if found else code
        text = line.strip()
        first = text.split(" ")[0]
        is_ours = first == "headway" or first.endswith("/headway") or re.fullmatch(r"[A-Z_]+=\S+", first)
        if (
            code
            and line.startswith("  ")
            and (is_ours or first in (*_STUBS, *_LOOKS, *_CHANGES) or "/bin/python" in first)
        ):
            yield code, re.sub(r"^\S*/headway ", "headway ", text)


def _typed_lines(code: str, lang: str) -> int:
    text = find_text(code)
    lines = (text.zh_hint if lang == "zh" else text.en_hint).splitlines()
    return sum(line.startswith("  ") for line in lines)


def is_sound(line: str) -> str:
    """Return what keeps a line from being pasted, or nothing."""
    bare = re.sub(r"\s#\s.*$", "", line)
    if found := _PLACEHOLDER.search(bare):
        return f"holds {found[0]}"
    parsed = subprocess.run(["bash", "-n", "-c", line], capture_output=True, text=True)
    return parsed.stderr.strip()


def claims_cure(line: str, command: str) -> bool:
    """Say whether a line is the user's command put right, or changes what was wrong."""
    words, given = shlex.split(line, comments=True), shlex.split(command.rpartition("\n")[2])
    if "--machine" in given:  # what was recorded elsewhere stays as it is
        return False
    if words[0] in _CHANGES:
        return True
    looks = {"--help", "explain", "schema", "list", "verify"}
    return words[0] == "headway" and words[1:2] == given[1:2] and not looks & set(words) and words != given


def _tried(line: str) -> str:
    """Return a line with `--dry-run` where it would train."""
    words = shlex.split(line, comments=True)
    if words[0] == "headway" and words[1] in ("train", "resume", "tune") and "--dry-run" not in words:
        return f"headway {words[1]} --dry-run {shlex.join(words[2:])}"
    return line


def judge(place: Path, row: tuple[str, str], lang: str, tally: Tally) -> None:
    """Run one row, then every line that its hints say to type."""
    command, before = row
    folders = iter(range(100))

    def fresh() -> Path:
        folder = place.parent / f"try-{os.getpid()}-{next(folders)}"
        shutil.copytree(place, folder, symlinks=True)
        subprocess.run(["bash", "-c", before], cwd=folder, capture_output=True, check=False)
        return folder

    folder = fresh()
    said = type_line(command, folder, lang)
    if command == "headway adopt a.sh" and said.code == 0:
        said = _with_codes(command, folder, lang, said)
    shutil.rmtree(folder, ignore_errors=True)
    name = f"[{lang}] {command}" + (f"   after: {before[:60]!r}" if before else "")
    if said.code in (99, 124) or "Traceback" in said.text.split("[")[0]:
        tally.wrong.append(f"{name}: ended with {said.code}: {said.text[-200:]}")
    known = [code for code in said.codes if _has_hint(code, lang)]
    tally.codes.update(known)
    tally.hints.update((code, lang) for code in known)
    if not said.codes:
        tally.wrong.append(f"{name}: no code; exit {said.code}: {said.text[-120:]!r}")
    commands = list(dict.fromkeys(read_commands(said)))
    expected = sum(_typed_lines(code, lang) for code in known)
    if expected > len(list(read_commands(said))):
        tally.lost += 1
        tally.wrong.append(f"{name}: {known} have {expected} lines to type, printed: {commands}")
    for code, line in commands:
        tally.commands += 1
        if why := is_sound(line):
            tally.wrong.append(f"{name} {code}: `{line}` {why}")
            continue
        is_cure = claims_cure(line, command)
        folder = fresh()
        above, _, last = command.rpartition("\n")
        typed = f"{above}\n{line}\n{last}" if is_cure and shlex.split(line)[0] in _CHANGES else _tried(line)
        is_foreign = not typed.startswith("headway ")
        after = type_line(typed, folder, lang, shell=is_foreign or "\n" in typed, with_stubs=is_foreign)
        shutil.rmtree(folder, ignore_errors=True)
        odd = [
            one
            for one in after.codes
            if one.startswith(("cli/no-", "cli/not-", "cli/option", "config/")) and one not in said.codes
        ]
        if after.code in (*_NOT_FOUND, 99, 124) or odd or "syntax error" in after.text:
            tally.wrong.append(f"{name} {code}: `{typed}` ended with {after.code}: {after.text[-300:]}")
        else:
            tally.runnable += 1
        if is_cure:
            tally.claims += 1
            gone = set(said.codes) - set(after.codes)
            if code in gone or (code not in after.codes):
                tally.cured += 1
            else:
                tally.wrong.append(f"{name} {code}: `{typed}` does not cure: {after.text[-300:]}")


def _with_codes(command: str, folder: Path, lang: str, said: Said) -> Said:
    """Return what adopt says, with the codes that only its JSON has, each before its hint."""
    record = json.loads(type_line(f"{command} --json", folder, lang).text or "{}")
    found = [
        f"[{one['code']}]\n" + "\n".join(f"    {line}" for line in one["hint"].splitlines())
        for one in record.get("findings", [])
    ]
    lacking = [
        line for one in record.get("findings", []) for line in one["hint"].splitlines() if line.strip() not in said.text
    ]
    return Said(said.code if not lacking else 99, "\n".join(found) if found else said.text)


def _has_hint(code: str, lang: str) -> bool:
    try:
        text = find_text(code)
    except (KeyError, ModuleNotFoundError):
        return False
    return bool(text.zh_hint if lang == "zh" else text.en_hint)


def main() -> int:
    """Run the rows asked for and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="rows whose command or preparation holds this text")
    parser.add_argument("--lang", choices=LANGUAGES)
    parser.add_argument("--part", default="1/1", help="rows K, K+N, K+2N …, to share the work of one measurement")
    parser.add_argument("--every", type=int, default=1, help="one row in so many, chosen by the seed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", action="store_true", help="print every code that was seen")
    asked = parser.parse_args()
    records = [json.loads(line) for line in ROWS.read_text(encoding="utf-8").splitlines()]
    rows = [(one["type"], one["before"]) for one in records if asked.only in f"{one['type']} {one['before']}"]
    part, parts = (int(number) for number in asked.part.split("/"))
    rows = rows[part - 1 :: parts]
    if asked.every > 1:
        rows = random.Random(asked.seed).sample(rows, max(1, len(rows) // asked.every))
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="headway-hints-") as temp:
        place = make_field(Path(temp) / "field")
        for number, row in enumerate(rows):
            for lang in (asked.lang,) if asked.lang else LANGUAGES:
                seen = len(tally.wrong)
                judge(place, row, lang, tally)
                for one in tally.wrong[seen:]:
                    print(f"{number}: {one}", flush=True)
    if asked.show:
        print(" ".join(sorted(tally.codes)))
    print(
        json.dumps(
            {
                "rows": len(rows), "codes": len(tally.codes), "hints": len(tally.hints), "commands": tally.commands,
                "runnable": round(tally.runnable / max(tally.commands, 1), 4), "claims": tally.claims,
                "cured": round(tally.cured / max(tally.claims, 1), 4), "lost": tally.lost,
            }
        )
    )  # fmt: skip
    return 0 if tally.runnable == tally.commands and not tally.lost and tally.cured >= 0.9 * tally.claims else 1


if __name__ == "__main__":
    sys.exit(main())
