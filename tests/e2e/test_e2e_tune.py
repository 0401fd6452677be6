"""What a machine has shown, through the commands: probes, a search with its range test, and runs nobody watched."""

from __future__ import annotations

import json

from command import TINY, events, headway, only_run, wait_until

SMALL = ("parallel.cpus=1", "parallel.threads=1")


def plan_json(place, *words):
    done = headway(place, "plan", TINY, *SMALL, "--no-trace", "--json", *words)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


def test_a_detached_run_teaches_the_next_plan_like_any_other(tmp_path):
    assert plan_json(tmp_path)[0]["forecast"] is None
    done = headway(tmp_path, "train", TINY, *SMALL, "train.steps=40", "--detach")
    assert done.returncode == 0, done.stderr
    run = only_run(tmp_path)
    wait_until(lambda: events(run, "run_ended"), seconds=120)
    # Learnt after the run has ended, as in a run somebody watches.
    wait_until(lambda: list(tmp_path.glob(".cache/headway/calibration/*.jsonl")), seconds=60)
    wait_until(lambda: plan_json(tmp_path)[0]["forecast"], seconds=60)
    assert plan_json(tmp_path)[0]["forecast"]["time_source"] == "run"


def test_a_probed_plan_tells_the_time_it_measured(tmp_path):
    plan, told = plan_json(tmp_path, "--probe", "batch.total=8")
    assert plan["forecast"]["time_source"] == "probe" and plan["forecast"]["step_s"] > 0
    assert "probe 1: as configured" in told and "probe 2: batch.per_device=" in told
    zh = headway(tmp_path, "--lang", "zh", "plan", TINY, *SMALL, "--no-trace", "--probe")
    assert zh.returncode == 0 and "试测 1：按当前配置" in zh.stderr and "本机试测所得" in zh.stdout


def test_a_search_with_its_range_test_changes_the_file_it_was_given(tmp_path):
    text = f'recipe = "{TINY}" # tiny\n\n[batch]\ntotal = 16\nper_device = 1   # too small\n\n[train]\nsteps = 5\n'
    (tmp_path / "run.toml").write_text(text)
    fixed = ("train.compile=false", "train.activation_checkpoint=false", "parallel.workers=0", *SMALL)
    done = headway(tmp_path, "tune", "run.toml", *fixed, "--lr-range", "--budget", "150s", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    # Sixteen samples at once are many times as fast as one after the other, on any machine.
    assert found["changes"]["batch.per_device"] > 1 and found["written"] == "run.toml"
    micro = found["changes"]["batch.per_device"]
    assert (tmp_path / "run.toml").read_text().startswith(text.replace("per_device = 1 ", f"per_device = {micro} "))
    assert "learning rate: range test" in done.stderr and done.stderr.count("learning rate: ") >= 2


def test_a_new_file_keeps_the_whole_config_of_a_file_named_like_a_recipe(tmp_path):
    # Issue 21: the origin was tested by its first letters, so `recipes/mine.yaml` counted as the recipe itself.
    (tmp_path / "recipes").mkdir()
    text = f"recipe: {TINY}\nbatch: {{total: 16, per_device: 1}}\ntrain: {{steps: 7}}\nlr: {{base: 0.03}}\nseed: 5\n"
    (tmp_path / "recipes" / "mine.yaml").write_text(text)
    fixed = ("train.compile=false", "train.activation_checkpoint=false", "parallel.workers=0", *SMALL)
    asked = ("tune", "recipes/mine.yaml", *fixed, "--write-to", "tuned.yaml", "--budget", "30s", "--yes", "--json")
    done = headway(tmp_path, *asked)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["written"] == "tuned.yaml"
    before, after = (
        json.loads(headway(tmp_path, "config", "show", name, *words, "--json").stdout)["config"]
        for name, words in (("recipes/mine.yaml", fixed), ("tuned.yaml", ()))
    )
    assert (after["train"]["steps"], after["lr"]["base"], after["seed"]) == (7, 0.03, 5)
    for key, value in found["changes"].items():
        section, _, leaf = key.partition(".")
        before[section][leaf] = value
    assert after == before
