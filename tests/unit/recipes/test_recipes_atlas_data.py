import json
import multiprocessing
import os

import h5py
import numpy as np
import pytest

from fakes.atlas_set import toy_section, toy_task, write_toy
from headway.errors import CheckError
from headway.recipes.atlas.build import write_episode
from headway.recipes.atlas.data import baseline, count_train_samples, find_index, open_index, prepare
from headway.recipes.atlas.episodes import Episode, read_image, resize
from headway.recipes.atlas.scene import NAMES, draw_scene, expert_action, goal, is_at, move, play_episode


def _prepare(section):
    lines = []
    prepare(section, lines.append)
    return open_index(section)[1], lines


def _write(folder, number, *, split="train", frames=3, text="pick the cup", cameras=("workspace", "wrist")):
    pictures = {camera: [np.full((8, 8, 3), number, np.uint8)] * frames for camera in cameras}
    place = folder / "data" / split / f"episode_{number:06d}"
    write_episode(place, pictures, np.full((frames, 7), number / 10), text)
    return place


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("atlas")
    write_toy(folder)
    return folder


def test_whole_episodes_are_held_out_of_every_task(toy):
    index, _ = _prepare(toy_section(toy))
    names = [{episode["path"] for episode in part} for part in (index.train, index.val)]
    assert len(names[0]) == len(index.train) and not names[0] & names[1]
    tasks = [{episode["instruction"] for episode in part} for part in (index.train, index.val)]
    assert tasks[0] == tasks[1] and len(tasks[0]) == 6
    assert (index.train_frames, index.val_frames) == (36, 18) and count_train_samples(toy_section(toy)) == 36


def test_the_synthetic_set_is_in_the_real_format(toy):
    place = toy / "data" / "train" / "episode_000000"
    names = {file.relative_to(place).as_posix() for file in place.rglob("*") if file.is_file()}
    pictures = {f"images/{camera}_{frame:06d}.png" for camera in ("workspace", "wrist") for frame in range(3)}
    assert names == {"actions.parquet", "language_task.txt", *pictures}


def test_the_baseline_is_the_training_mean_on_held_out_frames(toy):
    section = toy_section(toy)
    index, _ = _prepare(section)
    actions = np.load(find_index(section)[0] / "actions.npy")
    train, val = actions[: index.train_frames], actions[index.train_frames :]
    level = baseline(section)
    assert level["mean_pose_l1"] == pytest.approx(np.abs(val[:, :6] - train[:, :6].mean(0)).mean(), rel=1e-5)
    assert level["mean_pose_l2"] > level["mean_pose_l1"]
    assert 0.3 < level["majority_gripper_accuracy"] < 1


def test_an_episode_stays_on_its_side_when_others_are_added(tmp_path):
    for number in range(10):
        _write(tmp_path, number)
    section = toy_section(tmp_path, val_share=0.2)
    before = {episode["path"] for episode in _prepare(section)[0].train}
    for number in range(10, 12):
        _write(tmp_path, number)
    after = _prepare(section)[0]
    assert len(before & {episode["path"] for episode in after.val}) <= 1, "only the border may move"


def test_a_folder_of_held_out_episodes_is_taken_as_it_is(tmp_path):
    for number in range(3):
        _write(tmp_path, number)
    _write(tmp_path, 7, split="val", text="never trained")
    index, _ = _prepare(toy_section(tmp_path, val_split="val"))
    assert [episode["path"] for episode in index.val] == ["val/episode_000007"] and len(index.train) == 3


def test_changed_episodes_need_a_new_index(tmp_path):
    for number in range(3):
        _write(tmp_path, number)
    section = toy_section(tmp_path)
    first, _ = _prepare(section)
    text = tmp_path / "data" / "train" / "episode_000001" / "language_task.txt"
    text.write_text("another thing\n")
    os.utime(text, ns=(1, 1))
    with pytest.raises(CheckError) as refused:
        open_index(section)
    assert refused.value.code == "atlas/not-prepared"
    assert _prepare(section)[0].content != first.content


def test_csv_and_metadata_are_read_too(tmp_path):
    for number in range(2):
        place = _write(tmp_path, number)
        (place / "actions.parquet").unlink()
        rows = "\n".join(",".join(str(number + column / 10) for column in range(8)) for _ in range(3))
        (place / "actions.csv").write_text("a,b,c,d,e,f,g,extra\n" + rows + "\n")
        (place / "language_task.txt").unlink()
        (place / "metadata.json").write_text(json.dumps({"language_task": "put it there"}))
    section = toy_section(tmp_path)
    index, _ = _prepare(section)
    assert index.train[0]["instruction"] == "put it there"
    actions = np.load(find_index(section)[0] / "actions.npy")
    assert actions.shape == (6, 7) and sorted(actions[:, 6]) == pytest.approx([0.6] * 3 + [1.6] * 3)


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (lambda place: (place / "language_task.txt").unlink(), "atlas/no-instruction"),
        (lambda place: (place / "language_task.txt").write_text(" \n"), "atlas/no-instruction"),
        (lambda place: (place / "actions.parquet").unlink(), "atlas/no-actions"),
        (lambda place: (place / "actions.parquet").write_bytes(b"no parquet"), "atlas/bad-file"),
        (lambda place: (place / "images" / "wrist_000002.png").unlink(), "atlas/frames"),
    ],
)
def test_a_damaged_episode_is_refused_by_name(tmp_path, spoil, code):
    for number in range(3):
        place = _write(tmp_path, number)
    spoil(place)
    with pytest.raises(CheckError) as refused:
        _prepare(toy_section(tmp_path))
    assert refused.value.code == code and "episode_000002" in refused.value.text()


def test_actions_that_are_no_numbers_are_refused(tmp_path):
    for number in range(2):
        _write(tmp_path, number)
    pictures = {camera: [np.zeros((8, 8, 3), np.uint8)] * 2 for camera in ("workspace", "wrist")}
    actions = np.array([[0.0] * 7, [0, 0, np.nan, 0, 0, 0, 1]])
    write_episode(tmp_path / "data" / "train" / "episode_000009", pictures, actions, "x")
    with pytest.raises(CheckError) as refused:
        _prepare(toy_section(tmp_path))
    assert (refused.value.code, refused.value.facts["row"]) == ("atlas/not-finite", 1)


def test_one_camera_is_enough_when_only_one_is_asked_for(tmp_path):
    for number in range(3):
        _write(tmp_path, number, cameras=("workspace",))
    assert _prepare(toy_section(tmp_path, use_wrist_camera=False))[0].train_frames == 6
    with pytest.raises(CheckError) as refused:
        _prepare(toy_section(tmp_path))
    assert "use_wrist_camera=false" in refused.value.hint()


def test_real_data_is_not_replaced_by_scripted_episodes(tmp_path, toy):
    with pytest.raises(CheckError) as refused:
        _prepare(toy_section(tmp_path, synthetic=False))
    assert refused.value.code == "atlas/no-episodes"
    with pytest.raises(CheckError) as refused:
        _prepare(toy_section(toy, synthetic=False))
    assert refused.value.code == "atlas/only-synthetic"


def test_a_single_episode_cannot_be_on_both_sides(tmp_path):
    _write(tmp_path, 0)
    with pytest.raises(CheckError) as refused:
        _prepare(toy_section(tmp_path))
    assert refused.value.code == "atlas/few-episodes"


def _write_hdf5(file, *, demos=3, frames=2, info=None):
    with h5py.File(file, "w") as out:
        group = out.create_group("data")
        if info is not None:
            group.attrs["problem_info"] = json.dumps({"language_instruction": info})
        for number in range(demos):
            demo = group.create_group(f"demo_{number}")
            demo["actions"] = np.full((frames, 7), number, np.float64)
            picture = np.zeros((frames, 8, 8, 3), np.uint8)
            picture[:, 0] = 200
            # Sorted by name the wrist camera would come first among those with rgb in it, were agentview not there.
            demo["obs/eye_in_hand_rgb"] = picture // 2
            demo["obs/agentview_rgb"] = picture


def test_libero_files_are_read_by_camera_name_and_the_right_way_up(tmp_path):
    (tmp_path / "data").mkdir()
    _write_hdf5(tmp_path / "data" / "pick_up_the_bowl_demo.hdf5")
    _write_hdf5(tmp_path / "data" / "x_demo.hdf5", info='"open the drawer"')
    index, _ = _prepare(toy_section(tmp_path))
    texts = {episode["path"]: episode["instruction"] for episode in (*index.train, *index.val)}
    assert texts == {"pick_up_the_bowl_demo.hdf5": "pick up the bowl", "x_demo.hdf5": "open the drawer"}
    episode = Episode(**index.train[0])
    upright, stored = (
        read_image(tmp_path / "data", episode, 1, "workspace", flip_hdf5=flip)[:, 0, 0] for flip in (True, False)
    )
    assert (upright[-1], upright[0], stored[0]) == (200, 0, 200)
    assert read_image(tmp_path / "data", episode, 1, "wrist", flip_hdf5=False)[0, 0, 0] == 100


def _read_in_child(folder, fields, pipe):
    pixels = read_image(folder, Episode(**fields), 0, "workspace", flip_hdf5=False)
    pipe.send(int(pixels[0, 0, 0]))


def test_a_forked_loader_opens_libero_files_for_itself(tmp_path):
    (tmp_path / "data").mkdir()
    _write_hdf5(tmp_path / "data" / "a_demo.hdf5")
    fields = _prepare(toy_section(tmp_path))[0].train[0]  # this process has the file open now
    here, there = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=_read_in_child, args=(tmp_path / "data", fields, there))
    child.start()
    child.join(30)
    assert child.exitcode == 0 and here.recv() == 200


def test_a_damaged_libero_file_is_refused(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a_demo.hdf5").write_bytes(b"nothing")
    with pytest.raises(CheckError) as refused:
        _prepare(toy_section(tmp_path))
    assert refused.value.code == "atlas/bad-file"


def test_pictures_are_made_square_of_the_asked_size():
    assert resize(np.zeros((6, 8, 3), np.uint8), 16).shape == (16, 16, 3)
    same = np.arange(8 * 8 * 3, dtype=np.uint8).reshape(8, 8, 3)
    assert resize(same, 8) is same


def test_the_same_picture_asks_for_another_action_under_another_instruction():
    rng = np.random.default_rng(3)
    scene = draw_scene(rng, 0)
    other = type(scene)(scene.blocks, scene.heights, scene.gripper, 1)
    assert np.abs(expert_action(scene) - expert_action(other)).max() > 0.3


def test_the_nearest_block_is_often_not_the_named_one():
    starts = [draw_scene(np.random.default_rng(number), number % 2) for number in range(400)]
    away = np.array([[np.linalg.norm(goal(one, block) - one.gripper) for block in range(2)] for one in starts])
    is_named = away.argmin(1) == [one.target for one in starts]
    assert 0.4 < is_named.mean() < 0.6, "else a model that never reads would do well"


def test_the_teacher_gets_there_and_closes():
    reached = 0
    for number in range(30):
        scene = draw_scene(np.random.default_rng(number), number % len(NAMES))
        for _ in range(15):
            scene = move(scene, expert_action(scene))
        reached += is_at(scene, scene.target) and expert_action(scene)[6] == 1
    assert reached == 30


def test_an_episode_is_the_same_for_the_same_seed():
    one, again = (play_episode(np.random.default_rng(5), 0, 4) for _ in range(2))
    assert all(np.array_equal(a[1], b[1]) for a, b in zip(one, again, strict=True))


def test_a_second_start_says_nothing_and_makes_nothing(toy):
    _prepare(toy_section(toy))
    _, lines = _prepare(toy_section(toy))
    assert lines == []


def test_the_held_out_episodes_are_part_of_the_datas_name(toy):
    one, other = toy_task(toy), toy_task(toy, val_share=0.5)
    assert one.data_id()["content"] == other.data_id()["content"]
    assert one.data_id()["held_out"] != other.data_id()["held_out"]


def test_frames_are_ordered_by_their_numbers_and_may_be_jpg(tmp_path):
    from PIL import Image as Pillow

    from headway.recipes.atlas.episodes import list_frames

    for name in ("workspace_10.jpg", "workspace_9.png", "workspace_0011.jpeg", "wrist_1.png", "workspace_1.txt"):
        Pillow.new("RGB", (2, 2)).save(tmp_path / name, format="PNG")
    assert [file.name for file in list_frames(tmp_path, "workspace")] == [
        "workspace_9.png",
        "workspace_10.jpg",
        "workspace_0011.jpeg",
    ]
