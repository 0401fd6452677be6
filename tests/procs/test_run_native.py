"""`headway run` with ranks of its own: environment, blame, exit codes, restarts, stops. Scripts without a framework."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import psutil
import pytest

from fakes.launches import wait_until
from fakes.run_command import finished, running, script

TALK = """
    import os, sys, json
    names = ("RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE MASTER_ADDR GROUP_RANK TORCHELASTIC_RUN_ID"
             " TORCHELASTIC_RESTART_COUNT TORCHELASTIC_USE_AGENT_STORE OMP_NUM_THREADS").split()
    told = {name: os.environ.get(name) for name in names}
    print(json.dumps([sys.argv[1:], told, int(os.environ.get("MASTER_PORT", 0))]))
"""


def test_a_torchrun_line_gives_its_ranks_what_torchrun_would(tmp_path):
    ran = finished(tmp_path, "torchrun", "--nproc_per_node=2", script(tmp_path, TALK), "--lang", "xx")
    assert ran.process.returncode == 0, ran.err
    told = [json.loads(ran.run.stdout(rank).read_text()) for rank in (0, 1)]
    for rank, (argv, env, port) in enumerate(told):
        assert argv == ["--lang", "xx"]
        assert (env["RANK"], env["LOCAL_RANK"], env["WORLD_SIZE"]) == (str(rank), str(rank), "2")
        assert env["TORCHELASTIC_RUN_ID"] and env["TORCHELASTIC_RESTART_COUNT"] == "0"
        assert env["TORCHELASTIC_USE_AGENT_STORE"] is None
        assert env["OMP_NUM_THREADS"] == "1"
        assert port == told[0][2] > 0


def test_a_plain_python_line_gets_no_rank(tmp_path):
    ran = finished(tmp_path, "python", "-u", script(tmp_path, TALK), "a b")
    assert ran.process.returncode == 0, ran.err
    argv, env, port = json.loads(ran.run.stdout(0).read_text())
    assert argv == ["a b"]
    assert env["RANK"] is None and env["WORLD_SIZE"] is None and port == 0


def test_an_environment_before_the_command_reaches_it_and_is_not_written_down(tmp_path):
    name = script(tmp_path, "import os; print(os.environ['MY_TOKEN'][::-1])")
    ran = finished(tmp_path, f"MY_TOKEN=s3cret python {name} &")
    assert "terc3s" in ran.out and "--detach" in ran.err
    assert json.loads(ran.run.job.read_text())["env_names"] == ["MY_TOKEN"]
    assert "s3cret" not in json.dumps(json.loads(ran.run.job.read_text()).get("env_names"))


def test_a_redirect_of_a_text_is_carried_out(tmp_path):
    name = script(tmp_path, "import sys; print('out'); print('err', file=sys.stderr)")
    ran = finished(tmp_path, f"nohup python {name} > out.txt 2>&1 &")
    assert ran.process.returncode == 0, ran.err
    assert sorted((tmp_path / "out.txt").read_text().split()) == ["err", "out"]


SEEN = "import json, os, sys; print(json.dumps([dict(os.environ), sys.stdin.read()]))"


def test_a_program_sees_its_own_input_and_no_variable_that_only_headway_needs(tmp_path):
    name = script(tmp_path, SEEN)
    with running(tmp_path, "python", name, env={"TERM": "dumb"}, stdin=subprocess.PIPE) as ran:
        out, _ = ran.process.communicate(b"typed\n", timeout=60)
    env, read = json.loads(out)
    assert read == "typed\n"
    assert "NO_COLOR" not in env and "FORCE_COLOR" not in env


def test_a_rank_is_told_as_the_first_argument_and_macros_are_torchs(tmp_path):
    program = script(tmp_path, "#!/usr/bin/env python\nimport sys; print(sys.argv[1:])", "prog")
    (tmp_path / program).chmod(0o755)
    launch = ["python", "-m", "torch.distributed.launch", "--nproc_per_node=2", "--no_python", f"./{program}"]
    ran = finished(tmp_path, *launch, "a", "r${local_rank}", "$$x")
    assert ran.process.returncode == 0, ran.err
    for rank in (0, 1):
        assert ran.run.stdout(rank).read_text().strip() == str([f"--local-rank={rank}", "a", f"r{rank}", "$x"])


@pytest.mark.parametrize(("end", "code"), [("sys.exit(7)", 7), ("os.kill(os.getpid(), 11)", 139), ("sys.exit(0)", 0)])
def test_the_exit_code_is_the_programs_own(tmp_path, end, code):
    ran = finished(tmp_path, "python", script(tmp_path, f"import os, sys\n{end}"))
    assert ran.process.returncode == code, ran.err


def test_the_first_failing_rank_is_named_and_its_line_comes_last(tmp_path):
    name = script(
        tmp_path,
        """
        import os, sys, time
        def train():
            if os.environ["RANK"] == "2":
                raise ValueError("bad batch")
            time.sleep(0.05)
            raise RuntimeError("Connection reset by peer")
        time.sleep(0.5)
        train()
        """,
    )
    ran = finished(tmp_path, "torchrun", "--nproc-per-node", "4", name)
    assert ran.process.returncode == 1
    incident = ran.last_incident()
    assert (incident["rank"], incident["class"], incident["action"]) == (2, "python-exception", "stop")
    assert "ValueError: bad batch" in incident["traceback"]
    assert ran.err.rstrip().splitlines()[-1].endswith("train.py:4 in train")


def test_without_the_hook_the_traceback_is_found_in_the_output(tmp_path):
    name = script(
        tmp_path, "import os\nif os.environ['RANK'] == '1': raise KeyError('lr')\nimport time; time.sleep(60)"
    )
    ran = finished(tmp_path, "--no-hook", "torchrun", "--nproc_per_node=2", name)
    incident = ran.last_incident()
    assert (incident["rank"], incident["class"]) == (1, "python-exception")
    assert "KeyError" in incident["text"]


def test_a_killed_rank_is_restarted_with_a_new_port(tmp_path):
    name = script(
        tmp_path,
        """
        import os, signal, time
        print("port", os.environ["MASTER_PORT"], flush=True)
        if os.environ["RANK"] == "1" and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.3)
        """,
    )
    ran = finished(tmp_path, "--restarts", "2", "torchrun", "--nproc_per_node=2", name)
    assert ran.process.returncode == 0, ran.err
    first, second = ran.events("attempt_started")
    assert first["port"] != second["port"]
    assert ran.events("incident")[0]["class"] == "killed"


def test_restarts_without_progress_end_for_good(tmp_path):
    name = script(tmp_path, "import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    ran = finished(tmp_path, "--restarts", "2", "python", name)
    assert ran.process.returncode == 93
    assert len(ran.events("attempt_started")) == 3


def test_without_restarts_a_killed_rank_ends_the_run_with_its_signal(tmp_path):
    ran = finished(tmp_path, "python", script(tmp_path, "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"))
    assert ran.process.returncode == 137
    assert ran.last_incident()["class"] == "killed"


@pytest.mark.parametrize("inherited", [signal.SIG_DFL, signal.SIG_IGN], ids=["in front", "behind &"])
def test_a_stop_is_passed_on_and_the_script_may_save(tmp_path, inherited):
    name = script(
        tmp_path,
        """
        import time
        try:
            print("ready", flush=True)
            time.sleep(100)
        except KeyboardInterrupt:
            print("saved", flush=True)
        """,
    )
    # A shell without job control starts what is before `&` with SIGINT ignored.
    how = {"preexec_fn": lambda: signal.signal(signal.SIGINT, inherited)}
    with running(tmp_path, "torchrun", "--nproc_per_node=2", name, **how) as ran:
        ran.wait_line("[1] ready")
        ran.wait_line("[0] ready")
        ran.process.send_signal(signal.SIGINT)
        assert ran.wait() == 130
    assert ran.run.log.read_text().count("saved") == 2
    assert ran.events("run_ended")[0]["state"] == "interrupted"


def test_nothing_outlives_a_killed_headway(tmp_path):
    name = script(
        tmp_path,
        """
        import subprocess, time
        subprocess.Popen(["sleep", "1000"], start_new_session=True)
        print("ready", flush=True)
        time.sleep(1000)
        """,
    )
    with running(tmp_path, "torchrun", "--nproc_per_node=2", name) as ran:
        ran.wait_line("[1] ready")
        os.kill(ran.process.pid, signal.SIGKILL)
        ran.wait()  # waits for the end of every process that carries its mark


def test_the_users_own_sitecustomize_still_runs(tmp_path):
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("import builtins; builtins.greeting = 'from the user'\n")
    name = script(tmp_path, "import sitecustomize; print(greeting, sitecustomize.__file__)")
    ran = finished(tmp_path, "python", name, env={"PYTHONPATH": str(own)})
    assert f"from the user {own}" in ran.out


def test_losses_are_read_from_the_lines(tmp_path):
    name = script(tmp_path, "for i in range(1, 31): print(f'iter {i}: loss {1 / i:.4f}, time 12.00ms', flush=True)")
    ran = finished(tmp_path, "python", name)
    rows = [json.loads(line) for line in ran.run.metrics(0).read_text().splitlines()]
    assert [row["step"] for row in rows] == list(range(1, 31))
    assert rows[9]["loss"] == 0.1
    assert ran.events("run_ended")[0]["steps"] == 30


def test_a_missing_program_is_refused_with_its_name(tmp_path):
    ran = finished(tmp_path, "no-such-launcher", "train.py")
    assert ran.process.returncode == 2
    assert "no-such-launcher" in ran.err


def test_a_shell_script_keeps_its_own_launcher_and_the_failing_rank_is_still_named(tmp_path):
    name = script(
        tmp_path, "import os\nif os.environ['RANK'] == '1': raise ValueError('inside')\nimport time; time.sleep(2)"
    )
    text = f"for r in 0 1; do RANK=$r python {name} & done\nwait -n; exit $?\n"
    (tmp_path / "go.sh").write_text(text)
    ran = finished(tmp_path, "go.sh")
    assert ran.process.returncode == 1
    incident = ran.last_incident()
    assert (incident["rank"], incident["class"]) == (1, "python-exception")
    assert "ValueError: inside" in incident["traceback"]


def test_a_refused_instruction_is_not_tried_again_and_names_the_variable_to_set(tmp_path):
    path = script(tmp_path, "import os, signal; os.kill(os.getpid(), signal.SIGILL)")
    ran = finished(tmp_path, "--restarts", "3", "python", path)
    assert ran.process.returncode == 128 + signal.SIGILL
    (incident,) = ran.events("incident")
    assert (incident["class"], incident["action"]) == ("illegal-instruction", "stop")
    assert "  export ONEDNN_MAX_CPU_ISA=AVX512_CORE_FP16" in ran.err


def test_an_error_of_the_script_is_not_tried_again(tmp_path):
    ran = finished(tmp_path, "--restarts", "3", "python", script(tmp_path, "raise ValueError('always')"))
    assert ran.process.returncode == 1
    assert len(ran.events("attempt_started")) == 1
    assert ran.last_incident()["action"] == "stop"


def test_a_preempted_rank_is_started_again_and_the_budget_stays_whole(tmp_path):
    name = script(
        tmp_path,
        """
        import os, signal
        if int(os.environ["TORCHELASTIC_RESTART_COUNT"]) < 2:
            os.kill(os.getpid(), signal.SIGTERM)
        """,
    )
    ran = finished(tmp_path, "--restarts", "1", "torchrun", "--nproc_per_node=1", name)
    assert ran.process.returncode == 0, ran.err
    assert [event["class"] for event in ran.events("incident")] == ["preempted", "preempted"]


@pytest.mark.parametrize("victim", ["headway", "rank"])
def test_shared_memory_of_a_killed_run_is_removed(tmp_path, victim):
    segment = f"headway-test-{os.getpid()}-{victim}"
    name = script(
        tmp_path,
        f"""
        import os, time
        from multiprocessing.shared_memory import SharedMemory
        kept = SharedMemory(create=True, size=1 << 16, name="{segment}")
        print("pid", os.getpid(), flush=True)
        time.sleep(1000)
        """,
    )
    with running(tmp_path, "python", name) as ran:
        ran.wait_line("pid ")
        assert Path("/dev/shm", segment).exists()
        rank = int(ran.run.stdout(0).read_text().split()[1])
        os.kill(ran.process.pid if victim == "headway" else rank, signal.SIGKILL)
        ran.wait()
    assert not Path("/dev/shm", segment).exists()


def test_a_rank_that_the_program_started_by_itself_is_named_too(tmp_path):
    name = script(
        tmp_path,
        """
        import os, subprocess, sys
        if "LOCAL_RANK" in os.environ:
            raise ValueError("in the second process")
        child = subprocess.run([sys.executable, __file__], env={**os.environ, "LOCAL_RANK": "1"})
        sys.exit(child.returncode + 3)
        """,
    )
    ran = finished(tmp_path, "python", name)
    assert ran.process.returncode == 4
    incident = ran.last_incident()
    assert (incident["rank"], incident["class"]) == (1, "python-exception")
    assert "in the second process" in incident["traceback"]


def test_a_helper_of_a_rank_does_not_pass_for_another_rank(tmp_path):
    name = script(
        tmp_path,
        """
        import os, subprocess, sys, time
        if "HELPER" in os.environ:
            raise ValueError("a helper, not rank 1")
        if os.environ["RANK"] == "0":
            subprocess.run([sys.executable, __file__], env={**os.environ, "RANK": "1", "HELPER": "1"})
        time.sleep(1)
        """,
    )
    ran = finished(tmp_path, "torchrun", "--nproc_per_node=2", name)
    assert ran.process.returncode == 0, ran.err
    assert not (ran.run.rank(1) / "error-1.json").exists()


def test_the_temporary_folder_of_killed_processes_is_removed(tmp_path):
    name = script(
        tmp_path,
        """
        import time
        from multiprocessing.connection import Listener
        kept = Listener(family="AF_UNIX")
        print("at", kept.address, flush=True)
        time.sleep(1000)
        """,
    )
    temp = tmp_path / "t"
    temp.mkdir()
    with running(tmp_path, "python", name, env={"TMPDIR": str(temp)}) as ran:
        ran.wait_line("at ")
        assert list(temp.iterdir())
        ran.process.kill()
        ran.wait()
    assert not list(temp.iterdir())


def test_a_nursery_killed_while_a_restart_is_waited_for_is_made_anew(tmp_path):
    path = script(tmp_path, "import os, signal; print('begun', flush=True); os.kill(os.getpid(), signal.SIGKILL)")
    with running(tmp_path, "--restarts", "9", "python", path) as ran:
        wait_until(lambda: len(ran.events("incident")) >= 3, "a wait of two seconds")
        (nursery,) = psutil.Process(ran.process.pid).children()[-1:]
        nursery.kill()
        ran.wait()
    assert "pip install" not in ran.err
    assert "[launch/foreign-no-progress]" in ran.err
