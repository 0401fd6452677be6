"""Commands that never train: they are not launches, alone or behind srun and mpirun."""

_NAMES = """
    apt apt-get awk aws brew cat chmod chown conda cp curl date dcgmi df docker du echo env export find free git grep
    head hf hostname htop huggingface-cli id kill killall ln ls lscpu lspci make mamba mkdir modelscope module mv
    nvidia-smi nvitop npu-smi perl pgrep ping pip pip3 pkill printenv protoc ps rm rocm-smi rsync scancel scontrol scp
    sed set sleep squeue ssh tail tar tee tensorboard tmux top touch tr true ulimit uname unzip uptime uv vi vim wandb
    watch wc wget which whoami xargs yum zip
"""
TOOLS = frozenset(_NAMES.split())
