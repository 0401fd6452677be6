"""DeepSpeed's own loop on the CPU: initialize, backward, step."""

import argparse

import deepspeed
import torch
import torch.distributed as dist


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--local_rank", type=int, default=-1)
    deepspeed.add_config_arguments(parser)
    parser.parse_args()
    # A shared-memory collective for CPUs would be compiled at first use, for minutes; gloo does without.
    deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    deepspeed.init_distributed("gloo")
    torch.manual_seed(2)
    model = torch.nn.Linear(8, 1)
    config = {
        "train_micro_batch_size_per_gpu": 16,
        "gradient_accumulation_steps": 1,
        "optimizer": {"type": "Adam", "params": {"lr": 0.05, "torch_adam": True}},
        "zero_optimization": {"stage": 0},
    }
    engine, _, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)
    torch.manual_seed(100 + dist.get_rank())
    for _ in range(20):
        inputs = torch.randn(16, 8)
        loss = torch.nn.functional.mse_loss(engine(inputs), inputs.sum(dim=1, keepdim=True))
        engine.backward(loss)
        engine.step()
    total = loss.detach().clone()
    dist.all_reduce(total)
    if dist.get_rank() == 0:
        print(f"step 20: loss {total.item() / dist.get_world_size():.6f}")
        print(f"RESULT {total.item():.9f} {dist.get_world_size()}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
