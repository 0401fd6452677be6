"""How fast the board opens, what it holds in memory, and what a training beside it loses while 200 clients look.

Run it: python bench/board_load.py [--runs 500] [--steps 1000000] [--clients 200] [--chromium PATH]

It makes a folder of runs, a run of a million steps among them, starts `headway board` and opens both in headless
Chromium, caches off. Then as many clients as asked for read the status of runs, each once in two seconds, while a loop
of numpy products stands for a training; the same loop without board and clients is its measure, both twice, in turns.
Where tensorboard is installed (--tensorboard names a python that has it), it opens the same steps as an event file.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import importlib.util
import json
import math
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

import psutil

from headway.telemetry import EventLog, RunDir, write_json
from headway.ui.board.store import run_id
from headway.ui.export import export_run

EVERY_S = 2.0
TRAIN_S = 12.0
LOOP = """
import sys, time, numpy as np
a = np.random.default_rng(0).standard_normal((256, 256)); end = time.monotonic() + float(sys.argv[1]); num = 0
while time.monotonic() < end:
    a = np.tanh(a @ a / 256); num += 1; time.sleep(0)
print(num)
"""


def main() -> None:
    """Measure, print a table, and one JSON object last."""
    asked = parse()
    with tempfile.TemporaryDirectory() as place:
        out = Path(place) / "runs"
        for at in range(asked.runs - 1):
            write_steps(out / f"run_{at:04d}", 200, seed=at)
        write_steps(out / "million", asked.steps, seed=7)
        told: dict[str, Any] = {"runs": asked.runs, "steps": asked.steps, "clients": asked.clients}
        told |= measure_board(out, asked)
        told["tensorboard_million_s"] = measure_tensorboard(out / "million", asked)
    told["cores"], told["load"] = os.cpu_count(), round(os.getloadavg()[0], 1)
    for key, value in told.items():
        print(f"{key:24} {value}")
    print(json.dumps(told))


def parse() -> argparse.Namespace:
    """Read the arguments."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--chromium", default=shutil.which("chromium") or shutil.which("google-chrome"))
    parser.add_argument("--tensorboard", default=sys.executable, help="a python that has tensorboard")
    return parser.parse_args()


def write_steps(root: Path, num: int, seed: int) -> None:
    """Write a finished run of one rank."""
    run, chance, began = RunDir(root), random.Random(seed), 1_760_000_000.0 + seed
    run.metrics(0).parent.mkdir(parents=True)
    clock = [began]
    log = EventLog(run.events, clock=lambda: clock[0])
    log.append("run_started", command=["headway", "train"])
    log.append("attempt_started", attempt=1, world_size=1, pids=[1], port=1, resume_step=0)
    split = {
        "data": 0.001,
        "forward": 0.03,
        "backward": 0.05,
        "comm": 0.004,
        "optimizer": 0.01,
        "save": 0.0,
        "eval": 0.0,
    }
    parts = json.dumps({**split, "mem": 312000000}, separators=(",", ":"))[1:-1]
    with run.metrics(0).open("w") as file:
        for step in range(1, num + 1):
            loss = 1.3 + 4 * math.exp(-8 * step / num) + chance.gauss(0, 0.05)
            head = f'"a":1,"step":{step},"samples":{step * 16},"loss":{loss:.5f},"lr":0.001,"grad_norm":0.7'
            file.write(f'{{{head},"t":{began + step / 10:.3f},"dt":0.1,{parts}}}\n')
    clock[0] = began + num / 10
    log.append("run_ended", state="done", code=0)
    log.close()
    write_json(run.job, {"recipe": "nanochat", "config": {"seed": seed}})


def measure_board(out: Path, asked: argparse.Namespace) -> dict[str, Any]:
    """Return what the board needs to open, to answer many, and to hold."""
    with tempfile.TemporaryDirectory() as state:
        command = [sys.executable, "-m", "headway", "board", "--runs", str(out), "--port", "0", "--json"]
        env = {**os.environ, "XDG_STATE_HOME": state}
        with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, env=env) as board:
            try:
                address = json.loads(board.stdout.readline())["address"]  # type: ignore[union-attr]
                token = (Path(state) / "headway" / "board-token").read_text().strip()
                told = measure_pages(address, token, asked)
                told |= measure_clients(address, token, asked, psutil.Process(board.pid))
                told["rss_mb"] = round(psutil.Process(board.pid).memory_info().rss / 1e6)
            finally:
                board.terminate()
    return told


def measure_pages(address: str, token: str, asked: argparse.Namespace) -> dict[str, Any]:
    """Return the seconds until the table and a long run are painted, the median of three, the first one apart."""
    runs, million = f"{address}/", f"{address}/run/{run_id('million')}"
    get(runs, token)  # the index of the folder is built once, whoever asks
    cold = timed(lambda: get(million, token))
    table = paint(runs, token, asked.chromium, "table.runs tbody tr")
    page = paint(million, token, asked.chromium, ".chart canvas, figure svg")
    weight = 0
    for path in (
        million,
        f"{address}/api/run/{run_id('million')}/curves",
        *(f"{address}/static/{name}" for name in assets()),
    ):
        weight += len(gzip.compress(get(path, token), 5))
    return {
        "first_paint_s": round(statistics.median(table), 3),
        "million_s": round(max(cold, *page), 3),
        "million_cold_answer_s": round(cold, 3),
        "million_again_s": round(statistics.median(page), 3),
        "page_kb": round(weight / 1000, 1),
    }


def assets() -> list[str]:
    """Return what a page loads beside itself."""
    built = Path(importlib.util.find_spec("headway").submodule_search_locations[0]) / "ui/board/static/built"  # type: ignore[union-attr, index]
    return [
        "board.js",
        "board.css",
        "report.css",
        *(["charts.js", "charts.css"] if (built / "charts.js").is_file() else []),
    ]


def get(url: str, token: str) -> bytes:
    """Return an answer's body."""
    asked = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(asked, timeout=120) as answer:
        return bytes(answer.read())


def timed(what: Any) -> float:
    """Return how long something takes."""
    began = time.perf_counter()
    what()
    return time.perf_counter() - began


def paint(url: str, token: str, chromium: str | None, sign: str) -> list[float]:
    """Return the seconds until Chromium has painted a page and its sign is there; new caches each time."""
    from playwright.sync_api import sync_playwright

    found = []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for _ in range(3):
            context = browser.new_context(viewport={"width": 1440, "height": 900})
            context.add_cookies(
                [{"name": f"headway-board-{url.split('/')[2].split(':')[1]}", "value": token, "url": url}]
            )
            page = context.new_page()
            began = time.perf_counter()
            page.goto(url, wait_until="commit")
            page.wait_for_selector(sign, state="attached", timeout=120_000)
            page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
            found.append(time.perf_counter() - began)
            context.close()
        browser.close()
    return found


def measure_clients(address: str, token: str, asked: argparse.Namespace, board: psutil.Process) -> dict[str, Any]:
    """Return how the clients are served and what a training beside them keeps of its speed."""
    alone, beside, took = [], [], []
    for _ in range(2):
        board.suspend()
        alone.append(train())
        board.resume()
        with subprocess.Popen(
            [sys.executable, "-c", LOOP, str(TRAIN_S)], stdout=subprocess.PIPE, text=True
        ) as training:
            spent = sum(board.cpu_times()[:2])
            took += asyncio.run(look(address, token, asked.clients))
            spent = sum(board.cpu_times()[:2]) - spent
            beside.append(int(training.communicate()[0]))
    ranked = sorted(took)
    return {
        "p50_ms": round(1000 * ranked[len(ranked) // 2], 1),
        "p95_ms": round(1000 * ranked[int(0.95 * len(ranked))], 1),
        "answers": len(ranked),
        "training_ratio": round(sum(beside) / sum(alone), 4),
        "board_cores": round(spent / TRAIN_S, 3),
    }


def train() -> int:
    """Return the products of one undisturbed loop."""
    return int(
        subprocess.run([sys.executable, "-c", LOOP, str(TRAIN_S)], capture_output=True, text=True, check=True).stdout
    )


async def look(address: str, token: str, num: int) -> list[float]:
    """Return the seconds of every status answer; each client keeps its connection."""
    took: list[float] = []
    paths = ["/api/runs", f"/api/run/{run_id('million')}"]
    host, port = address.removeprefix("http://").split(":")
    end = time.monotonic() + TRAIN_S - 1

    async def one(at: int) -> None:
        await asyncio.sleep(EVERY_S * at / num)
        reader, writer = await asyncio.open_connection(host, int(port))
        path = paths[1] if at % 10 else paths[0]
        asked = f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
        while time.monotonic() < end:
            began = time.perf_counter()
            writer.write(asked)
            head = await reader.readuntil(b"\r\n\r\n")
            if not head.startswith(b"HTTP/1.1 200"):
                raise SystemExit(f"the board answered {head[:40]!r}")
            length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            await reader.readexactly(int(length.split(b":")[1]))
            took.append(time.perf_counter() - began)
            await asyncio.sleep(EVERY_S)
        writer.close()

    await asyncio.gather(*(one(at) for at in range(num)))
    return took


def measure_tensorboard(root: Path, asked: argparse.Namespace) -> float | None:
    """Return the seconds from its start until TensorBoard tells the loss of the last step; None: it is not there."""
    if shutil.which(asked.tensorboard) is None:
        return None
    has_it = subprocess.run([asked.tensorboard, "-c", "import tensorboard"], capture_output=True).returncode == 0
    if not has_it:
        return None
    with tempfile.TemporaryDirectory() as place:
        export_run(RunDir(root), "tensorboard", Path(place))
        command = [
            asked.tensorboard,
            "-m",
            "tensorboard.main",
            "--logdir",
            place,
            "--port",
            "0",
            "--load_fast",
            "false",
        ]
        began = time.perf_counter()
        with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as server:
            try:
                line = next(line for line in server.stderr if "http://" in line)  # type: ignore[union-attr]
                address = "http://" + line.split("http://")[1].split()[0].rstrip("/")
                while time.perf_counter() - began < 600:
                    tags = json.loads(urllib.request.urlopen(f"{address}/data/plugin/scalars/tags").read())
                    name, known = next(iter(tags.items()), ("", {}))
                    loss = next((tag for tag in known if "loss" in tag), None)
                    if loss is not None:
                        url = f"{address}/data/plugin/scalars/scalars?tag={loss}&run={name}"
                        points = json.loads(urllib.request.urlopen(url).read())
                        if points and points[-1][1] >= asked.steps - 1:
                            return round(time.perf_counter() - began, 2)
                    time.sleep(0.1)
            finally:
                server.terminate()
    return None


if __name__ == "__main__":
    main()
