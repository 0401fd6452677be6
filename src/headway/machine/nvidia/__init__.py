"""NVIDIA devices: by the driver's library, by nvidia-smi, and by recorded texts of either."""
