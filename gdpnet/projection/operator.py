"""The projection as a node of torch's graph: its backward pass asks a sensitivity."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.autograd.function import once_differentiable

from gdpnet.ir.batch import as_array, flat
from gdpnet.ir.rules import Rules

if TYPE_CHECKING:
    from gdpnet.derivative.gradients import Derivative


class OperatorNode:
    """Outputs that were computed already, and their derivative.

    Args:
        rules: the rules.
        y: outputs in the caller's shape and type.
        backward: the derivative, over the flat batch in float64.
        seconds: where the time of the backward pass is added.
    """

    def __init__(
        self, rules: Rules, y: torch.Tensor, backward: Derivative, seconds: dict[str, float]
    ) -> None:
        self.rules = rules
        self.y: torch.Tensor | None = y
        self.backward = backward
        self.seconds = seconds

    def attach(self, yhat: Any, x: Any) -> torch.Tensor:
        """The outputs as a function of prediction and inputs.

        Args:
            yhat: prediction as given, `... x d`.
            x: inputs as given, `... x p` or `p`; None where there are none.
        """
        tensor = x if isinstance(x, torch.Tensor) else None
        if not isinstance(yhat, torch.Tensor):  # only the inputs carry a gradient
            yhat = torch.empty(0)
        y: torch.Tensor = _apply(yhat, tensor, self)
        return y


class _Project(torch.autograd.Function):
    @staticmethod
    def forward(yhat: torch.Tensor, x: torch.Tensor | None, solution: OperatorNode) -> torch.Tensor:
        assert solution.y is not None
        return solution.y

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        yhat, x, ctx.solution = inputs
        ctx.yhat_type = yhat.dtype
        ctx.solution.y = None  # or the graph would hold itself
        # The derivative reads the memory of what was float64 already: torch tells who writes into
        # it. Of all else, and of the output, it has its own.
        wanted = x is not None and (x.requires_grad or x.dtype is torch.float64)
        ctx.save_for_backward(yhat if yhat.dtype is torch.float64 else None, x if wanted else None)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        # With create_graph=True a second derivative is refused when it is asked for; looking out
        # for that takes longer than the derivative.
        return (_backward_once if torch.is_grad_enabled() else _backward)(ctx, gradient)


def _backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
    started = time.perf_counter()
    solution: OperatorNode = ctx.solution
    _, x = ctx.saved_tensors
    # In this order: there are devices without float64.
    incoming = as_array(flat(gradient if gradient.is_cpu else gradient.cpu()))
    found = solution.backward.vjp(incoming)
    to_yhat = None
    if ctx.needs_input_grad[0]:
        to_yhat = _tensor(found.yhat, gradient, ctx.yhat_type)
        solution.backward.warn_of_zeros(incoming, found.yhat)
    to_x = None
    if ctx.needs_input_grad[1]:
        to_x = _through_rows(solution.rules, x, gradient.shape[:-1], found)
    spent = time.perf_counter() - started
    solution.seconds["backward"] = solution.seconds.get("backward", 0.0) + spent
    return to_yhat, to_x, None


_backward_once = once_differentiable(_backward)


# `Function.apply` binds the arguments to the signature of `forward` before it hands them on to
# this, and that takes longer than everything else here. Its other work is for torch.func alone,
# whose tensors have no memory to project.
_apply = super(torch.autograd.Function, _Project).apply


def _tensor(values: np.ndarray, like: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """A flat batch in the shape and on the device of another tensor."""
    tensor = torch.from_numpy(values)
    if dtype is not torch.float64 or not like.is_cpu:
        tensor = tensor.type(dtype).to(like.device)  # in this order: not all know float64
    return tensor if like.ndim == 2 else tensor.reshape(like.shape)


def _through_rows(
    rules: Rules, x: torch.Tensor, shape: torch.Size, found: Any
) -> torch.Tensor | None:
    """Gradient with respect to the inputs, through right sides, coefficients and prices.

    Which rules apply is a step in x: it contributes nothing.
    """
    leaf = x.detach().cpu().requires_grad_()  # there are devices without float64
    # Samples whose rows get no gradient stay out: their coefficients may be no numbers.
    taken = found.bound.any(1) | found.varying.any((1, 2))
    if found.price is not None:
        taken |= found.price.any(1)
    with torch.enable_grad():
        each = leaf if leaf.shape[:-1] == shape else leaf.reshape(-1).expand(*shape, -1)
        own = flat(each)[torch.from_numpy(taken)]
        values = rules.table.evaluate(own)
        pairs = [
            (values.bound, found.bound[taken]),
            (values.coefficients, found.varying[taken]),
        ]
        if found.price is not None:
            pairs.append((rules.evaluate(own).prices, found.price[taken]))
        pairs = [(value, to) for value, to in pairs if value.requires_grad]
        if not pairs:
            return torch.zeros_like(x)
        to = [torch.from_numpy(np.ascontiguousarray(to)) for _, to in pairs]
        (gradient,) = torch.autograd.grad([value for value, _ in pairs], leaf, to)
    return gradient.to(x.device)
