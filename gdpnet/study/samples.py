"""What a model's sample() gives, and predictions to try rules on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from gdpnet.errors import InputError
from gdpnet.ir.tolerances import TOLERANCES
from gdpnet.model import RuleModel
from gdpnet.nn.scaling import RuleInputs
from gdpnet.study._models import LoadedModel, guarded

# Samples that are measured between two words on progress: with auxiliaries each costs milliseconds.
_PIECE = 128


class Drawn(NamedTuple):
    """Inputs of samples.

    Attributes:
        x: inputs, float64 `batch x p`.
        targets: outputs that belong to them, float64 `batch x d`, or None.
        told: where they came from, in a sentence.
    """

    x: Tensor
    targets: Tensor | None
    told: str


def first_split(model: LoadedModel) -> str:
    """The split to draw from where none is named: the first of TEST_SEEDS, or iid."""
    seeds = getattr(model.module, "TEST_SEEDS", None)
    return str(next(iter(seeds))) if isinstance(seeds, Mapping) and seeds else "iid"


def rule_samples(
    model: LoadedModel, rules: RuleModel, count: int, split: str, seed: int
) -> tuple[Tensor, Tensor | None]:
    """Inputs of the rules out of what `sample` gives, and targets where they are outputs.

    Args:
        model: has a `sample`; its `rule_inputs` says where the rules' inputs are in x. With a
            `loss` of its own, targets may be something else than outputs, such as classes.
        rules: the rules.
        count: number of samples.
        split: of `sample`.
        seed: of `sample`.
    """
    assert model.sample is not None
    x, targets = inputs_and_targets(model.sample(count, split=split, seed=seed))
    columns = getattr(model.module, "rule_inputs", None)
    if columns is not None or not rules.input_names:
        if callable(columns):
            columns = guarded(model.path, "rule_inputs", columns)
        found = RuleInputs(rules.input_names, columns)(x)
        x = x.new_zeros(len(x), 0) if found is None else found
    if targets is not None and hasattr(model.module, "loss"):
        is_output = targets.ndim == 2 and targets.shape[1] == len(rules.output_names)
        targets = targets if is_output else None
    return x, targets


def draw_inputs(model: LoadedModel, rules: RuleModel, count: int, split: str, seed: int) -> Drawn:
    """Inputs from the model's `sample`, or uniform in `input_bounds` where it has none."""
    if model.sample is not None:
        x, targets = rule_samples(model, rules, count, split, seed)
        _check(model, "x", x, rules.input_names)
        if targets is not None:
            _check(model, "targets", targets, rules.output_names)
            if len(targets) != len(x):
                raise InputError(
                    f"{model.path}: sample() returned {len(x)} inputs and {len(targets)} targets."
                )
            targets = targets.double()
        return Drawn(x.double(), targets, f"Split {split}, seed {seed}.")
    bounds = torch.tensor(rules.data.input_bounds, dtype=torch.float64).reshape(-1, 2)
    if not bool(bounds.isfinite().all()):
        free = [
            name
            for name, pair in zip(rules.input_names, bounds, strict=True)
            if not bool(pair.isfinite().all())
        ]
        raise InputError(
            f"{model.path} has no sample(), and the inputs {', '.join(free[:8])} have no "
            "input_bounds to draw from. Add `def sample(n, split, seed)` that returns x (and "
            "targets), or give RuleModel input_bounds."
        )
    generator = torch.Generator().manual_seed(seed)
    unit = torch.rand(count, len(bounds), generator=generator, dtype=torch.float64)
    x = bounds[:, 0] + unit * (bounds[:, 1] - bounds[:, 0])
    return Drawn(x, None, f"Inputs uniform in input_bounds, seed {seed}." if len(bounds) else "")


def _check(model: LoadedModel, what: str, drawn: Tensor, names: tuple[str, ...]) -> None:
    if drawn.ndim != 2 or drawn.shape[1] != len(names):
        raise InputError(
            f"{model.path}: sample() should return {what} with {len(names)} columns "
            f"({', '.join(names[:8])}), got shape {tuple(drawn.shape)}."
        )


def make_predictions(
    rules: RuleModel, drawn: Drawn, kind: str, noise: float, seed: int
) -> tuple[Tensor, str]:
    """Predictions to project, and how they were made, in a sentence.

    Args:
        rules: the rules.
        drawn: inputs, and targets where there are some.
        kind: `"noisy"`: targets plus Gaussian noise; `"uniform"`: in the outputs' bounds; `"auto"`:
            noisy where there are targets.
        noise: in standard deviations of each output's targets.
        seed: of the noise.
    """
    if kind == "auto":
        kind = "uniform" if drawn.targets is None else "noisy"
    if kind == "uniform":
        yhat = random_predictions(rules, drawn.x, drawn.targets, seed)
        if yhat is None:
            raise InputError(
                "Uniform predictions need bounds of every output, or targets from sample(). Give "
                "the Vars bounds, or let sample() return (x, targets)."
            )
        return yhat, "Predictions uniform in the outputs' bounds."
    if drawn.targets is None:
        raise InputError(
            "Noisy predictions need targets: let sample() return (x, targets), or ask for uniform "
            "ones."
        )
    spread = drawn.targets.std(0, correction=0)
    generator = torch.Generator().manual_seed(seed)
    normal = torch.randn(drawn.targets.shape, generator=generator, dtype=torch.float64)
    told = f"Predictions: targets plus noise of {noise:g} standard deviations."
    return drawn.targets + noise * spread * normal, told


def inputs_and_targets(drawn: Any) -> tuple[Tensor, Tensor | None]:
    """What `sample` returned, as x and, where it gave them, targets."""
    parts = list(drawn) if isinstance(drawn, (tuple, list)) else [drawn]
    try:
        x, *rest = [None if part is None else torch.as_tensor(part) for part in parts[:2]]
    except (TypeError, ValueError, RuntimeError):
        x, rest = None, []
    if x is None:
        found = ", ".join(type(part).__name__ for part in parts)
        raise InputError(
            "sample() should return x, or x and targets, as tensors or arrays of numbers; it "
            f"returned {found or 'an empty tuple'}."
        )
    return x, rest[0] if rest else None


def random_predictions(
    rules: RuleModel, x: Tensor, targets: Tensor | None, seed: int
) -> Tensor | None:
    """Uniform in the outputs' bounds (n, d); the targets' range stands in for missing bounds.

    Returns:
        The predictions, or None if an output has no bounds and there are no targets.
    """
    lower, upper = rules.lower.to(torch.float64), rules.upper.to(torch.float64)
    if targets is not None:
        lower = torch.where(lower.isfinite(), lower, targets.amin(0).to(lower))
        upper = torch.where(upper.isfinite(), upper, targets.amax(0).to(upper))
    if not bool((lower.isfinite() & upper.isfinite()).all()):
        return None
    generator = torch.Generator().manual_seed(seed)
    unit = torch.rand(len(x), len(lower), generator=generator, dtype=torch.float64)
    return (lower + unit * (upper - lower)).to(x.dtype if x.is_floating_point() else unit.dtype)


def what_holds(
    rules: RuleModel,
    x: Tensor | None,
    y: Tensor,
    tolerance: float = TOLERANCES.satisfied,
    progress: Callable[[float], None] = lambda share: None,
) -> Tensor:
    """Whether each rule, the global constraints and all together hold: bool (n, rules + 2).

    All together are the rules that have to hold: one that may be broken at a price does not count.

    Args:
        rules: The rules.
        x: Inputs, (n, inputs), or None where there are none.
        y: Outputs, (n, d).
        tolerance: As in `RuleModel.satisfied`.
        progress: Told which share of the samples is done.
    """
    pieces = []
    for first in range(0, max(1, len(y)), _PIECE):
        piece = slice(first, first + _PIECE)
        each, globally = rules.measure(y[piece], None if x is None else x[piece])
        pieces.append(torch.cat([each, globally[:, None]], dim=1) <= tolerance)
        progress(min(1.0, (first + _PIECE) / max(1, len(y))))
    held = torch.cat(pieces)
    counts = torch.tensor([*rules.data.hard, True], dtype=torch.bool)
    return torch.cat([held, held[:, counts].all(1, keepdim=True)], dim=1)
