"""Play each guide as a person's day: start, look, edit, stop, start again, resume an old name, evaluate, break it.

    python bench/guide_walk.py [--guide NAME …] [--keep DIR]

Every check is a promise of the guide, or of README.md in its project, as its reader would check it: by the screen, the
log and the files. Runs are made short by the guide's own settings; nothing else is changed. The last line is JSON:
promises, kept, kept_share, by_guide.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from headway.machine.cpu import LIMITS

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests")]
PYTHON = sys.executable
LEVELS = ("[INFO]", "[WARN]", "[SUCCESS]", "[ERROR]")


class Day:
    """One project, and what was promised and kept in it."""

    def __init__(self, guide: str, place: Path, env: dict[str, str] | None = None) -> None:
        self.guide, self.rows = guide, []
        names = ("PATH", "LD_LIBRARY_PATH", *LIMITS)
        kept = {name: os.environ[name] for name in names if name in os.environ}
        kept["PATH"] = f"{Path(PYTHON).parent}:/usr/bin:/bin"
        self.env = {**kept, "HOME": str(place), "LANG": "zh_CN.UTF-8", **(env or {})}
        self.screen = ""
        made = self.do(f"{PYTHON} -m headway new {guide} {place / 'p'}", cwd=place)
        self.place = place / "p"
        self.check("`headway new` makes the project", made == 0)
        text = (self.place / "README.md").read_text(encoding="utf-8") if made == 0 else ""
        self.check(
            "README.md: Chinese first, then English", "指南" in text.partition("\n---\n")[0] and "\n---\n" in text
        )

    def do(self, line: str, *, cwd: Path | None = None, **env: str) -> int:
        """Run a command to its end; its screen is kept."""
        began = time.monotonic()
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=cwd or self.place,
            env={**self.env, **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            errors="replace",
            timeout=1800,
            check=False,
        )
        self.screen = done.stdout
        print(f"  [{self.guide}] {time.monotonic() - began:5.1f} s, exit {done.returncode}: {line[:110]}", flush=True)
        return done.returncode

    def stop_when(self, line: str, is_time: Callable[[], bool], *, times: int = 1, **env: str) -> int:
        """Start a command and press Ctrl-C, as a terminal does, at a moment, once or again; return the exit code."""
        with (self.place / ".screen").open("wb") as screen:
            child = subprocess.Popen(
                ["bash", "-c", f"trap - INT; exec {line}"],
                cwd=self.place,
                env={**self.env, **env},
                stdout=screen,
                stderr=screen,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        deadline = time.monotonic() + 900
        while not is_time() and child.poll() is None and time.monotonic() < deadline:
            time.sleep(0.1)
        for turn in range(times):
            time.sleep(0.7 if turn else 0)
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGINT)
        code = child.wait(600)
        self.screen = (self.place / ".screen").read_text(encoding="utf-8", errors="replace")
        print(f"  [{self.guide}] stopped, exit {code}: {line[:110]}", flush=True)
        return code

    def do_from_elsewhere(self, line: str, *files: str, **env: str) -> int:
        """Run one of the project's scripts by its path, in a folder with a blank and Chinese letters in its name."""
        folder = self.place.parent / "别处 的目录"
        folder.mkdir(exist_ok=True)
        for file in files:
            line = line.replace(file, f"'{self.place / file}'")
        return self.do(line, cwd=folder, **env)

    def check(self, promise: str, is_kept: object, detail: str = "") -> None:
        """Note whether a promise is kept."""
        self.rows.append((promise, bool(is_kept)))
        if not is_kept:
            print(f"  NOT KEPT [{self.guide}] {promise} {detail}\n{self.screen[-1500:]}", flush=True)

    def says(self, *words: str) -> bool:
        """Say whether the screen has all these words, and no traceback of ours."""
        return all(word in self.screen for word in words) and "Traceback (most recent call last)" not in self.screen

    def edit(self, file: str, old: str, new: str) -> None:
        """Edit a file as the guide says."""
        path = self.place / file
        text = path.read_text(encoding="utf-8")
        assert old in text, f"{old!r} is not in {file}"
        path.write_text(text.replace(old, new), encoding="utf-8")

    def runs(self, out: str = "runs") -> list[str]:
        """Return the runs by name, the oldest first."""
        return sorted(job.parent.name for job in (self.place / out).glob("*/job.json"))

    def num(self, pattern: str) -> int:
        """Return how many files there are."""
        return len(list(self.place.glob(pattern)))

    def log(self, pattern: str) -> str:
        """Return the newest log."""
        found = sorted(self.place.glob(pattern))
        return found[-1].read_text(encoding="utf-8") if found else ""

    def break_it(self, breaks: Sequence[tuple[str, str, tuple[str, ...]]]) -> None:
        """Do what cannot work; it must be refused with what can, and no traceback."""
        for name, line, words in breaks:
            code = self.do(line)
            self.check(f"broken: {name}: refused with what helps", code not in (0, 1) and self.says(*words))

    def helps(self, *lines: str) -> None:
        """Ask every script for help; nothing may start."""
        for line in lines:
            before = self.runs()
            code = self.do(f"{line} --help")
            self.check(
                f"{line} --help explains and starts nothing", code == 0 and self.says("用法") and before == self.runs()
            )


def walk_nanochat(place: Path) -> Day:
    """Two GPUs: batch sizes, logs, the monitor, errors."""
    day = Day("nanochat", place)
    short = "--num_iterations=6 --eval_every=3"
    day.helps("./train_dual_gpu.sh", "./train_dual_gpu_enhanced.sh", "./monitor_training.sh")
    code = day.do(f"./train_dual_gpu_enhanced.sh {short}", CUDA_VISIBLE_DEVICES="0")
    log = day.log("logs/train_dual_gpu_*.log")
    day.check("trains without a config and says which it trains", code == 0 and "configs/dual_gpu/balanced.py" in log)
    day.check("log and screen are the same", log and log == day.screen)
    day.check("every line has a level and a time", log and all(line.startswith(LEVELS) for line in log.splitlines()))
    day.check("GPU count is checked", "需要 2 张" in log)
    day.check("CUDA_VISIBLE_DEVICES=0 is remarked on", "CUDA_VISIBLE_DEVICES=0,1" in log)
    day.check("the port is checked", "端口 12355" in log)
    day.check("divisibility is checked", "整除" in log and "49,152" in log)
    day.check(
        "settings not used are listed once", log.count("加 --full-size 则全部按原值") == 1 and "depth: 16 → 4" in log
    )
    day.check("weights under nanochat's names", (day.place / "base_checkpoints/d4/model_000006.pt").is_file())
    day.do("./monitor_training.sh --interval=3 --once --log=logs/train_dual_gpu_20241021_160000.log")
    day.check("monitor: state, best, checkpoint, log", day.says("最佳", "检查点", "Minimum validation bpb"))
    day.check("monitor: CPU, memory, disk, GPU", day.says("CPU", "内存", "可用磁盘", "GPU"))
    code = day.do(
        "./train_dual_gpu_enhanced.sh --device_batch_size=12 --total_batch_size=36864 "
        f"{short} --config=configs/dual_gpu/conservative.py"
    )
    first, second = day.runs()
    plan = json.loads((day.place / "runs" / second / "plan.json").read_text())
    day.check("a typed device_batch_size is used", code == 0 and plan["micro_batch"] == 12)
    day.check(
        "a typed total_batch_size keeps its samples, and that is said", day.says("total_batch_size: 36864 → 3072")
    )
    shelf = day.place / "base_checkpoints/d4"
    pair = ("model_000006.pt", "meta_000006.json")
    are_kept = all((shelf / first / name).is_file() for name in pair)
    day.check("the first run's weights are kept, the place is said", are_kept and day.says(f"d4/{first}/"))
    day.check("the second run's own are there", all((shelf / name).is_file() for name in pair))
    code = day.do_from_elsewhere("bash ./train_dual_gpu.sh --num_iterations=2 --lang=x", "./train_dual_gpu.sh")
    day.check("a wrong flag from another folder is refused in words", code == 2 and day.says("lang"))
    code = day.do_from_elsewhere(
        "bash ./train_dual_gpu.sh --num_iterations=2", "./train_dual_gpu.sh", LANG="en_US.UTF-8"
    )
    day.check("from another folder, in English", code == 0 and day.says("working in the project folder", "bpb"))
    at_once = "./train_dual_gpu.sh --num_iterations=3 & ./train_dual_gpu_enhanced.sh --num_iterations=3; wait"
    day.do(at_once)
    shown = {next(iter(json.loads(note.read_text())["files"]), "") for note in day.place.glob("runs/*/guide.json")}
    is_own = len(shown - {""}) == len(day.runs()) == 5
    day.check("two terminals at once each leave their own weights", is_own, str(shown))
    day.do("./monitor_training.sh --interval=soon --once")
    day.check("the monitor refuses what is no time in words", day.says("--interval=soon"))
    with_port = (
        "python -c \"import socket,time; s=socket.socket(); s.bind(('127.0.0.1',12355)); time.sleep(60)\" & sleep 2; "
    )
    day.do(f"{with_port} ./train_dual_gpu.sh configs/dual_gpu/conservative.py --num_iterations=1; kill %1")
    day.check("a busy port is said with the next free one", day.says("端口 12355 已被占用", "12356"))
    line = "./train_dual_gpu.sh configs/dual_gpu/conservative.py --num_iterations=4000"
    code = day.stop_when(line, lambda: "step 00010" in day.log("logs/train_dual_gpu_*.log"))
    day.check("Ctrl-C saves, is no error, says how to continue", code == 130 and day.says("[WARN]", "--resume=latest"))
    day.check("a clean stop is not called an error", "[ERROR]" not in day.screen)
    stopped = list((day.place / "base_checkpoints/d4").glob("model_*.pt"))
    day.check("a stopped run leaves its weights", bool(stopped))
    logs, before = "logs/train_dual_gpu_*.log", day.num("logs/train_dual_gpu_*.log")
    code = day.stop_when(f"{line} --resume=latest", lambda: day.num(logs) > before and "step 0" in day.log(logs))
    day.check("and the command it names continues the same run", len(day.runs()) == 7 and day.says(day.runs()[-1]))
    day.check("no file of the whole day was left unwritten", "未能写出" not in "".join(
        log.read_text(encoding="utf-8") for log in day.place.glob(logs)))  # fmt: skip
    day.break_it(
        [
            ("batch", "./train_dual_gpu_enhanced.sh --device_batch_size=16 --total_batch_size=49152",
             ("--device_batch_size=12", "错误分析")),
            ("config", "./train_dual_gpu.sh configs/dual_gpu/reckless.py", ("conservative.py",)),
            ("key", "./train_dual_gpu_enhanced.sh --device_batchsize=8", ("device_batch_size",)),
            ("value", "./train_dual_gpu_enhanced.sh --num_iterations=many", ("many", "num_iterations")),
            ("data", "./train_dual_gpu_enhanced.sh --num_iterations=1 task.synthetic=false --data_dir=nowhere",
             ("nowhere", "错误分析", "data_dir")),
        ]
    )  # fmt: skip
    return day


def walk_layoutmaster(place: Path) -> Day:
    """Eight GPUs: the files of epochs, the edit of the batch, the best model."""
    from headway.recipes.layoutmaster.section import LayoutMasterSection
    from headway.recipes.layoutmaster.synthetic import write_posters

    day = Day("layoutmaster", place)
    write_posters(day.place / "data-action_head", LayoutMasterSection(trajectory_steps=2), num=10)
    config = "config_data_action_head.json"
    for old, new in {'"batch_size": 32': '"batch_size": 8', '"num_epochs": 100': '"num_epochs": 12'}.items():
        day.edit(config, old, new)
    day.edit(config, '"save_every": 10', '"save_every": 5')
    day.helps("./start_training.sh", "python train.py", "python train_multi_gpu.py", "python test_data_loading.py")
    code = day.do_from_elsewhere("python test_data_loading.py", "test_data_loading.py")
    day.check("the data check works from another folder", code == 0 and day.says("8 个样本"))
    code = day.do("python test_data_loading.py")
    day.check("the data check counts the posters", code == 0 and day.says("✅ 训练数据集包含 8 个样本"))
    code = day.do("./start_training.sh")
    log = day.log("logs/training_*.log")
    day.check("trains", code == 0)
    day.check("log and screen are the same", log and log == day.screen)
    for sign in ("✅ 使用 2 个CPU进程进行训练", "✅ 训练数据集包含 8 个样本", "✅ 验证数据集包含 2 个样本", "损失函数"):
        day.check(f"sign of a healthy run: {sign}", sign in log)
    names = {path.name for path in (day.place / "checkpoints").glob("*.pth")}
    wanted = {"best_model.pth", "checkpoint_epoch_5.pth", "checkpoint_epoch_10.pth"}
    day.check("best_model.pth and a file every five epochs", names == wanted, str(names))
    day.check("one run", len(day.runs()) == 1)
    day.edit(config, '"batch_size": 8', '"batch_size": 4')
    code = day.do(f"python train.py --config {config} --mode train --resume checkpoints/checkpoint_epoch_5.pth")
    second = day.runs()[-1]
    plan = json.loads((day.place / "runs" / second / "plan.json").read_text())
    day.check("after the edit of the batch it continues at epoch 6", code == 0 and day.says("Epoch 6 - Train Loss"))
    day.check("and not earlier", "Epoch 5 - Train Loss" not in day.screen)
    day.check("to epoch 12", day.says("Epoch 12 - Train Loss") and "Epoch 13 " not in day.screen)
    day.check("in as many steps as are left", plan["total_steps"] == 5 + 7 * 8 // 4, str(plan["total_steps"]))
    note = json.loads((day.place / "checkpoints" / "checkpoint_epoch_10.json").read_text())
    day.check("checkpoint_epoch_10.pth is the resumed run's", second in note["run"] and note["epoch"] == 10, str(note))
    before = json.loads((day.place / "checkpoints" / "best_model.json").read_text())["measures"]["mean_iou"]
    line = "./start_training.sh training.num_epochs=2000 data.batch_size=8"
    code = day.stop_when(line, lambda: "Epoch 3 - Train Loss" in day.log("logs/training_*.log"))
    third = day.runs()[-1]
    day.check("Ctrl-C saves and says how to continue", code == 130 and day.says("--mode train --resume checkpoints/"))
    day.check("and leaves no traceback", "Traceback" not in day.screen)
    notes = {note: json.loads(note.read_text()) for note in (day.place / "checkpoints").glob("checkpoint_*.json")}
    stopped = [note.with_suffix(".pth") for note, told in notes.items() if third in told["run"]]
    day.check("and a file to continue from", len(stopped) >= 1)
    day.check("the earlier files were moved, and that was said", day.says(f"checkpoints/{second}/", "已移到"))
    best = json.loads((day.place / "checkpoints" / "best_model.json").read_text())["measures"]["mean_iou"]
    day.check("best_model.pth is not replaced by a worse one", best >= before, f"{best} {before}")
    code = day.do(
        f"python train.py --config {config} --mode train --resume checkpoints/checkpoint_epoch_10.pth data.batch_size=4"
    )
    day.check(
        "--resume finds a moved file and says of which run", code == 0 and day.says(second, "已在之后的训练启动时移走")
    )
    resume = (
        f"python train.py --config {config} --mode train --resume checkpoints/{stopped[0].name if stopped else 'x'}"
    )
    code = day.do(f"{resume} training.num_epochs=6 data.batch_size=8")
    day.check("the stopped run's own file can be continued from", code == 0 and third != day.runs()[-1])
    predict = (
        f"python train.py --config {config} --mode predict --checkpoint checkpoints/best_model.pth --num_samples 20"
    )
    code = day.do(predict)
    made = list((day.place / "predictions").glob("*/prediction.json"))
    day.check("predict lays out posters with pictures", code == 0 and len(made) == 2)
    day.break_it(
        [
            ("no mode", f"python train.py --config {config}", ("--mode",)),
            ("config", "python train.py --config nope.json --mode train", (config,)),
            ("checkpoint", "python train.py --mode train --resume checkpoints/checkpoint_epoch_77.pth",
             ("best_model.pth", "错误分析")),
            ("flag", "python train.py --mode train --epochs 3", ("--resume",)),
            ("batch", "./start_training.sh data.batch_size=9", ("batch",)),
        ]
    )  # fmt: skip
    return day


def walk_atlas(place: Path) -> Day:
    """Eight GPUs by torchrun: the rate, epochs, an old name after a second start."""
    from headway.recipes.atlas.build import write_synthetic

    day = Day("atlas", place)
    config = "atlas/configs/train_config.yaml"
    (day.place / "dataset").mkdir()
    write_synthetic(day.place / "dataset", episodes=30, frames=3)
    (day.place / "dataset" / "synthetic.json").unlink()
    day.edit(config, "num_epochs: 50", "num_epochs: 4")
    day.edit(config, "warmup_steps: 1000", "warmup_steps: 2")
    with (day.place / config).open("a") as file:
        file.write("parallel:\n  threads: 1\n")
    day.helps("python atlas/train.py", "python atlas/eval.py")
    line = f"torchrun --nproc_per_node=2 atlas/train.py --config {config}"
    code = day.do(line)
    setup = "Training setup:\n  Distributed: True\n  World size: 2\n  Rank: 0, Local rank: 0"
    day.check("trains and shows the lines of question 1", code == 0 and day.says(setup))
    day.check("a GIF of an episode at the end", day.num("episodes/*.gif") == 1 and day.says("影片"))
    day.check("batch 8 × 2 × 1 = 16", day.says("8 × 2 × 1 = 16"))
    day.check("the rate is scaled by the GPUs", day.says("effective learning rate: 0.0002"))
    day.check("num_workers that are not used are listed", day.says("data.num_workers: 4 →"))
    names = {path.name for path in (day.place / "checkpoints").glob("*.pt")}
    day.check(
        "a checkpoint for each epoch and the best", {"checkpoint_epoch_2.pt", "best_model.pt"} <= names, str(names)
    )
    (first,) = day.runs()
    day.edit("atlas/train.py", "effective_lr = base_lr * world_size", "effective_lr = base_lr * math.sqrt(world_size)")
    day.edit(config, "batch_size: 8 ", "batch_size: 4 ")
    long = line.replace("torchrun", "HEADWAY_SET_TRAIN__EPOCHS=900 torchrun")
    kept = day.place / "checkpoints"
    # The first run's file of that name is moved once the second has begun.
    code = day.stop_when(f"env {long}", lambda: (kept / first).is_dir() and (kept / "checkpoint_epoch_1.pt").exists())
    day.check("the edit of train.py changes the rate", "effective learning rate: 0.000141" in day.screen)
    day.check("the earlier files were moved, and that was said", f"checkpoints/{first}/" in day.screen)
    day.check("best_model.pt stays until a better one", (day.place / "checkpoints" / "best_model.pt").is_file())
    shutil.rmtree(day.place / "checkpoints" / day.runs()[-1], ignore_errors=True)
    (day.place / "checkpoints" / "checkpoint_epoch_2.pt").unlink(missing_ok=True)
    day.edit(config, "batch_size: 4 ", "batch_size: 8 ")
    day.edit(config, "num_epochs: 4", "num_epochs: 5")
    code = day.do(f"{line} --resume checkpoints/checkpoint_epoch_2.pt")
    day.check("--resume finds an old name after a second start", code == 0 and day.says(first, "移走"))
    day.check("and continues at epoch 3", (day.place / "checkpoints" / "checkpoint_epoch_4.pt").is_file())
    code = day.do(f"python atlas/eval.py --config {config} --checkpoint checkpoints/best_model.pt")
    day.check("the evaluation measures held-out episodes", code == 0 and day.says("pose_l1"))
    port = "export MASTER_ADDR=localhost MASTER_PORT=29511 WORLD_SIZE=2 RANK=0 LOCAL_RANK=0"
    start = f"python atlas/train.py --config {config}"
    day.do(f"{port}; CUDA_VISIBLE_DEVICES=0 {start} & CUDA_VISIBLE_DEVICES=1 {start}; wait")
    day.check("RANK=0 for all is caught and explained", day.says("RANK 就都相同"))
    day.break_it(
        [
            ("checkpoint", f"{start} --resume checkpoints/checkpoint_epoch_99.pt", ("checkpoint_epoch_", "错误分析")),
            ("config", "python atlas/train.py --config atlas/configs/x.yaml", ("train_config.yaml",)),
            ("flag", f"{start} --epochs 3", ("--resume",)),
            ("data", f"{start} data.data_dir=nowhere task.synthetic=false", ("nowhere", "错误分析")),
            ("split", f"python atlas/eval.py --config {config} --checkpoint checkpoints/best_model.pt --split train",
             ("--split val",)),
        ]
    )  # fmt: skip
    return day


def walk_rdt(place: Path) -> Day:
    """Two GPUs by script and accelerate: the bar, checkpoint-N, the best of all runs."""
    from fakes.rdt_demos import write_demos

    short = {
        "HEADWAY_SET_TASK__SAMPLE__BATCHES": "1",
        "HEADWAY_SET_TASK__ROLLOUT__EPISODES": "2",
        "HEADWAY_SET_TASK__ROLLOUT__MAX_STEPS": "4",
        "HEADWAY_SET_EVAL__SAMPLES": "8",
        "HEADWAY_SET_LR__WARMUP_SAMPLES": "8",
        "HEADWAY_SET_EVAL__EVERY": "5",
    }
    day = Day("rdt", place, short)
    write_demos(place / ".cache" / "headway" / "rdt", demos=3)
    folder = day.place / "checkpoints" / "single_task_scene10_2gpu"
    day.helps("bash train_single_task_2gpu.sh", "bash train_single_task.sh", "python eval_sim/eval_rdt_libero.py")
    code = day.do(
        "chmod +x train_single_task_2gpu.sh && "
        "./train_single_task_2gpu.sh --max_train_steps=10 --checkpointing_period=5"
    )
    log = day.log("checkpoints/single_task_scene10_2gpu/training.log")
    day.check("trains", code == 0)
    signs = ("检测到单任务训练", "world_size=2, rank=0", "world_size=2, rank=1", "Steps:   0%|          | 0/10")
    for sign in signs:
        day.check(f"after the start: {sign}", sign in log)
    day.check("the bar moves", "Steps: 100%|██████████| 10/10 [" in log)
    day.check("two tasks are named where there are two", "含两个任务" in log)
    day.check(
        "the script's values that are not used are listed", "train_batch_size: 16 →" in log and "learning_rate" in log
    )
    day.check("checkpoint-N with ema", (folder / "checkpoint-10" / "ema" / "model.safetensors").is_file())
    (first,) = day.runs()
    day.edit("train_single_task_2gpu.sh", "--train_batch_size=16", "--train_batch_size=12")
    code = day.do("bash train_single_task_2gpu.sh --max_train_steps=5 --checkpointing_period=5")
    plan = json.loads((day.place / "runs" / day.runs()[-1] / "plan.json").read_text())
    day.check(
        "an edited train_batch_size is used (12: 6 on each)", plan["batch_samples"] == 12 and plan["micro_batch"] == 6
    )
    day.check("the first run's checkpoints are kept, the place is said",
              (folder / first / "checkpoint-10").is_dir() and day.says(f"/{first}/"))  # fmt: skip
    code = day.do(
        "python eval_sim/eval_rdt_libero.py --config configs/base.yaml --pretrained checkpoints/"
        "single_task_scene10_2gpu/checkpoint-19000/ema/model.safetensors --benchmark libero_90 "
        "--num_tasks 2 --max_steps 4 --exec_horizon 2 "
        "--record_video --video_output_dir videos/eval"
    )
    day.check("the evaluation takes the best of all runs and says why", code == 0 and day.says("验证结果最好"))
    best = _best_file(day.place / "runs")
    day.check("which is the one with the lowest loss", day.says(f"single_task_scene10_2gpu/{best}/ema/"), best)
    day.check("a film of each episode", len(list((day.place / "videos/eval").glob("*.gif"))) > 0)
    line = "accelerate launch --num_processes 2 --multi_gpu --mixed_precision bf16 main.py --train_batch_size=8"
    code = day.do(f"{line} --max_train_steps=2 --output_dir=checkpoints/other")
    day.check("accelerate starts it too", code == 0 and (day.place / "checkpoints/other/checkpoint-2").is_dir())
    resume = "python main.py --output_dir=checkpoints/other --max_train_steps=4 --num_processes=2"
    code = day.do(f"{resume} --resume_from_checkpoint=latest")
    day.check("latest continues", code == 0 and (day.place / "checkpoints/other/checkpoint-4").is_dir())
    code = day.do(f"{resume} --resume_from_checkpoint=checkpoint-2")
    day.check("one checkpoint by its name continues", code == 0)
    long = "bash train_single_task_2gpu.sh --max_train_steps=5000 --checkpointing_period=1000"
    code = day.stop_when(long, lambda: "| 10/5000" in day.log("checkpoints/single_task_scene10_2gpu/training.log"))
    day.check("Ctrl-C saves, says how to continue", code == 130 and day.says("--resume_from_checkpoint=latest"))
    day.break_it(
        [
            ("batch", "bash train_single_task_2gpu.sh --train_batch_size=15", ("15",)),
            ("config", "python main.py --config_path=configs/x.yaml", ("configs/base.yaml",)),
            ("weights", "python eval_sim/eval_rdt_libero.py --pretrained none/checkpoint-1", ("train_single",)),
            ("key", "python main.py --train_batchsize=8", ("train_batch_size",)),
            ("resume", "python main.py --output_dir=checkpoints/new --resume_from_checkpoint=latest", ("resume_from",)),
        ]
    )  # fmt: skip
    return day


def _best_file(runs: Path) -> str:
    """Return the checkpoint with the lowest validation loss, where it is now."""
    files = [json.loads(record.read_text())["files"] for record in runs.glob("*/guide.json")]
    losses = {name: note["measures"].get("loss") for one in files for name, note in one.items()}
    return min((loss, name) for name, loss in losses.items() if loss is not None)[1]


def walk_tfnet(place: Path) -> Day:
    """MindSpore's guide, here trained with torch for time: set-up test, edits, files, paths."""
    from fakes.tfnet_set import SMALL, write_small

    root = write_small(place / "small")
    # Two threads on busy cores wait for each other most of the time.
    words = (
        *SMALL,
        "parallel.threads=1",
        "save.every=1",
        f"task.data_dir={root}",
        "task.synthetic=true",
        "task.framework=torch",
    )
    env = {
        f"HEADWAY_SET_{key.upper().replace('.', '__')}": value for key, value in (word.split("=", 1) for word in words)
    }
    day = Day("tfnet", place, env)
    steps = {"HEADWAY_SET_TRAIN__STEPS": "3"}
    day.helps(
        "python test_gpu_setup.py", "python quick_start_gpu.py", "./start_training_gpu.sh", "python train_tfnet_gpu.py"
    )
    code = day.do("python test_gpu_setup.py")
    day.check(
        "the set-up test looks at devices, memory, disk, config", code == 0 and day.says("设备", "内存", "磁盘", "配置")
    )
    code = day.do("python quick_start_gpu.py", **steps)
    log = day.log("logs_gpu/gpu_training_*.log")
    day.check("quick start checks and trains", code == 0 and "Validation WER: " in log)
    day.check("a line for batches and epochs", "Epoch 1 - Batch " in log and "completed - Training loss" in log)
    names = {path.name for path in (day.place / "checkpoints_gpu").glob("*")}
    day.check("best_model.ckpt and current_model.ckpt", names == {"best_model.ckpt", "current_model.ckpt"})
    day.check("vocabulary.json", (day.place / "output_gpu" / "vocabulary.json").is_file())
    day.do("tail -n 3 training/logs_gpu/gpu_training_*.log")
    day.check("the guide's path of the log works", day.says("训练结束"))
    day.check(
        "settings not used are listed once",
        log.count("加 --full-size 则全部按原值") == 1 and "training.learning_rate" in log,
    )
    day.check("a table of predicted and labelled glosses at the end", "片段" in log and "标注" in log)
    (first,) = day.runs("output_gpu")
    file = day.place / "configs" / "gpu_config.json"
    config = json.loads(file.read_text())
    config["training"]["batch_size"] = 2
    config["gpu_optimization"]["enable_graph_mode"] = False
    file.write_text(json.dumps(config))
    day.env.pop("HEADWAY_SET_BATCH__PER_DEVICE", None)
    code = day.do("./start_training_gpu.sh", **steps)
    second = day.runs("output_gpu")[-1]
    plan = json.loads((day.place / "output_gpu" / second / "plan.json").read_text())
    day.check("an edited batch_size is used", code == 0 and plan["micro_batch"] == 2, str(plan["micro_batch"]))
    day.check("the earlier file was moved, and that was said", day.says(f"checkpoints_gpu/{first}/"))
    kept = (day.place / "checkpoints_gpu" / first / "current_model.ckpt").is_file()
    day.check("and is there", kept and (day.place / "checkpoints_gpu" / "best_model.ckpt").is_file())
    line, logs = "python train_tfnet_gpu.py --config configs/gpu_config.json", "logs_gpu/gpu_training_*.log"
    many = {"HEADWAY_SET_TRAIN__STEPS": "4000"}
    code = day.stop_when(line, lambda: day.num(logs) == 3 and "Batch" in day.log(logs), **many)
    day.check("Ctrl-C saves and says how to continue", code == 130 and day.says("--resume latest"))
    num, stopped = len(day.runs("output_gpu")), day.runs("output_gpu")[-1]
    code = day.stop_when(f"{line} --resume latest", lambda: day.num(logs) == 4 and "Batch" in day.log(logs), **many)
    is_same = len(day.runs("output_gpu")) == num and stopped in day.screen
    day.check("and that command continues the same run", code == 130 and is_same)
    code = day.do(". ./enter_mindspore.sh && python -c 'import mindspore; print(mindspore.__version__)'")
    day.check("the way into MindSpore's environment", code == 0 or "tfnet/guide-no-mindspore" in day.screen)
    day.break_it(
        [
            ("config", "python train_tfnet_gpu.py --config configs/other.json", ("gpu_config.json",)),
            ("flag", "./start_training_gpu.sh --epochs 3", ("--config",)),
            (
                "full size without data",
                "env -u HEADWAY_SET_TASK__SYNTHETIC -u HEADWAY_SET_TASK__DATA_DIR "
                "python train_tfnet_gpu.py --full-size --config configs/gpu_config.json",
                ("错误分析", "CE-CSL"),
            ),
            ("value", "./start_training_gpu.sh training.batch_size=many", ("batch",)),
        ]
    )
    file.write_text('{"training": {"batch_size": 8,')
    day.break_it([("a file that cannot be read", "./start_training_gpu.sh", ("gpu_config.json",))])
    return day


WALKS = {
    "nanochat": walk_nanochat,
    "layoutmaster": walk_layoutmaster,
    "atlas": walk_atlas,
    "rdt": walk_rdt,
    "tfnet": walk_tfnet,
}


def main() -> int:
    """Walk the guides and print what was kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--guide", action="append", choices=WALKS, help="only this one; may be given again")
    parser.add_argument("--keep", type=Path, help="a folder for the projects, which stay there")
    asked = parser.parse_args()
    rows: dict[str, list[tuple[str, bool]]] = {}
    for name in asked.guide or WALKS:
        with tempfile.TemporaryDirectory() as temp:
            place = (asked.keep or Path(temp)) / name
            place.mkdir(parents=True)
            rows[name] = WALKS[name](place).rows
        for promise, is_kept in rows[name]:
            print(f"{'kept' if is_kept else 'NOT KEPT':9} {name:13} {promise}", flush=True)
    done = [is_kept for found in rows.values() for _, is_kept in found]
    by_guide = {name: f"{sum(kept for _, kept in found)}/{len(found)}" for name, found in rows.items()}
    share = round(sum(done) / len(done), 4)
    print(json.dumps({"promises": len(done), "kept": sum(done), "kept_share": share, "by_guide": by_guide}))
    return 0 if all(done) else 1


if __name__ == "__main__":
    sys.exit(main())
