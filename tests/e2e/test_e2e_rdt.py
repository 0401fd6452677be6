"""The RDT guide's commands in the project that `headway new` makes, word for word; and the recipe by command."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from command import as_json, clean_env, events, headway, only_run, processes_of

from fakes.rdt_demos import write_demos
from headway.checkpoint import find_resumable

pytestmark = pytest.mark.slow

SHORT = {
    "HEADWAY_SET_TASK__SAMPLE__BATCHES": "1",
    "HEADWAY_SET_TASK__ROLLOUT__EPISODES": "2",
    "HEADWAY_SET_TASK__ROLLOUT__MAX_STEPS": "4",
    "HEADWAY_SET_EVAL__SAMPLES": "8",
    "HEADWAY_SET_LR__WARMUP_SAMPLES": "8",
}
"""What makes a run short; the commands themselves stay as the guide writes them."""

EVALUATE = """export CUDA_VISIBLE_DEVICES=0
python eval_sim/eval_rdt_libero.py \\
    --config configs/base.yaml \\
    --pretrained checkpoints/single_task_scene10_2gpu/checkpoint-19000/ema/model.safetensors \\
    --text_encoder google/t5-v1_1-xxl \\
    --vision_encoder google/siglip-so400m-patch14-384 \\
    --benchmark libero_90 \\
    --num_tasks 2 \\
    --max_steps 200 \\
    --exec_horizon 16 \\
    --record_video \\
    --video_output_dir videos/single_task_2gpu_eval"""


@pytest.fixture
def project(tmp_path):
    done = headway(tmp_path, "new", "rdt", "arm")
    assert done.returncode == 0, done.stderr
    write_demos(tmp_path / "arm" / ".cache" / "headway" / "rdt", demos=3)
    return tmp_path / "arm"


def run(project: Path, line: str, **env: str) -> subprocess.CompletedProcess[str]:
    env = clean_env(project, PATH=f"{Path(sys.executable).parent}:/usr/bin:/bin", **SHORT, **env)
    return subprocess.run(["bash", "-c", line], cwd=project, env=env, capture_output=True, text=True, timeout=280)


def test_the_guides_script_trains_two_ranks_and_its_evaluation_drives_the_arm(project):
    start = "bash train_single_task_2gpu.sh"
    done = run(project, start, HEADWAY_SET_TRAIN__STEPS="10", HEADWAY_SET_SAVE__EVERY="5")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no GPU on this machine: a small model" in done.stdout.splitlines()[0]
    for wanted in ("rdt/batch-meaning", "16 over all 2 devices, 8", "rdt/does-not-fit"):
        assert wanted in (done.stdout + done.stderr).replace("\n  ", " ")
    folder = project / "checkpoints" / "single_task_scene10_2gpu"
    shown = run(project, "tail -n 200 checkpoints/single_task_scene10_2gpu/training.log").stdout
    for wanted in (
        "🔍 training on one task: using the statistics libero_single_task",
        "Distributed training: world_size=2, rank=0\nDistributed training: world_size=2, rank=1",
        "Steps:   0%|          | 0/10 [00:00<?, ?it/s]",
        "Steps: 100%|██████████| 10/10 [",
        "overall_avg_sample_mse: ",
    ):
        assert wanted in shown, shown
    listed = run(project, "ls -lh checkpoints/single_task_scene10_2gpu/checkpoint-*/").stdout
    assert "checkpoint-5/" in listed and "checkpoint-10/" in listed and "model.safetensors" in listed
    assert (folder / "checkpoint-10" / "ema" / "model.safetensors").is_file()

    (first,) = (project / "runs").iterdir()
    worse = run(project, f"{start} --max_train_steps=5 --checkpointing_period=5 --learning_rate=1e-9")
    assert worse.returncode == 0, worse.stdout + worse.stderr
    assert (folder / "checkpoint-5").is_dir() and (folder / first.name / "checkpoint-5").is_dir()

    judged = run(project, EVALUATE)
    assert judged.returncode == 0, judged.stderr
    best = min(_losses(project), key=lambda one: one[1])[0]
    assert best.startswith(f"{first.name}/"), "the run that did not learn is not the best"
    for wanted in (
        "no GPU on this machine",
        f"single_task_scene10_2gpu/{best}/ema/model.safetensors instead",
        "LIBERO's simulator is not used",
    ):
        assert wanted in judged.stdout
    assert "max_steps=200 × 16 is 3200 environment steps, but the environment ends after 200" in judged.stdout
    videos = project / "videos" / "single_task_2gpu_eval"
    results = json.loads((videos / "results.json").read_text())
    assert (results["num_episodes"], results["exec_horizon"], results["env_steps"]) == (10, 16, 200)
    assert len(list(videos.glob("*.gif"))) == 10


def _losses(project: Path) -> list[tuple[str, float]]:
    """Return every checkpoint under a guide's name with its validation loss."""
    records = [json.loads(file.read_text())["files"] for file in (project / "runs").glob("*/guide.json")]
    notes = [(name, note["measures"].get(note["decides"])) for files in records for name, note in files.items()]
    return [(name, loss) for name, loss in notes if loss is not None]


def test_accelerate_starts_it_too_and_one_process_leads(project):
    line = "accelerate launch --num_processes 2 --multi_gpu --mixed_precision bf16 main.py --train_batch_size=16"
    done = run(project, f"{line} --sample_batch_size=16 --dataloader_num_workers=8 --max_train_steps=3")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("no GPU on this machine: a small model") == 1
    (run_dir,) = (project / "runs").iterdir()
    plan = json.loads((run_dir / "plan.json").read_text())
    assert (plan["micro_batch"], plan["batch_samples"], plan["world_size"]) == (8, 16, 2)
    assert (project / "checkpoints" / "checkpoint-3" / "ema" / "model.safetensors").is_file()
    assert not processes_of(project)


def test_one_gpu_by_the_old_script_and_on_from_where_it_was(project):
    done = run(project, "bash train_single_task.sh --max_train_steps=3")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Distributed training: world_size=1, rank=0" in done.stdout and "rank=1" not in done.stdout
    words = "--output_dir=checkpoints/single_task_scene10 --resume_from_checkpoint=latest --max_train_steps=5"
    again = run(project, f"python main.py {words}")
    assert again.returncode == 0, again.stdout + again.stderr
    steps = sorted(path.name for path in (project / "checkpoints" / "single_task_scene10").glob("checkpoint-*"))
    assert steps == ["checkpoint-3", "checkpoint-5"] and len(list((project / "runs").iterdir())) == 1


def test_what_the_guide_gets_wrong_is_refused_and_explained_in_both_languages(project):
    done = run(project, "bash train_single_task_2gpu.sh --train_batch_size=15", LC_ALL="C.UTF-8")
    assert done.returncode == 4 and "train_batch_size=15" in done.stdout
    shown = run(project, "bash train_single_task_2gpu.sh --train_batch_size=15", LC_ALL="zh_CN.UTF-8")
    assert shown.returncode == 4 and "本机没有 GPU" in shown.stdout.splitlines()[0]
    lost = run(project, "python eval_sim/eval_rdt_libero.py --pretrained checkpoints/none/checkpoint-1")
    assert lost.returncode == 2 and "bash train_single_task_2gpu.sh" in lost.stderr


def test_a_run_spread_over_two_ranks_goes_on_on_one(tmp_path):
    write_demos(tmp_path / "demos", demos=3)
    words = ["task.data_dir=demos", "train.steps=4", "batch.per_device=4", "eval.every=0"]
    done = headway(tmp_path, "train", "rdt", *words, "parallel.cpus=2", "parallel.strategy=fsdp", **SHORT)
    assert done.returncode == 0, done.stderr
    assert headway(tmp_path, "resume", "train.steps=7", "parallel.cpus=1", "parallel.strategy=single").returncode == 0
    place = only_run(tmp_path)
    found = find_resumable(place.checkpoints).manifest
    assert (found.step, found.samples) == (7, 7 * 8)
    assert events(place, "baseline")[0]["measures"]["mean_overall_avg_sample_mse"] > 0
    measured = as_json(headway(tmp_path, "eval", "--json"))
    assert measured["step"] == 7 and measured["trial"]["episodes"] == 2
    made = as_json(headway(tmp_path, "predict", "unit=rounds", "max_steps=2", "exec_horizon=3", "episodes=1", "--json"))
    results, film = (tmp_path / file for file in made["files"][:2])
    assert json.loads(results.read_text())["env_steps"] == 6 and film.stat().st_size > 0
