"""Links between supervisors, and where nodes meet."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest

from headway.errors import CheckError, UsageError
from headway.launch.nodes.link import Link, LinkError, greet_follower, greet_leader
from headway.launch.nodes.rendezvous import Meeting, open_listener, read_place, wait_for_meeting
from headway.start.follow import FollowWish
from headway.start.nodes import NodesWish, assembled, wish_nodes
from headway.start.slurm import place_in_step


def tcp_pair() -> tuple[socket.socket, socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        there = socket.create_connection(listener.getsockname())
        return listener.accept()[0], there


def greet(ours: bytes, theirs: bytes) -> tuple[object, object]:
    """Return what each end makes of the other."""
    here, there = tcp_pair()
    found: list[object] = []

    def follow() -> None:
        try:
            found.append(greet_leader(there, theirs))
        except LinkError as err:
            found.append(err)
            there.close()

    thread = threading.Thread(target=follow)
    thread.start()
    try:
        leader: object = greet_follower(here, ours)
    except LinkError as err:
        leader = err
        here.close()
    thread.join()
    return leader, found[0]


@pytest.fixture
def links():
    leader, follower = greet(b"secret", b"secret")
    assert isinstance(leader, Link) and isinstance(follower, Link)
    yield leader, follower
    leader.close()
    follower.close()


def hear(link: Link) -> list[tuple[str, bytes]]:
    link._sock.setblocking(True)
    return [(message.kind, message.blob) for message in link.receive()]


def test_what_is_said_arrives_in_order_and_sealed(links):
    leader, follower = links
    leader.send("begin", b"\0bytes", attempt=3)
    leader.send("kill")
    assert hear(follower) == [("begin", b"\0bytes"), ("kill", b"")]
    follower.send("over")
    raw = leader._sock.recv(4096, socket.MSG_PEEK)
    assert b"over" not in raw and b"kind" not in raw


def test_whoever_does_not_know_the_secret_is_turned_away_at_both_ends():
    leader, follower = greet(b"secret", b"guess")
    assert isinstance(leader, LinkError) and isinstance(follower, LinkError)


@pytest.mark.parametrize("harm", ["change", "repeat", "cut"])
def test_a_message_that_was_changed_repeated_or_cut_ends_the_link(links, harm):
    leader, follower = links
    leader.send("kill")
    raw = follower._sock.recv(4096)
    bad = {"change": raw[:-1] + bytes([raw[-1] ^ 1]), "repeat": raw + raw, "cut": raw[:4] + raw[5:] + b"x"}[harm]
    here, there = tcp_pair()
    follower._sock.close()
    follower._sock = there
    here.sendall(bad)
    assert len(hear(follower)) <= (harm == "repeat")
    assert follower.is_gone
    here.close()


def test_the_meeting_file_is_private_and_one_that_is_not_is_refused(tmp_path: Path):
    path = tmp_path / "meet.json"
    meeting = Meeting(address="10.0.0.1", port=4000, secret="s" * 64)
    meeting.write(path)
    assert (path.stat().st_mode & 0o777, Meeting.read(path)) == (0o600, meeting)
    path.chmod(0o640)
    with pytest.raises(UsageError) as refused:
        Meeting.read(path)
    assert refused.value.code == "nodes/open-file"


@pytest.mark.parametrize("address", ["8.8.8.8", "0.0.0.0", "::"])
def test_an_address_that_anybody_may_reach_is_refused(address):
    with pytest.raises(UsageError) as refused:
        open_listener(address)
    assert refused.value.code == "nodes/public-address"


@pytest.mark.parametrize(
    ("text", "place"),
    [("gpu1", ("gpu1", 0)), ("10.0.0.1:29400", ("10.0.0.1", 29400)), ("[fd00::1]:7", ("fd00::1", 7))],
)
def test_places_are_read(text, place):
    assert read_place(text) == place


def test_nodes_are_wished_for_by_number_by_range_or_by_name():
    assert wish_nodes(None) is None
    two, some = wish_nodes("2"), wish_nodes("1:4")
    named = wish_nodes("localhost,gpu7", least=1)
    assert two is not None and some is not None and named is not None
    assert [(one.least, one.most, one.hosts) for one in (two, some, named)] == [
        (2, 2, ()),
        (1, 4, ()),
        (1, 2, ("gpu7",)),
    ]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ({"nodes": "1"}, "nodes/bad-number"),
        ({"nodes": "2", "least": 3}, "nodes/bad-number"),
        ({"nodes": "gpu7,gpu8"}, "nodes/not-here"),
        ({"nodes": None, "least": 2}, "nodes/not-asked"),
    ],
)
def test_a_wish_that_cannot_be_is_refused(words, code):
    with pytest.raises(UsageError) as refused:
        wish_nodes(**words)
    assert refused.value.code == code


STEP = {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_NODES": "2", "SLURM_STEP_NUM_TASKS": "2"}


def test_of_a_slurm_step_task_0_leads_and_the_others_follow():
    lead = place_in_step(None, Path("runs"), {**STEP, "SLURM_PROCID": "0"})
    follow = place_in_step(None, Path("runs"), {**STEP, "SLURM_PROCID": "1"})
    assert isinstance(lead, NodesWish) and isinstance(follow, FollowWish)
    assert (lead.most, follow.index, lead.meet) == (2, 1, follow.meet)
    assert place_in_step(None, Path("runs"), {"SLURM_PROCID": "0", "SLURM_JOB_ID": "7"}) is None


def test_a_slurm_step_with_several_tasks_per_node_is_refused():
    with pytest.raises(UsageError) as refused:
        place_in_step(None, Path("runs"), {**STEP, "SLURM_STEP_NUM_TASKS": "16"})
    assert refused.value.code == "nodes/slurm-tasks"


def test_a_start_that_is_called_off_ends_those_who_wait_for_it(tmp_path):
    meet = tmp_path / ".nodes-slurm-7-0-0.json"
    wish = NodesWish(most=2, least=2, address="127.0.0.1", meet=meet)
    with pytest.raises(UsageError), assembled(wish, lambda _: None):
        assert Meeting.read(meet) is not None
        raise UsageError("nodes/original-line", why="x")
    with pytest.raises(CheckError) as ended:
        wait_for_meeting(meet, 5.0)
    assert ended.value.code == "nodes/called-off" and ended.value.facts["exit"] == 2
