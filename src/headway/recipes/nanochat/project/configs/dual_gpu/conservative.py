depth = 12
device_batch_size = 8
total_batch_size = 24576
max_seq_len = 1536
eval_every = 100
eval_tokens = 10 * 24576
