"""Between a network and its rules: networks see standardised numbers, rules speak of physical ones.

x of the network --RuleInputs--> x of the rules
y of the network --OutputScale.to_physical--> y of the rules --OutputScale.to_network--> y
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np
import torch
from torch import nn

from gdpnet.errors import InputError
from gdpnet.ir.batch import as_double, knows_float64

Function = Callable[[torch.Tensor], torch.Tensor]


class Standardised(nn.Module):
    """`physical = mean + scale * standardised`, column by column.

    The numbers are part of the `state_dict`, move with `.to(device)` (but to none without float64),
    and stay in double precision whatever the type of the model around: in float16 an air pressure
    in pascals is infinite.

    Args:
        what: the argument, for messages.
        given: mean and scale, each a number or one for each column; or a fitted scaler with
            `inverse_transform`, such as sklearn's StandardScaler or MinMaxScaler.
        names: names of the columns, None where they are not known.
    """

    mean: torch.Tensor
    scale: torch.Tensor

    def __init__(self, what: str, given: Any, names: Sequence[str] | None = None) -> None:
        super().__init__()
        if hasattr(given, "inverse_transform"):
            mean, scale = _of_scaler(what, given, names)
        elif isinstance(given, tuple | list) and len(given) == 2:
            mean, scale = (
                _numbers(f"{what}: {part}", value)
                for part, value in zip(("mean", "scale"), given, strict=True)
            )
        else:
            raise InputError(
                f"{what}: expected a pair (mean, scale), or a fitted scaler with "
                f"inverse_transform, got {_described(given)}."
            )
        self.columns = _length(what, mean, scale, names)
        bad = (~(scale > 0.0)).reshape(-1).nonzero().flatten().tolist()
        if bad:
            listed = [names[k] if names else f"column {k}" for k in bad[:8]] if scale.dim() else []
            raise InputError(
                f"{what}: scale: expected positive numbers, got {scale.reshape(-1)[bad].tolist()}"
                f"{' for ' + ', '.join(listed) if listed else ''}. A column that is constant in "
                "the data has no scale of its own: use 1."
            )
        self.register_buffer("mean", mean)
        self.register_buffer("scale", scale)

    def _apply(self, fn: Any, recurse: bool = True) -> Standardised:
        if not knows_float64(fn(torch.zeros(0)).device):
            return self  # the CPU undoes the standardisation
        kept = dict(self._buffers)
        super()._apply(fn, recurse)
        for name, buffer in kept.items():
            moved = self._buffers[name]
            if buffer is not None and moved is not None:
                self._buffers[name] = buffer.to(moved.device)
        return self

    def extra_repr(self) -> str:
        """What `print` shows between the brackets."""
        return "1 scale for all" if self.columns is None else f"columns={self.columns}"


class RuleInputs(nn.Module):
    """The rules' inputs, in physical units, out of what the network sees.

    First standardisation is undone, then columns are taken. The result is float64, so that undoing
    adds no rounding to that of the network's own numbers. That one is still there: a rule that
    switches at exactly 28 may not see a 28 that was standardised in float32. Where such values
    occur, hand the rules their inputs as they are, with a function or unscaled columns.

    Args:
        names: names of the rules' inputs.
        columns: which columns of the network's input they are: one or several numbers in the order
            of the rules' inputs, a slice, a mapping from the names of the inputs to numbers, or a
            function (or Module) of the network's input. None: all columns as they come.
        scale: how the network's input was standardised, see `Standardised`: of all its columns, not
            only of those that the rules use. None: it is in physical units.
    """

    def __init__(self, names: Sequence[str], columns: Any = None, scale: Any = None) -> None:
        super().__init__()
        self.names = tuple(names)
        self.function: Function | None = None
        self.columns: slice | list[int] | None = None
        if callable(columns):
            self.function = columns
        elif columns is not None:
            self.columns = self._listed(columns)
        self.standardised = None if scale is None else Standardised("input scale", scale)
        known = None if self.standardised is None else self.standardised.columns
        if known is not None:
            self._check_width(known, "the input scale has")

    def forward(self, x: Any) -> torch.Tensor | None:
        """Inputs of the rules.

        Args:
            x: what the network sees, `... x features`; anything where a function takes it.

        Returns:
            `... x p`, float64; None where the rules have no inputs.
        """
        if not self.names:
            return None
        if self.standardised is None and self.function is not None:
            return self._called(x)
        if not isinstance(x, torch.Tensor) or not x.dtype.is_floating_point or not x.dim():
            raise InputError(
                f"x: expected a floating-point tensor with one column for each feature, got "
                f"{_described(x)}. Say how the rules get their inputs with a function, "
                "rule_inputs=lambda x: ..."
            )
        self._check_width(x.shape[-1], "x has")
        if self.standardised is None:
            return as_double(self._taken(x))
        mean, scale = self.standardised.mean, self.standardised.scale
        if mean.dim() and len(mean) != x.shape[-1]:
            raise InputError(
                f"x: expected {len(mean)} columns, as many as the input scale has, got shape "
                f"{tuple(x.shape)}."
            )
        if self.function is not None:
            return self._called(mean + scale * as_double(x))
        mean, scale = (self._taken(part) if part.dim() else part for part in (mean, scale))
        return mean + scale * as_double(self._taken(x))

    def extra_repr(self) -> str:
        """What `print` shows between the brackets."""
        if self.function is not None:
            source = getattr(self.function, "__name__", type(self.function).__name__)
        else:
            source = "all" if self.columns is None else str(self.columns)
        return f"inputs={len(self.names)}, columns={source}"

    def _listed(self, columns: Any) -> slice | list[int]:
        if isinstance(columns, slice):
            return columns
        if isinstance(columns, Mapping):
            if set(columns) != set(self.names):
                raise InputError(
                    f"rule_inputs: expected a column for each of {_shown(self.names)}, got one for "
                    f"{_shown(list(map(str, columns)))}."
                )
            columns = [columns[name] for name in self.names]
        if isinstance(columns, torch.Tensor | np.ndarray):
            columns = columns.tolist()
        listed = [columns] if isinstance(columns, Integral) else columns
        if not isinstance(listed, Sequence) or not all(
            isinstance(k, Integral) and not isinstance(k, bool) for k in listed
        ):
            raise InputError(
                "rule_inputs: expected columns of the network's input (a number, a list of "
                "numbers, a slice, {input: number}) or a function, got "
                f"{_described(columns)}."
            )
        if len(listed) != len(self.names):
            raise InputError(
                f"rule_inputs: expected {len(self.names)} columns, one for each of "
                f"{_shown(self.names)}, got {len(listed)}."
            )
        return [int(k) for k in listed]

    def _check_width(self, width: int, who: str) -> None:
        """Refuse an input that does not have the columns that are taken."""
        if self.function is not None:
            return
        if self.columns is None or isinstance(self.columns, slice):
            taken = len(range(width)[self.columns or slice(None)])
            if taken != len(self.names):
                which = "" if self.columns is None else f", of which {self.columns} takes {taken}"
                raise InputError(
                    f"rule_inputs: {who} {width} columns{which}, and the rules have "
                    f"{len(self.names)} input{'' if len(self.names) == 1 else 's'}: "
                    f"{_shown(self.names)}. Say which columns the rules see."
                )
        elif not all(-width <= k < width for k in self.columns):
            raise InputError(f"rule_inputs: {who} {width} columns, not those of {self.columns}.")

    def _taken(self, values: torch.Tensor) -> torch.Tensor:
        return values if self.columns is None else values[..., self.columns]

    def _called(self, x: Any) -> torch.Tensor:
        assert self.function is not None
        value = self.function(x)
        if not isinstance(value, torch.Tensor) or value.shape[-1:] != (len(self.names),):
            raise InputError(
                f"rule_inputs: the function must return a tensor with {len(self.names)} columns "
                f"({_shown(self.names)}), got {_described(value)}."
            )
        return as_double(value)


class OutputScale(nn.Module):
    """The network's outputs in physical units, and back.

    Args:
        names: names of the outputs.
        scale: how targets were standardised, see `Standardised`; or two functions (or Modules) of
            tensors, to physical units and back. None: they are in physical units.
    """

    def __init__(self, names: Sequence[str], scale: Any = None) -> None:
        super().__init__()
        self.names = tuple(names)
        self.functions: tuple[Function, Function] | None = None
        self.standardised: Standardised | None = None
        if isinstance(scale, tuple | list) and len(scale) == 2 and all(map(callable, scale)):
            self.functions = (scale[0], scale[1])
            for name, function in zip(("physical", "network"), scale, strict=True):
                if isinstance(function, nn.Module):
                    self.add_module(name, function)
        elif scale is not None:
            self.standardised = Standardised("output_scale", scale, self.names)

    def to_physical(self, y: torch.Tensor) -> torch.Tensor:
        """Outputs in physical units, `... x d`.

        In the type of y, but at least float32: physical numbers soon leave the range of float16.

        Args:
            y: the network's own, `... x d`.
        """
        self._check(y, "y", y)
        wide = torch.promote_types(y.dtype, torch.float32)
        if self.functions is not None:
            return self._check(self.functions[0](y), "to_physical", y).to(wide)
        if self.standardised is None:
            return y.to(wide)
        physical = self.standardised.mean + self.standardised.scale * as_double(y)
        return physical.to(wide).to(y.device)

    def to_network(self, y: torch.Tensor, dtype: torch.dtype | None = None) -> torch.Tensor:
        """Outputs in the network's units, `... x d`.

        Args:
            y: in physical units, `... x d`.
            dtype: of the result, that of y where not given.
        """
        self._check(y, "y", y)
        dtype = dtype or y.dtype
        if self.functions is not None:
            return self._check(self.functions[1](y), "to_network", y).to(dtype)
        if self.standardised is None:
            return y.to(dtype)
        own = (as_double(y) - self.standardised.mean) / self.standardised.scale
        return own.to(dtype).to(y.device)

    def extra_repr(self) -> str:
        """What `print` shows between the brackets."""
        scaled = "functions" if self.functions is not None else "none"
        return f"outputs={len(self.names)}" + ("" if self.standardised else f", scale={scaled}")

    def _check(self, value: Any, what: str, like: torch.Tensor) -> torch.Tensor:
        good = isinstance(value, torch.Tensor) and value.dtype.is_floating_point
        if not good or value.shape[-1:] != (len(self.names),) or value.shape != like.shape:
            expected = f"{len(self.names)} columns ({_shown(self.names)})"
            if what != "y":
                expected += f" and shape {tuple(like.shape)}"
            raise InputError(
                f"{what}: expected a floating-point tensor with {expected}, got "
                f"{_described(value)}."
            )
        return value


def _of_scaler(
    what: str, scaler: Any, names: Sequence[str] | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean and scale of a scaler, from what it does to a few rows.

    Every kind keeps its numbers under other names; all that is asked of it is to be linear.
    """
    columns = getattr(scaler, "n_features_in_", None if names is None else len(names))
    if columns is None:
        raise InputError(
            f"{what}: {type(scaler).__name__} does not tell its number of columns "
            "(n_features_in_). Fit it first, or give (mean, scale)."
        )
    rows = np.concatenate([np.zeros((1, columns)), np.ones((1, columns)), np.eye(columns)])
    rows = np.concatenate([rows, [np.linspace(-0.8, 0.9, columns)]])
    with warnings.catch_warnings():
        # One that is not linear may not like these rows; it is refused below.
        warnings.simplefilter("ignore", RuntimeWarning)
        found = np.asarray(scaler.inverse_transform(rows), dtype=float)
    if found.shape != rows.shape:
        raise InputError(
            f"{what}: {type(scaler).__name__}.inverse_transform gave shape {found.shape} for "
            f"{rows.shape}; expected the same."
        )
    mean, scale = found[0], found[1] - found[0]
    size = np.abs(mean) + np.abs(scale)
    if not (np.abs(mean + scale * rows - found) <= 1e-9 * size).all():
        raise InputError(
            f"{what}: {type(scaler).__name__} does more than shift and scale each column. Give two "
            "functions of tensors instead, so that gradients pass."
        )
    return torch.from_numpy(mean.copy()), torch.from_numpy(scale)


def _length(
    what: str, mean: torch.Tensor, scale: torch.Tensor, names: Sequence[str] | None
) -> int | None:
    """Number of columns; None where one number stands for all."""
    lengths = {len(part) for part in (mean, scale) if part.dim()}
    if len(lengths) > 1:
        raise InputError(
            f"{what}: mean has {len(mean)} numbers and scale has {len(scale)}; expected as many."
        )
    length = lengths.pop() if lengths else None
    if names is not None and length is not None and length != len(names):
        raise InputError(
            f"{what}: expected {len(names)} numbers, one for each of {_shown(names)}, got {length}."
        )
    return length


def _numbers(what: str, value: Any) -> torch.Tensor:
    """A number, or one for each column, float64."""
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu().double().numpy()
    try:
        array = np.array(value, dtype=float)
    except (TypeError, ValueError):
        array = np.array(np.nan)
    if array.ndim > 1 or not np.isfinite(array).all():
        raise InputError(
            f"{what}: expected a finite number or one for each column, got {_described(value)}."
        )
    return torch.from_numpy(array)


def _described(value: Any) -> str:
    if isinstance(value, torch.Tensor | np.ndarray) and np.ndim(value):
        return f"{value.dtype} of shape {tuple(value.shape)}"
    text = repr(value)
    return f"{type(value).__name__} {text}" if len(text) <= 60 else type(value).__name__


def _shown(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
