"""Ascend devices: by npu-smi, live and recorded."""
