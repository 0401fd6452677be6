depth = 16
device_batch_size = 12
total_batch_size = 49152
max_seq_len = 2048
eval_every = 100
eval_tokens = 5 * 49152
