"""`gdpnet::project`: the projection as an operator that torch's compilers and exporters keep whole.

    project(yhat, x, rules, recipe, linearise) -> y
    project_backward(gradient, yhat, x, rules, recipe) -> gradients of yhat and x

Both depend on their arguments alone, so that a program can be saved with them: `rules` is what
`rules.save` would write, packed into bytes, and `recipe` says how to project (`recipe.py`). Where
the projector lives in this process neither is read. The backward operator projects again, unless
the last batch that its projector saw is the same, as it is in training.

In eager mode, and in `torch.func`, a Function does the same (`operator.py`): the way through an
operator of Python takes torch several times as long.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch

from gdpnet.errors import InputError
from gdpnet.ir.rules import Rules
from gdpnet.projection.node import each
from gdpnet.projection.projection import Projection
from gdpnet.projection.projector import Projector
from gdpnet.projection.recipe import projector_of, recipe_of
from gdpnet.rules import files

Tensor = torch.Tensor

_LAST: WeakKeyDictionary[Projector, Projection] = WeakKeyDictionary()


class CompiledProjection:
    """A projector as compilers see it.

    Args:
        projector: what projects.
    """

    def __init__(self, projector: Projector) -> None:
        self.projector = projector
        self.rules: Tensor = projector.rules.cache[_packed]
        self.recipe = recipe_of(projector)
        self.differentiable = projector.sensitivity is not None

    def __call__(self, yhat: Tensor, x: Tensor | None) -> Tensor:
        """The outputs, by a call of the operator."""
        wanted = self.differentiable and torch.is_grad_enabled()
        linearise = wanted and (yhat.requires_grad or (x is not None and x.requires_grad))
        found: Tensor = torch.ops.gdpnet.project(yhat, x, self.rules, self.recipe, linearise)
        return found if self.differentiable else found.detach()

    def __reduce__(self) -> Any:
        # The text names what lives in this process: elsewhere it is written again.
        return CompiledProjection, (self.projector,)


def _packed(rules: Rules) -> Tensor:
    """What a file of the rules says, as a tensor of bytes."""
    return torch.frombuffer(bytearray(files.packed(rules.data)), dtype=torch.uint8)


def _projector(rules: Tensor, recipe: str) -> Projector:
    return projector_of(recipe, rules.cpu().numpy().tobytes())


@torch.library.custom_op(
    "gdpnet::project",
    mutates_args=(),
    schema="(Tensor yhat, Tensor? x, Tensor rules, str recipe, bool linearise) -> Tensor",
)
def project(yhat: Tensor, x: Tensor | None, rules: Tensor, recipe: str, linearise: bool) -> Tensor:
    """The nearest outputs."""
    projector = _projector(rules, recipe)
    found = projector.solve(yhat, x, linearise)
    if linearise:
        _LAST[projector] = found
    return found.outputs()


@project.register_fake
def _(yhat: Tensor, x: Tensor | None, rules: Tensor, recipe: str, linearise: bool) -> Tensor:
    if yhat.ndim == 0 or (x is not None and x.ndim == 0):
        raise InputError("yhat, x: expected tensors with one column for each output and input.")
    return yhat.new_empty(yhat.shape)


@torch.library.custom_op(
    "gdpnet::project_backward",
    mutates_args=(),
    schema=(
        "(Tensor gradient, Tensor yhat, Tensor? x, Tensor rules, str recipe) -> (Tensor, Tensor)"
    ),
)
def project_backward(
    gradient: Tensor, yhat: Tensor, x: Tensor | None, rules: Tensor, recipe: str
) -> tuple[Tensor, Tensor]:
    """Gradients of a loss with respect to prediction and inputs (empty where there are none)."""
    projector = _projector(rules, recipe)
    found = _LAST.get(projector)
    if found is None or not _same(found, yhat, x):
        found = projector.solve(yhat, x, True)
    with _autograd():
        to_yhat, to_x = found.node().pulled(gradient, x, yhat.dtype)
    return to_yhat, yhat.new_empty(0) if to_x is None else to_x


@project_backward.register_fake
def _(
    gradient: Tensor, yhat: Tensor, x: Tensor | None, rules: Tensor, recipe: str
) -> tuple[Tensor, Tensor]:
    return yhat.new_empty(yhat.shape), yhat.new_empty(0) if x is None else x.new_empty(x.shape)


def _autograd() -> Any:
    """Torch's differentiation, which rows that depend on x need, inside of an operator.

    There it is switched off, and everything has gradient 0, without a word.
    """
    key = torch._C.DispatchKey.AutogradFunctionality
    every = torch._C._dispatch_tls_local_exclude_set()
    included = torch._C._dispatch_tls_local_include_set()
    return torch._C._ForceDispatchKeyGuard(included, every.remove(key))


def _same(found: Projection, yhat: Tensor, x: Tensor | None) -> bool:
    """Whether a projection is that of these tensors."""
    shape, origin = yhat.shape[:-1], found.origin
    if origin.shape != shape or origin.dtype is not yhat.dtype:
        return False
    pairs = [(found.request.yhat, yhat)]
    if x is not None:
        pairs.append((found.request.x, each(x, shape)))
    return all(
        np.array_equal(known, given.detach().cpu().double().reshape(known.shape).numpy())
        for known, given in pairs
    )


def _setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    yhat, x, rules, ctx.recipe, _ = inputs
    ctx.save_for_backward(yhat, x, rules)


def _backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
    yhat, x, rules = ctx.saved_tensors
    found = torch.ops.gdpnet.project_backward(gradient, yhat, x, rules, ctx.recipe)
    to_yhat = found[0] if ctx.needs_input_grad[0] else None
    return to_yhat, found[1] if ctx.needs_input_grad[1] else None, None, None, None


project.register_autograd(_backward, setup_context=_setup)


def _front(size: int, dim: int | None, value: Tensor | None) -> Tensor | None:
    if value is None:
        return None
    return value.unsqueeze(0).expand(size, *value.shape) if dim is None else value.movedim(dim, 0)


@project.register_vmap
def _(info: Any, in_dims: Any, yhat: Tensor, x: Tensor | None, *rest: Any) -> tuple[Tensor, int]:
    ahead = [_front(info.batch_size, dim, t) for dim, t in zip(in_dims, (yhat, x), strict=False)]
    return torch.ops.gdpnet.project(*ahead, *rest), 0


@project_backward.register_vmap
def _(
    info: Any, in_dims: Any, gradient: Tensor, yhat: Tensor, x: Tensor | None, *rest: Any
) -> tuple[tuple[Tensor, Tensor], tuple[int, int]]:
    given = zip(in_dims, (gradient, yhat, x), strict=False)
    ahead = [_front(info.batch_size, dim, t) for dim, t in given]
    found = torch.ops.gdpnet.project_backward(*ahead, *rest)
    if x is None:  # what is empty has no dimension to map
        found = found[0], found[1].new_empty(info.batch_size, 0)
    return found, (0, 0)
