"""Task: a model file as something to train on."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import nn

from gdpnet.errors import ModelFileError
from gdpnet.model import RuleModel
from gdpnet.nn.penalty import RulePenalty
from gdpnet.nn.scaling import RuleInputs
from gdpnet.projection import Status, project
from gdpnet.study._models import LoadedModel, guarded
from gdpnet.study.training._methods import Method, method_named
from gdpnet.study.training._protocols import Protocol, protocol_named

_PLANNING = 256  # unlabelled inputs that plans are made for


@dataclass(frozen=True)
class Data:
    """Samples: what the network sees, what the rules see, what is wanted.

    Attributes:
        x: inputs of the network, `n x features`.
        rule_x: inputs of the rules, `n x p`, or None where they have none.
        target: `n x ...`.

    Example:
        >>> import torch
        >>> len(Data(torch.zeros(5, 2), None, torch.zeros(5)).take(slice(3)))
        3
    """

    x: torch.Tensor
    rule_x: torch.Tensor | None
    target: torch.Tensor

    def __len__(self) -> int:
        return len(self.target)

    def take(self, rows: Any) -> Data:
        """Some of the samples."""
        rule_x = None if self.rule_x is None else self.rule_x[rows]
        return Data(self.x[rows], rule_x, self.target[rows])


class Task:
    """What a model file defines for training; see `gdpnet.study.training` for the contract.

    Args:
        model: the file, from `gdpnet.study.load_model`.

    Attributes:
        rules: the rules.
        penalty: of broken rules, weight 2 and soft-min temperature 1e-2 as in the paper.
        test_seeds: seed of each test split.
        norm: of the distance, where a method names none.

    Example:
        >>> from gdpnet.study import load_model
        >>> task = Task(load_model("models/cooling"))  # doctest: +SKIP
        >>> task.training(size=100, seed=0).x.shape  # doctest: +SKIP
        torch.Size([100, 7])
    """

    def __init__(self, model: LoadedModel, norm: str = "l1") -> None:
        missing = [name for name in ("sample", "network") if getattr(model, name) is None]
        if missing:
            raise ModelFileError(
                f"{model.path} cannot be trained: it defines no {' and no '.join(missing)}. Add "
                + " and ".join(f"`def {_SIGNATURES[name]}`" for name in missing)
                + "."
            )
        self.path = model.path
        self.name = model.name
        self.norm = norm
        self._module = model.module
        self._sample: Callable[..., Any] = model.sample  # type: ignore[assignment]
        self._network: Callable[..., Any] = model.network  # type: ignore[assignment]
        self.rules: RuleModel = model.build()
        self.loss: Callable[..., torch.Tensor] = self._own("loss", torch.nn.functional.mse_loss)
        self.metrics: Callable[..., Mapping[str, Any]] = self._own("metrics", _mean_squared_error)
        self.test_seeds: dict[str, int] = self._named("TEST_SEEDS", int, {"iid": 2})
        if not self.test_seeds:
            raise ModelFileError(f"{self.path}: TEST_SEEDS: expected at least one split, got none.")
        self._test_size: int = self._own("TEST_SIZE", 2000)
        if not isinstance(self._test_size, int) or self._test_size < 1:
            raise ModelFileError(
                f"{self.path}: TEST_SIZE: expected a whole number >= 1, got {self._test_size!r}."
            )
        self._methods: dict[str, Method] = self._named("METHODS", Method)
        self._protocols: dict[str, Protocol] = self._named("PROTOCOLS", Protocol)
        self._rule_inputs = RuleInputs(self.rules.input_names, self._own("rule_inputs", None))
        self._tests: dict[str, Data] = {}
        self._layers: dict[tuple[str, Any], nn.Module | None] = {}
        self._conflict_free: dict[str, torch.Tensor] = {}

    @property
    def own_loss(self) -> bool:
        """Whether the file defines its loss."""
        return hasattr(self._module, "loss")

    @property
    def own_metrics(self) -> bool:
        """Whether the file defines its metrics."""
        return hasattr(self._module, "metrics")

    @cached_property
    def penalty(self) -> nn.Module:
        """The penalty for broken rules, of y and the rules' inputs."""
        return RulePenalty(self.rules, weight=2.0, temperature=1e-2)

    def method(self, name: str) -> Method:
        """A method by name, the file's own included."""
        return method_named(name, self._methods)

    def protocol(self, name: str) -> Protocol:
        """A protocol by name, the file's own included."""
        return protocol_named(name, self._protocols)

    def training(self, size: int, seed: int) -> Data:
        """So many training samples; raises where the file gives fewer, or more."""
        data = self._drawn(size, "train", seed)
        if len(data) < size:
            raise ModelFileError(
                f"{self.path}: a training size of {size} was asked for, but "
                f"sample({size}, split='train', seed={seed}) has {len(data)} rows. Ask for at most "
                "that."
            )
        if len(data) > size:
            raise ModelFileError(
                f"{self.path}: sample({size}, split='train', seed={seed}) returned {len(data)} "
                f"rows. It should return as many as asked for: end it with `return x[:n], "
                "target[:n]`."
            )
        return data

    def test(self, split: str) -> Data:
        """A test split, drawn once."""
        if split not in self._tests:
            self._tests[split] = self._drawn(self._test_size, split, self.test_seeds[split])
        return self._tests[split]

    def conflict_free(self, split: str) -> torch.Tensor:
        """Which samples of a test split some output could satisfy, `n`."""
        if split not in self._conflict_free:
            data = self.test(split)
            start = torch.zeros(len(data), len(self.rules.output_names), dtype=torch.float64)
            status = project(self.rules, start, data.rule_x).status
            self._conflict_free[split] = status != Status.CONFLICT
        return self._conflict_free[split]

    def layer(self, method: Method, gradient: Any = None) -> nn.Module | None:
        """The projection of a method, made once: planning takes longer than a short training."""
        key = method.name, gradient
        if key not in self._layers:
            self._layers[key] = method.layer(
                self.rules, self._training_draw.rule_x, gradient, self.norm
            )
        return self._layers[key]

    @cached_property
    def _training_draw(self) -> Data:
        """Some training samples: plans are made for their inputs, without any target."""
        return self._drawn(_PLANNING, "train", 0)

    def targets_satisfied(self) -> float | None:
        """Share of some training targets that satisfy everything; None where they are no outputs.

        A target that breaks the rules cannot be met by an output that satisfies them.
        """
        data = self._training_draw
        if data.target.shape != (len(data), len(self.rules.output_names)):
            return None
        target = data.target.double()
        return float(self.rules.satisfied(target, data.rule_x).double().mean())

    def new_network(self, seed: int, make: Callable[[], nn.Module] | None = None) -> nn.Module:
        """The backbone, the same for all methods of a seed.

        Args:
            seed: of torch's randomness while it is made.
            make: makes another one.
        """
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            network = self._network() if make is None else make()
        if not isinstance(network, nn.Module):
            raise ModelFileError(
                f"{self.path}: network() should return a torch.nn.Module, but returned "
                f"{type(network).__name__}."
            )
        return network.double()

    @cached_property
    def fingerprint(self) -> dict[str, str]:
        """What a study's results depend on: rules, backbone and data, each as a short digest."""
        network = self.new_network(0)
        # Training samples too, or an edit of what they are drawn from would mix two studies.
        drawn = [self._training_draw, *(self.test(split) for split in self.test_seeds)]
        parts = [part for data in drawn for part in (data.x, data.rule_x, data.target)]
        return {
            "rules": self.rules.fingerprint[:16],
            "network": _digest([repr(network), *network.state_dict().values()]),
            "data": _digest([*self.test_seeds, *parts]),
        }

    def _own(self, name: str, usual: Any) -> Any:
        """What the file defines under a name; its functions tell where they fail."""
        if not hasattr(self._module, name):
            return usual
        found = getattr(self._module, name)
        return guarded(self.path, name, found) if callable(found) else found

    def _named(self, name: str, kind: type, usual: Any = None) -> dict[str, Any]:
        """A dict of the file, from names to values of a kind."""
        found = self._own(name, usual or {})
        if not isinstance(found, Mapping):
            raise ModelFileError(
                f"{self.path}: {name}: expected a dict, got {type(found).__name__}."
            )
        for key, value in found.items():
            if not isinstance(key, str) or not isinstance(value, kind):
                raise ModelFileError(
                    f"{self.path}: {name}: expected names and a {kind.__name__} for each, got "
                    f"{key!r}: {value!r}."
                )
            # Results are filed under the one and looked for under the other.
            if isinstance(value, Method) and value.name != key:
                raise ModelFileError(
                    f"{self.path}: {name}: {key!r} is called {value.name!r} itself. Give both the "
                    "same name."
                )
        return dict(found)

    def _drawn(self, n: int, split: str, seed: int) -> Data:
        drawn = self._sample(n, split=split, seed=seed)
        if not isinstance(drawn, tuple | list) or len(drawn) != 2:
            raise ModelFileError(
                f"{self.path}: sample() should return x and target, but returned "
                f"{type(drawn).__name__}. End it with `return x, target`."
            )
        try:
            x, target = (_as_double(part) for part in drawn)
        except (TypeError, ValueError, RuntimeError):
            kinds = " and ".join(type(part).__name__ for part in drawn)
            raise ModelFileError(
                f"{self.path}: sample() should return x and target as tensors or arrays of "
                f"numbers, but returned {kinds}."
            ) from None
        if x.ndim < 2 or not target.ndim:
            raise ModelFileError(
                f"{self.path}: sample() should return x with a row for each sample, n x features, "
                f"and target with n; got shapes {tuple(x.shape)} and {tuple(target.shape)}."
            )
        if len(x) != len(target) or not len(x):
            raise ModelFileError(
                f"{self.path}: sample({n}, split={split!r}, seed={seed}) returned {len(x)} rows of "
                f"x and {len(target)} of target; both should have the same number, at least one."
            )
        for part, what in ((x, "x"), (target, "target")):
            bad = ~part.isfinite().flatten(1).all(1) if part.ndim > 1 else ~part.isfinite()
            if bad.any():
                raise ModelFileError(
                    f"{self.path}: sample({n}, split={split!r}, seed={seed}) returned NaN or "
                    f"infinity in {what}, in {int(bad.sum())} of {len(part)} rows, the first of "
                    f"them row {int(bad.nonzero()[0])}. Leave these rows out, or mend them."
                )
        return Data(x, self._rule_inputs(x), target)


_SIGNATURES = {
    "sample": "sample(n, split, seed):` that returns inputs and targets as tensors, `x, target",
    "network": "network():` that returns a new torch.nn.Module from x to the outputs, `y = f(x)",
}


def _as_double(values: Any) -> torch.Tensor:
    tensor = torch.as_tensor(values)
    return tensor.double() if tensor.is_floating_point() else tensor


def _mean_squared_error(y: torch.Tensor, target: torch.Tensor) -> dict[str, torch.Tensor]:
    return {"mse": (y - target).square().mean()}


def _digest(parts: list[Any]) -> str:
    found = hashlib.sha256()
    for part in parts:
        if isinstance(part, torch.Tensor):
            found.update(part.detach().contiguous().cpu().numpy().tobytes())
        else:
            found.update(str(part).encode())
    return found.hexdigest()[:16]
