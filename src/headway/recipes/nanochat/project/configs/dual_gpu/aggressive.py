depth = 20
device_batch_size = 14
total_batch_size = 86016
max_seq_len = 3072
eval_every = 100
eval_tokens = 2 * 86016
