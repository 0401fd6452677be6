"""Manifests of a run on Kubernetes: an Indexed Job, a JobSet, or a TrainJob of Kubeflow Trainer v2.

One pod is one node. Pod 0 leads, the others follow it under the name that the cluster gives pod 0. All of them see the
same volume, on which the run directory is.
"""

from __future__ import annotations

import math
import re
import secrets
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO
from typing import Any, Final, Literal

from ruamel.yaml import YAML
from ruamel.yaml.scalarstring import DoubleQuotedScalarString, LiteralScalarString

from headway.cluster.request import MARGIN_S
from headway.errors import UsageError
from headway.launch.nodes.rendezvous import SECRET_NAME
from headway.redact import redact_words

Kind = Literal["job", "jobset", "trainjob"]
PORT: Final = 29_400
_NODE: Final = "node"
"""Name of the container, and of the job inside a set: what Kubeflow's runtimes call theirs too."""
_NAME: Final = re.compile(r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?")
_AGAIN: Final = (6, 137, 143)
"""Exit codes after which a run is started again: stopped, killed with its machine, asked to end. 93 is never one."""
_MOST_STARTS: Final = 20
Yaml = dict[str, Any]  # Any: plain JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class PodRequest:
    """One run on Kubernetes."""

    name: str
    words: tuple[str, ...]
    """`train` or `run` with its own words."""
    image: str
    claim: str | None
    """PersistentVolumeClaim for the runs; None: they end with the pod."""
    mount: str
    """Where the claim is mounted; the command's folder, too."""
    kind: Kind
    namespace: str | None
    runtime: str
    """ClusterTrainingRuntime of a TrainJob."""
    lang: str
    grace_s: float
    nodes: int
    gpus_per_node: int | None
    cpus_per_node: int | None
    memory: str | None
    shm: str
    """Size of /dev/shm: the default of 64 MB is too small for the workers of a data loader."""
    secret: str
    """Of the links between the nodes."""


def refuse_pods(request: PodRequest) -> None:
    """Refuse what cannot work, before anything is created."""
    if not _NAME.fullmatch(request.name):
        raise UsageError("cluster/bad-pod-name", name=request.name)
    if request.nodes > 1 and request.claim is None:
        raise UsageError("cluster/no-volume", nodes=request.nodes)
    if not request.mount.startswith("/"):
        raise UsageError("cluster/bad-value", key="--volume", value=request.mount)
    for word, hidden in zip(request.words, redact_words(request.words), strict=True):
        if word != hidden:
            raise UsageError("cluster/secret-pod", word=hidden)


def pod_name(text: str) -> str:
    """Return a name that Kubernetes takes, fresh each time."""
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:30].strip("-")
    plain = plain if plain[:1].isalpha() else f"run-{plain}".strip("-")
    return f"{plain}-{secrets.token_hex(2)}"


def make_manifests(request: PodRequest) -> list[Yaml]:
    """Return what is to be created, in this order."""
    found: list[Yaml] = []
    if request.nodes > 1:
        data = {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "stringData": {"secret": request.secret}}
        found.append({**data, "metadata": _meta(request)})
    if request.kind == "job" and request.nodes > 1:
        found.append(_service(request))
    make = {"job": _job, "jobset": _job_set, "trainjob": _train_job}[request.kind]
    return [*found, make(request)]


def to_yaml(manifests: Sequence[Yaml]) -> str:
    """Return them as one text of several documents."""
    yaml, out = YAML(), StringIO()
    yaml.width, yaml.explicit_start = 10_000, True
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.dump_all([_quoted(one) for one in manifests], out)
    return out.getvalue()


def _quoted(value: Any) -> Any:
    """Quote every text, for readers of YAML 1.1, to whom `no` and `1:30` are something else; a script is a block."""
    if isinstance(value, dict):
        return {key: _quoted(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_quoted(one) for one in value]
    if isinstance(value, str):
        return LiteralScalarString(value) if "\n" in value else DoubleQuotedScalarString(value)
    return value


def _meta(request: PodRequest) -> Yaml:
    labels = {"app.kubernetes.io/managed-by": "headway", "headway/run": request.name}
    where = {} if request.namespace is None else {"namespace": request.namespace}
    return {"name": request.name, **where, "labels": labels}


def _service(request: PodRequest) -> Yaml:
    """Pod 0 needs a name before it is ready: followers wait for it."""
    spec = {"clusterIP": "None", "selector": {"headway/run": request.name}, "publishNotReadyAddresses": True}
    return {"apiVersion": "v1", "kind": "Service", "metadata": _meta(request), "spec": spec}


def _job(request: PodRequest) -> Yaml:
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": _meta(request), "spec": _job_spec(request)}


def _job_spec(request: PodRequest, *, is_in_set: bool = False) -> Yaml:
    pod: Yaml = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": _grace(request),
        "containers": [{"name": _NODE, "image": request.image, **_container(request)}],
        "volumes": _volumes(request),
    }
    if not is_in_set and request.nodes > 1:
        pod["subdomain"] = request.name
    final: Yaml = {"containerName": _NODE, "operator": "NotIn", "values": list(_AGAIN)}
    rules: list[Yaml] = [
        {"action": "FailJob", "onExitCodes": final},
        # An eviction or a drained machine is nobody's fault, and does not count.
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
    ]
    return {
        "completionMode": "Indexed",
        "completions": request.nodes,
        "parallelism": request.nodes,
        "backoffLimit": _MOST_STARTS * request.nodes,
        "podFailurePolicy": {"rules": rules},
        "podReplacementPolicy": "Failed",
        "template": {"metadata": {"labels": _meta(request)["labels"]}, "spec": pod},
    }


def _job_set(request: PodRequest) -> Yaml:
    job = {"name": _NODE, "replicas": 1, "template": {"spec": _job_spec(request, is_in_set=True)}}
    final = {"name": "final", "action": "FailJobSet", "onJobFailureReasons": ["PodFailurePolicy"]}
    spec = {
        "network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True},
        "failurePolicy": {"maxRestarts": _MOST_STARTS, "rules": [final]},
        "replicatedJobs": [job],
    }
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": _meta(request), "spec": spec}


def _train_job(request: PodRequest) -> Yaml:
    """The runtime of the cluster makes the pods: what TrainJob has no field for goes into a patch of the runtime."""
    container = _container(request)
    pod = {
        "terminationGracePeriodSeconds": _grace(request),
        "containers": [{"name": _NODE, "volumeMounts": container["volumeMounts"]}],
        "volumes": _volumes(request),
    }
    jobs = [{"name": _NODE, "template": {"spec": {"template": {"spec": pod}}}}]
    patch = {"manager": "headway/submit", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": jobs}}}}
    trainer = {
        "image": request.image,
        "command": container["command"],
        "env": container["env"],
        "numNodes": request.nodes,
        **({"resourcesPerNode": container["resources"]} if "resources" in container else {}),
    }
    ref = {"apiGroup": "trainer.kubeflow.org", "kind": "ClusterTrainingRuntime", "name": request.runtime}
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": _meta(request),
        "spec": {"runtimeRef": ref, "trainer": trainer, "runtimePatches": [patch]},
    }


def _container(request: PodRequest) -> Yaml:
    env: list[Yaml] = [{"name": "PYTHONUNBUFFERED", "value": "1"}]
    if request.nodes > 1:
        secret = {"secretKeyRef": {"name": request.name, "key": "secret"}}
        env += [
            {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            {"name": SECRET_NAME, "valueFrom": secret},
        ]
    asked = {
        "nvidia.com/gpu": request.gpus_per_node or None,
        "cpu": request.cpus_per_node,
        "memory": request.memory,
    }
    limits = {name: str(value) for name, value in asked.items() if value is not None}
    mounts = [{"name": "shm", "mountPath": "/dev/shm"}]
    mounts += [{"name": "runs", "mountPath": request.mount}] if request.claim else []
    found = {"command": ["/bin/bash", "-c", pod_script(request)], "env": env, "volumeMounts": mounts}
    return {**found, "resources": {"limits": limits, "requests": limits}} if limits else found


def _volumes(request: PodRequest) -> list[Yaml]:
    found: list[Yaml] = [{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": request.shm}}]
    claim = {"name": "runs", "persistentVolumeClaim": {"claimName": request.claim}}
    return [*found, claim] if request.claim else found


def _grace(request: PodRequest) -> int:
    return math.ceil(request.grace_s) + MARGIN_S


def leader_name(request: PodRequest) -> str:
    """Return the name under which the pods of a run reach pod 0."""
    host = "0" if request.kind == "job" else f"{_NODE}-0-0"
    return f"{request.name}-{host}.{request.name}"


def pod_script(request: PodRequest) -> str:
    """Return what every pod runs; `exec`, so that the signal of its end reaches the supervisor and no shell."""
    words = " ".join(map(shlex.quote, request.words))
    lines = [
        f"headway=(python -P -m headway --lang {request.lang})",
        f"words=({words})",
    ]
    if request.kind == "trainjob":
        lines += ["unset ${!PET_@}    # Kubeflow's for torchrun, which would take them for our nodes"]
    if request.claim is not None:
        folder = shlex.quote(f"{request.mount}/runs/kubernetes/{request.name}")
        lines += [f"cd {shlex.quote(request.mount)} || exit 3", f"folder={folder}"]
    if request.nodes > 1:
        leader = f"{leader_name(request)}:{PORT}"
        lines += [
            'if [ "$JOB_COMPLETION_INDEX" != 0 ]; then',
            f'    exec "${{headway[@]}}" node --leader {leader} --index "$JOB_COMPLETION_INDEX" --wait 900',
            "fi",
        ]
    if request.claim is not None:
        lines += ['mkdir -p "$folder"']
        if request.words[0] == "train":
            lines += ['if [ -s "$folder/run" ]; then words=(resume "$(<"$folder/run")"); fi    # started again']
    command = ['exec "${headway[@]}" "${words[0]}"']
    command += ['--run-file "$folder/run"'] if request.claim is not None else []
    if request.nodes > 1:
        command += [f'--nodes {request.nodes} --nodes-address "$POD_IP:{PORT}" --nodes-wait 900']
    lines += [" ".join([*command, '"${words[@]:1}"'])]
    return "\n".join(lines) + "\n"
