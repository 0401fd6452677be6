"""Hugging Face Trainer on a tiny model made from its config; nothing is fetched."""

import tempfile

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed


class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        ids = (torch.arange(16) + index) % 32
        return {"input_ids": ids, "labels": ids}


def main():
    set_seed(5)
    model = GPT2LMHeadModel(
        GPT2Config(vocab_size=32, n_positions=16, n_embd=16, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=1)
    )
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            per_device_train_batch_size=4,
            num_train_epochs=2,
            learning_rate=5e-3,
            logging_steps=4,
            save_strategy="no",
            report_to=[],
            use_cpu=True,
            seed=5,
        )
        trainer = Trainer(model=model, args=arguments, train_dataset=Numbers())
        outcome = trainer.train()
        if trainer.is_world_process_zero():
            print(f"RESULT {outcome.training_loss:.9f} {arguments.world_size}")
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
