from __future__ import annotations

import signal
from types import SimpleNamespace

import pytest

from headway.diagnosis import ExitStatus
from headway.launch import Incident, Outcome
from headway.launch.oom_kills import OomCount, count_oom_kills
from headway.launch.restarts import RestartBudget, StallWatch
from headway.launch.verdict import Reach, Scene, Stop, add_signal, explain_nursery, judge
from headway.telemetry import Beat
from headway.ui.terminal.failure import failure_text


def rank(number, *, code=None, signum=None, finished=None, error=None, failed_at=None, is_ours=False):
    status = ExitStatus(code=code, signal=signum)
    return SimpleNamespace(
        rank=number,
        status=status,
        error=error,
        finished={"state": finished, "step": 9} if finished else None,
        failed_at=failed_at,
        is_stopped_by_us=is_ours,
        output=SimpleNamespace(tail=lambda: b""),
        has_finished=lambda: bool(finished) and code == 0,
    )


def verdict(*ranks, stop=None, restarts=3, steps=9, committed=None):
    attempt = SimpleNamespace(number=1, ranks=list(ranks), hang=None)
    reach = Reach(steps=steps, rank_steps=(steps,) * len(ranks), committed=committed)
    return judge(Scene(attempt=attempt, reach=reach, stop=stop, budget=RestartBudget(restarts, committed)))


def python_error(text="x"):
    return {"type": "ValueError", "text": text, "traceback": "Traceback …\nValueError: x"}


INT = Stop(signum=signal.SIGINT, at=0.0)
TERM = Stop(signum=signal.SIGTERM, at=0.0)


def test_all_done_is_done():
    found = verdict(rank(0, code=0, finished="done"), rank(1, code=0, finished="done"))
    assert (found.state, found.exit_code) == ("done", 0)


def test_done_wins_over_a_stop_that_came_too_late():
    assert verdict(rank(0, code=0, finished="done"), stop=INT).state == "done"


@pytest.mark.parametrize(("stop", "code"), [(INT, 130), (TERM, 143)])
def test_a_saved_stop_has_the_code_of_its_signal(stop, code):
    found = verdict(rank(0, code=0, finished="stopped"), stop=stop)
    assert (found.state, found.exit_code, found.why) == ("interrupted", code, "launch/interrupted")


def test_a_rank_that_had_no_handler_yet_is_no_failure():
    found = verdict(rank(0, signum=signal.SIGTERM, failed_at=1.0, is_ours=True), stop=TERM, steps=0)
    assert (found.state, found.exit_code, found.incident) == ("interrupted", 143, None)


def test_an_error_while_stopping_is_a_failure():
    found = verdict(rank(0, code=1, error=python_error(), failed_at=1.0, is_ours=True), stop=TERM)
    assert (found.state, found.exit_code, found.incident.action) == ("failed", 5, "stop")


def test_ranks_killed_by_us_are_never_blamed():
    found = verdict(
        rank(0, signum=signal.SIGKILL, failed_at=2.0, is_ours=True), rank(1, signum=signal.SIGKILL, failed_at=1.0)
    )
    assert (found.state, found.incident.rank, found.incident.others) == (None, 1, ())


def test_a_rank_that_told_its_error_is_blamed_even_if_we_had_to_kill_it():
    found = verdict(rank(0, signum=signal.SIGKILL, failed_at=2.0, is_ours=True, error=python_error()))
    assert (found.state, found.incident.diagnosis.kind) == ("failed", "python-exception")


def test_the_exit_code_of_a_headway_error_is_passed_on():
    error = {**python_error(), "code": "diagnose/exited", "facts": {"exit": "1"}, "exit_code": 93}
    assert verdict(rank(0, code=1, error=error, failed_at=1.0)).exit_code == 93


def test_a_second_ctrl_c_means_now_but_a_second_sigterm_means_nothing():
    assert add_signal(None, signal.SIGINT, 5.0) == Stop(signum=signal.SIGINT, at=5.0)
    assert add_signal(INT, signal.SIGINT, 0.1) is None
    assert add_signal(INT, signal.SIGINT, 1.0).is_now
    assert add_signal(TERM, signal.SIGTERM, 9.0) is None
    assert add_signal(TERM, signal.SIGINT, 9.0).exit_code == 143
    assert add_signal(None, signal.SIGQUIT, 0.0).is_now


def test_wasted_restarts_are_counted_only_in_a_row():
    budget = RestartBudget(2, committed=None)
    assert [budget.spend(step, None) for step in (0, 0, 3, 3, 2)] == [True, True, True, True, False]
    assert budget.wasted == 2


def test_a_newer_checkpoint_is_progress_even_without_a_later_step():
    budget = RestartBudget(1, committed=5)
    assert [budget.spend(9, 5), budget.spend(8, 6), budget.spend(8, 6)] == [True, True, False]


def beat(step, at_s):
    return Beat(
        pid=1, attempt=1, phase="data", step=step, samples=0, monotonic_ns=int(at_s * 1e9), loss=0, lr=0, rate=0
    )


def test_a_silence_is_told_once_and_measured_against_usual_steps():
    watch = StallWatch()
    assert watch.look([None], 0) is None
    told = {}
    for second in range(1, 460):
        step = min(8, second // 20)
        quiet_s = watch.look([beat(step, step * 20.0), None], int(second * 1e9))
        if quiet_s is not None:
            told[second] = quiet_s
    assert told == {361: pytest.approx(201)}


def test_a_freeze_of_everything_is_no_silence_of_the_ranks():
    watch = StallWatch()
    for second in range(1, 30):
        assert watch.look([beat(second, second)], int(second * 1e9)) is None
    # All were stopped for an hour, as by Ctrl-Z or a suspended machine; the ranks need a moment to move again.
    assert watch.look([beat(29, 29.0)], int(3600e9)) is None
    for second in range(3601, 3650):
        assert watch.look([beat(29, 29.0)], int(second * 1e9)) is None
    assert any(watch.look([beat(29, 29.0)], int(second * 1e9)) for second in range(3650, 3670))


def test_oom_kills_are_counted_in_our_own_group_first(tmp_path):
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("0::/job:7\n")
    (tmp_path / "proc/vmstat").write_text("oom_kill 9\n")
    assert count_oom_kills(tmp_path) == 9
    (tmp_path / "sys/fs/cgroup/job:7").mkdir(parents=True)
    (tmp_path / "sys/fs/cgroup/job:7/memory.events").write_text("low 0\noom 3\noom_kill 2\n")
    assert count_oom_kills(tmp_path) == 2


def test_oom_kills_are_counted_in_a_group_of_the_old_kind(tmp_path):
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("4:cpu,memory:/a\n0::/\n")
    (tmp_path / "sys/fs/cgroup/memory/a").mkdir(parents=True)
    (tmp_path / "sys/fs/cgroup/memory/a/memory.oom_control").write_text("under_oom 0\noom_kill 4\n")
    assert count_oom_kills(tmp_path) == 4


def test_no_count_is_none_and_not_zero(tmp_path):
    assert count_oom_kills(tmp_path) is None


def test_the_failure_text_speaks_both_languages():
    found = verdict(rank(0, code=1, error=python_error("bad"), failed_at=1.0))
    outcome = Outcome(
        state="failed", exit_code=5, steps=9, attempts=1, why=found.why, facts=found.facts, incident=found.incident
    )
    assert isinstance(found.incident, Incident)
    assert failure_text(outcome, "en")[0] == (
        "rank 0 failed after step 9 (exit code 1): ValueError: bad [diagnose/python-exception]"
    )
    assert failure_text(outcome, "zh")[0].startswith("rank 0 在第 9 步之后失败（退出码 1）：ValueError：bad")
    assert failure_text(outcome)[-1] == "ValueError: x"


def test_a_limit_on_all_restarts_counts_those_with_progress_too():
    budget = RestartBudget(2, None, is_total=True)
    assert [budget.spend(step, None) for step in (5, 9, 12)] == [True, True, False]
    assert budget.wasted == 0


def test_three_restarts_in_a_row_without_progress_are_enough_however_many_are_left():
    budget = RestartBudget(100, None, is_total=True)
    assert [budget.spend(5, None) for _ in range(4)] == [True, True, True, False]
    assert budget.wasted == 3


def test_the_wait_doubles_without_progress_and_is_none_after_it():
    budget = RestartBudget(100, None, is_total=True)
    waits = []
    for step in (5, 5, 5, 8):
        budget.spend(step, None)
        waits.append(budget.wait_s())
    assert waits == [0.0, 1.0, 2.0, 0.0]


def test_preemptions_waste_nothing_and_have_a_limit_of_their_own():
    budget = RestartBudget(1, None, is_total=True)
    assert all(budget.spend(5, None, is_preempted=True) for _ in range(20))
    assert (budget.wasted, budget.wait_s()) == (0, 2.0)
    assert not budget.spend(5, None, is_preempted=True)
    assert not RestartBudget(0, None, is_total=True).spend(5, None, is_preempted=True)


EVENTS_V2 = "low 0\nhigh 0\nmax 17\noom 1\noom_kill {}\noom_group_kill 0\n"
CONTROL_V1 = "oom_kill_disable 0\nunder_oom 0\noom_kill {}\n"


def machine(root, groups: str, files: dict[str, str], everywhere: int = 99):
    for name, text in {"proc/self/cgroup": groups, "proc/vmstat": f"oom_kill {everywhere}\n", **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_oom_kills_of_a_container_with_its_own_view_of_groups_are_its_own(tmp_path):
    root = machine(tmp_path, "0::/\n", {"sys/fs/cgroup/memory.events": EVENTS_V2.format(3)})
    assert count_oom_kills(root) == 3


def test_oom_kills_are_found_where_a_container_is_told_the_hosts_path(tmp_path):
    groups = "4:memory:/docker/0123abcd\n0::/docker/0123abcd\n"
    root = machine(tmp_path, groups, {"sys/fs/cgroup/memory/memory.oom_control": CONTROL_V1.format(5)})
    assert count_oom_kills(root) == 5


def test_oom_kills_of_both_kinds_of_groups_side_by_side_are_read_where_memory_is_counted(tmp_path):
    groups = "4:memory:/job_7\n0::/user.slice\n"
    files = {
        "sys/fs/cgroup/memory/job_7/memory.oom_control": CONTROL_V1.format(2),
        "sys/fs/cgroup/user.slice/cgroup.procs": "1\n",
    }
    assert count_oom_kills(machine(tmp_path, groups, files)) == 2


def test_oom_kills_in_groups_below_ours_count_in_both_kinds(tmp_path):
    old = machine(
        tmp_path / "old",
        "4:memory:/job\n",
        {
            "sys/fs/cgroup/memory/job/memory.oom_control": CONTROL_V1.format(0),
            "sys/fs/cgroup/memory/job/step_0/memory.oom_control": CONTROL_V1.format(1),
        },
    )
    new = machine(
        tmp_path / "new",
        "0::/job\n",
        {
            "sys/fs/cgroup/job/memory.events": EVENTS_V2.format(1),
            "sys/fs/cgroup/job/step_0/memory.events": EVENTS_V2.format(1),
        },
    )
    assert (count_oom_kills(old), count_oom_kills(new)) == (1, 1)


def test_kernels_that_do_not_count_in_groups_leave_the_machines_count(tmp_path):
    files = {"sys/fs/cgroup/job/memory.events": "low 0\nhigh 0\nmax 0\noom 0\n"}
    assert count_oom_kills(machine(tmp_path, "0::/job\n", files)) == 99


def test_a_nursery_that_the_kernel_killed_for_memory_lacked_memory_and_no_package():
    found = explain_nursery(ExitStatus(signal=signal.SIGKILL, is_oom_kill=True), "")
    assert (found.kind, found.is_transient) == ("host-oom-kill", True)
    assert explain_nursery(ExitStatus(), "ModuleNotFoundError: No module named 'x'") is None


def test_a_kill_for_memory_is_blamed_only_when_it_was_just_now():
    kills = [3]
    count = OomCount(0.0, lambda: kills[0])
    kills[0] = 4  # somebody else's, early in the attempt
    assert count.has_grown(1.0)
    for second in range(1, 60):
        count.look(float(second))
    assert not count.has_grown(60.0)
    kills[0] = 5
    assert count.has_grown(60.5)


def test_where_nobody_counts_memory_is_not_blamed():
    assert not OomCount(0.0, lambda: None).has_grown(1.0)


@pytest.mark.parametrize("first", [0, 1, 2, 3])
def test_the_first_failure_by_the_supervisors_clock_is_blamed_whatever_its_number(first):
    times = {number: 20.0 - number for number in range(4)} | {first: 1.0}
    ranks = [rank(number, code=1, error=python_error(), failed_at=times[number]) for number in range(4)]
    found = verdict(*ranks)
    assert found.incident.rank == first
    assert list(found.incident.others) == sorted({0, 1, 2, 3} - {first}, key=times.get)


@pytest.mark.parametrize("refused", [0, 1])
def test_a_rank_whose_data_server_refuses_is_the_cause_and_not_an_echo(refused):
    error = {"type": "ConnectionRefusedError", "text": "[Errno 111] Connection refused", "traceback": "Traceback …"}
    lost = {"type": "RuntimeError", "text": "Connection closed by peer [127.0.0.1]:4", "traceback": "Traceback …"}
    pair = [rank(one, code=1, error=error if one == refused else lost, failed_at=2.0) for one in range(2)]
    pair[1 - refused].failed_at = 1.0  # the echo was heard first
    found = verdict(*pair)
    assert (found.incident.rank, found.incident.diagnosis.kind) == (refused, "server-refused")


def test_the_step_of_an_incident_is_the_furthest_that_its_own_rank_is_known_to_have_reached():
    for told, beat, expected in ((4, 9, 9), (12, 9, 12)):
        failing = rank(0, code=1, error={**python_error(), "step": told}, failed_at=1.0)
        assert verdict(failing, rank(1, finished="done", code=0), steps=beat).incident.step == expected


def test_an_error_that_would_come_again_is_not_tried_again_whatever_the_budget():
    found = verdict(rank(0, code=1, error=python_error(), failed_at=1.0), restarts=100)
    assert (found.state, found.exit_code, found.why, found.incident.action) == ("failed", 5, "launch/failed", "stop")


@pytest.mark.parametrize(("restarts", "code", "why"), [(0, 5, "launch/failed"), (1, 93, "launch/no-progress")])
def test_a_killed_rank_without_progress_ends_the_run_for_good_only_where_restarts_were_allowed(restarts, code, why):
    budget = RestartBudget(restarts, None)
    attempt = SimpleNamespace(number=1, ranks=[rank(0, signum=9, failed_at=1.0)], hang=None)
    reach = Reach(steps=0, rank_steps=(0,), committed=None)
    scene = Scene(attempt=attempt, reach=reach, stop=None, budget=budget)
    verdicts = [judge(scene) for _ in range(2)]
    assert (verdicts[0].state, verdicts[0].incident.action) == ((None, "restart") if restarts else ("failed", "stop"))
    assert (verdicts[1].state, verdicts[1].exit_code, verdicts[1].why) == ("failed", code, why)


def test_restarts_that_gain_nothing_wait_twice_as_long_each_time_and_not_at_all_after_progress():
    budget = RestartBudget(100, None, is_total=True)
    waits = []
    for step in (5, 5, 5, 6, 6):
        budget.spend(step, None)
        waits.append(budget.wait_s())
    assert waits == [0.0, 1.0, 2.0, 0.0, 1.0]
    for _ in range(10):
        budget.spend(6, None)
    assert budget.wait_s() == 30.0


def test_a_total_budget_counts_restarts_that_gained_something_too():
    budget = RestartBudget(2, None, is_total=True)
    assert [budget.spend(step, None) for step in (1, 2, 3)] == [True, True, False]


def test_preemptions_have_a_budget_of_their_own_and_a_short_wait():
    budget = RestartBudget(1, None, is_total=True)
    assert all(budget.spend(0, None, is_preempted=True) for _ in range(20)) and budget.wait_s() == 2.0
    assert not budget.spend(0, None, is_preempted=True)
    assert not RestartBudget(0, None, is_total=True).spend(0, None, is_preempted=True)


def test_ranks_that_print_before_their_first_step_are_not_called_quiet():
    watch = StallWatch()
    for second in range(1, 300):
        if second % 50 == 0:
            watch.hear(int(second * 1e9))
        assert watch.look([beat(0, 1.0)], int(second * 1e9)) is None
    assert any(watch.look([beat(0, 1.0)], int(second * 1e9)) for second in range(300, 320))
