"""A device without float64, as Apple's is: tensors that live elsewhere and refuse to be double."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

ELSEWHERE = torch.device("lazy")  # torch knows the name, and nothing is there


class Elsewhere(torch.Tensor):
    """A tensor on that device; its numbers are kept in one of the CPU."""

    inner: torch.Tensor

    @staticmethod
    def __new__(cls, inner: torch.Tensor) -> Elsewhere:
        if inner.dtype is torch.float64:
            raise TypeError("This device has no float64.")
        made = torch.Tensor._make_wrapper_subclass(
            cls, inner.shape, strides=inner.stride(), dtype=inner.dtype, device=ELSEWHERE
        )
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(cls, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = [a for a in args if isinstance(a, torch.Tensor) and a.dim()]
        if not all(isinstance(a, Elsewhere) for a in given):
            raise RuntimeError(f"{op}: tensors of two devices")
        args = tree_map_only(Elsewhere, lambda t: t.inner, args)
        kwargs = dict(kwargs or {})
        wanted = kwargs.pop("device", ELSEWHERE)
        result = op(*args, **kwargs)
        if torch.device(wanted) != ELSEWHERE:
            return result.clone()
        return tree_map_only(torch.Tensor, Elsewhere, result)


class Moves(TorchDispatchMode):
    """While it is on, tensors of the CPU can be sent there."""

    def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if kwargs.get("device") != ELSEWHERE or isinstance(args[0], Elsewhere):
            return op(*args, **kwargs)
        del kwargs["device"]
        return Elsewhere(op(*args, **kwargs))
