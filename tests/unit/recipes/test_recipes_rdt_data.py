import json
import multiprocessing
import os

import h5py
import numpy as np
import pytest
import torch

from fakes.rdt_demos import make_section, write_demos
from headway.errors import CheckError
from headway.recipes.rdt import slots
from headway.recipes.rdt.build import cut_chunk
from headway.recipes.rdt.data import baseline, choose_statistics, count_train_samples, open_index, prepare
from headway.recipes.rdt.reader import DemoFiles
from headway.recipes.rdt.samples import GREY, ChunkData, jitter
from headway.recipes.rdt.section import RdtSection


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_demos(tmp_path_factory.mktemp("rdt"))


def _data(folder, *, held_out=False, seed=None, **changes):
    section = make_section(folder, **changes)
    index = open_index(section)
    return ChunkData(section, index, held_out=held_out, statistics=choose_statistics(section, index), seed=seed)


def _batch(data, ids, epochs=None):
    ids = np.asarray(ids)
    return data.batch(ids, np.zeros_like(ids) if epochs is None else np.asarray(epochs))


def test_the_scripted_set_has_the_published_form(folder):
    files = sorted(folder.glob("*_demo.hdf5"))
    assert len(files) == 2
    with h5py.File(files[0], "r") as file:
        demo = file["data/demo_0"]
        steps = demo.attrs["num_samples"]
        assert json.loads(file["data"].attrs["problem_info"])["language_instruction"].startswith("close")
        assert (file["data"].attrs["num_demos"], demo["actions"].shape) == (4, (steps, 7))
        shapes = {name: demo[f"obs/{name}"].shape[1:] for name in demo["obs"]}
        assert shapes["agentview_rgb"] == shapes["eye_in_hand_rgb"] == (32, 32, 3)
        assert (shapes["joint_states"], shapes["gripper_states"], shapes["ee_ori"]) == ((7,), (2,), (3,))
        assert demo["obs/agentview_rgb"].dtype == np.uint8 and np.abs(demo["actions"]).max() <= 1
        assert {"states", "robot_states", "rewards", "dones"} <= set(demo)
        assert demo["rewards"][-1] == 1 and demo["rewards"][0] == 0


def test_whole_demonstrations_are_held_out(folder):
    index = open_index(make_section(folder, holdout=0.3))
    kept = {(demo.file, demo.name) for demo in index.demos if demo.is_held_out}
    assert len(index.demos) == 8 and len(kept) == 2
    assert {name for _, name in kept} == {"data/demo_3"}


def test_every_step_is_a_sample_and_the_original_leaves_the_end_out(folder):
    section = make_section(folder)
    train = [demo.length for demo in open_index(section).demos if not demo.is_held_out]
    assert count_train_samples(section) == sum(train) == len(_data(folder))
    original = make_section(folder, tail="original")
    assert count_train_samples(original) == sum(length - 7 for length in train)


def test_a_chunk_at_the_end_goes_on_with_the_last_action(folder):
    data = _data(folder)
    first = data.demo(0).length
    chunk = _batch(data, [first - 3])["actions"][0]
    assert torch.equal(chunk[3], chunk[2]) and torch.equal(chunk[7], chunk[2])
    assert not torch.equal(_batch(data, [0])["actions"][0, 0], _batch(data, [first])["actions"][0, 0])
    assert cut_chunk(np.arange(5), 3, 4).tolist() == [3, 4, 4, 4]


def test_the_published_loader_never_shows_the_end(folder):
    data = _data(folder, tail="original")
    last = data.demo(0).length - 8
    assert data.demo(last) == data.demo(0) != data.demo(last + 1)


def test_pictures_are_of_this_moment_and_the_one_before(folder):
    data = _data(folder)
    start, later = (_batch(data, [step])["images"][0] for step in (0, 5))
    before = _batch(data, [4])["images"][0]
    assert later.shape == (6, 3, 32, 32)
    assert torch.equal(later[0], before[3]) and torch.equal(later[1], before[4])
    grey = torch.full((3, 32, 32), GREY, dtype=torch.uint8)
    assert all(torch.equal(start[place], grey) for place in (0, 1, 2, 5)), "no moment before the first; no left wrist"
    assert not torch.equal(start[3], grey)


def test_the_inputs_do_not_hold_the_answer(folder):
    batch = _batch(_data(folder), np.arange(40))
    assert set(batch) == {"state", "state_mask", "action_mask", "freq", "lang", "images", "actions"}
    with h5py.File(sorted(folder.glob("*_demo.hdf5"))[0], "r") as file:
        hidden = np.asarray(file["data/demo_0/states"])[:, -5:]  # cabinet, drawer, bowl: only pictures show them
    state = batch["state"][: len(hidden)].numpy()
    steady = [column for column in hidden.T if column.std() < 1e-9]
    assert steady and not any(np.isclose(state, column[0], atol=1e-7).any() for column in steady)


def test_a_sample_is_a_pure_function_of_seed_epoch_and_index(folder):
    data = _data(folder, seed=3, cond_mask_prob=0.5, state_noise_snr=40, image_aug=True)
    one, two = _batch(data, [5, 9, 2], [1, 1, 1]), _batch(data, [2, 5], [1, 1])
    for name in one:
        assert torch.equal(one[name][0], two[name][1]) and torch.equal(one[name][2], two[name][0])
    other = _batch(data, np.arange(20), np.full(20, 2))
    same = _batch(data, np.arange(20), np.full(20, 1))
    assert not torch.equal(other["images"], same["images"])
    assert torch.equal(other["actions"], same["actions"]), "what is asked for is never changed"


def test_conditions_are_hidden_with_their_chance_and_independently(folder):
    data = _data(folder, seed=0, cond_mask_prob=0.3)
    ids = np.tile(np.arange(1, 101), 10)
    batch = _batch(data, ids, np.repeat(np.arange(10), 100))
    mean = torch.tensor(choose_statistics(make_section(folder), open_index(make_section(folder)))["state_mean"])
    hidden = {
        "freq": batch["freq"] == 0,
        "lang": batch["lang"] == 0,
        "mask": batch["state_mask"].sum(1) == 0,
        "state": (batch["state"] - mean).abs().amax(1) < 1e-5,
        "image": (batch["images"][:, 3] == GREY).flatten(1).all(1),
    }
    rates = {name: float(part.float().mean()) for name, part in hidden.items()}
    assert all(rate == pytest.approx(0.3, abs=0.06) for rate in rates.values()), rates
    both = float((hidden["lang"] & hidden["image"]).float().mean())
    assert both == pytest.approx(0.09, abs=0.04)


def test_the_exterior_camera_has_a_chance_of_its_own(folder):
    data = _data(folder, seed=0, cond_mask_prob=0.0, cam_ext_mask_prob=1.0)
    images = _batch(data, [10])["images"][0]
    assert (images[[0, 3]] == GREY).all() and not (images[4] == GREY).all()


def test_noise_has_the_asked_decibels(folder):
    ids = np.arange(60)
    clean = _batch(_data(folder), ids)["state"]
    rough = _batch(_data(folder, seed=0, cond_mask_prob=0.0, state_noise_snr=20), ids)["state"]
    noise = (rough - clean).numpy()[:, slots.STATE_SLOTS]
    spread = clean.numpy()[:, slots.STATE_SLOTS].std(0)
    live = spread > 1e-4
    assert np.allclose(noise.std(0)[live] / spread[live], 0.1, atol=0.06)
    assert not noise[:, ~live].any() or np.abs(noise[:, ~live]).max() < 1e-3


def test_evaluation_sees_everything_as_it_is(folder):
    section = {"cond_mask_prob": 1.0, "state_noise_snr": 0.0, "image_aug": True}
    one, two = _batch(_data(folder, held_out=True, **section), [3]), _batch(_data(folder, held_out=True), [3])
    assert all(torch.equal(one[name], two[name]) for name in one)


def _read_elsewhere(data, pipe):
    torch.set_num_threads(1)  # as a loader's worker does: a forked process has none of its parent's threads
    handles, read = data._files.num_handles(), data.batch(np.arange(8), np.zeros(8, np.int64))
    pipe.send((os.getpid(), handles, int(read["images"].numpy().sum())))
    pipe.close()


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_every_process_opens_files_for_itself(folder):
    data = _data(folder)
    here = int(data.batch(np.arange(8), np.zeros(8, np.int64))["images"].numpy().sum())
    assert data._files.num_handles() > 0
    near, far = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=_read_elsewhere, args=(data, far))
    child.start()
    assert near.poll(60)
    pid, handles, there = near.recv()
    child.join()
    assert pid != os.getpid() and handles == 0 and there == here
    assert int(data.batch(np.arange(8), np.zeros(8, np.int64))["images"].numpy().sum()) == here


def test_compressed_pictures_read_like_plain_ones(folder, tmp_path):
    source = sorted(folder.glob("*_demo.hdf5"))[0]
    with h5py.File(source, "r") as plain, h5py.File(tmp_path / "x_demo.hdf5", "w") as packed:
        pictures = np.asarray(plain["data/demo_0/obs/agentview_rgb"])
        packed.create_dataset("data/demo_0/obs/agentview_rgb", data=pictures, compression="gzip", chunks=(1, 32, 32, 3))
    one = DemoFiles(folder).pictures(source.name, "data/demo_0", "agentview_rgb")
    two = DemoFiles(tmp_path).pictures("x_demo.hdf5", "data/demo_0", "agentview_rgb")
    assert isinstance(one, np.ndarray) and isinstance(two, h5py.Dataset)
    assert np.array_equal(one[4], two[4])


def test_statistics_are_chosen_by_name_and_never_guessed(folder, tmp_path):
    section = make_section(folder)
    index = open_index(section)
    own = choose_statistics(section, index)
    assert own["dataset_name"] == "libero_single_task" and len(own["action_std"]) == 128
    assert own["state_std"][0] > 0 and own["state_std"][50] == 0
    with pytest.raises(CheckError) as refused:
        make_section(folder, statistics="libero_90")
    assert refused.value.code == "rdt/no-statistics" and "libero_single_task" in refused.value.text()


def test_brought_statistics_are_taken_by_their_name(tmp_path):
    folder = write_demos(tmp_path / "demos", demos=2)
    record = {"dataset_name": "libero_90", "state_mean": [0.5] * 128, "state_std": [0.003] * 128}
    (folder / "dataset_stat.json").write_text(json.dumps({"libero_90": record}))
    section = make_section(folder, statistics="libero_90")
    assert choose_statistics(section, open_index(section))["state_std"][30] == 0.003
    (folder / "dataset_stat.json").write_text(json.dumps({"libero_90": {"state_mean": [0.5]}}))
    with pytest.raises(CheckError) as refused:
        prepare(section, lambda line: None)
    assert refused.value.code == "rdt/bad-statistics"


def test_the_baseline_is_the_error_of_the_mean_action(folder):
    section = make_section(folder)
    train, held = _data(folder), _data(folder, held_out=True)
    live = torch.from_numpy(slots.ACTION_SLOTS)
    mean = torch.cat([_batch(train, [i])["actions"][:, 0] for i in range(len(train))])[:, live].mean(0)
    error = _batch(held, np.arange(len(held)))["actions"][..., live] - mean
    found = baseline(section)
    assert found["mean_overall_avg_sample_mse"] == pytest.approx(float(error.square().mean()), rel=1e-4)
    assert found["mean_success_rate"] == 0.0


def test_changed_files_want_a_new_index_and_a_rank_refuses_without(tmp_path):
    folder = write_demos(tmp_path / "demos", demos=2)
    section = make_section(folder)
    before = open_index(section)
    os.utime(sorted(folder.glob("*_demo.hdf5"))[0], ns=(1, 1))
    with pytest.raises(CheckError) as refused:
        open_index(section)
    assert refused.value.code == "rdt/not-prepared"
    prepare(section, lambda line: None)
    assert open_index(section).content == before.content


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (lambda file: file.write_bytes(b"not hdf5"), "rdt/bad-file"),
        (lambda file: _delete(file, "data/demo_0/obs/ee_ori"), "rdt/bad-file"),
        (lambda file: _delete(file, "data/demo_1"), "rdt/few-demos"),
    ],
)
def test_files_that_are_not_whole_are_refused_by_name(tmp_path, spoil, code):
    folder = write_demos(tmp_path / "demos", demos=2)
    file = sorted(folder.glob("*_demo.hdf5"))[0]
    spoil(file)
    with pytest.raises(CheckError) as refused:
        make_section(folder)
    assert refused.value.code == code and file.name in refused.value.text()


def _delete(file, name):
    with h5py.File(file, "a") as opened:
        del opened[name]


def test_real_data_is_not_replaced_by_scripts(tmp_path):
    empty = RdtSection(data_dir=str(tmp_path))
    with pytest.raises(CheckError) as refused:
        prepare(empty, lambda line: None)
    assert refused.value.code == "rdt/no-demos"
    write_demos(tmp_path, demos=2)
    with pytest.raises(CheckError) as synthetic:
        prepare(empty, lambda line: None)
    assert synthetic.value.code == "rdt/only-synthetic"


def test_chunks_longer_than_every_demonstration_need_padding(folder):
    with pytest.raises(CheckError) as refused:
        make_section(folder, tail="original", action_chunk_size=500)
    assert refused.value.code == "rdt/too-short" and "500" in refused.value.text()


def test_held_out_demonstrations_too_short_for_a_chunk_are_told_before_training(tmp_path):
    folder = write_demos(tmp_path, demos=2)
    for path in folder.glob("*.hdf5"):
        with h5py.File(path, "r+") as file:
            for place in ["actions", "rewards", "dones", *(f"obs/{name}" for name in file["data/demo_1/obs"])]:
                kept = file[f"data/demo_1/{place}"][:5]
                del file[f"data/demo_1/{place}"]
                file[f"data/demo_1/{place}"] = kept
    with pytest.raises(CheckError) as refused:
        make_section(folder, tail="original", action_chunk_size=8)
    assert refused.value.code == "rdt/held-out-too-short" and "has 5 steps" in refused.value.text()
    assert make_section(folder, tail="original", action_chunk_size=5) and make_section(folder, tail="pad")


def test_jitter_changes_colours_and_not_the_scene():
    picture = np.zeros((8, 8, 3), np.uint8)
    picture[2:5, 2:5] = (200, 60, 30)
    changed = jitter(picture, np.random.default_rng(0))
    assert changed.dtype == np.uint8 and not np.array_equal(changed, picture)
    assert len(np.unique(changed.reshape(-1, 3), axis=0)) == 2
