"""nanochat: a GPT whose one dial is its depth, trained with Muon and AdamW, measured in bits per byte."""
