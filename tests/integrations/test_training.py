"""Trainers of others: the layer trains, is saved as they save, and comes back the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lightning
import numpy as np
import pytest
import safetensors.torch
import skorch
import torch
import transformers
from sklearn.model_selection import GridSearchCV

import gdpnet
from tests.integrations._networks import Net, Projected, broken, samples


class Lit(lightning.LightningModule):
    def __init__(self, rate: float = 0.05) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.net = Net()

    def training_step(self, batch: Any, _: int) -> torch.Tensor:
        x, y = batch
        loss = torch.nn.functional.mse_loss(self.net(x), y)
        self.log("loss", loss)
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), self.hparams["rate"])


def loader() -> torch.utils.data.DataLoader[Any]:
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*samples()), batch_size=8)


@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
def test_lightning(tmp_path: Path, precision: str) -> None:
    torch.manual_seed(0)
    how: dict[str, Any] = {
        "accelerator": "cpu",
        "default_root_dir": tmp_path,
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "logger": False,
        "precision": precision,
    }
    model = Lit()
    before = torch.nn.functional.mse_loss(model.net(samples()[0]), samples()[1]).item()
    trainer = lightning.Trainer(max_epochs=3, **how)
    trainer.fit(model, loader())
    after = torch.nn.functional.mse_loss(model.net(samples()[0]), samples()[1]).item()
    assert after < before
    path = trainer.checkpoint_callback.best_model_path  # type: ignore[union-attr]
    again = Lit.load_from_checkpoint(path)
    x, _ = samples()
    assert torch.equal(again.net(x), model.net(x))
    assert broken(model.net) == 0
    resumed = Lit()
    lightning.Trainer(max_epochs=4, **how).fit(resumed, loader(), ckpt_path=path)
    assert not torch.equal(resumed.net(x), model.net(x))


class Rows(torch.utils.data.Dataset[dict[str, torch.Tensor]]):
    def __len__(self) -> int:
        return 32

    def __getitem__(self, k: int) -> dict[str, torch.Tensor]:
        x, y = samples()
        return {"x": x[k], "labels": y[k]}


class ForTrainer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = Net()

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        y = self.net(x)
        return {"loss": torch.nn.functional.mse_loss(y, labels), "logits": y}


def test_hugging_face_trainer_with_its_own_saving(tmp_path: Path) -> None:
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path), num_train_epochs=2, save_steps=4, report_to=[], use_cpu=True
    )
    model = ForTrainer()
    trainer = transformers.Trainer(model=model, args=arguments, train_dataset=Rows())
    trainer.train()
    saved = sorted(tmp_path.glob("checkpoint-*"))
    assert saved
    state = safetensors.torch.load_file(saved[-1] / "model.safetensors")
    again = ForTrainer()
    again.load_state_dict(state)
    x, _ = samples()
    assert torch.equal(again.net(x), model.net(x))
    assert broken(model.net) == 0
    resumed = transformers.Trainer(model=ForTrainer(), args=arguments, train_dataset=Rows())
    resumed.train(resume_from_checkpoint=str(saved[0]))
    assert trainer.evaluate(Rows())["eval_loss"] < 1.0


def test_skorch(tmp_path: Path) -> None:
    x, y = (each.numpy() for each in samples())
    net = skorch.NeuralNetRegressor(
        Net, max_epochs=2, lr=0.05, verbose=0, train_split=None, optimizer=torch.optim.Adam
    )
    search = GridSearchCV(net, {"module__width": [4, 8]}, cv=2, scoring="r2").fit(x, y)
    best = search.best_estimator_
    for name in ("weights.pt", "weights.safetensors"):
        best.save_params(f_params=tmp_path / name, use_safetensors=name.endswith("safetensors"))
        again = skorch.NeuralNetRegressor(Net, **search.best_params_).initialize()
        again.load_params(f_params=tmp_path / name, use_safetensors=name.endswith("safetensors"))
        np.testing.assert_array_equal(again.predict(x), best.predict(x))
    assert broken(best.module_) == 0


def test_safetensors(tmp_path: Path) -> None:
    network, other = Net(), Net()
    safetensors.torch.save_model(network, tmp_path / "net.safetensors")
    safetensors.torch.load_model(other, tmp_path / "net.safetensors")
    x, _ = samples()
    assert torch.equal(network(x), other(x))
    state = safetensors.torch.load_file(tmp_path / "net.safetensors")
    state["layer._extra_state"][0] ^= 1
    with pytest.raises(gdpnet.errors.InputError, match="trained with other rules"):
        other.load_state_dict(state)


@pytest.mark.parametrize("context", ["fork", "spawn", "forkserver"])
def test_workers_of_a_loader_project(context: str) -> None:
    found = torch.utils.data.DataLoader(
        Projected(), batch_size=8, num_workers=1, multiprocessing_context=context
    )
    x, y = samples()
    expected = gdpnet.project(Net().layer.rules, y, x[:, :1]).y
    assert torch.equal(torch.cat(list(found)), expected)
