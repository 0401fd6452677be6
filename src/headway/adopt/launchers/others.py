"""Launchers with a word or two of their own: paddle, composer, colossalai, ray, llamafactory, swift, srun."""

from __future__ import annotations

from headway.adopt.command import Command
from headway.adopt.launchers.parts import (
    count_devices,
    endpoint,
    entry_of,
    inner_entry,
    make,
    nodes,
    processes,
    visible_devices,
    with_options,
    without_python,
)
from headway.adopt.options import Options, flags, known, number, read_options
from headway.adopt.record import Entry, Launch
from headway.adopt.shell.expand import Said

_PADDLE = flags(
    "master rank log_level nnodes nproc_per_node log_dir run_mode job_id devices gpus selected_gpus npus xpus mlus ips"
    " host ip start_port max_restart servers trainers server_num trainer_num elastic_level elastic_timeout"
    " heter_devices"
    " auto_parallel_config legacy rank_mapping_path log_overwrite sort_ip enable_gpu_log cluster_topo_path backend"
    " started_port print_config use_paddlecloud auto_tuner_json",
    "help module",
    m="module",
)
_COMPOSER = flags(
    "nproc world_size base_rank node_rank master_addr master_port stdout stderr run_directory",
    "module_mode command_mode verbose help version",
    n="nproc",
    m="module_mode",
    c="command_mode",
    v="verbose",
    h="help",
)
_COLOSSAL = flags(
    "hostfile host include exclude master_addr master_port num_nodes nproc_per_node ssh_port extra_launch_args user",
    "module help",
    H="host",
    m="module",
)
_RAY = flags(
    "address submission_id runtime_env runtime_env_json working_dir entrypoint_num_cpus entrypoint_num_gpus"
    " entrypoint_memory entrypoint_resources metadata_json verify headers log_style log_color job_id",
    "no_wait verbose v wait help",
)


def read_paddle(command: Command) -> Launch:
    """Read the words behind `python -m paddle.distributed.launch`."""
    found = read_options(command.words, _PADDLE)
    entry, args = entry_of(without_python(found.rest), is_module=found.has("module"))
    given = found.get("gpus", "devices", "selected_gpus", "npus", "xpus")
    devices = visible_devices(given if given is not None else command.env.get("CUDA_VISIBLE_DEVICES"))
    host, port = endpoint(found.get("master"))
    ips = found.get("ips")
    hosts = len(ips.text.split(",")) if ips is not None and ips.is_known and ips.text else None
    ranks = processes(found.get("nproc_per_node")) if found.has("nproc_per_node") else count_devices(devices)
    launch = make(
        command,
        "paddle",
        nproc_per_node=ranks,
        nnodes=nodes(found.get("nnodes")) if found.has("nnodes") else hosts,
        node_rank=found.number("rank"),
        master_addr=host,
        master_port=port,
        cuda_visible_devices=devices,
        entry=entry,
        args=args,
    )
    return with_options(launch, found)


def read_composer(command: Command) -> Launch:
    """Read the words behind composer."""
    found = read_options(command.words, _COMPOSER)
    entry, args = entry_of(found.rest, is_module=found.has("module_mode"), is_command=found.has("command_mode"))
    ranks, total = found.number("nproc"), found.number("world_size")
    if not found.has("nproc", "world_size"):
        ranks = count_devices(visible_devices(command.env.get("CUDA_VISIBLE_DEVICES")))
    launch = make(
        command,
        "composer",
        nproc_per_node=ranks,
        nnodes=total // ranks if total and ranks and total % ranks == 0 else None,
        node_rank=found.number("node_rank"),
        master_addr=known(found.get("master_addr")),
        master_port=found.number("master_port"),
        entry=entry,
        args=args,
        world_size=total,
    )
    return with_options(launch, found)


def read_colossal(command: Command) -> Launch:
    """Read the words behind `colossalai run`."""
    found = read_options(command.words, _COLOSSAL)
    entry, args = entry_of(found.rest, is_module=found.has("module"))
    hosts = found.get("host")
    num_hosts = len(hosts.text.split(",")) if hosts is not None and hosts.is_known and hosts.text else None
    launch = make(
        command,
        "colossalai",
        nproc_per_node=found.number("nproc_per_node"),
        nnodes=found.number("num_nodes") if found.has("num_nodes") else num_hosts,
        master_addr=known(found.get("master_addr")),
        master_port=found.number("master_port"),
        entry=entry,
        args=args,
        hostfile=found.text("hostfile"),
    )
    return with_options(launch, found)


def read_ray(command: Command) -> tuple[Options, tuple[Said, ...]]:
    """Return the flags of `ray job submit` and the command behind them."""
    found = read_options(command.words, _RAY)
    return found, found.rest


def make_ray(command: Command, found: Options) -> Launch:
    """Return the launch of a plain program on Ray."""
    entry, args = inner_entry(command.words)
    return with_options(make(command, "ray", launcher_config=found.text("runtime_env"), entry=entry, args=args), found)


def read_by_variables(
    command: Command, launcher: str, name: str, *, address: str = "MASTER_ADDR", port: str = "MASTER_PORT"
) -> Launch:
    """Read llamafactory, swift and xtuner, whose layout is in variables; `name` is `llamafactory-cli train`."""
    env = command.env
    num_nodes = nodes(env.get("NNODES"))
    low, high = number(env.get("MIN_NNODES")), number(env.get("MAX_NNODES"))
    if launcher == "llamafactory" and "RDZV_ID" in env and low is not None and high is not None:
        num_nodes = f"{low}:{high}"
    ranks = processes(env.get("NPROC_PER_NODE"))
    if launcher == "llamafactory" and "NPROC_PER_NODE" not in env:
        ranks = count_devices(visible_devices(env.get("CUDA_VISIBLE_DEVICES")))
    return make(
        command,
        launcher,
        nproc_per_node=ranks,
        nnodes=num_nodes,
        node_rank=number(env.get("NODE_RANK")),
        master_addr=known(env.get(address)),
        master_port=number(env.get(port)),
        entry=Entry("command", name),
        args=tuple(word.text for word in command.words),
    )


def read_srun(command: Command) -> Launch:
    """Read a program whose ranks srun makes; what srun does not say is in the header."""
    assert command.srun is not None, "only what stands behind an srun comes here"
    found = command.srun

    def say(long: str, *short: str) -> int | None:
        given = found.get(long.replace("-", "_"), *short)
        if given is not None:
            return number(given)
        value = command.sbatch.get(long)
        return number(Said(value)) if isinstance(value, str) else None

    total, num_nodes, ranks = say("ntasks", "n"), say("nodes", "N"), say("ntasks-per-node")
    if ranks is None and total and num_nodes and total % num_nodes == 0:
        ranks = total // num_nodes
    elif num_nodes is None and total and ranks and total % ranks == 0:
        num_nodes = total // ranks
    entry, args = inner_entry(command.words)
    wrappers = list(command.wrappers)
    wrappers.remove("srun" if "srun" in wrappers else "salloc")
    launch = make(
        command,
        "slurm",
        nproc_per_node=ranks,
        nnodes=num_nodes,
        master_addr=known(command.variable("MASTER_ADDR")),
        master_port=number(command.variable("MASTER_PORT")),
        entry=entry,
        args=args,
        world_size=total,
        wrappers=tuple(wrappers),
    )
    return with_options(launch, found)
