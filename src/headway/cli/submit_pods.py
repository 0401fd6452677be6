"""`headway submit --kubernetes`: manifests printed, or created by the user's own kubectl."""

from __future__ import annotations

import functools
import re
import secrets
import shlex
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import click

from headway.cli.bilingual import echo_json, option
from headway.cluster.kubernetes import Kind, PodRequest, make_manifests, pod_name, refuse_pods, to_yaml
from headway.errors import CheckError, UsageError
from headway.messages import language, say

_VOLUME: Final = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?):(/[^\x00-\x1f:]*)")
_ANSWER_S: Final = 60.0
_SLURMS: Final = ("time", "partition", "array")


@dataclass(frozen=True, slots=True, kw_only=True)
class PodWish:
    """The options of pods."""

    kind: Kind | None
    image: str | None
    volume: str | None
    namespace: str | None
    memory: str | None
    shm: str | None
    runtime: str | None

    @property
    def given(self) -> str | None:
        """Return the first of them that is given."""
        names = ("kind", "image", "volume", "namespace", "memory", "shm", "runtime")
        return next((f"--{name}" for name in names if getattr(self, name) is not None), None)


def kubernetes_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of pods, all handed on as one `pods`. Any: a command of click."""

    @functools.wraps(function)
    def with_pods(*args: Any, **others: Any) -> Any:
        fields = {name: others.pop(name) for name in PodWish.__dataclass_fields__}
        return function(*args, pods=PodWish(**fields), **others)

    for one in _OPTIONS:
        with_pods = one(with_pods)
    return with_pods


_OPTIONS: Final = (
    option("--runtime", help="cluster/option-runtime"),
    option("--shm", metavar="8Gi", help="cluster/option-shm"),
    option("--memory", metavar="64Gi", help="cluster/option-memory"),
    option("--namespace", help="cluster/option-namespace"),
    option("--volume", metavar="CLAIM:FOLDER", help="cluster/option-volume"),
    option("--image", help="cluster/option-image"),
    option("--kind", type=click.Choice(("job", "jobset", "trainjob")), help="cluster/option-kind"),
)


def refuse_of_slurm(asked: Mapping[str, Any], *, site: str | None, follow: bool) -> None:
    """Refuse what has no meaning for pods."""
    given = {**{name: asked[name] for name in _SLURMS}, "site": site, "follow": follow or None}
    for name, value in given.items():
        if value is not None:
            raise UsageError("cluster/of-slurm", option=f"--{name}")


def submit_pods(
    name: str,
    grace_s: float,
    words: tuple[str, ...],
    wish: PodWish,
    asked: Mapping[str, Any],
    *,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Print the manifests, or create what they say."""
    if words[0] == "resume":
        raise UsageError("cluster/no-resume-in-pods")
    if wish.image is None:
        raise UsageError("cluster/no-image")
    claim, mount = _volume(wish.volume)
    request = PodRequest(
        name=pod_name(name),
        words=words,
        image=wish.image,
        claim=claim,
        mount=mount,
        kind=wish.kind or "job",
        namespace=wish.namespace,
        runtime=wish.runtime or "torch-distributed",
        lang=language(),
        grace_s=grace_s,
        nodes=asked["nodes"] or 1,
        gpus_per_node=asked["gpus_per_node"],
        cpus_per_node=asked["cpus_per_task"],
        memory=wish.memory,
        shm=wish.shm or "8Gi",
        secret=secrets.token_hex(32),
    )
    refuse_pods(request)
    manifests = make_manifests(request)
    record = {"schema": "submit/1", "engine": "kubernetes", "kind": request.kind, "name": request.name}
    if dry_run:
        if as_json:
            echo_json({**record, "manifests": manifests}, indent=2)
        else:
            click.echo(to_yaml(manifests), nl=False)
        return 0
    _create(to_yaml(manifests))
    if as_json:
        echo_json(record, indent=2)
        return 0
    click.echo(request.name)
    where = [] if wish.namespace is None else ["--namespace", wish.namespace]
    logs = shlex.join(["kubectl", *where, "logs", "--follow", "--selector", f"headway/run={request.name}"])
    kinds = f"{request.kind},service,secret"
    delete = shlex.join(["kubectl", *where, "delete", kinds, "--selector", f"headway/run={request.name}"])
    click.echo(say("cluster/pods-submitted", name=request.name, logs=logs, delete=delete), err=True)
    return 0


def _volume(text: str | None) -> tuple[str | None, str]:
    if text is None:
        return None, "/"
    found = _VOLUME.fullmatch(text)
    if found is None:
        raise UsageError("cluster/bad-volume", value=text)
    return found[1], found[3].rstrip("/") or "/"


def _create(text: str) -> None:
    try:
        done = subprocess.run(
            ["kubectl", "create", "--filename", "-"],
            input=text,
            capture_output=True,
            timeout=_ANSWER_S,
            check=False,
            text=True,
            errors="replace",
        )
    except FileNotFoundError as err:
        raise CheckError("cluster/no-kubectl") from err
    except subprocess.TimeoutExpired as err:
        raise CheckError("cluster/slurm-silent", program="kubectl", seconds=f"{_ANSWER_S:g}") from err
    if done.returncode:
        raise CheckError("cluster/kubectl-refused", text=done.stderr.strip() or f"exit code {done.returncode}")
