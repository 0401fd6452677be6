import math

import numpy as np
import pytest

from headway.recipes.rdt.rollout import Episode, Limits, run_episodes, wilson, write_video
from headway.recipes.rdt.world import DEMO_SCENES, TASKS, TRIAL_SCENES, TableWorld, show_way

LIMITS = Limits(env_steps=60, exec_horizon=4, env_horizon=100, history=2)


def _solve(task, seed, **more):
    episode = TableWorld(task, seed, **more)
    return any(episode.step(show_way(episode)) for _ in range(100))


@pytest.mark.parametrize("task", range(len(TASKS)))
@pytest.mark.parametrize("is_midway", [False, True])
def test_the_demonstrator_solves_what_it_shows(task, is_midway):
    assert all(_solve(task, seed, is_midway=is_midway) for seed in range(10))


def test_standing_still_solves_nothing():
    for task in range(len(TASKS)):
        episode = TableWorld(task, 0)
        assert not any(episode.step(np.zeros(7)) for _ in range(50))


def test_one_task_done_is_not_the_other():
    episode, other = TableWorld(0, 5), TableWorld(1, 5)
    while not episode.step(show_way(episode)):
        pass
    other.scene = episode.scene
    assert episode.is_solved and not other.is_solved


def test_past_the_horizon_the_world_refuses_as_the_simulator_does():
    episode = TableWorld(0, 1, horizon=3)
    for _ in range(3):
        episode.step(np.zeros(7))
    with pytest.raises(RuntimeError, match="terminated"):
        episode.step(np.zeros(7))


def test_pictures_show_the_bowl_and_the_state_does_not():
    one = TableWorld(1, 3)
    before = one.observe()
    moved = one.scene.bowl + np.array([0.05, 0.0, 0.0])
    one.scene = type(one.scene)(**{name: getattr(one.scene, name) for name in one.scene.__slots__} | {"bowl": moved})
    after = one.observe()
    assert not np.array_equal(before["agentview_rgb"], after["agentview_rgb"])
    assert np.array_equal(before["ee_states"], after["ee_states"])
    assert np.abs(before["joint_states"] - after["joint_states"]).max() < 0.02


def test_looking_does_not_change_what_happens():
    seen, unseen = TableWorld(1, 4), TableWorld(1, 4)
    for _ in range(10):
        action = show_way(unseen)
        seen.observe()
        seen.step(action)
        unseen.step(action)
    assert np.array_equal(seen.scene.hand, unseen.scene.hand)


def test_scenes_of_trials_are_none_of_the_demonstrations():
    demonstrated = {TableWorld(1, DEMO_SCENES + n).scene.cabinet_y for n in range(50)}
    others = [*range(50), *(TRIAL_SCENES + n for n in range(50))]
    assert not any(TableWorld(1, n).scene.cabinet_y in demonstrated for n in others)


class _Demonstrator:
    """A policy that knows the scenes; it counts how often it is asked."""

    def __init__(self, episodes, chunk=8):
        self.worlds = {(one.task, one.seed): TableWorld(one.task, one.seed, LIMITS.env_horizon) for one in episodes}
        self.asked, self.histories, self.chunk = 0, [], chunk
        self.order = [(one.task, one.seed) for one in episodes]

    def __call__(self, moments, tasks, seeds):
        self.asked += 1
        self.histories += [len(seen) for seen in moments]
        return np.zeros((len(moments), self.chunk, 7))


def test_an_episode_ends_at_its_limit_and_draws_a_chunk_every_exec_horizon():
    episodes = [Episode(task=0, seed=1), Episode(task=1, seed=2)]
    act = _Demonstrator(episodes)
    run_episodes(act, episodes, Limits(env_steps=10, exec_horizon=4, env_horizon=100, history=2))
    assert [one.steps for one in episodes] == [10, 10] and act.asked == 3
    assert act.histories == [1, 1, 2, 2, 2, 2] and not any(one.is_solved for one in episodes)


def test_an_episode_stops_when_it_is_solved_and_the_others_go_on():
    episodes = [Episode(task=0, seed=1), Episode(task=1, seed=2)]

    def act(moments, tasks, seeds):
        # Straight at the first scene's drawer; the other episode does not move.
        scene = TableWorld(0, 1).scene
        chunks = np.zeros((len(moments), 8, 7))
        for row, (task, seen) in enumerate(zip(tasks, moments, strict=True)):
            if task == 0:
                goal = np.array([scene.drawer_front + 0.02, scene.cabinet_y, 0.05])
                off = goal - seen[-1]["ee_pos"]
                is_there = np.abs(off[1:]).max() < 0.02
                chunks[row, :2, :3] = [-1.0, 0.0, 0.0] if is_there else np.clip(off / 0.03, -1, 1)
        return chunks

    run_episodes(act, episodes, Limits(env_steps=60, exec_horizon=2, env_horizon=100, history=1))
    assert episodes[0].is_solved and episodes[0].steps < 60
    assert not episodes[1].is_solved and episodes[1].steps == 60


@pytest.mark.parametrize(
    ("solved", "num", "low", "high"),
    [(0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (10, 20, 0.2993, 0.7007), (0, 0, 0, 1)],
)
def test_the_interval_is_wilsons(solved, num, low, high):
    assert wilson(solved, num) == pytest.approx((low, high), abs=1e-4)


def test_more_episodes_make_the_interval_narrower():
    widths = [high - low for low, high in (wilson(num / 2, num) for num in (2, 20, 200))]
    assert widths == sorted(widths, reverse=True) and not any(math.isnan(width) for width in widths)


def test_a_video_is_a_gif_with_a_frame_a_step(tmp_path):
    from PIL import Image

    episodes = [Episode(task=0, seed=1), Episode(task=1, seed=2)]
    run_episodes(
        _Demonstrator(episodes),
        episodes,
        Limits(env_steps=5, exec_horizon=4, env_horizon=100, history=1),
        filmed=episodes[1:],
    )
    path = write_video(episodes[1], tmp_path / "new" / "videos")
    assert path.name == "task1_seed2_failure.gif" and not episodes[0].frames
    with Image.open(path) as film:
        assert film.size == (2 * 32 * 10, 32 * 10) and len(episodes[1].frames) == 6
        assert film.n_frames > 1 or film.n_frames == len({frame.tobytes() for frame in episodes[1].frames})
