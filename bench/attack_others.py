"""More families of `attack.py`: other records, other commands, links anywhere, logs of others, the board's pages."""

from __future__ import annotations

import bz2
import contextlib
import functools
import gzip
import io
import json
import lzma
import os
import random
import re
import shutil
import signal
import stat
import struct
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from attack_received import PAYLOADS
from attack_worker import (
    ESCAPES,
    EXITS,
    HANG_S,
    JUNK,
    ROOT,
    TINY,
    Ended,
    Field,
    Verdict,
    call,
    finish,
    judge,
    prints,
    start,
)
from fakes.asgi import ask
from headway.ui.board import make_app
from headway.ui.board.app import TABS
from headway.ui.board.store import run_id

NAMES = (
    "a\nb",
    "a b",
    "汉字",
    "-x",
    "--json",
    "%s",
    "a'b",
    'a"b',
    "$(touch mark)",
    "[bold]",
    "a\tb",
    "\udcff",
    "é" * 60,
)


def _copy(field: Field, chance: random.Random, place: Path, name: str = "") -> Path:
    source = chance.choice([field.recipe_run, *([field.line_run] if field.line_run else [])])
    run = place / "runs" / (name or source.name)
    shutil.copytree(source, run, symlinks=True)
    return run


def _junk(value: Any, chance: random.Random) -> Any:
    """Put something else somewhere into a JSON value."""
    if isinstance(value, dict) and value and chance.random() < 0.8:
        key = chance.choice(list(value))
        return {**value, key: _junk(value[key], chance)}
    if isinstance(value, list) and value and chance.random() < 0.8:
        at = chance.randrange(len(value))
        return [*value[:at], _junk(value[at], chance), *value[at + 1 :]]
    return chance.choice((*JUNK, *ESCAPES, "\n" * 50, "x" * 100_000, {"a": {"b": {"c": [1] * 1000}}}))


# --- records that few runs have ---

_T = 1_790_000_000.0
RECORDS: dict[str, Any] = {
    "note.json": {"schema": "note/1", "text": "larger", "tags": ["a", "b"]},
    "lease.json": {"host": "other", "pid": 7, "start_ticks": 9, "boot_id": "x", "attempt": 1, "tag": "t", "pid_ns": 1},
    "nodes.json": {"schema": "nodes/1", "nodes": [{"host": "a", "ranks": 2, "index": 0}]},
    "submitted.json": {"schema": "submitted/1", "job": "7", "name": "x"},
    "tune.json": {"schema": "tune/1", "best": {"batch.per_device": 4}, "probes": []},
    "bridges.jsonl": [{"t": _T, "kind": "trouble", "code": "alert/tracker-slow", "facts": {"tracker": "wandb"}}],
    "scalars.jsonl": [{"file": "/tmp/x"}, {"tag": "loss", "step": 1, "value": 0.5, "t": _T}],
    "devices.jsonl": [
        {"about": {"cores": 2, "mem": 8 << 30, "gpus": [{"i": 0, "name": "H20", "mem": 96 << 30}]}},
        {"t": _T, "n": 1, "gpus": [{"i": 0, "util": 91, "temp": 77, "procs": ["7 a python 70"]}], "host": {"cpu": 4.0}},
    ],
    "ranks/7/metrics.jsonl": [
        {
            "a": 1, "step": 1, "samples": 4, "loss": 0.5, "lr": 0.1, "grad_norm": 1.0, "t": _T, "dt": 0.1, "data": 0.0,
            "forward": 0.0, "backward": 0.0, "comm": 0.0, "optimizer": 0.0, "save": 0.0, "eval": 0.0, "mem": None,
        }
    ],
    "events.jsonl": [
        {"seq": 1, "t": _T, "kind": "run_started", "command": ["headway", "train"], "starter": {"host": "h", "pid": 7}},
        {"seq": 2, "t": _T, "kind": "attempt_started", "attempt": 1, "world_size": 2},
        {"seq": 3, "t": _T, "kind": "training_started", "attempt": 1},
        {"seq": 4, "t": _T, "kind": "finding", "code": "devices/gpu-silent", "key": "1", "facts": {}, "since": _T},
        {"seq": 5, "t": _T, "kind": "guard", "step": 3, "rank": 1, "what": "nan", "samples": [1, 2]},
        {"seq": 6, "t": _T, "kind": "validation", "step": 3, "measures": {"bpb": 1.5}, "measure": "bpb", "best": True},
        {"seq": 7, "t": _T, "kind": "checkpoint_committed", "step": 4, "bytes": 10, "stall_s": 0.1, "seconds": 1.0},
        {"seq": 8, "t": _T, "kind": "attempt_ended", "attempt": 1, "cause": "diagnose/oom", "rank": 0},
        {"seq": 9, "t": _T, "kind": "run_resumed", "command": ["headway"], "changes": {"lr.base": [1, 2]}},
        {"seq": 10, "t": _T, "kind": "run_ended", "state": "failed", "exit_code": 5, "why": "diagnose/oom", "steps": 4},
    ],
}  # fmt: skip


def records(field: Field, chance: random.Random, place: Path) -> Verdict:
    """Records that few runs have, or none of ours would write so: other kinds, other ranks, other times."""
    run = _copy(field, chance, place)
    how = []
    for name in chance.sample(sorted(RECORDS), chance.choice((1, 1, 2, 4))):
        value = RECORDS[name]
        for _ in range(chance.choice((0, 1, 1, 3))):
            value = _junk(value, chance)
        path = run / name
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = value if isinstance(value, list) and name.endswith("l") else [value]
        data = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
        if name.endswith("l") and chance.random() < 0.5 and path.exists():
            data = path.read_bytes() + data
        path.write_bytes(data if chance.random() < 0.9 else data[: chance.randrange(len(data))])
        how.append(f"{name}: {data[-300:]!r}")
        if name == "lease.json":
            os.utime(path, (_T - 1e8, _T - 1e8))  # a fresh one of another machine is a run that lives, and is followed
    if chance.random() < 0.2:
        beat = struct.pack("<8sqqqqqqddd", b"HWBEAT01", *(chance.choice((0, -1, 2**62, 7)) for _ in range(6)), 0, 0, 0)
        (run / "ranks" / "0" / "heartbeat").write_bytes(beat + chance.randbytes(chance.choice((0, 4000))))
    if chance.random() < 0.2:
        for one in chance.sample(("99999999", "00", "-1", "１", "1e3", "0x1"), 2):
            (run / "ranks" / one).mkdir(exist_ok=True)
    words = _any_reader(chance, run.name)
    return judge("records", words, "; ".join(how)[:1500], call(place, *words))


def _any_reader(chance: random.Random, name: str) -> tuple[str, ...]:
    return chance.choice(
        (
            ("diagnose", name),
            ("diagnose", name, "--json"),
            ("diagnose", name, "--apply"),
            ("diagnose", name, "--capsule", "box.zip"),
            ("note", name),
            ("note", name, "--json"),
            ("note", name, "a\nb", "--tag", "汉字", "--json"),
            ("runs", "--json"),
            ("runs", "--tag", "a"),
            ("runs", "--state", "failed"),
            ("runs", "rm", name, "--dry-run", "--json"),
            ("runs", "rm", name, "--yes"),
            ("report", name, "--format", "md", "--to", "-"),
            ("report", name, "--format", "json", "--to", "-"),
            ("report", name, "--lang", "zh"),
            ("export", name, "--format", "json"),
            ("export", name, "--format", "tensorboard", "--to", "tb"),
            ("watch", name, "--once", "--lang", "zh"),
            ("watch", name, "--once", "--json"),
            ("compare", name, name, "--json"),
            ("attach", name),
            ("stop", name, "--wait", "0"),
            ("ckpt", "list", name),
            ("ckpt", "prune", name, "--keep-last", "1", "--yes", "--json"),
            ("resume", name, "--dry-run", "--no-trace"),
            ("resume", name, "--step", "6", "--dry-run", "--no-trace"),
            ("conclude", f"runs/{name}"),
        )
    )


# --- names ---


def odd_names(field: Field, chance: random.Random, place: Path) -> Verdict:
    """Runs, folders and texts with names that shells, terminals and patterns take for something else."""
    name = chance.choice(NAMES)
    run = _copy(field, chance, place, name)
    if chance.random() < 0.3:
        _copy(field, chance, place, chance.choice([one for one in NAMES if one != name]))
    out = os.fsencode(name) if chance.random() < 0.2 else b"runs"
    if out != b"runs":
        (place / "runs").rename(os.fsdecode(os.path.join(os.fsencode(place), out)))
    given = chance.choice((name, f"runs/{name}", str(run), name[:2]))
    words = _any_reader(chance, given)
    if out != b"runs" and words[0] in ("runs", "watch", "report", "note", "diagnose"):
        words = (*words, f"--runs={os.fsdecode(out)}")
    words = tuple(words) if chance.random() < 0.7 else (*words[:1], "--", *words[1:])
    verdict = judge("oddnames", words, repr(name), call(place, *words))
    if (place / "mark").exists():
        verdict.wrong["wrong_results"] = "a name was run"
    return verdict


# --- links in every place ---


def links_anywhere(field: Field, chance: random.Random, place: Path) -> Verdict:
    """A link in the place of any file or folder of a run, and a command that writes."""
    run = _copy(field, chance, place)
    victims = place / "victims"
    shutil.copytree(run, victims, symlinks=True)  # so that what is behind the link is even right
    before = prints(victims)
    inside = sorted(path.relative_to(run) for path in run.rglob("*") if not path.is_symlink())
    more = ("supervisor.log", "note.json", "tensorboard", "wandb", "export", "predictions", "log.tail", "scalars.jsonl")
    more += ("report.md", "report.json", "bridges.jsonl", "ranks/1", ".job.json.7", "checkpoints/step-00000099")
    how = []
    for target in chance.sample([*inside, *map(Path, more)], chance.choice((1, 1, 2))):
        path = run / target
        if path.parent.resolve().is_relative_to(victims):
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        real = victims / target
        path.symlink_to(real if chance.random() < 0.7 else os.path.relpath(real, path.parent.resolve()))
        how.append(f"{target} -> {real.relative_to(place)}")
    name = run.name
    words = chance.choice(
        (
            ("resume", name, "--no-trace"),
            ("resume", name, "--no-trace", "--from-scratch"),
            ("resume", name, "--no-trace", "train.steps=13", "--step", "6"),
            ("supervise", f"runs/{name}"),
            ("conclude", f"runs/{name}"),
            ("note", name, "text", "--tag", "x"),
            ("ckpt", "prune", name, "--keep-last", "1", "--yes"),
            ("ckpt", "export", name),
            ("report", name, "--format", chance.choice(("html", "md", "json"))),
            ("export", name, "--format", chance.choice(("csv", "json", "tensorboard"))),
            ("runs", "rm", name, "--yes"),
            ("diagnose", name, "--capsule", f"runs/{name}/capsule.zip"),
            ("stop", name, "--wait", "0"),
            ("runs",),
        )
    )
    ended = call(place, *words, limit_s=4 * HANG_S)
    verdict = judge("planted", words, "; ".join(how), ended, EXITS | {3})
    if field.line_run is not None and run.name == field.line_run.name and words[0] in ("supervise", "resume"):
        verdict.wrong.pop("tracebacks", None) if ended.code == 1 and b"cli/bug" not in ended.err else None
    if prints(victims) != before:
        verdict.wrong["wrong_results"] = "what is behind a planted link was changed"
    return verdict


# --- logs and rules of others ---

LOGS: tuple[Callable[[random.Random], bytes], ...] = (
    lambda chance: chance.randbytes(20_000),
    lambda chance: b"\n".join(chance.choice(PIECES) for _ in range(300)),
    lambda chance: chance.choice(PIECES) * 3000,
    lambda chance: (b"a" * 200_000 + b"!\n") * 3,
    lambda chance: b" " * 300_000 + b"Error\n",
    lambda chance: (b"(" * 5000 + b")" * 5000 + b"\n") * 3,
    lambda chance: b"[rank0]: " * 30_000,
    lambda chance: b"\r".join(b"%d%%|##| 3/9" % n for n in range(20_000)),
    lambda chance: "".join(chance.choice((*ESCAPES, *PAYLOADS)) + "\n" for _ in range(60)).encode(),
    lambda chance: b"\0" * 100_000,
    lambda chance: "Traceback (most recent call last):\n".encode("utf-16") * 20,
    lambda chance: b"x=1;" * 50_000 + b"\nsegmentation fault (core dumped)\n",
)
PIECES = (
    b"Traceback (most recent call last):", b'  File "x.py", line 3, in f', b"    f()", b"ValueError: \x1b[2Jbad",
    b"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 99999999999999999999.00 GiB", b"",
    b"RuntimeError: NCCL error in: x.cpp:1, unhandled system error", b"[rank3]: watchdog timeout 600000",
    b"slurmstepd: error: Detected 1 oom-kill event(s)", b"Killed", b"Segmentation fault (core dumped)", b"Bus error",
    b"step 1 loss nan", b"step 99999999999999999999999 loss 1e9999", b"OSError: [Errno 28] No space left on device",
    b"During handling of the above exception, another exception occurred:", b"\xff\xfe\xfd", b"AssertionError",
    b"ModuleNotFoundError: No module named '$(touch mark)'", b"KeyError: '" + b"k" * 5000 + b"'",
)  # fmt: skip


def logs(field: Field, chance: random.Random, place: Path) -> Verdict:
    """A log, a packed log, a folder of logs, a black box or a rule from somebody else."""
    data = chance.choice(LOGS)(chance)
    way = chance.choice(("plain", "plain", "gz", "bz2", "xz", "cut", "bomb", "folder", "fifo", "box", "box", "rule"))
    file = place / ("log.gz" if way in ("gz", "cut", "bomb") else f"log.{way}" if way in ("bz2", "xz") else "log")
    options: tuple[str, ...] = chance.choice(((), ("--json",), ("--lang", "zh")))
    if way == "folder":
        (place / "log" / "deep").mkdir(parents=True)
        (place / "log" / "one").write_bytes(data)
        (place / "log" / "deep" / "up").symlink_to("..")
        (place / "log" / "zero").symlink_to("/dev/zero")
        os.mkfifo(place / "log" / "pipe")
    elif way == "fifo":
        os.mkfifo(file)
    elif way == "box":
        file = place / "box.zip"
        _write_box(file, chance, data)
        if chance.random() < 0.5:
            options = ("--unpack", "runs")
    elif way == "bomb":
        file.write_bytes(gzip.compress(gzip.compress(b"\0" * (40 << 20), 1), 1) if chance.random() < 0.3 else _bomb())
    else:
        packs = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress, "cut": gzip.compress}
        packed = packs.get(way, bytes)(data)
        file.write_bytes(packed[: len(packed) // 2] if way == "cut" else packed)
    if way == "rule":
        (place / "rules").mkdir()
        pattern = chance.choice(
            ("(a+)+$", "(a|a)*b", "(" * 99, "[", "(?P<x>.)(?P=y)", "\\", ".*" * 30 + "z", "", "(.*)*x")
        )
        rule = {"rules": [{"code": "own/x", "pattern": pattern, "en": "x {y}", "zh": "x"}], "id": "x", "match": pattern}
        text = json.dumps(rule if chance.random() < 0.5 else [rule])
        (place / "rules" / chance.choice(("a.yaml", "a.json", "a.toml"))).write_text(text)
        options = (*options, "--rules", "rules")
    words = ("diagnose", file.name, *options)
    ended = call(place, *words)
    # The log's own lines are shown; a traceback in them is not ours.
    verdict = judge("logs", words, f"{way}: {data[:80]!r}", ended)
    if verdict.wrong.get("tracebacks") and ended.code in EXITS and b"cli/bug" not in ended.out + ended.err:
        del verdict.wrong["tracebacks"]
    if (place / "mark").exists() or list(place.parent.glob("escaped*")):
        verdict.wrong["wrong_results"] = "something in a log was run, or a box wrote outside of its folder"
    return verdict


def _bomb() -> bytes:
    made = io.BytesIO()
    with gzip.GzipFile(fileobj=made, mode="wb", compresslevel=9) as file:
        for _ in range(60):
            file.write(b"\0" * (1 << 20))
    return made.getvalue()


def _write_box(file: Path, chance: random.Random, data: bytes) -> None:
    names = ("run/log", "run/events.jsonl", "run/job.json", "run/ranks/0/metrics.jsonl", "run/../../escaped")
    names += ("/escaped", "run/ranks/../../../escaped", "run/config.yaml", "run/log", "run/x.py", "../escaped")
    about = {"schema": "capsule/1", "run": chance.choice(("20261118-000000_x_1", "../x", "", "a\nb", 7))}
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as box:
        if chance.random() < 0.9:
            box.writestr("capsule.json", json.dumps(about if chance.random() < 0.8 else _junk(about, chance)))
        for name in chance.sample(names, chance.randint(0, 4)):
            info = zipfile.ZipInfo(name)
            if chance.random() < 0.2:
                info.external_attr = (stat.S_IFLNK | 0o777) << 16
            with contextlib.suppress(UserWarning):
                box.writestr(info, chance.choice((data[:50_000], b"{}\n", b"/etc/passwd", b"[" * 50_000)))
    if chance.random() < 0.2:
        packed = bytearray(file.read_bytes())
        packed[chance.randrange(len(packed))] ^= 1 << chance.randrange(8)
        file.write_bytes(packed)


# --- the board ---


def boards(field: Field, chance: random.Random, place: Path) -> Verdict:
    """Every page of the board over a run that was damaged or written by somebody else."""
    run = _copy(field, chance, place, chance.choice((field.recipe_run.name, *NAMES[:4])))
    evil = chance.choice(PAYLOADS)
    files = sorted(path for path in run.rglob("*") if path.is_file() and path.suffix in (".json", ".jsonl", ".yaml"))
    for path in chance.sample(files, min(len(files), 3)):
        rows = path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]
        at = chance.randrange(len(rows)) if rows else 0
        with contextlib.suppress(ValueError, IndexError):
            rows[at] = json.dumps(_junk(json.loads(rows[at]), chance)).replace("汉字", evil.replace('"', "'"))
        path.write_text("\n".join(rows) + "\n")
    with (run / "log").open("a") as log:
        log.write(f"{evil}\n")
    (run / "note.json").write_text(json.dumps({"text": evil, "tags": [evil, "a"]}))
    tabs = [
        "",
        *(f"/{tab}" for tab in TABS),
        "/nothing",
        "/%2e%2e/x",
        "/logs?rank=9999999999999",
        "/logs?from=-1&q=%00",
    ]
    paths = [
        "/",
        "/?q=%ff",
        "/?state=x&tag=y",
        "/api/runs",
        "/compare",
        f"/compare?runs={run_id(run.name)}",
        "/machine",
    ]
    paths += ["/metrics", "/api/runs?page=-1", "/?page=99999999999999999999"]
    asked = [f"/run/{run_id(run.name)}{tab}" for tab in tabs] + [f"/api{one}" for one in ("/x", "/runs/x", "/machine")]
    asked = chance.sample([*paths, *asked], 8)

    def look() -> None:
        app = make_app(place / "runs")
        for path in asked:
            answer = ask(app, path)
            if answer.code >= 500:
                print("BROKEN", path, answer.code, answer.text[:300])
            if _ACTIVE.search(answer.body) and "html" in answer.headers.get("content-type", ""):
                print("ALIVE", path, evil)

    ended = call(place, "board", instead=look)
    verdict = judge("boards", ("board", *asked), evil, ended)
    if b"BROKEN" in ended.out:
        verdict.wrong["tracebacks"] = "a page of the board is an error of the server"
    if b"ALIVE" in ended.out:
        verdict.wrong["leaks"] = "a text of a run is alive on a page"
    return verdict


_ACTIVE = re.compile(
    rb"<script>alert|<img src=x|<svg onload|<iframe|href=[\"']?javascript|<[a-z][^<>]* onmouseover=", re.I
)

# --- secrets in other places ---

LETTERS = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"
PLACES: tuple[Callable[[str], tuple[list[str], dict[str, str]]], ...] = (
    lambda one: (["env", f"HF_TOKEN={one}", sys.executable, "job.py"], {}),
    lambda one: (["sh", "-c", f"export WANDB_API_KEY={one}; {sys.executable} job.py"], {}),
    lambda one: ([sys.executable, "job.py", f"--wandb.api_key={one}"], {}),
    lambda one: ([sys.executable, "job.py", f"wandb.api_key={one}"], {}),
    lambda one: ([sys.executable, "job.py", f"++logger.wandb.token={one}"], {}),
    lambda one: ([sys.executable, "job.py", "--hub_token", one], {}),
    lambda one: ([sys.executable, "job.py", "--secret-key", one], {}),
    lambda one: ([sys.executable, "job.py", json.dumps({"password": one})], {}),
    lambda one: ([sys.executable, "job.py", f"redis://:{one}@cache:6379/0"], {}),
    lambda one: ([sys.executable, "job.py"], {"PGPASSWORD": one}),
    lambda one: ([sys.executable, "job.py"], {"WANDB_API_KEY": one, "OTHER": f"x{one}y"}),
    lambda one: ([sys.executable, "job.py"], {"HTTPS_PROXY": f"http://me:{one}@proxy:3128"}),
    lambda one: ([sys.executable, "job.py"], {"SERVICE_TOKEN_V2": one, "NOTION_API_KEY": one}),
    lambda one: ([sys.executable, "job.py"], {"OSS_ACCESS_KEY_SECRET": one}),
    lambda one: ([sys.executable, "job.py"], {"MLFLOW_TRACKING_PASSWORD": one}),
    lambda one: ([sys.executable, "job.py"], {"SWANLAB_API_KEY": one}),
    lambda one: ([sys.executable, "-c", f"import sys; token = '{one}'; print(token); sys.exit(3)"], {}),
)  # fmt: skip
ENDS = (
    "raise ValueError(said)\n",
    "print(said)\nsys.exit(3)\n",
    "print(said, file=sys.stderr)\nsys.exit(3)\n",
    "try:\n    raise KeyError(said)\nexcept KeyError as e:\n    raise RuntimeError('outer') from e\n",
    "import threading\nt = threading.Thread(target=lambda: int(said))\nt.start(); t.join()\nsys.exit(3)\n",
    "import warnings\nwarnings.warn(said)\nsys.exit(3)\n",
    "import logging\nlogging.error('using %s', said)\nos.abort()\n",
    "assert not said, said\n",
)


def secrets(field: Field, chance: random.Random, place: Path) -> Verdict:
    """Secrets in other spellings of a command line, printed and raised in other ways; read by every command after."""
    one = "".join(chance.choice(LETTERS) for _ in range(chance.choice((16, 32, 40)))) + "x7"
    line, env = chance.choice(PLACES)(one)
    body = "import os, sys\nsaid = ' '.join(sys.argv[1:]) + ' ' + ' '.join(v for k, v in os.environ.items() if k in "
    body += f"{(*env, 'HF_TOKEN', 'WANDB_API_KEY')!r})\n" + chance.choice(ENDS)
    (place / "job.py").write_text(body)
    words = ("run", "--no-training", *line)
    ended = start(place, *words, env=env)
    verdict = judge("secrets", words, f"{sorted(env)} {body[-120:]!r}", ended, EXITS | {1, 3, 134, 250})
    if b"cli/bug" not in ended.err:
        verdict.wrong.pop("tracebacks", None)  # the job's own
    runs = sorted((place / "runs").glob("2*"))
    for reader in (
        ("report", "--format", "md", "--to", "-"),
        ("diagnose", "--capsule", "box.zip"),
        ("diagnose", "--json"),
    ):
        said = call(place, *reader)
        if one.encode() in said.out + said.err:
            verdict.wrong["leaks"] = f"{' '.join(reader)} shows the secret"
    with contextlib.suppress(FileNotFoundError), zipfile.ZipFile(place / "box.zip") as box:
        if any(one.encode() in box.read(name) for name in box.namelist()):
            verdict.wrong["leaks"] = "the black box holds the secret"
    for path in (path for run in runs for path in run.rglob("*") if path.is_file()):
        if path.name not in ("stdout.log", "supervisor.log") and one.encode() in path.read_bytes():
            verdict.wrong["leaks"] = f"{path.relative_to(place)} holds the secret"
    if not runs:
        verdict.wrong["wrong_results"] = "the job left no run"
    return verdict


# --- commands that race on a run that has ended ---


def rivals(field: Field, chance: random.Random, place: Path) -> Verdict:
    """Commands that change or remove the same ended run, all at once: each does its work or refuses."""
    run = _copy(field, chance, place)
    name = run.name
    every = (
        ("runs", "rm", name, "--yes"),
        ("ckpt", "prune", name, "--keep-last", "1", "--yes"),
        ("note", name, "x" * 500, "--tag", "a"),
        ("note", name, "y", "--untag", "a"),
        ("export", name),
        ("export", name, "--format", "tensorboard"),
        ("report", name),
        ("report", name, "--format", "json"),
        ("ckpt", "export", name),
        ("ckpt", "verify", name),
        ("diagnose", name, "--capsule", "box.zip"),
        ("conclude", f"runs/{name}"),
        ("runs",),
        ("watch", name, "--once"),
        ("compare",),
    )
    lines = [chance.choice(every) for _ in range(chance.choice((2, 3, 5)))]
    places = [place / f"said-{number}" for number in range(len(lines))]
    for one in places:
        one.mkdir()

    def throw(number: int) -> Ended:
        return call(places[number], *lines[number], prepare=functools.partial(os.chdir, place))

    with ThreadPoolExecutor(len(lines)) as pool:
        ends = list(pool.map(throw, range(len(lines))))
    verdict = judge("rivals", lines[0], " | ".join(" ".join(one)[:60] for one in lines), ends[0])
    for line, end in zip(lines, ends, strict=True):
        seen = judge("rivals", line, "", end)
        if seen.wrong:
            verdict.wrong.update({kind: f"{' '.join(line)}: {why}" for kind, why in seen.wrong.items()})
            verdict.ended = end
    removed = [end for line, end in zip(lines, ends, strict=True) if line[:2] == ("runs", "rm")]
    if run.exists() and any(end.code == 0 for end in removed) and (run / "job.json").exists():
        verdict.wrong["wrong_results"] = "a run that was removed is there again"
    source = field.recipe_run if name == field.recipe_run.name else field.line_run
    if not removed and call(place, "ckpt", "verify", name).code != call(place, "ckpt", "verify", str(source)).code:
        verdict.wrong["wrong_results"] = "a checkpoint was damaged"
    return verdict


# --- ranks that are killed, frozen and told things ---

SIGNALS = (
    signal.SIGKILL,
    signal.SIGSTOP,
    signal.SIGSEGV,
    signal.SIGABRT,
    signal.SIGTERM,
    signal.SIGUSR1,
    signal.SIGUSR2,
)
SIGNALS += (signal.SIGHUP, signal.SIGXCPU, signal.SIGALRM, signal.SIGINT, signal.SIGPIPE)


def told(field: Field, chance: random.Random, place: Path) -> Verdict:
    """Signals at random moments to the supervisor of a training; a resume then gives what an undisturbed run gives."""
    words = ("train", TINY, "train.steps=16", "save.every=4", "eval.every=8", "parallel.cpus=1", "task.sleep_s=0.03")
    child = subprocess.Popen(
        [sys.executable, "-m", "headway", *words],
        cwd=place, env={**os.environ, "PYTHONPATH": str(ROOT / "src")}, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    sent = []
    for _ in range(chance.choice((1, 1, 2, 3))):
        time.sleep(chance.uniform(0.3, 2.5))
        signum = chance.choice(SIGNALS)
        with contextlib.suppress(ProcessLookupError):
            child.send_signal(signum)
            sent.append(signum.name)
            if signum is signal.SIGSTOP:
                time.sleep(chance.uniform(0.1, 1))
                child.send_signal(signal.SIGCONT)
    try:
        ended = finish(child, 3 * HANG_S)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    by_signal = {-getattr(signal, name) for name in sent} | {128 + getattr(signal, name) for name in sent}
    verdict = judge("told", words, " ".join(sent), ended, EXITS | by_signal)
    if b"headway" not in ended.err and -(ended.code or 0) in by_signal | {0}:
        verdict.wrong.pop("tracebacks", None)
    runs = sorted((place / "runs").glob("2*"))
    if not runs or verdict.wrong or not (runs[-1] / "job.json").exists():
        return verdict
    last = start(place, "resume", runs[-1].name)
    if (last.code == 2 and b"cli/resume-done" not in last.err) or last.code not in (0, 2):
        if any((runs[-1] / "checkpoints").glob("step-*")) or b"checkpoint" not in last.err:
            verdict.wrong["wrong_results"] = f"resume ends with {last.code}"
            verdict.ended = last
        return verdict
    rows = [json.loads(line) for line in (runs[-1] / "ranks/0/metrics.jsonl").read_text().splitlines()]
    losses = {row["step"]: row["loss"] for row in rows if row["samples"] is not None}
    wanted = _alone(field)
    if losses != wanted:
        verdict.wrong["wrong_results"] = f"losses {losses} instead of {wanted}"
    return verdict


@functools.cache
def _losses_alone(place: Path) -> dict[int, float]:
    own = place / "alone-16"
    own.mkdir()
    words = ("train", TINY, "train.steps=16", "save.every=4", "eval.every=8", "parallel.cpus=1")
    done = start(own, *words)
    assert done.code == 0, done.err
    rows = next(own.glob("runs/2*/ranks/0/metrics.jsonl")).read_text().splitlines()
    return {row["step"]: row["loss"] for row in map(json.loads, rows)}


def _alone(field: Field) -> dict[int, float]:
    return _losses_alone(field.place)


OTHERS: dict[str, tuple[float, Callable[[Field, random.Random, Path], Verdict]]] = {
    "records": (20, records),
    "oddnames": (10, odd_names),
    "planted": (12, links_anywhere),
    "logs": (3, logs),
    "boards": (5, boards),
    "secrets": (0.5, secrets),
    "rivals": (1.5, rivals),
    "told": (0.2, told),
}
