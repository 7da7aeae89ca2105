"""Arguments `x` and `y`, checked and brought to one shape: `batch x width`, float64."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from gdpnet import core
from gdpnet.errors import InputError

# Kinds of devices that know no float64.
_WITHOUT_FLOAT64 = ("mps",)


class Origin(NamedTuple):
    """Where arguments came from and results go back to.

    Attributes:
        shape: leading shape the caller used.
        dtype: type of the caller's y (of x where there is no y).
        device: where the caller's y is (x where there is no y); None where work is done.
    """

    shape: torch.Size
    dtype: torch.dtype
    device: torch.device | None = None

    def restore(self, value: torch.Tensor, dtype: torch.dtype | None = None) -> torch.Tensor:
        """A result, `batch x ...`, in the caller's leading shape; else as `put`."""
        if len(self.shape) != 1:
            value = value.reshape(self.shape + value.shape[1:])
        return self.put(value, dtype)

    def put(self, value: torch.Tensor, dtype: torch.dtype | None = None) -> torch.Tensor:
        """A result on the caller's device.

        Args:
            value: any shape.
            dtype: its type there; that of the value where not given, or float32 where that is
                float64 and the device knows none.
        """
        if self.device is None:
            return value if dtype is None or dtype is value.dtype else value.type(dtype)
        if dtype is None and value.dtype is torch.float64 and not knows_float64(self.device):
            dtype = torch.float32
        return to_device(value if dtype is None else value.type(dtype), self.device)


class Batch(NamedTuple):
    """Inputs and outputs of a batch.

    Attributes:
        x: `batch x p`, float64.
        y: `batch x d`, float64.
        origin: what the caller gave.
    """

    x: torch.Tensor
    y: torch.Tensor
    origin: Origin

    @staticmethod
    def of_arrays(x: np.ndarray, y: np.ndarray) -> Batch:
        """A flat batch of float64 arrays that were checked before."""
        origin = Origin(torch.Size([len(y)]), torch.float64)
        return Batch(torch.from_numpy(x), torch.from_numpy(y), origin)


def as_tensor(value: Any, names: Sequence[str], what: str) -> torch.Tensor:
    """One argument as a floating-point tensor `... x width`.

    Args:
        value: tensor, array or nested list.
        names: names of its columns.
        what: what to call it in messages.
    """
    if isinstance(value, torch.Tensor):
        if not value.dtype.is_floating_point:
            raise InputError(
                f"{what}: expected a floating-point tensor, got {value.dtype}. "
                f"Convert it, for example with {what}.float()."
            )
        if value.layout is not torch.strided:
            raise InputError(
                f"{what}: expected a dense tensor, got {value.layout}. Use {what}.to_dense()."
            )
        if value.is_meta:
            raise InputError(f"{what}: expected numbers, got a tensor of the device 'meta'.")
        tensor = value
    else:
        try:
            # Lists become float64, not float32; torch knows no negative strides.
            tensor = torch.as_tensor(np.ascontiguousarray(np.asarray(value)))
        except (TypeError, ValueError, RuntimeError):
            raise InputError(
                f"{what}: expected a tensor or an array of numbers, got a "
                f"{type(value).__name__} that holds something else."
            ) from None
        if tensor.dtype.is_complex:
            raise InputError(f"{what}: expected real numbers, got {tensor.dtype}.")
        if not tensor.dtype.is_floating_point:
            tensor = tensor.double()
    if tensor.ndim == 0 or tensor.shape[-1] != len(names):
        listed = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
        plural = "column" if len(names) == 1 else "columns"
        hint = f" Add the last dimension with {what}.unsqueeze(-1)." if len(names) == 1 else ""
        raise InputError(
            f"{what}: expected {len(names)} {plural} ({listed or 'none'}), got shape "
            f"{tuple(tensor.shape)}.{hint}"
        )
    return tensor


def as_batch(
    x: Any,
    y: Any,
    input_names: Sequence[str],
    output_names: Sequence[str],
    y_name: str = "y",
    finite: bool = True,
    inputs_only: bool = False,
    on_device: bool = False,
) -> Batch:
    """Check and flatten a pair of arguments, on the CPU.

    Args:
        x: inputs, `... x p`; `p` alone is used for every sample; None where the rules have none.
        y: outputs, `... x d`.
        input_names: names of the columns of x.
        output_names: names of the columns of y.
        y_name: what the caller calls y.
        finite: refuse NaN and infinity.
        inputs_only: there is no y, only x matters.
        on_device: stay on the device of y (of x where there is no y), if it knows float64.
    """
    if y is None and not inputs_only:
        raise InputError(f"{y_name}: expected a tensor with {len(output_names)} columns, got None.")
    if x is None:
        if input_names:
            raise InputError(
                f"x: these rules have inputs ({', '.join(input_names[:8])}); "
                "pass x with one column for each."
            )
        inputs = None
    else:
        inputs = as_tensor(x, input_names, "x")
    outputs = None if y is None else as_tensor(y, output_names, y_name)

    device = None
    if outputs is None:
        if inputs is None:
            inputs = torch.zeros(0, dtype=torch.float64)
        if not inputs.is_cpu:
            inputs, device = _to_work_on(inputs, on_device)
        shape, dtype = inputs.shape[:-1], inputs.dtype
        flat_y = flat(inputs.new_zeros(shape.numel(), 0))
    else:
        if not outputs.is_cpu:
            outputs, device = _to_work_on(outputs, on_device)
        shape, dtype = outputs.shape[:-1], outputs.dtype
        flat_y = flat(outputs)
    if inputs is None:
        inputs = flat_y.new_zeros(*shape, 0)
    if inputs.shape[:-1] != shape:
        if inputs.shape[:-1].numel() != 1:
            raise InputError(
                f"x has leading shape {tuple(inputs.shape[:-1])} and {y_name} has {tuple(shape)}; "
                "expected the same, or a single x for all samples."
            )
        inputs = inputs.reshape(-1).expand(*shape, -1)
    if not (inputs.is_cpu and flat_y.is_cpu):
        inputs = inputs.to(flat_y.device)
    flat_x = flat(inputs)
    if finite:
        refuse_nonfinite(flat_x, "x")
        refuse_nonfinite(flat_y, y_name)
    return Batch(flat_x, flat_y, Origin(shape, dtype, device))


def _to_work_on(value: torch.Tensor, on_device: bool) -> tuple[torch.Tensor, torch.device | None]:
    """A tensor where it can be float64, and the device that results go back to."""
    if on_device and knows_float64(value.device):
        return value, None
    return to_cpu(value), value.device


def to_cpu(value: torch.Tensor) -> torch.Tensor:
    """A tensor on the CPU, in its type: there are devices without float64."""
    if not value.is_cuda:
        return value.cpu()
    # Into memory that the device writes by itself, and one wait for it.
    there = torch.empty(value.shape, dtype=value.dtype, pin_memory=True)
    there = there.copy_(value, non_blocking=True)
    torch.cuda.current_stream(value.device).synchronize()
    return there


def to_device(value: torch.Tensor, device: torch.device) -> torch.Tensor:
    """A tensor of the CPU on a device, which may still be on its way when this returns."""
    if device.type != "cuda":
        return value.to(device)
    return value.pin_memory().to(device, non_blocking=True)


def flat(value: torch.Tensor) -> torch.Tensor:
    """`... x width` as `batch x width`, float64, where it is."""
    if value.ndim != 2:
        value = value.reshape(value.shape[:-1].numel(), value.shape[-1])
    return value if value.dtype is torch.float64 else value.double()


def knows_float64(device: torch.device) -> bool:
    """Whether tensors on a device can be float64."""
    return device.type not in _WITHOUT_FLOAT64


def as_double(value: torch.Tensor) -> torch.Tensor:
    """A tensor as float64: where it is, or on the CPU where its device knows none."""
    return (value if knows_float64(value.device) else value.cpu()).double()


def as_array(value: torch.Tensor) -> np.ndarray:
    """A tensor as a contiguous array, without its graph."""
    if value.requires_grad:
        value = value.detach()
    return np.ascontiguousarray(value.numpy())


if core.AVAILABLE:
    all_finite = core.all_finite
else:

    def all_finite(array: np.ndarray) -> bool:
        """Whether all entries are finite numbers."""
        return bool(np.isfinite(array).all())


# Types that numpy has too.
_SHARED = (torch.float32, torch.float64)


def read_arrays(
    yhat: Any, x: Any, input_names: Sequence[str], output_names: Sequence[str], mark: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray, Origin]:
    """Inputs, predictions, which of them are no finite numbers (those become 0), and the origin.

    The arrays are copies: what is asked for later must not see what the caller writes into his own.

    Args:
        yhat: predictions, `... x d`.
        x: inputs, `... x p`, or `p` for all samples; None where there are none.
        input_names: names of the columns of x.
        output_names: names of the columns of yhat.
        mark: whether samples with NaN or infinity are marked, else they raise.
    """
    if (
        # What networks return: nothing to convert, a third of the time of the general way.
        isinstance(yhat, torch.Tensor)
        and isinstance(x, torch.Tensor)
        and yhat.is_cpu
        and x.is_cpu
        and yhat.layout is x.layout is torch.strided
        and yhat.dtype in _SHARED
        and x.dtype in _SHARED
        and yhat.ndim == 2
        and x.ndim == 2
        and (size := yhat.shape)[1] == len(output_names)
        and x.shape == (size[0], len(input_names))
    ):
        # As `numpy(force=True)`, which takes half as long again.
        inputs = (x.detach() if x.requires_grad else x).numpy().astype(np.float64, "C")
        given = yhat.detach() if yhat.requires_grad else yhat
        predictions = given.numpy().astype(np.float64, "C")
        origin = Origin(size[:1], yhat.dtype)
    else:
        batch = as_batch(x, yhat, input_names, output_names, y_name="yhat", finite=False)
        inputs, predictions = as_array(batch.x).copy(), as_array(batch.y).copy()
        origin = batch.origin
    if all_finite(inputs) and all_finite(predictions):
        return inputs, predictions, np.zeros(len(predictions), dtype=bool), origin
    if not mark:
        hint = " Mend them, or pass on_invalid='mark' to have only those rows marked."
        refuse_nonfinite(torch.from_numpy(inputs), "x", hint)
        refuse_nonfinite(torch.from_numpy(predictions), "yhat", hint)
    good = np.isfinite(inputs).all(1) & np.isfinite(predictions).all(1)
    invalid = np.logical_not(good)
    inputs = np.where(invalid[:, None], 0.0, inputs)
    predictions = np.where(invalid[:, None], 0.0, predictions)
    return inputs, predictions, invalid, origin


def refuse_nonfinite(value: torch.Tensor, what: str, hint: str = "") -> None:
    """Raise where a row holds NaN or infinity, naming the rows."""
    bad = ~value.detach().isfinite().all(1)
    if bool(bad.any()):
        raise InputError(f"{what}: NaN or infinity in {name_rows(bad)}.{hint}")


def name_rows(mask: torch.Tensor) -> str:
    """The first few rows of a mask, in words."""
    rows = mask.nonzero().flatten().tolist()
    listed = ", ".join(map(str, rows[:5])) + (", ..." if len(rows) > 5 else "")
    return f"row {listed}" if len(rows) == 1 else f"{len(rows)} of {len(mask)} rows ({listed})"
