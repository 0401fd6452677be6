"""AMD devices: recorded texts of rocm-smi and amd-smi."""
