"""Lightning Trainer with DDP on two processes; it starts the second one by itself where nobody else has."""

import lightning
import torch
from torch.utils.data import DataLoader, TensorDataset


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)
        self.last = None

    def training_step(self, batch, index):
        inputs, target = batch
        loss = torch.nn.functional.mse_loss(self.layer(inputs), target)
        self.log("loss", loss, prog_bar=True, sync_dist=True)
        self.last = loss.detach()
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.05)


def main():
    lightning.seed_everything(11)
    inputs = torch.randn(256, 8)
    loader = DataLoader(TensorDataset(inputs, inputs.sum(dim=1, keepdim=True)), batch_size=16)
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=2,
        strategy="ddp",
        max_epochs=3,
        logger=False,
        enable_checkpointing=False,
        enable_model_summary=False,
        log_every_n_steps=1,
    )
    module = Module()
    trainer.fit(module, loader)
    mean = trainer.strategy.reduce(module.last)
    if trainer.is_global_zero:
        print(f"RESULT {float(mean):.9f} {trainer.world_size}")
    trainer.strategy.barrier()
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
