import json

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from fakes.rdt_demos import SMALL, make_section, make_small_task, write_demos
from headway.config import OptimizerConfig, RunConfig
from headway.errors import CheckError, ConfigError
from headway.recipes.rdt import slots
from headway.recipes.rdt.data import open_index
from headway.recipes.rdt.policy import fitting_batch, sample_bytes
from headway.recipes.rdt.section import RdtSection
from headway.recipes.rdt.task import make_task


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_demos(tmp_path_factory.mktemp("rdt"))


@pytest.fixture(scope="module")
def task(folder):
    return make_small_task(folder)


def _batch(task, num=4):
    return task.train_data().batch(np.arange(num), np.zeros(num, np.int64))


def _seeded_loss(task, model, batch):
    torch.manual_seed(7)
    with torch.no_grad():
        return task.loss(model, batch)


def test_the_original_loss_is_diluted_by_the_slots_nobody_uses(folder, task):
    original = make_small_task(folder, loss="original")
    model, batch = task.build_model(), _batch(task)  # its first answer is zero everywhere, so errors are the targets
    fixed, diluted = _seeded_loss(task, model, batch), _seeded_loss(original, model, _batch(original))
    assert (fixed.count, diluted.count) == (4 * 8 * 10, 4 * 8 * 128)
    assert diluted.total.item() == pytest.approx(fixed.total.item(), rel=1e-6)
    means = fixed.total.item() / fixed.count, diluted.total.item() / diluted.count
    assert means[0] / means[1] == pytest.approx(12.8)


def test_the_original_also_trains_what_no_action_fills(folder):
    batch = _batch(make_small_task(folder))
    grads = {}
    for kind in ("masked", "original"):
        task = make_small_task(folder, loss=kind)
        model = task.build_model()
        with torch.no_grad():
            model.model.final_layer.ffn_final.fc2.bias.fill_(1.0)
        task.loss(model, batch).total.backward()
        grads[kind] = model.model.final_layer.ffn_final.fc2.bias.grad
    dead = np.setdiff1d(np.arange(128), slots.ACTION_SLOTS)
    assert torch.count_nonzero(grads["masked"][dead]) == 0 and torch.all(grads["original"][dead] != 0)


def test_the_original_tells_the_model_the_states_slots_for_actions(folder):
    masks = [_batch(make_small_task(folder, loss=kind))["action_mask"][0].sum() for kind in ("masked", "original")]
    assert [int(mask) for mask in masks] == [10, 17]


def test_both_losses_are_measured_whichever_is_trained_on(task):
    model, batch = task.build_model(), _batch(task)
    with torch.no_grad():
        sums = {name: float(value) for name, value in task.measures(model, batch).items()}
    found = task.summarize(sums)
    live = batch["actions"][..., torch.from_numpy(slots.ACTION_SLOTS)]
    assert found["loss"] == pytest.approx(float(live.square().mean()))
    assert found["diluted_loss"] == pytest.approx(found["loss"] / 12.8)


def test_statistics_change_only_the_relative_error(folder, tmp_path):
    wrong = {"dataset_name": "libero_90", "state_mean": [0.0] * 128, "state_std": [0.003] * 128}
    other = write_demos(tmp_path / "demos")
    (other / "dataset_stat.json").write_text(json.dumps({"libero_90": wrong}))
    found, losses = {}, {}
    for name in ("libero_single_task", "libero_90"):
        task = make_small_task(other, statistics=name, rollout={"episodes": 0, "exec_horizon": 4})
        torch.manual_seed(0)
        model = task.build_model().eval()
        losses[name] = _seeded_loss(task, model, _batch(task)).total.item()
        with torch.no_grad():
            sums = task.trial(model, part=0, parts=1)
        found[name] = task.summarize_trial({key: float(value) for key, value in sums.items()})
    right, off = found["libero_single_task"], found["libero_90"]
    assert losses["libero_single_task"] == losses["libero_90"]
    assert right["overall_avg_sample_mse"] == off["overall_avg_sample_mse"]
    assert off["overall_avg_sample_l2err"] > 3 * right["overall_avg_sample_l2err"]


def test_a_trial_is_the_same_on_one_rank_and_on_two(task):
    torch.manual_seed(0)
    model = task.build_model().eval()
    with torch.no_grad():
        model.model.final_layer.ffn_final.fc2.weight.normal_()
        whole = task.trial(model, part=0, parts=1)
        halves = [task.trial(model, part=part, parts=2) for part in (0, 1)]
    for name, value in whole.items():
        assert sum(float(half[name]) for half in halves) == pytest.approx(float(value), rel=1e-5)
    assert float(whole["numbers"]) == 8 * 8 * 10
    assert {"episodes_0", "solved_1"} <= set(whole)


def test_chunks_do_not_depend_on_how_many_are_drawn_at_once(folder):
    torch.manual_seed(0)
    model = make_small_task(folder).build_model().eval()
    with torch.no_grad():
        model.model.final_layer.ffn_final.fc2.weight.normal_()
    drawn = []
    for size in (1, 3):
        task = make_small_task(folder, sample={"batch": size})
        batch = {name: part for name, part in _batch(task).items() if name != "actions"}
        with torch.no_grad():
            drawn.append(task._policy(model).draw(batch, [5, 6, 7, 8]))
    assert torch.allclose(drawn[0], drawn[1], atol=1e-5)
    dead = np.setdiff1d(np.arange(128), slots.ACTION_SLOTS)
    assert torch.count_nonzero(drawn[0][..., dead]) == 0 and torch.all(drawn[0][..., 10] != 0)


def test_the_budget_cuts_the_sampling_batch_and_refuses_when_one_chunk_is_too_much(folder):
    published = RdtSection(sample={"batch": 64, "memory_gib": 4.0})
    assert 1 <= fitting_batch(published) < 64
    assert fitting_batch(published) * sample_bytes(published) <= 4 << 30
    task = make_small_task(folder, sample={"batch": 4, "batches": 2, "memory_gib": 1e-6})
    with pytest.raises(CheckError) as refused, torch.no_grad():
        task.trial(task.build_model(), part=0, parts=1)
    assert refused.value.code == "rdt/sample-budget"


def test_other_data_than_the_scripted_has_no_rollouts_but_is_sampled(folder, tmp_path):
    other = write_demos(tmp_path / "demos", demos=2)
    import h5py

    for file in other.glob("*_demo.hdf5"):
        with h5py.File(file, "a") as opened:
            opened["data"].attrs["problem_info"] = json.dumps({"language_instruction": "water the plants."})
    task = make_small_task(other)
    model = task.build_model().eval()
    with torch.no_grad():
        sums = {name: float(value) for name, value in task.trial(model, part=0, parts=1).items()}
    assert set(task.summarize_trial(sums)) == {"overall_avg_sample_mse", "overall_avg_sample_l2err"}
    with pytest.raises(CheckError) as refused:
        task.predict(model, {}, tmp_path)
    assert refused.value.code == "rdt/no-world"


def test_predict_films_every_episode_and_says_how_sure_it_is(task, tmp_path):
    model = task.build_model().eval()
    made = task.predict(model, {"episodes": 1, "max_steps": 6, "exec_horizon": 2}, tmp_path / "out")
    names = sorted(path.name for path in made.files)
    assert names == ["results.json", "task0_seed10000_failure.gif", "task1_seed10000_failure.gif"]
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert (results["num_episodes"], results["success_rate"], results["env_steps"]) == (2, 0.0, 6)
    assert results["success_interval_95"][1] > 0.5, "two episodes prove little"
    assert [one["steps"] for one in results["episodes"]] == [6, 6]
    assert "95%" in made.text and "close the top drawer" in made.text


def test_rounds_past_the_environments_end_are_cut_there_and_explained(folder, tmp_path):
    task = make_small_task(folder, rollout={"episodes": 2, "exec_horizon": 8, "env_horizon": 20})
    asked = {"episodes": 1, "num_tasks": 1, "max_steps": 200, "unit": "rounds", "record_video": False}
    made = task.predict(task.build_model().eval(), asked, tmp_path)
    assert made.text.startswith("max_steps=200 × 8 is 1600 environment steps, but the environment ends after 20; ")
    assert json.loads((tmp_path / "results.json").read_text())["episodes"][0]["steps"] == 20


def test_predict_refuses_more_actions_than_a_chunk_has(task, tmp_path):
    with pytest.raises(ConfigError) as refused:
        task.predict(task.build_model(), {"exec_horizon": 9}, tmp_path)
    assert refused.value.code == "rdt/exec-horizon"
    with pytest.raises(ValidationError):
        task.predict(task.build_model(), {"episodes": 0}, tmp_path)


def test_a_trial_films_the_first_episode_of_each_task_when_asked(folder, tmp_path):
    rollout = {"episodes": 4, "max_steps": 2, "exec_horizon": 2, "record_video": True, "video_dir": str(tmp_path / "v")}
    task = make_small_task(folder, rollout=rollout)
    with torch.no_grad():
        task.trial(task.build_model().eval(), part=0, parts=1)
    assert len(list((tmp_path / "v").glob("*.gif"))) == 2


def test_every_trained_parameter_is_in_the_group_and_the_encoder_is_not(task):
    model = task.build_model()
    (group,) = task.param_groups(model)
    assert not any(name.startswith("vision_model.") for name in group.params)
    assert sum(param.numel() for param in group.params.values()) == task.section.num_params
    assert task.frozen(model) == [model.vision_model] and len(task.blocks(model)) == 2


def test_muon_takes_the_matrices_of_the_blocks(folder):
    task = make_small_task(folder)
    task.config = task.config.model_copy(update={"optimizer": OptimizerConfig(name="muon")})
    muon, rest = task.param_groups(task.build_model())
    assert (muon.optimizer, rest.optimizer) == ("muon", "adamw")
    assert {name.split(".")[:2] == ["model", "blocks"] for name in muon.params} == {True}
    assert sum(param.numel() for group in (muon, rest) for param in group.params.values()) == task.section.num_params


def test_an_export_describes_the_model_as_published():
    section = RdtSection()
    text = make_task(RunConfig(task=section)).describe(19_000, {})
    assert (text["pred_horizon"], text["img_cond_len"], text["config"]["rdt"]["depth"]) == (64, 4374, 28)
    assert text["config"]["noise_scheduler"]["prediction_type"] == "sample"


def test_the_data_id_tells_demonstrations_and_samples_apart(folder):
    ids = [make_small_task(folder, tail=tail).data_id() for tail in ("pad", "original")]
    assert ids[0] != ids[1] and ids[0]["demos"] == open_index(make_section(folder)).content
    assert SMALL["synthetic"]
