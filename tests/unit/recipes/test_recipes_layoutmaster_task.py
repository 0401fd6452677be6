import json

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from headway.config import RunConfig
from headway.errors import CheckError
from headway.recipes.layoutmaster.data import prepare
from headway.recipes.layoutmaster.poster import list_posters, read_poster
from headway.recipes.layoutmaster.section import LayoutMasterSection
from headway.recipes.layoutmaster.synthetic import write_posters
from headway.recipes.layoutmaster.task import make_task

SMALL = {
    "image_size": 8,
    "max_elements": 10,
    "trajectory_steps": 4,
    "hidden_dim": 16,
    "num_layers": 1,
    "num_heads": 4,
    "visual_dim": 8,
    "visual_backbone": "small",
    "freeze_visual": False,
    "dropout": 0.0,
    "num_steps": 6,
    "eval_steps": 3,
}


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Two threads on busy cores wait for each other most of the time."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def posters(tmp_path_factory):
    folder = tmp_path_factory.mktemp("layoutmaster-task")
    write_posters(folder, LayoutMasterSection(max_elements=10, trajectory_steps=4), num=12)
    return folder


def _task(posters, config=None, **changes):
    section = LayoutMasterSection(**{**SMALL, "data_dir": str(posters), "train_ratio": 0.75, **changes})
    prepare(section, lambda line: None)
    return make_task(RunConfig(task=section, **(config or {})))


def _batch(data, ids, epoch=0):
    ids = np.asarray(ids, np.int64)
    return data.batch(ids, np.full_like(ids, epoch))


def test_a_sample_is_a_pure_function_of_index_and_epoch(posters):
    data = _task(posters).train_data()
    one, again, later = _batch(data, [3, 5]), _batch(data, [3, 5]), _batch(data, [3, 5], epoch=1)
    assert all(torch.equal(one[name], again[name]) for name in one)
    alone = _batch(data, [5])
    assert torch.equal(alone["target"][0], one["target"][1])
    assert not torch.equal(one["target"], later["target"])


def test_slots_are_dealt_out_anew_but_an_element_keeps_its_image_and_its_box(posters):
    data = _task(posters).train_data()
    one, later = _batch(data, [3]), _batch(data, [3], epoch=7)

    def pairs(batch):
        boxes = batch["target"][0][batch["mask"][0]]
        return sorted((box.tolist(), image.sum().item()) for box, image in zip(boxes, batch["images"], strict=True))

    assert pairs(one) == pairs(later)
    assert one["images"].shape[0] == int(one["mask"].sum())


def test_the_slot_tells_the_layer_only_in_the_original(posters):
    for mode, tells in (("fixed", False), ("original", True)):
        data = _task(posters, head_mode=mode).train_data()
        batch = _batch(data, range(len(data)))
        slots = torch.arange(10.0).expand(len(data), -1)[batch["mask"]]
        gap = (batch["target"][..., 4][batch["mask"]] - slots).abs().mean()
        assert (gap == 0) == tells


def test_the_answer_is_in_no_input_of_a_sampled_layout(posters):
    task = _task(posters)
    model, batch = task.build_model().eval(), _batch(task.eval_data(), [0, 1])
    noise = torch.randn(batch["target"].shape, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        made = task.sample(model, batch, noise, 3)
        blind = {**batch, "target": torch.full_like(batch["target"], 7.0), "start": torch.zeros_like(batch["start"])}
        assert torch.equal(task.sample(model, blind, noise, 3), made)
        # Padded slots are not a way in, either.
        louder = torch.where(batch["mask"][..., None], noise, noise + 9)
        torch.testing.assert_close(task.sample(model, batch, louder, 3), made)


def test_training_and_held_out_posters_are_different_ones(posters):
    task = _task(posters)
    train, held = task.train_data(), task.eval_data()
    assert (len(train), len(held)) == (9, 3)
    seen = {tuple(row.flatten().tolist()) for row in train._target}
    assert not seen & {tuple(row.flatten().tolist()) for row in held._target}


@torch.no_grad()
def test_the_loss_is_the_weighted_sum_of_the_seven_terms_and_counts_posters(posters):
    task = _task(posters)
    model, data = task.build_model(), task.train_data()
    torch.manual_seed(0)
    batch = _batch(data, range(6))
    terms = task.terms(model, batch)
    assert list(terms) == ["noise", "position", "layer", "confidence", "aesthetic", "overlap", "alignment"]
    torch.manual_seed(0)
    loss = task.loss(model, batch)
    weights = task.section.loss.model_dump()
    assert loss.count == 6
    assert loss.total.item() == pytest.approx(sum(float(weights[name] * term.sum()) for name, term in terms.items()))


def test_weights_of_the_loss_are_read(posters):
    silent = dict.fromkeys(LayoutMasterSection().loss.model_dump(), 0.0)
    task = _task(posters, loss=silent)
    assert task.loss(task.build_model(), _batch(task.train_data(), [0, 1])).total.item() == 0
    with_noise = _task(posters, loss={**silent, "noise": 2.0})
    torch.manual_seed(0)
    twice = with_noise.loss(task.build_model(), _batch(task.train_data(), [0, 1])).total.item()
    torch.manual_seed(0)
    once = with_noise.terms(task.build_model(), _batch(task.train_data(), [0, 1]))["noise"].sum().item()
    assert twice == pytest.approx(2 * once)


def test_the_originals_loss_is_millions_where_the_fixed_one_is_about_one(posters):
    losses = {}
    for mode in ("original", "fixed"):
        task = _task(posters, head_mode=mode)
        model, batch = task.build_model(), _batch(task.train_data(), range(9))
        torch.manual_seed(0)
        with torch.no_grad():
            losses[mode] = sum(task.loss(model, batch).total.item() / 9 for _ in range(8)) / 8
    assert losses["original"] > 1e6 and losses["fixed"] < 5


def test_measures_come_from_the_images_alone_and_are_those_of_the_summary(posters):
    task = _task(posters)
    model, batch = task.build_model().eval(), _batch(task.eval_data(), range(3))
    with torch.no_grad():
        torch.manual_seed(0)
        sums = {name: float(value) for name, value in task.measures(model, batch).items()}
        trial = {name: float(value) for name, value in task.trial(model, part=0, parts=1).items()}
        empty = {name: float(value) for name, value in task.trial(model, part=5, parts=6).items()}
    assert set(task.summarize(sums)) == {"mean_iou", "overlap", "alignment", "order", "displacement", "loss"}
    assert task.best == ("mean_iou", "max") and 0 <= task.summarize(sums)["mean_iou"] < 0.4
    assert set(empty) == set(trial) and not any(empty.values())
    assert "sampled_mean_iou" in task.summarize_trial(trial)


def test_a_frozen_backbone_is_the_same_after_a_restart_and_takes_no_gradient(posters):
    task = _task(posters, visual_backbone="simple-cnn", freeze_visual=True)
    torch.manual_seed(1)
    one = task.build_model()
    torch.manual_seed(2)
    other = task.build_model()
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))
    (group,) = task.param_groups(one)
    assert group.params and not any(name.startswith("visual") for name in group.params)
    assert task.frozen(one) == [one.visual]


def test_every_parameter_trains_with_the_guides_betas_when_the_backbone_does(posters):
    task = _task(posters, {"lr": {"base": 4e-4}, "optimizer": {"weight_decay": 0.01}}, betas=(0.8, 0.9))
    model = task.build_model()
    (group,) = task.param_groups(model)
    assert set(group.params) == {name for name, _ in model.named_parameters()}
    assert (group.lr, group.beta1, group.beta2, group.weight_decay) == (4e-4, 0.8, 0.9, 0.01)
    assert len(task.blocks(model)) == 1


def test_muon_takes_the_matrices_of_the_blocks(posters):
    task = _task(posters, {"optimizer": {"name": "muon"}}, betas=(0.8, 0.9))
    muon, rest = task.param_groups(task.build_model())
    assert (muon.optimizer, rest.optimizer, rest.beta1) == ("muon", "adamw", 0.8)
    assert muon.params and all(name.startswith("layout.transformer_layers.") for name in muon.params)


@pytest.mark.parametrize("prediction", ["sample", "epsilon"])
@pytest.mark.parametrize("schedule", ["linear", "cosine"])
def test_gradients_reach_everything_in_every_kind_of_diffusion(posters, prediction, schedule):
    task = _task(posters, prediction_type=prediction, schedule_type=schedule)
    model = task.build_model()
    task.loss(model, _batch(task.train_data(), range(4))).total.backward()
    missing = [name for name, param in model.named_parameters() if param.grad is None]
    assert not missing and all(torch.isfinite(param.grad).all() for param in model.parameters())


def test_predictions_carry_the_inputs_own_ids_and_three_pictures(posters, tmp_path):
    task = _task(posters)
    made = task.predict(task.build_model().eval(), {"num_samples": 2, "seed": 1}, tmp_path)
    held = list_posters(posters)[9:11]
    assert [file.name for file in made.files] == ["prediction.json", "before.png", "after.png", "target.png"] * 2
    for folder in held:
        told = json.loads((tmp_path / folder.name / "prediction.json").read_text(encoding="utf-8"))
        truth = read_poster(folder, task.section)
        assert {element["id"] for element in told["elements"]} == {element.id for element in truth.elements}
        assert [element["layer_order"] for element in told["elements"]] == list(range(len(truth.elements)))
        assert told["total_elements"] == told["prediction_info"]["total_elements"] == len(truth.elements)
        assert told["prediction_info"]["poster_name"] == folder.name
        assert set(told["elements"][0]["bounding_box"]) == {"x", "y", "width", "height"}
        sizes = {(tmp_path / folder.name / f"{name}.png").stat().st_size for name in ("before", "after", "target")}
        assert min(sizes) > 100
    assert "2" in made.text


def test_an_id_stays_with_its_element_through_slots_and_layers(posters, tmp_path):
    """A network that always knows the answer gives every id its own true box."""
    task = _task(posters)
    folder = list_posters(posters)[0]
    poster = read_poster(folder, task.section)
    by_image = {}
    from headway.recipes.layoutmaster.picture import load_pixels

    for place, element in enumerate(poster.elements):
        by_image[load_pixels(element.image, 8).tobytes()] = [*element.box, place, 1.0]

    def knows(model, batch, noise, steps, *, strength=None):
        out = torch.zeros_like(noise)
        for slot, image in enumerate(batch["images"]):
            out[0, slot] = torch.tensor(by_image[image.numpy().tobytes()])
        return out

    task.sample = knows
    task.predict(task.build_model(), {"poster_dir": str(folder)}, tmp_path)
    told = json.loads((tmp_path / folder.name / "prediction.json").read_text(encoding="utf-8"))
    boxes = {element.id: element.box for element in poster.elements}
    for element in told["elements"]:
        box = element["bounding_box"]
        assert (box["x"], box["y"], box["width"], box["height"]) == pytest.approx(boxes[element["id"]], abs=0.01)
    assert [element["id"] for element in told["elements"]] == [element.id for element in poster.elements]


def test_a_given_start_stays_near_itself_when_little_noise_is_added(posters):
    task = _task(posters)
    batch = _batch(task.eval_data(), [0])
    noise = torch.zeros_like(batch["target"])
    task.section = task.section.model_copy(update={"prediction_type": "epsilon"})
    silent = torch.nn.Module()
    silent.forward = lambda mask, images_M=None, features_BNV=None, noisy_BND=None, timesteps_B=None: (
        torch.zeros(1) if noisy_BND is None else torch.zeros_like(noisy_BND)
    )
    made = task.sample(silent, batch, noise, 3, strength=0.01)
    torch.testing.assert_close(made, batch["start"], atol=2.0, rtol=0)


def test_a_poster_that_is_not_there_is_refused_by_its_folder(posters, tmp_path):
    task = _task(posters)
    with pytest.raises(CheckError) as refused:
        task.predict(task.build_model(), {"poster_dir": str(tmp_path / "none")}, tmp_path)
    assert refused.value.code == "layoutmaster/no-json"


def test_a_checkpoint_describes_itself_in_the_guides_words(posters):
    task = _task(posters, {"batch": {"total": 4}, "lr": {"base": 4e-4}})
    told = task.describe(9, {"loss": 0.5, "mean_iou": 0.7})
    assert (told["epoch"], told["global_step"], told["best_loss"], told["is_multi_gpu"]) == (3, 9, 0.5, False)
    assert told["config"]["data"]["batch_size"] == 4 and told["config"]["optimizer"]["lr"] == 4e-4
    assert told["config"]["model"]["hidden_dim"] == 16 and told["config"]["loss"]["overlap_weight"] == 0.8
    assert json.loads(json.dumps(told))["config"]["training"]["num_epochs"] is None


@pytest.mark.parametrize("backbone", ["small", "simple-cnn", "Qwen-VL-2.5-3B-Instruct"])
def test_a_step_can_be_traced_without_data_and_without_memory(tmp_path, backbone):
    section = LayoutMasterSection(**{**SMALL, "visual_backbone": backbone, "image_size": 28, "data_dir": str(tmp_path)})
    task = make_task(RunConfig(task=section))
    with FakeTensorMode(allow_non_fake_inputs=True):
        model = task.build_model()
        batch = {name: torch.empty(part.shape, dtype=part.dtype) for name, part in task.example(3).items()}
        loss = task.loss(model, batch)
        loss.total.backward()
    assert loss.total.shape == () and batch["images"].shape == (30, 3, 28, 28)


def test_an_example_has_the_shapes_and_types_of_a_real_batch(posters):
    task = _task(posters)
    real, example = _batch(task.train_data(), [0, 1]), task.example(2)
    assert {name: part.dtype for name, part in real.items()} == {name: part.dtype for name, part in example.items()}
    assert all(real[name].shape == example[name].shape for name in real if name != "images")
