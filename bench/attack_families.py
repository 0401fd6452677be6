"""The families of `attack.py`: each makes something hostile from a seed, lets a command meet it, and judges the end."""

from __future__ import annotations

import contextlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attack_others import OTHERS
from attack_received import RECEIVED
from attack_surroundings import MORE
from attack_worker import (
    ESCAPES,
    EXITS,
    HANG_S,
    JUNK,
    READERS,
    ROOT,
    TINY,
    WHOLE_FOLDER,
    Ended,
    Field,
    Verdict,
    call,
    judge,
    make_field,
    prints,
    start,
)
from headway.config import RunConfig, flatten

__all__ = ["FAMILIES", "Field", "Verdict", "make_field"]


@dataclass(frozen=True)
class Family:
    """One way to attack."""

    weight: float
    attack: Callable[[Field, random.Random, Path], Verdict]


def _words(chance: random.Random) -> str:
    """Return one argument that nobody expects."""
    kinds: tuple[Callable[[], str], ...] = (
        lambda: chance.choice(ESCAPES),
        lambda: "x" * chance.choice((1, 255, 256, 5000)),
        lambda: chance.choice(("-1", "0", "1e400", "nan", "99999999999999999999", "1_000", "٣", "0x10", "1.5", "-0")),
        lambda: chance.choice(
            ("", " ", "=", "a=b=c", "--", "-", "---", "@", ".", "..", "/", "~", "a/b", "*", "\\", "'", '"')
        ),
        lambda: chance.choice(
            ("/dev/null", "/dev/zero", "/proc/self/mem", "/etc/passwd", "/nonexistent/x", "/proc/kmsg")
        ),
        lambda: (
            f"--{chance.choice(('runs', 'out', 'step', 'to', 'json', 'lang', 'color', 'format', 'machine', 'on'))}"
            + chance.choice(("", "=", "=x", "=-1", f"={chance.choice(ESCAPES)}"))
        ),
        lambda: (
            f"{chance.choice(('lr.base', 'train.steps', 'batch.total', 'recipe', 'name', 'out', 'a.b.c', 'task'))}"
            + f"={chance.choice(('x', '', '-1', '1e999', 'null', '[', '{', 'a/b', '../x', chance.choice(ESCAPES)))}"
        ),
        lambda: "".join(
            chr(chance.choice((chance.randrange(1, 256), chance.randrange(0x4E00, 0x9FFF), 0xDC80))) for _ in range(9)
        ),
        lambda: chance.choice(("nanochat", "rdt", "atlas", "tfnet", "layoutmaster", "runs", "latest", "best")),
    )
    return chance.choice(kinds)()


COMMANDS = (
    ("runs",),
    ("watch", "--once"),
    ("report",),
    ("export",),
    ("ckpt",),
    ("ckpt", "list"),
    ("ckpt", "verify"),
    ("ckpt", "prune"),
    ("ckpt", "export"),
    ("compare",),
    ("config",),
    ("config", "show"),
    ("config", "explain"),
    ("config", "schema"),
    ("adopt",),
    ("completion",),
    ("stop",),
    ("attach",),
    ("new",),
    ("guide",),
    ("eval",),
    ("predict",),
    ("resume", "--dry-run"),
    ("run", "--dry-run"),
    ("plan", "--model"),
    ("supervise",),
    ("conclude",),
    (),
    ("trust",),
)


def _bad_line(field: Field, chance: random.Random, place: Path) -> Verdict:
    """A command line that makes no sense."""
    with_run = chance.random() < 0.3
    if with_run:
        _copy(field, chance, place)
    words = (*chance.choice(COMMANDS), *(_words(chance) for _ in range(chance.choice((0, 1, 1, 2, 3)))))
    words = tuple(word.replace("\0", "") for word in words)
    if words and chance.random() < 0.2:
        words = (*words, "--lang", chance.choice(("zh", "en", "xx")))
    ended = call(place, *words, encoding=chance.choice(("utf-8", "utf-8", "ascii", "gbk", "latin-1")))
    return judge("lines", words, f"run there: {with_run}", ended)


def _wrong_value(field: Field, chance: random.Random, place: Path) -> Verdict:
    """A config with one wrong value, in any form."""
    keys = [
        *flatten(RunConfig().model_dump(mode="json")),
        "task.depth",
        "lr",
        "train",
        "parallel",
        "nonsense",
        "lr.bas",
    ]
    key, value = chance.choice(keys), chance.choice((*JUNK, *ESCAPES, "\x1b[31m"))
    if chance.random() < 0.1:
        key += chance.choice(ESCAPES)
    tree: Any = value
    for part in reversed(key.split(".")):
        tree = {part: tree}
    text = json.dumps(tree)
    form = chance.choice(("yaml", "json", "toml", "py", "words"))
    damage = chance.random() < 0.15
    if form == "toml":
        text = "\n".join(f"{json.dumps(k)} = {json.dumps(str(v))}" for k, v in tree.items())
    elif form == "py":
        text = "\n".join(f"{k} = {v!r}" for k, v in tree.items())
    if damage:
        at = chance.randrange(len(text) + 1)
        text = (
            text[:at]
            + chance.choice(("\0", "\ud800", "{" * 3000, "[" * 100_000, "'''", "\t", "&a", "*a", "!!python/x "))
            + text[at:]
        )
    file = place / f"job.{form}"
    source: tuple[str, ...] = (str(file),)
    if form == "words":
        source = (f"{key}={value}".replace("\0", ""),)
    else:
        file.write_text(text, encoding="utf-8", errors="surrogatepass")
    words = (
        *chance.choice((("config", "show"), ("config", "show", "--json"), ("config", "show", "--origins"))),
        *source,
    )
    if chance.random() < 0.05:
        words = ("plan", *source, "--no-trace")
    ended = call(place, *words)
    return judge("values", words, f"{form}: {text[:300]!r}", ended)


def _copy(field: Field, chance: random.Random, place: Path) -> Path:
    """Copy one of the runs, sometimes beside another; return the one to damage."""
    sources = [field.recipe_run, *([field.line_run] if field.line_run else [])]
    for source in chance.sample(sources, chance.randint(1, len(sources))):
        shutil.copytree(source, place / "runs" / source.name, symlinks=True, dirs_exist_ok=True)
    return chance.choice(sorted((place / "runs").iterdir()))


def _files(run: Path) -> list[Path]:
    return sorted(path for path in run.rglob("*") if path.is_file() or path.is_symlink())


def _break_json(value: Any, chance: random.Random) -> Any:
    """Put junk somewhere into a JSON value."""
    if isinstance(value, dict) and value and chance.random() < 0.8:
        key = chance.choice(list(value))
        if chance.random() < 0.1:
            return {name: one for name, one in value.items() if name != key}
        return {**value, key: _break_json(value[key], chance)}
    if isinstance(value, list) and value and chance.random() < 0.85:
        at = chance.randrange(len(value))
        return [*value[:at], _break_json(value[at], chance), *value[at + 1 :]]
    return chance.choice((*JUNK, *ESCAPES))


def _damage(path: Path, chance: random.Random) -> str:
    """Damage one file; return how."""
    data = path.read_bytes()[: 1 << 20] if path.is_file() else b""
    way = chance.choice(
        (
            "cut",
            "flip",
            "json",
            "json",
            "json",
            "line",
            "line",
            "gone",
            "folder",
            "fifo",
            "zero",
            "loop",
            "deep",
            "huge",
            "text",
            "empty",
            "device",
            "double",
        )
    )
    if way in ("json", "line"):
        lines = data.splitlines() if path.suffix == ".jsonl" and data else [data]
        at = chance.randrange(len(lines))
        try:
            broken = json.dumps(_break_json(json.loads(lines[at]), chance)).encode()
        except ValueError:
            broken = chance.randbytes(40)
        lines[at] = broken if way == "json" else lines[at][: chance.randrange(len(lines[at]) + 1)]
        path.write_bytes(b"\n".join(lines))
        return f"{way} {path.name}: {broken[:200]!r}"
    if way == "cut":
        path.write_bytes(data[: chance.randrange(len(data) + 1)])
    elif way == "flip":
        spots = bytearray(data or b"x")
        for _ in range(chance.choice((1, 1, 20))):
            spots[chance.randrange(len(spots))] ^= 1 << chance.randrange(8)
        path.write_bytes(spots)
    elif way == "deep":
        path.write_bytes(b"[" * 200_000)
    elif way == "huge":
        path.write_bytes(b'{"a":' + b"9" * 100_000 + b"}\n")
    elif way == "text":
        path.write_bytes(
            chance.choice((b"null", b"[]", b"3", b'"x"', b"{}", b"\xff\xfe", b"\x1b[2Jhello\n", b"{}\n" * 1000))
        )
    elif way == "empty":
        path.write_bytes(b"")
    elif way == "double":
        path.write_bytes(data + data)
    else:
        path.unlink()
        if way == "folder":
            path.mkdir()
        elif way == "fifo":
            os.mkfifo(path)
        elif way in ("zero", "device"):
            path.symlink_to("/dev/zero" if way == "zero" else "/dev/full")
        elif way == "loop":
            path.symlink_to(path.name)
    return f"{way} {path.name}"


def _reader(chance: random.Random, run: Path) -> tuple[str, ...]:
    words = chance.choice(READERS)
    if words[0] in WHOLE_FOLDER:
        return words
    return (*words[:2], run.name, *words[2:]) if words[0] == "ckpt" else (words[0], run.name, *words[1:])


def _damaged_run(field: Field, chance: random.Random, place: Path) -> Verdict:
    """A run directory that a disk, a copy or somebody has damaged."""
    run = _copy(field, chance, place)
    how = [_damage(path, chance) for path in chance.sample(_files(run), chance.choice((1, 1, 1, 2, 4)))]
    if chance.random() < 0.1:
        folder = chance.choice([path for path in run.rglob("*") if path.is_dir() and not path.is_symlink()] or [run])
        shutil.rmtree(folder)
        how.append(f"no {folder.name}")
    words = _reader(chance, run)
    if chance.random() < 0.04:
        words = ("resume", run.name, "--dry-run", "--no-trace")
    prepare = None
    if chance.random() < 0.15 and os.geteuid() == 0:
        how.append("as another user")
        shared = chance.choice((0o755, 0o700, 0o711))
        for path in run.rglob("*"):
            if not path.is_symlink():
                os.chmod(path, chance.choice((0o644, 0o600)) | (0o111 if path.is_dir() else 0))
        os.chmod(run, shared)
        for folder in (place, place.parent):
            os.chmod(folder, 0o755)
        (place / ".out").touch()
        (place / ".err").touch()
        for name in (".out", ".err"):
            os.chmod(place / name, 0o666)
        prepare = _drop
    before = _outside(place)
    ended = call(place, *words, prepare=prepare)
    verdict = judge("damage", words, "; ".join(how), ended)
    if _outside(place) != before:
        verdict.wrong["wrong_results"] = "a file outside of the run was changed"
    return verdict


def _drop() -> None:
    """Become a user who owns nothing here."""
    os.setgid(65534)
    os.setuid(65534)


def _outside(place: Path) -> dict[str, str]:
    return {
        name: one
        for name, one in prints(place).items()
        if "/runs/" not in name and "/.out" not in name and "/.err" not in name
    }


def _hostile_link(field: Field, chance: random.Random, place: Path) -> Verdict:
    """A link in a run directory, where a command is to write."""
    run = _copy(field, chance, place)
    victim, folder = place / "victim", place / "victims"
    victim.write_text("precious\n" * 9)
    folder.mkdir()
    (folder / "kept").write_text("precious\n")
    names = [
        "report.html",
        "index.sqlite",
        "export",
        "events.jsonl",
        "job.json",
        "lease.json",
        ".lease-lock",
        "log",
        "ranks/0/metrics.jsonl",
        "ranks/0/heartbeat",
        "predictions",
        "checkpoints",
        "../index.sqlite",
        "../index.sqlite-wal",
        "../index.sqlite-shm",
        "../index.sqlite-journal",
        "export/csv",
        "export/csv/metrics.csv",
        "export/json/metrics.json",
        "events.jsonl.torn",
    ]
    how = []
    for name in chance.sample(names, chance.choice((1, 1, 2, 3))):
        path = run / name
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            path.unlink(missing_ok=True)
            target = folder if chance.random() < 0.3 else victim
            path.symlink_to(target if chance.random() < 0.8 else os.path.relpath(target, path.parent))
            how.append(f"{name} -> {target.name}")
    words = chance.choice(
        (
            ("report", run.name),
            ("export", run.name),
            ("export", run.name, "--format", "json"),
            ("ckpt", "export", run.name),
            ("runs",),
            ("ckpt", "prune", run.name, "--yes"),
            ("export", run.name, "--format", "tensorboard"),
            ("conclude", f"runs/{run.name}"),
            ("watch", run.name, "--once"),
            ("ckpt", "export", run.name, "--format", "folder"),
            ("compare",),
        )
    )
    before = _outside(place)
    ended = call(place, *words)
    verdict = judge("links", words, "; ".join(how), ended)
    if _outside(place) != before:
        verdict.wrong["wrong_results"] = "the target of a planted link was changed"
    return verdict


def _stream(field: Field, chance: random.Random, place: Path) -> Verdict:
    """Standard streams that break, and surroundings without the usual things."""
    run = _copy(field, chance, place)
    words = _reader(chance, run)
    if chance.random() < 0.3:
        words = chance.choice(
            (("--help",), ("config", "show"), ("config", "schema"), ("completion", "bash"), ("nonsense",))
        )
    way = chance.choice(
        ("full", "closed", "pipe", "no-cwd", "bytes-cwd", "nofile", "fsize", "no-home", "no-home-write", "ascii", "gbk")
    )

    def prepare() -> None:
        if way == "full":
            os.dup2(os.open("/dev/full", os.O_WRONLY), chance.choice((1, 2)))
        elif way == "closed":
            os.close(chance.choice((0, 1, 2)))
        elif way == "pipe":
            read, write = os.pipe()
            os.dup2(write, 1)
            os.close(read)
            os.close(write)
        elif way == "no-cwd":
            (place / "gone").mkdir()
            os.chdir(place / "gone")
            (place / "gone").rmdir()
        elif way == "bytes-cwd":
            os.mkdir(os.fsencode(place) + b"/\xff\xfe")
            os.chdir(os.fsencode(place) + b"/\xff\xfe")
        elif way == "nofile":
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
        elif way == "fsize":
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit * 100, limit * 100))
        elif way == "no-home":
            os.environ.pop("HOME")
        elif way == "no-home-write":
            os.environ["HOME"] = "/proc/1/nothing"

    limit = chance.randrange(4, 30)
    ended = call(place, *words, prepare=prepare, encoding=way if way in ("ascii", "gbk") else "utf-8")
    verdict = judge("streams", words, f"{way} {limit}", ended)
    if verdict.wrong.get("wrong_results") == "not JSON" and way in ("full", "closed", "pipe", "fsize"):
        del verdict.wrong["wrong_results"]
    return verdict


def _escape_names(field: Field, chance: random.Random, place: Path) -> Verdict:
    """Names that would steer a terminal: of runs, recipes, measures, settings, folders."""
    source = field.recipe_run
    evil = chance.choice(ESCAPES)
    name = f"20261118-000000_{evil.replace('/', '')}_0001"
    run = place / "runs" / name
    shutil.copytree(source, run)
    job = json.loads((run / "job.json").read_text())
    job["recipe"] = evil if chance.random() < 0.5 else job["recipe"]
    job["config"]["task"] = {**(job["config"].get("task") or {}), f"data_dir{evil}": evil}
    (run / "job.json").write_text(json.dumps(job))
    lines = []
    for line in (run / "events.jsonl").read_text().splitlines():
        event = json.loads(line)
        if event["kind"] == "validation":
            event["measures"] = {f"{key}{evil}": value for key, value in event["measures"].items()}
            event["measure"] = next(iter(event["measures"]))
        lines.append(json.dumps(event))
    (run / "events.jsonl").write_text("\n".join(lines) + "\n")
    with (run / "log").open("a") as log:
        log.write(f"{evil} and {evil}\n")
    words = chance.choice(
        (
            ("runs",),
            ("runs", "--json"),
            ("watch", name, "--once"),
            ("watch", name, "--once", "--json"),
            ("ckpt", "list", name),
            ("report", name),
            ("export", name),
            ("compare", name, name),
            ("ckpt", "verify", name),
            ("stop", name),
            ("resume", name, evil),
            ("report", evil),
            ("config", "show", f"{evil}=1"),
            ("config", "show", f"task.data_dir={evil}"),
            ("run", "--dry-run", "python", evil),
            ("eval", evil),
        )
    )
    return judge("names", words, repr(evil), call(place, *words))


SECRET_NAMES = ("WANDB_API_KEY", "HF_TOKEN", "DB_PASSWORD", "MY_SECRET", "AWS_SECRET_ACCESS_KEY", "SERVICE_CREDENTIALS")
SECRET_NAMES += ("MYSQL_PWD", "SMTP_PASS", "AZURE_STORAGE_CONNECTION_STRING", "SIGNING_KEY", "FEISHU_WEBHOOK")
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


def _secret(chance: random.Random) -> str:
    body = "".join(chance.choice(LETTERS) for _ in range(chance.choice((12, 24, 40))))
    return chance.choice(("", "", "hf_", "sk-", "ghp_", "glpat-")) + body + "7"


SHAPES: tuple[Callable[[str], str], ...] = (
    lambda body: f"https://hooks.slack.com/services/T01/B01/{body}",
    lambda body: f"https://open.feishu.cn/open-apis/bot/v2/hook/{body}",
    lambda body: f"https://oapi.dingtalk.com/robot/send?access_token={body}",
    lambda body: f"https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key={body}",
    lambda body: f"https://discord.com/api/webhooks/1234567/{body}",
    lambda body: f"https://acc.blob.core.windows.net/c?sv=2020-01-01&sig={body}%3D",
    lambda body: f"DefaultEndpointsProtocol=https;AccountName=a;AccountKey={body}==;EndpointSuffix=x",
    lambda body: f"Authorization: Bearer {body}",
    lambda body: f"curl -H 'Authorization: Basic {body}' http://x",
    lambda body: f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.{body}",
    lambda body: f"machine api.wandb.ai login user password {body}",
    lambda body: f"-----BEGIN PRIVATE KEY-----\nMIIE{body}\n{body}\n-----END PRIVATE KEY-----",
    lambda body: json.dumps({"type": "service_account", "private_key": f"-----BEGIN PRIVATE KEY-----\n{body}\n"}),
    lambda body: json.dumps(json.dumps({"api_key": body})),
    lambda body: f"mysql -u me -p{body} db",
    lambda body: f"hf_{body}",
    lambda body: f"sk-proj-{body}",
    lambda body: f"github_pat_{body * 2}",
    lambda body: f"<config><password>{body}</password></config>",
    lambda body: f"postgres://me:{body}@db:5432/x",
    lambda body: f"nvapi-{body}",
)
"""Printed by a program that nobody has told us about: known by their shape alone."""

SPELLINGS: tuple[str, ...] = (
    "value",
    "json.dumps({'x': value})",
    "urllib.parse.quote(value, safe='')",
    "base64.b64encode(value.encode()).decode()",
    "base64.b64encode(('me:' + value).encode()).decode()",
    "repr({'k': [value]})",
    "'https://host/?x=' + value",
    "'x' * 300 + value + 'y' * 300",
)


def _canary(field: Field, chance: random.Random, place: Path) -> Verdict:
    """Secrets in every place where users put them: a real job, then everything that was written about it."""
    secret, name = _secret(chance), chance.choice(SECRET_NAMES)
    env, line = {}, [sys.executable, "job.py"]
    ways = ("env", "inline", "text", "flag", "flag=", "short", "address", "config", "diff", "print", "shape", "pem")
    way = chance.choice((*ways, "json", "url", "inline", "inline"))
    hidden = [secret]
    says = "import base64, json, os, sys, urllib.parse\n"
    end = chance.choice(("raise ValueError('bad ' + str(said))\n", "print('using', said)\nsys.exit(3)\n"))
    body = f"value = os.environ.get({name!r}, '')\nsaid = {chance.choice(SPELLINGS)}\n{end}"
    if way == "env":
        env[name] = secret
    elif way == "inline":
        line = [f"{name}={secret}", *line]
    elif way == "text":
        quoted = chance.choice((secret, f"'{secret}'", f'"{secret}"'))
        line = [f"{name}={quoted} {sys.executable} job.py" + chance.choice(("", " ; exit 3", " | cat", " && true"))]
    elif way == "pem":
        rows = ["".join(chance.choice(LETTERS) for _ in range(64)) for _ in range(4)]
        hidden = rows
        env[name] = "\n".join(["-----BEGIN RSA PRIVATE KEY-----", *rows, "-----END RSA PRIVATE KEY-----"])
        body = f"said = os.environ[{name!r}]{chance.choice(('', '[70:300]', '.splitlines()[2]'))}\n{end}"
    elif way == "json":
        env["SETTINGS_JSON"] = json.dumps({"user": "me", "db": {"password": secret}})
        body = f"said = {chance.choice(('os.environ', 'json.loads(os.environ'))}['SETTINGS_JSON']"
        body += f"{')' if 'loads' in body else ''}\n{end}"
    elif way == "url":
        env["DATABASE_URL"] = f"postgres://me:{secret}@db/x"
        body = f"said = os.environ['DATABASE_URL'].split('@')[0].split(':')[-1]\n{end}"
    elif way in ("flag", "flag="):
        flag = chance.choice(("--password", "--api-key", "--hf_token", "--auth-token", "--db.password"))
        line += [flag, secret] if way == "flag" else [f"{flag}={secret}"]
        body = chance.choice(("raise RuntimeError(' '.join(sys.argv))\n", "print(sys.argv)\nsys.exit(3)\n"))
    elif way == "short":
        line += chance.choice(
            (["-p", f"{secret}A1b"], ["-u", f"me:{secret}"], ["-H", f"Authorization: Bearer {secret}"])
        )
        body = chance.choice(("raise RuntimeError(' '.join(sys.argv))\n", "print(sys.argv)\nsys.exit(3)\n"))
    elif way == "address":
        line += ["--data", f"https://user:{secret}@host/x"]
        body = "raise OSError('cannot reach ' + sys.argv[-1])\n"
    elif way == "config":
        (place / "settings.yaml").write_text(f"db_password: {secret}\n")
        body = f"raise KeyError('db_password={secret}')\n"
    elif way == "print":
        label = chance.choice(("password", "token", "api_key", "auth_token"))
        body = f"print('{label}={secret}')\nsys.exit(3)\n"
    elif way == "shape":
        secret = "".join(chance.choice(LETTERS) for _ in range(24))
        hidden = [secret]
        end = chance.choice(("raise ValueError(said)\n", "print(said)\nsys.exit(3)\n"))
        body = f"said = {chance.choice(SHAPES)(secret)!r}\n{end}"
    else:
        _git(place, "init", "-q")
        (place / "settings.py").write_text("x = 1\n")
        _git(place, "add", ".")
        _git(place, "-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qm", "x")
        (place / "settings.py").write_text(f"{name} = '{secret}'\n")
        body = "sys.exit(3)\n"
    (place / "job.py").write_text(says + body)
    words = ("run", "--no-training", *line)
    ended = start(place, *words, env=env)
    verdict = judge("canaries", words, f"{way}: {body[-200:]!r}", ended, EXITS | {1, 3})
    if ended.code in (0, 1, 3) and b"cli/bug" not in ended.err:
        verdict.wrong.pop("tracebacks", None)  # the job's own traceback and exit code
    runs = sorted((place / "runs").glob("2*"))
    # A later reader: without the variables, as on another day or another machine.
    for reader in (("report",), ("watch", "--once"), ("watch", "--once", "--json"), ("runs", "--json")):
        said = call(place, *reader)
        for one in hidden:
            if one.encode() in said.out + said.err:
                verdict.wrong["leaks"] = f"{reader[0]} shows the secret"
    is_guessed = way in ("config", "print", "shape", "diff")
    own = ("stdout.log", "supervisor.log", *(("log",) if is_guessed else ()))
    for path in (path for run in runs for path in run.rglob("*") if path.is_file()):
        if path.name in own:
            continue  # the user's own log files, byte for byte; nothing is hidden in `log` by guesses
        for one in hidden:
            if one.encode() in path.read_bytes():
                verdict.wrong["leaks"] = f"{path.relative_to(place)} holds the secret"
    if len(runs) != 1 or (runs[0].stat().st_mode & 0o077):
        verdict.wrong["leaks"] = "the run directory is open to others"
    return verdict


def _git(place: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=place, check=True, capture_output=True)


def _disk(field: Field, chance: random.Random, place: Path) -> Verdict:
    """A disk that is full, or a directory that goes away, at a random moment of a real job."""
    way = chance.choice(("moved", "deleted", "file-limit", "file-limit", "no-files", "locked"))
    code = chance.choice((0, 0, 7))
    (place / "job.py").write_text(
        "import sys, time\nfor i in range(40):\n    print('x' * 3000, flush=True); time.sleep(0.02)\n"
        f"sys.exit({code})\n"
    )
    words = ("run", "--no-training", sys.executable, "job.py")
    limit = chance.randrange(0, 60_000)

    def preexec() -> None:
        if way == "file-limit":
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        elif way == "no-files":
            few = 6 + limit % 40
            resource.setrlimit(resource.RLIMIT_NOFILE, (few, few))

    moment = chance.uniform(0.5, 2.5)
    if way in ("moved", "deleted", "locked"):
        pid = os.fork()
        if pid == 0:
            time.sleep(moment)
            with contextlib.suppress(OSError):
                if way == "moved":
                    (place / "runs").rename(place / "elsewhere")
                elif way == "deleted":
                    shutil.rmtree(place / "runs", ignore_errors=True)
                else:
                    for path in (place / "runs").glob("*/log"):
                        path.unlink()
                        path.mkdir()
            os._exit(0)
    ended = start(place, *words, preexec_fn=preexec)
    if way in ("moved", "deleted", "locked"):
        os.waitpid(pid, 0)
    refused = frozenset({code, 2, 3, 5}) if way in ("file-limit", "no-files") else frozenset({code, 2, 5})
    verdict = judge("disks", words, f"{way} {limit} at {moment:.2f} s, exit {code}", ended, refused)
    if (
        ended.code == 1
        and b"cli/bug" not in ended.err
        and way == "no-files"
        and b"headway" not in ended.err.split(b"\n")[0]
    ):
        verdict.wrong = {}  # Python itself could not start with so few files
    return verdict


def _live(field: Field, chance: random.Random, place: Path) -> Verdict:
    """Commands on a run that trains: refused ones must change nothing, and the run must end as if left alone."""
    words = ("train", TINY, "train.steps=30", "save.every=5", "eval.every=10", "parallel.cpus=1", "task.sleep_s=0.05")
    child = subprocess.Popen(
        [sys.executable, "-m", "headway", *words],
        cwd=place,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    done: list[Ended] = []
    thrown: list[tuple[str, ...]] = []
    try:
        run = _wait_for_run(place)
        decided = {name: (run / name).read_bytes() for name in ("job.json", "plan.json", "config.yaml")}
        while child.poll() is None and len(done) < 12:
            one = chance.choice(
                (
                    ("resume", run.name, "lr.base=0.5"),
                    ("resume", run.name, "train.steps=99", "batch.per_device=2"),
                    ("runs",),
                    ("report", run.name),
                    ("watch", run.name, "--once"),
                    ("ckpt", "list", run.name),
                    ("ckpt", "verify", run.name),
                    ("ckpt", "prune", run.name, "--yes"),
                    ("export", run.name),
                    ("resume", run.name, "--dry-run"),
                    ("compare",),
                    ("resume", run.name, "--step", "5", "--dry-run"),
                )
            )
            thrown.append(one)
            done.append(call(place, *one))
        _, err = child.communicate(timeout=HANG_S)
    except subprocess.TimeoutExpired:
        err, done = b"", [*done, Ended(None, b"", b"", is_hang=True)]
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    ended = Ended(child.returncode, b"", err)
    verdict = judge("live", words, " | ".join(" ".join(one) for one in thrown), ended, frozenset({0}))
    for one, end in zip(thrown, done, strict=False):
        seen = judge("live", one, "", end)
        if seen.wrong:
            verdict.wrong.update({kind: f"{' '.join(one)}: {why}" for kind, why in seen.wrong.items()})
            verdict.ended = end
    resumed = [end for one, end in zip(thrown, done, strict=False) if one[0] == "resume" and "--dry-run" not in one]
    if any(end.code == 0 for end in resumed):
        return verdict  # the run had just ended: that resume was not a rival, and made it longer
    if any((run / name).read_bytes() != kept for name, kept in decided.items()):
        verdict.wrong["wrong_results"] = "a refused command changed what the run was started with"
    sequence = [json.loads(line)["seq"] for line in (run / "events.jsonl").read_text().splitlines()]
    if sequence != list(range(1, len(sequence) + 1)):
        verdict.wrong["wrong_results"] = f"events are numbered {sequence}"
    steps = [json.loads(line)["step"] for line in (run / "ranks/0/metrics.jsonl").read_text().splitlines()]
    if steps != list(range(1, 31)):
        verdict.wrong["wrong_results"] = f"steps {steps}"
    return verdict


def _wait_for_run(place: Path) -> Path:
    until = time.monotonic() + HANG_S
    while time.monotonic() < until:
        for events in place.glob("runs/2*/events.jsonl"):
            if b"training_started" in events.read_bytes():
                return events.parent
        time.sleep(0.05)
    raise subprocess.TimeoutExpired("headway train", HANG_S)


FAMILIES = {
    "lines": Family(30, _bad_line),
    "values": Family(20, _wrong_value),
    "damage": Family(30, _damaged_run),
    "links": Family(8, _hostile_link),
    "names": Family(6, _escape_names),
    "streams": Family(8, _stream),
    "canaries": Family(0.4, _canary),
    "disks": Family(0.4, _disk),
    "live": Family(0.1, _live),
    **{name: Family(weight, attack) for name, (weight, attack) in {**MORE, **RECEIVED, **OTHERS}.items()},
}
