"""torchrun, `python -m torch.distributed.run`, `python -m torch.distributed.launch`, and modules that wrap them."""

from __future__ import annotations

from headway.adopt.command import Command
from headway.adopt.launchers.parts import endpoint, entry_of, make, nodes, processes, with_options, without_python
from headway.adopt.options import Options, flags, known, number, read_options
from headway.adopt.record import Launch
from headway.adopt.shell.expand import Said

_TAKES = (
    "nnodes nproc_per_node rdzv_backend rdzv_endpoint rdzv_id rdzv_conf max_restarts monitor_interval start_method role"
    " log_dir redirects tee local_ranks_filter node_rank master_addr master_port local_addr logs_specs numa_binding"
    " signals_to_handle event_log_handler shutdown_timeout duplicate_stdout_filters duplicate_stderr_filters"
    " log_line_prefix_template print_completion"
)
_BARE = "standalone module no_python run_path virtual_local_rank use_env help"
TABLE = flags(_TAKES, _BARE, m="module", r="redirects", t="tee", h="help", use_env="use_env")


def read_torchrun(command: Command, launcher: str) -> Launch:
    """Read the words behind torchrun."""
    found = read_options(command.words, TABLE)
    rest = found.rest if found.has("no_python", "module") else without_python(found.rest)
    entry, args = entry_of(rest, is_module=found.has("module"), is_command=found.has("no_python"), skips_dashes=True)
    host, port = endpoint(found.get("rdzv_endpoint"))
    launch = make(
        command,
        launcher,
        nproc_per_node=processes(_given(found, command, "nproc_per_node")),
        nnodes=nodes(_given(found, command, "nnodes")),
        node_rank=number(_given(found, command, "node_rank")),
        master_addr=known(found.get("master_addr")) if found.has("master_addr") else host,
        master_port=found.number("master_port") if found.has("master_port") else port,
        entry=entry,
        args=args,
    )
    return with_options(launch, found)


def _given(found: Options, command: Command, name: str) -> Said | None:
    """Return a flag, else the `PET_` variable that torchrun takes in its place."""
    return found.get(name) or command.variable(f"PET_{name.upper()}")
