import csv
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from fakes.atlas_set import toy_section, toy_task, write_toy
from headway.config import RunConfig
from headway.errors import ConfigError, UsageError
from headway.recipes.atlas.rollout import roll_out, start_attempts
from headway.recipes.atlas.scene import expert_action, is_at
from headway.recipes.atlas.task import make_task
from headway.trace.recipe import set_train_mode


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("atlas")
    write_toy(folder)
    return folder


def _sums(task, model, ids):
    with torch.no_grad():
        return task.measures(model, task.eval_data().batch(ids, None))


def test_micro_batches_add_up_to_the_whole(toy):
    task = toy_task(toy)
    model, data = task.build_model().eval(), task.train_data()
    whole = task.loss(model, data.batch(np.arange(6), None))
    parts = [task.loss(model, data.batch(np.arange(i, i + 2), None)) for i in (0, 2, 4)]
    assert (whole.count, sum(part.count for part in parts)) == (6, 6)
    assert sum(part.total.item() for part in parts) == pytest.approx(whole.total.item(), rel=1e-5)


@pytest.mark.parametrize(("mode", "floor"), [("fixed", 0.0), ("original", 1.0)])
def test_open_gripper_frames_cost_at_least_one_in_the_original(toy, mode, floor):
    task = toy_task(toy, mode=mode, gripper_loss_type="l1", pose_weight=0.0, gripper_weight=1.0)
    open_B7 = torch.tensor([[0.0] * 6 + [-1.0]])
    best = min(task._losses(torch.tensor([[0.0] * 6 + [say]]), open_B7).item() for say in (0.0, 0.25, 0.5, 1.0))
    assert best == pytest.approx(floor)


def test_measures_are_means_over_held_out_frames(toy):
    task = toy_task(toy)
    model, data = task.build_model().eval(), task.eval_data()
    ids = np.arange(len(data))
    batch = data.batch(ids, None)
    sums = {name: float(value) for name, value in _sums(task, model, ids).items()}
    found = task.summarize(sums)
    with torch.no_grad():
        answer = model(batch)
    away = (answer - batch["action"])[:, :6]
    assert sums["frames"] == len(data) == 18
    assert found["pose_l1"] == pytest.approx(away.abs().mean().item(), rel=1e-5)
    assert found["pose_l2"] == pytest.approx(away.norm(dim=1).mean().item(), rel=1e-5)
    closed = (answer[:, 6] > 0.5) == (batch["action"][:, 6] > 0)
    assert found["gripper_accuracy"] == pytest.approx(closed.double().mean().item())


def test_the_wrong_instruction_names_another_colour_and_only_validation_has_one(toy):
    task = toy_task(toy)
    task.build_model()
    data, texts = task.eval_data(), task._frames.instructions
    assert not any(name.startswith("wrong_") for name in task.train_data().batch(np.arange(2), None))
    batch = data.batch(np.arange(len(data)), None)
    rows = task._prepared[1].train_frames + np.arange(len(data))
    own = task._frames.text_of(rows)
    wrong = (own + 1) % len(texts)
    for frame, (right, other) in enumerate(zip(own, wrong, strict=True)):
        assert ("red" in texts[right]) != ("red" in texts[other])
        assert torch.equal(batch["wrong_text"][frame], data.instruct([other])["text"][0])
        assert torch.equal(batch["text"][frame], data.instruct([right])["text"][0])


def test_no_action_hides_in_what_the_model_reads(toy):
    task = toy_task(toy)
    model = task.build_model().eval()
    batch = task.train_data().batch(np.arange(4), None)
    with torch.no_grad():
        seen = model(batch)
        blind = model({**batch, "action": torch.full_like(batch["action"], 9.0)})
    assert torch.equal(seen, blind)
    assert set(batch) == {"action", "tokens", "points", "pose", "text", "real"}


def test_frozen_encoders_stay_in_eval_mode_through_train(toy):
    for flags, count in (((True, True), 2), ((True, False), 1), ((False, False), 0)):
        task = toy_task(toy, freeze_vggt=flags[0], freeze_lang_encoder=flags[1])
        model = task.build_model()
        set_train_mode(task, model)
        assert len(task.frozen(model)) == count
        assert [not part.training for part in (model.vision, model.language)] == list(flags)
        assert model.fusion.training and model.geometry.pointnet.training
        trained = {name.partition(".")[0] for name in task.param_groups(model)[0].params}
        assert trained >= {"geometry", "fusion", "head"}
        assert ("vision" in trained, "language" in trained) == (not flags[0], not flags[1])


def test_every_trained_parameter_is_in_the_group_with_the_configs_numbers(toy):
    task = toy_task(toy, {"lr": {"base": 3e-4}, "optimizer": {"weight_decay": 0.01}})
    model = task.build_model()
    (group,) = task.param_groups(model)
    assert set(group.params) == {name for name, param in model.named_parameters() if param.requires_grad}
    assert (group.lr, group.weight_decay, group.optimizer) == (3e-4, 0.01, "adamw")
    muon, rest = toy_task(toy, {"optimizer": {"name": "muon"}}).param_groups(model)
    assert muon.params and all(name.startswith("fusion.layers.") for name in muon.params)
    assert set(muon.params) | set(rest.params) == set(group.params) and muon.optimizer == "muon"


def test_blocks_are_fusion_layers_and_trained_backbone_blocks(toy):
    assert len((task := toy_task(toy)).blocks(task.build_model())) == 1
    trained = toy_task(toy, freeze_vggt=False)
    assert len(trained.blocks(trained.build_model())) == 1 + 1 + 2 + 2


@pytest.mark.parametrize("changes", [{}, {"freeze_vggt": False}, {"freeze_lang_encoder": False}])
def test_an_example_has_the_shapes_of_a_real_batch(toy, changes):
    task = toy_task(toy, **changes)
    real, example = task.train_data().batch(np.arange(3), None), task.example(3)
    assert real.keys() == example.keys()
    for name, value in real.items():
        assert value.dtype == example[name].dtype and value.ndim == example[name].ndim
        if name not in ("text", "words", "real"):  # instructions are as long as they are, at most the limit
            assert value.shape == example[name].shape, name


def test_whitening_needs_features_that_stand_still(toy):
    with pytest.raises(ConfigError) as refused:
        make_task(RunConfig(task=toy_section(toy, whiten=True, freeze_vggt=False)))
    assert refused.value.code == "atlas/whiten-trained"


def test_whitening_is_kept_with_the_model(toy):
    task = toy_task(toy, whiten=True)
    model = task.build_model()
    assert {"token_mean", "token_map"} <= model.state_dict().keys()
    live = toy_task(toy, whiten=True, cache_features=False).build_model()
    assert torch.allclose(model.token_map, live.token_map, rtol=1e-2, atol=1e-2)


def test_the_teacher_wins_every_trial_and_whoever_always_closes_none():
    attempts = start_attempts(range(12))

    def teacher(pictures, instructions):
        going = [attempt for attempt in attempts if not attempt.is_over]
        assert len(going) == len(pictures) == len(instructions)
        actions = np.stack([expert_action(attempt.scene) for attempt in going])
        actions[:, 6] = (actions[:, 6] + 1) / 2
        return actions

    roll_out(attempts, teacher, pixels=8, views=2, max_steps=30)
    assert all(attempt.is_success for attempt in attempts)
    stuck = start_attempts(range(12))
    roll_out(stuck, lambda pictures, said: np.array([[0.0] * 6 + [1.0]] * len(said)), pixels=8, views=1, max_steps=5)
    assert not any(attempt.is_success for attempt in stuck)


def test_closing_on_the_other_block_loses():
    (attempt,) = start_attempts([0])
    other = 1 - attempt.scene.target

    def misled(pictures, said):
        scene = type(attempt.scene)(attempt.scene.blocks, attempt.scene.heights, attempt.scene.gripper, other)
        action = expert_action(scene)
        action[6] = float(is_at(scene, other))
        return action[None]

    roll_out([attempt], misled, pixels=8, views=1, max_steps=30)
    assert attempt.is_over and not attempt.is_success


def test_ranks_share_the_episodes_of_a_trial(toy):
    task = toy_task(toy, trial_episodes=3)
    model = task.build_model().eval()
    with torch.no_grad():
        parts = [task.trial(model, part=part, parts=2) for part in range(2)]
    assert [int(part["episodes"]) for part in parts] == [2, 1] and parts[0].keys() == parts[1].keys()
    whole = {name: float(sum(part[name] for part in parts)) for name in parts[0]}
    assert task.summarize_trial(whole)["episodes"] == 3
    assert toy_task(toy, trial_episodes=0).trial(model, part=0, parts=1) == {}


def test_a_prediction_ends_with_a_film_of_the_model_at_work(toy, tmp_path):
    task = toy_task(toy, trial_steps=4)
    told = task.predict(task.build_model().eval(), {"episode": 1}, tmp_path)
    with Image.open(told.files[1]) as film:
        assert film.format == "GIF" and film.size == (480, 240) and film.n_frames >= 3
    assert "film: under" in told.text


def test_the_film_of_recorded_episodes_is_what_was_recorded(toy, tmp_path):
    task = toy_task(toy)
    model = task.build_model().eval()
    folder, index = task._prepared
    task.__dict__["_prepared"] = folder, replace(index, is_synthetic=False)
    told = task.predict(model, {"episode": 0}, tmp_path)
    with Image.open(told.files[1]) as film:
        assert film.height == 240 and film.n_frames >= index.val[0]["frames"]
    assert "as it was recorded" in told.text


def test_a_prediction_answers_a_held_out_episode_under_any_instruction(toy, tmp_path):
    task = toy_task(toy)
    model = task.build_model().eval()
    own = task.predict(model, {"episode": 1}, tmp_path)
    rows = list(csv.DictReader(own.files[0].read_text().splitlines()))
    assert len(rows) == 3 and set(rows[0]) >= {"dx", "gripper", "teacher_gripper"}
    other = task.predict(model, {"episode": 1, "instruction": "go to nowhere", "frames": 2}, tmp_path)
    assert "go to nowhere" in other.text and "2 frames" in other.text
    with pytest.raises(UsageError) as refused:
        task.predict(model, {"episode": 99}, tmp_path)
    assert refused.value.facts["last"] == 5
