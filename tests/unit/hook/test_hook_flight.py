"""Torch's flight recorder, as JSON from the hook and as the pickle of NCCL's watchdog."""

from __future__ import annotations

import collections
import json
import os
import pickle

import pytest

from headway.launch.hook import Flight, hook_environment, read_dump, read_flight
from headway.launch.hook import flight as flight_module
from headway.launch.hook.flight import flight_of, read_plain

GROUPS = {"0": {"last_enqueued_collective": "10", "last_completed_collective": 9, "last_started_collective": "-1"}}
ENTRIES = [
    {"profiling_name": "gloo:all_reduce", "input_sizes": [[5]], "retired": True, "is_p2p": False},
    {"profiling_name": "gloo:all_reduce", "input_sizes": [[3, 5], [2]], "retired": False, "is_p2p": False},
]
FOUND = Flight(enqueued=10, completed=9, pending="all_reduce", numel=17)


def test_the_oldest_collective_that_has_not_ended_is_the_pending_one():
    assert flight_of(GROUPS, ENTRIES) == FOUND
    assert flight_of(GROUPS, ENTRIES[:1]) == Flight(enqueued=10, completed=9)


def test_numbers_of_several_groups_are_not_compared():
    assert flight_of({**GROUPS, "1": GROUPS["0"]}, ENTRIES) is None
    unused = {"last_enqueued_collective": "-1", "last_completed_collective": "-1"}
    assert flight_of({**GROUPS, "1": unused}, ENTRIES) == FOUND


@pytest.mark.parametrize("groups", [None, [], {"0": 3}, {"0": {"last_enqueued_collective": "x"}}])
def test_strange_words_are_no_record(groups):
    assert flight_of(groups, ENTRIES) is None


def test_an_answer_of_another_process_does_not_count(tmp_path):
    (tmp_path / "flight-2.json").write_text(json.dumps({"groups": GROUPS, "entries": ENTRIES, "pid": 7}))
    assert read_flight(tmp_path, 2, 7) == FOUND
    assert read_flight(tmp_path, 2, 8) is None
    assert read_flight(tmp_path, 1, 7) is None


@pytest.mark.parametrize("protocol", [2, 4])
def test_a_plain_pickle_is_read_without_pickle(protocol):
    value = {
        "a": [1, -2, 2**40, 1.5, None, True, False, "文字", (), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)],
        "b": {"c": []},
    }
    value["again"] = value["a"]
    assert read_plain(pickle.dumps(value, protocol=protocol)) == value


@pytest.mark.parametrize("value", [os.system, collections.OrderedDict(a=1), {1, 2}, b"x", range(3)])
def test_whatever_is_not_plain_is_refused(value):
    with pytest.raises(ValueError, match="refused"):
        read_plain(pickle.dumps({"x": value}, protocol=2))


@pytest.mark.parametrize("data", [b"", b"\x80\x02", b"\x80\x02}q\x00u.", b"\x80\x02h\x05.", b"not a pickle"])
def test_a_damaged_pickle_is_said_to_be_one(data):
    with pytest.raises(ValueError):
        read_plain(data)


def test_the_watchdogs_dump_is_kept_in_the_run_and_an_old_one_is_not_believed(tmp_path):
    prefix = hook_environment(tmp_path, 1, {})["TORCH_NCCL_DEBUG_INFO_TEMP_FILE"]
    (tmp_path / "ranks").mkdir()
    with open(f"{prefix}3", "wb") as file:
        pickle.dump({"pg_status": GROUPS, "entries": ENTRIES}, file, protocol=2)
    written = os.stat(f"{prefix}3").st_mtime
    assert read_dump(tmp_path, 3, since=written - 1) == FOUND
    assert read_dump(tmp_path, 3, since=written + 1) is None
    assert read_dump(tmp_path, 4, since=0.0) is None


def test_a_place_the_user_has_chosen_for_dumps_stays(tmp_path):
    assert "TORCH_FR_DUMP_TEMP_FILE" not in hook_environment(tmp_path, 1, {"TORCH_FR_DUMP_TEMP_FILE": "/mine"})


def test_a_dump_longer_than_what_is_read_is_no_record(tmp_path, monkeypatch):
    monkeypatch.setattr(flight_module, "_MOST_PICKLE_BYTES", 100)
    (tmp_path / "ranks").mkdir()
    place = tmp_path / "ranks" / "nccl_trace_rank_0"
    place.write_bytes(pickle.dumps({"pg_status": GROUPS, "entries": ENTRIES * 100}, protocol=2))
    assert read_dump(tmp_path, 0, since=0.0) is None


class _Calls:
    def __reduce__(self):
        return (open, ("made", "w"))


def test_no_function_is_ever_called(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for protocol in range(6):
        with pytest.raises(ValueError, match="refused"):
            read_plain(pickle.dumps(_Calls(), protocol=protocol))
    # INST, OBJ, NEWOBJ, extension codes, persistent ids: every other way to a callable.
    for data in (b"(ios\nsystem\n.", b"(cos\nsystem\no.", b"cos\nsystem\n)\x81.", b"\x82\x01.", b"Pid\n."):
        with pytest.raises(ValueError):
            read_plain(data)
    assert not list(tmp_path.iterdir())
