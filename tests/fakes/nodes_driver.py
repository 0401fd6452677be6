"""One node of a run of the fake worker: `nodes_driver.py lead RUN MEET [LEAST]` or `nodes_driver.py follow MEET`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from headway.errors import HeadwayError
from headway.launch import SilentObserver, launch_run, read_job, start_nursery
from headway.launch.nodes.leader import Node
from headway.start.follow import FollowWish, follow
from headway.start.nodes import NodesWish, assembled
from headway.telemetry import RunDir

ENTRY = "fakes.fake_worker:main"


def tell(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def lead(root: str, meet: str, least: str = "2") -> int:
    run = RunDir(Path(root))
    job = read_job(run)
    wish = NodesWish(most=2, least=int(least), address="127.0.0.1", meet=Path(meet))
    with assembled(wish, tell) as assembly:
        assert assembly is not None
        assembly.wait()
        fake = json.loads(run.job.read_text())["config"]["fake"]

        def admit(node: Node) -> None:
            node.num_ranks, node.devices = fake.get("far", 2), ()

        assembly.leader.admit = admit
        (node,) = assembly.leader.nodes.values()
        admit(node)
        nursery = start_nursery(sys.executable, (), ENTRY)
        assembly.prepare(nursery)
        crew = assembly.lead(run, job, local_ranks=job.world_size - node.num_ranks)
        crew.return_s = fake.get("return_s", 60.0)
        outcome = launch_run(run, observer=SilentObserver(), nursery=nursery, crew=crew)
    tell(outcome.why)
    return outcome.exit_code


def main(what: str, *words: str) -> int:
    try:
        return lead(*words) if what == "lead" else follow(FollowWish(meet=Path(words[0]), wait_s=30), tell)
    except HeadwayError as err:
        tell(f"{err.code} {err}")
        return err.exit_code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
