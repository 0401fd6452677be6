"""`accelerate launch`: its count of processes is the total over all machines."""

from __future__ import annotations

from headway.adopt.command import Command
from headway.adopt.launchers.parts import entry_of, make, visible_devices, with_options
from headway.adopt.options import flags, known, read_options
from headway.adopt.record import Launch

_TAKES = (
    "config_file num_processes num_machines num_cpu_threads_per_process machine_rank main_process_ip main_process_port"
    " mixed_precision gpu_ids dynamo_backend dynamo_mode role rdzv_backend rdzv_conf rdzv_endpoint max_restarts"
    " monitor_interval main_training_function log_dir tee tpu_name tpu_zone training_env env num_pipeline_stages"
    " deepspeed_config_file zero_stage offload_optimizer_device offload_param_device offload_optimizer_nvme_path"
    " offload_param_nvme_path gradient_accumulation_steps gradient_clipping zero3_init_flag zero3_save_16bit_model"
    " deepspeed_hostfile deepspeed_exclusion_filter deepspeed_inclusion_filter deepspeed_multinode_launcher"
    " deepspeed_moe_layer_cls_names fsdp_version fsdp_offload_params fsdp_min_num_params fsdp_sharding_strategy"
    " fsdp_reshard_after_forward fsdp_auto_wrap_policy fsdp_transformer_layer_cls_to_wrap fsdp_backward_prefetch"
    " fsdp_state_dict_type fsdp_forward_prefetch fsdp_use_orig_params fsdp_cpu_ram_efficient_loading"
    " fsdp_sync_module_states fsdp_activation_checkpointing megatron_lm_tp_degree megatron_lm_pp_degree"
    " megatron_lm_num_micro_batches megatron_lm_gradient_clipping fp8_backend fp8_format fp8_margin fp8_interval"
    " mpirun_hostfile mpirun_ccl aws_access_key_id aws_secret_access_key same_network_value vm command command_file"
)
_BARE = (
    "multi_gpu cpu tpu use_mps_device use_deepspeed use_fsdp use_megatron_lm use_xpu use_parallelism_config"
    " same_network module no_python quiet debug downcast_bf16 ipex mps dynamo_use_fullgraph dynamo_use_dynamic"
    " dynamo_use_regional_compilation enable_cpu_affinity tpu_use_cluster no_tpu_cluster tpu_use_sudo help standalone"
)
TABLE = flags(_TAKES, _BARE, m="module", q="quiet", h="help", num_process="num_processes", num_machine="num_machines")


def read_accelerate(command: Command) -> Launch:
    """Read the words behind `accelerate launch`."""
    found = read_options(command.words, TABLE)
    entry, args = entry_of(found.rest, is_module=found.has("module"), is_command=found.has("no_python"))
    total, machines = found.number("num_processes"), found.number("num_machines")
    facts = {}
    if found.has("gpu_ids") and found.text("gpu_ids") != "all":
        facts["cuda_visible_devices"] = visible_devices(found.get("gpu_ids"))
    launch = make(
        command,
        "accelerate",
        nproc_per_node=_per_machine(total, machines, is_open=found.has("num_machines") and machines is None),
        nnodes=machines,
        node_rank=found.number("machine_rank"),
        master_addr=known(found.get("main_process_ip")),
        master_port=found.number("main_process_port"),
        mixed_precision=known(found.get("mixed_precision")),
        launcher_config=found.text("config_file"),
        entry=entry,
        args=args,
        world_size=total,
        **facts,
    )
    return with_options(launch, found)


def _per_machine(total: int | None, machines: int | None, *, is_open: bool) -> int | None:
    if total is None or is_open:
        return None
    if not machines:
        return total
    return total // machines if total % machines == 0 else None
