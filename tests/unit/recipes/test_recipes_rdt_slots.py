import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.recipes.rdt import slots
from headway.recipes.rdt.rotation import (
    axis_angle_of_matrix,
    matrix_of_axis_angle,
    matrix_of_euler,
    matrix_of_six,
    six_of_matrix,
)

_vectors = st.lists(st.floats(-1.8, 1.8), min_size=3, max_size=3)


@given(_vectors)
def test_axis_angle_goes_to_a_rotation_and_back(vector):
    matrix = matrix_of_axis_angle(vector)
    assert np.allclose(matrix @ matrix.T, np.eye(3), atol=1e-9)
    assert np.linalg.det(matrix) == pytest.approx(1)
    angle = np.linalg.norm(vector)
    if angle < np.pi - 1e-6:
        assert np.allclose(axis_angle_of_matrix(matrix), vector, atol=1e-6)


@given(_vectors)
def test_six_numbers_are_the_first_two_columns_and_lead_back(vector):
    matrix = matrix_of_axis_angle(vector)
    six = six_of_matrix(matrix)
    assert np.array_equal(six, [*matrix[:, 0], *matrix[:, 1]])
    assert np.allclose(matrix_of_six(six * 3.0), matrix, atol=1e-9)


def test_six_crooked_numbers_still_give_a_rotation():
    matrix = matrix_of_six([1.0, 0.2, 0.0, 0.5, 1.0, 0.1])
    assert np.allclose(matrix @ matrix.T, np.eye(3)) and np.linalg.det(matrix) == pytest.approx(1)


@pytest.mark.parametrize("six", [[0.0] * 6, [0, 0, 0, 0, 1, 0], [1, 0, 0, 2, 0, 0], [0, 1, 0, 0, 3, 0]])
def test_six_numbers_that_name_no_rotation_still_give_one(six):
    matrix = matrix_of_six(six)
    assert np.allclose(matrix @ matrix.T, np.eye(3)) and np.linalg.det(matrix) == pytest.approx(1)
    if not any(six):
        assert np.array_equal(matrix, np.eye(3)), "an untrained model, which answers zeros, does not turn the hand"


def test_half_turns_survive():
    for axis in np.eye(3):
        found = axis_angle_of_matrix(matrix_of_axis_angle(axis * np.pi))
        assert np.linalg.norm(found) == pytest.approx(np.pi)
        assert np.allclose(np.abs(found), axis * np.pi, atol=1e-6)


def test_reading_axis_angle_as_euler_is_nearly_right_for_small_turns_and_wrong_for_large_ones():
    small, large = np.array([0.02, -0.01, 0.03]), np.array([2.6, 0.4, -1.2])
    assert np.allclose(matrix_of_euler(small), matrix_of_axis_angle(small), atol=1e-3)
    turn = matrix_of_euler(large).T @ matrix_of_axis_angle(large)
    assert np.linalg.norm(axis_angle_of_matrix(turn)) > 0.5


def _obs(fingers=(0.04, -0.04), ori=(np.pi, 0.0, 0.0)):
    parts = {"joint_states": np.arange(7.0), "ee_pos": np.array([0.1, 0.2, 0.3])}
    return {**parts, "gripper_states": np.array(fingers), "ee_ori": np.array(ori)}


def test_a_state_fills_seventeen_slots():
    full = slots.spread(slots.pack_state(_obs(), "axis_angle"), slots.STATE_SLOTS)
    assert full.shape == (128,)
    assert np.allclose(full[:7], np.arange(7)) and full[10] == 1.0
    assert np.allclose(full[30:33], [0.1, 0.2, 0.3]) and np.allclose(full[33:39], [1, 0, 0, 0, -1, 0], atol=1e-6)
    assert np.count_nonzero(slots.mask_of(slots.STATE_SLOTS)) == 17


@pytest.mark.parametrize(("fingers", "opening"), [((0.04, -0.04), 1.0), ((0.0, 0.0), 0.0), ((0.02, -0.02), 0.5)])
def test_the_gripper_is_the_distance_of_both_fingers(fingers, opening):
    # Their mean, which the published evaluation takes, is zero in all three cases.
    assert slots.pack_state(_obs(fingers), "axis_angle")[7] == pytest.approx(opening)


def test_the_original_reading_of_orientation_is_kept_apart():
    ori = (2.6, 0.4, -1.2)
    mine, theirs = (slots.pack_state(_obs(ori=ori), kind) for kind in ("axis_angle", "original"))
    assert np.allclose(mine[:11], theirs[:11]) and np.abs(mine[11:] - theirs[11:]).max() > 0.3


@given(st.lists(st.floats(-1, 1), min_size=7, max_size=7))
def test_actions_go_to_ten_slots_and_back(action):
    packed = slots.pack_action(action, position_scale=1.2, rotation_scale=0.5, rotation="axis_angle")
    assert packed.shape == (10,) and len(slots.ACTION_SLOTS) == 10
    back = slots.unpack_action(packed, position_scale=1.2, rotation_scale=0.5)
    assert np.allclose(back, action, atol=1e-4)


def test_actions_have_the_published_units():
    packed = slots.pack_action([1, 0, 0, 0, 0, 0, -1], position_scale=1.2, rotation_scale=0.5, rotation="axis_angle")
    full = slots.spread(packed, slots.ACTION_SLOTS)
    assert full[10] == 0.0 and full[30] == pytest.approx(1.2) and np.allclose(full[33:39], [1, 0, 0, 0, 1, 0])


def test_commands_stay_within_what_the_arm_takes():
    wild = np.array([5.0, 9.0, -9.0, 0.0, 1, 0, 0, 0, 1, 0])
    assert np.abs(slots.unpack_action(wild, position_scale=1.2, rotation_scale=0.5)).max() == 1.0
