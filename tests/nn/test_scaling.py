"""From what a network sees to what rules speak of, and back."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import gdpnet
from gdpnet.nn.scaling import OutputScale, RuleInputs

NAMES = ("Ta", "H")
MEAN, SCALE = [20.0, 101325.0, 0.5], [8.0, 900.0, 0.25]


def physical(n: int = 50) -> torch.Tensor:
    """Three columns in units of their own."""
    draw = torch.randn(n, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    return torch.tensor(MEAN, dtype=torch.float64) + draw * torch.tensor(SCALE).double()


def standardised(n: int = 50) -> torch.Tensor:
    return (physical(n) - torch.tensor(MEAN).double()) / torch.tensor(SCALE).double()


class Scaler:
    """What sklearn's StandardScaler offers, after fit."""

    n_features_in_ = 3

    def inverse_transform(self, rows: np.ndarray) -> np.ndarray:
        return rows * np.array(SCALE) + np.array(MEAN)


# ---- inputs -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "taken"),
    [
        ([0, 2], [0, 2]),
        ([2, 0], [2, 0]),
        ((-1, 1), [2, 1]),
        (slice(1, None), [1, 2]),
        (slice(None, None, 2), [0, 2]),
        ({"H": 0, "Ta": 1}, [1, 0]),
        (np.array([1, 2]), [1, 2]),
        (torch.tensor([1, 2]), [1, 2]),
        (range(2), [0, 1]),
    ],
)
@pytest.mark.parametrize("scale", [(MEAN, SCALE), Scaler(), None], ids=["pair", "scaler", "none"])
def test_columns_in_physical_units(columns: Any, taken: list[int], scale: Any) -> None:
    inputs = RuleInputs(NAMES, columns, scale)
    x = physical() if scale is None else standardised()
    torch.testing.assert_close(inputs(x), physical()[:, taken], rtol=1e-12, atol=0.0)


def test_one_input_and_one_column() -> None:
    assert RuleInputs(("Ta",), 1)(torch.tensor([[1.0, 2.0]])).tolist() == [[2.0]]


def test_all_columns_unless_told_otherwise() -> None:
    x = physical()
    assert (RuleInputs(("a", "b", "c"))(x) == x).all()
    torch.testing.assert_close(RuleInputs(("a", "b", "c"), scale=(MEAN, SCALE))(standardised()), x)


def test_one_scale_for_all_columns() -> None:
    x = RuleInputs(NAMES, [0, 1], (10.0, 2.0))(torch.tensor([[0.0, 1.0, 5.0]]))
    assert x is not None
    assert x.tolist() == [[10.0, 12.0]]


def test_a_function_gets_physical_numbers() -> None:
    def difference(x: torch.Tensor) -> torch.Tensor:
        return torch.stack([x[..., 0] - 20.0, x[..., 2]], -1)

    found = RuleInputs(NAMES, difference, (MEAN, SCALE))(standardised())
    torch.testing.assert_close(found, difference(physical()))
    raw = RuleInputs(NAMES, lambda batch: batch["weather"])({"weather": torch.ones(4, 2)})
    assert raw is not None
    assert raw.dtype == torch.float64
    assert raw.shape == (4, 2)


def test_float32_adds_no_rounding_of_its_own() -> None:
    x = standardised().float()
    exact = torch.tensor(MEAN).double() + torch.tensor(SCALE).double() * x.double()
    found = RuleInputs(NAMES, [0, 1], (MEAN, SCALE)).float()(x)
    assert found is not None
    assert found.dtype == torch.float64
    assert (found == exact[:, :2]).all()


def test_rules_switch_where_they_should() -> None:
    """Read as they come, standardised temperatures are never above 28."""
    x = standardised(500)
    hot = physical(500)[:, 0] > 28
    assert 0 < hot.sum() < 500
    naive, right = RuleInputs(("Ta",), 0)(x), RuleInputs(("Ta",), 0, (MEAN, SCALE))(x)
    assert naive is not None
    assert right is not None
    assert not (naive[:, 0] > 28).any()
    assert ((right[:, 0] > 28) == hot).all()


def test_gradients_reach_the_input() -> None:
    x = standardised(4).requires_grad_()
    inputs = RuleInputs(NAMES, [2, 0], (MEAN, SCALE))
    (slope,) = torch.autograd.grad(inputs(x).sum(), x)
    assert slope[0].tolist() == [8.0, 0.0, 0.25]


def test_rules_without_inputs() -> None:
    assert RuleInputs(())(torch.zeros(3, 5)) is None


@pytest.mark.parametrize("shape", [(3,), (2, 4, 3), (0, 3)])
def test_any_leading_shape(shape: tuple[int, ...]) -> None:
    x = RuleInputs(NAMES, [0, 1], (MEAN, SCALE))(torch.zeros(shape))
    assert x is not None
    assert x.shape == (*shape[:-1], 2)


# ---- outputs ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "scale",
    [
        (MEAN, SCALE),
        [np.array(MEAN), torch.tensor(SCALE)],
        Scaler(),
        (
            lambda y: y * torch.tensor(SCALE).double() + torch.tensor(MEAN).double(),
            lambda y: (y - torch.tensor(MEAN).double()) / torch.tensor(SCALE).double(),
        ),
    ],
    ids=["pair", "list", "scaler", "functions"],
)
def test_there_and_back(scale: Any) -> None:
    outputs = OutputScale(("a", "b", "c"), scale)
    torch.testing.assert_close(outputs.to_physical(standardised()), physical())
    torch.testing.assert_close(outputs.to_network(physical()), standardised())


def test_nothing_to_scale() -> None:
    y = physical()
    outputs = OutputScale(("a", "b", "c"))
    assert (outputs.to_physical(y) == y).all()
    assert (outputs.to_network(y) == y).all()


@pytest.mark.parametrize(
    ("dtype", "inside"),
    [
        (torch.float16, torch.float32),
        (torch.bfloat16, torch.float32),
        (torch.float32, torch.float32),
        (torch.float64, torch.float64),
    ],
)
def test_types(dtype: torch.dtype, inside: torch.dtype) -> None:
    outputs = OutputScale(("a", "b", "c"), (MEAN, SCALE)).to(dtype)
    y = standardised().to(dtype)
    between = outputs.to_physical(y)
    assert between.dtype == inside
    assert between.isfinite().all()  # a pressure in pascals is infinite in float16
    exact = torch.tensor(MEAN).double() + torch.tensor(SCALE).double() * y.double()
    assert (between == exact.to(inside)).all()
    back = outputs.to_network(between, dtype)
    assert back.dtype == dtype
    torch.testing.assert_close(back, y, rtol=1e-2, atol=1e-3)
    assert outputs.to_network(between).dtype == inside


def test_gradients_pass_both_ways() -> None:
    outputs = OutputScale(("a", "b", "c"), (MEAN, SCALE))
    y = standardised(2).requires_grad_()
    (slope,) = torch.autograd.grad(outputs.to_physical(y).sum(), y)
    assert slope[0].tolist() == SCALE
    (slope,) = torch.autograd.grad(outputs.to_network(outputs.to_physical(y)).sum(), y)
    torch.testing.assert_close(slope, torch.ones_like(slope))


def test_sklearn_scalers() -> None:
    preprocessing = pytest.importorskip("sklearn.preprocessing")
    data = physical(200).numpy()
    for kind in ("StandardScaler", "MinMaxScaler", "RobustScaler", "MaxAbsScaler"):
        scaler = getattr(preprocessing, kind)().fit(data)
        outputs = OutputScale(("a", "b", "c"), scaler)
        y = torch.from_numpy(scaler.transform(data))
        torch.testing.assert_close(outputs.to_physical(y), physical(200))
        torch.testing.assert_close(outputs.to_network(physical(200)), y, rtol=1e-7, atol=1e-7)
    with pytest.raises(
        gdpnet.errors.InputError, match="PowerTransformer does more than shift and scale"
    ):
        OutputScale(("a", "b", "c"), preprocessing.PowerTransformer().fit(data))


# ---- as modules ---------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [(MEAN, SCALE), Scaler()], ids=["pair", "scaler"])
def test_numbers_are_part_of_the_state(scale: Any) -> None:
    saved = OutputScale(("a", "b", "c"), scale).state_dict()
    assert list(saved) == ["standardised.mean", "standardised.scale"]
    other = OutputScale(("a", "b", "c"), ([0.0] * 3, [1.0] * 3))
    other.load_state_dict(saved)
    torch.testing.assert_close(other.to_physical(standardised()), physical())


def test_functions_that_are_modules_are_trained_and_moved() -> None:
    class Shift(nn.Module):
        def __init__(self, by: float) -> None:
            super().__init__()
            self.by = nn.Parameter(torch.tensor(by))

        def forward(self, y: torch.Tensor) -> torch.Tensor:
            return y + self.by

    outputs = OutputScale(("a",), (Shift(1.0), Shift(-1.0)))
    assert len(list(outputs.parameters())) == 2
    again = copy.deepcopy(outputs)
    assert again.to_physical(torch.zeros(2, 1)).tolist() == [[1.0], [1.0]]
    assert len(list(RuleInputs(("a",), Shift(1.0)).parameters())) == 1


def test_copies() -> None:
    inputs = RuleInputs(NAMES, [0, 1], (MEAN, SCALE))
    x = standardised()
    for other in (copy.deepcopy(inputs), pickle.loads(pickle.dumps(inputs))):
        assert (other(x) == inputs(x)).all()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_cuda() -> None:
    inputs = RuleInputs(NAMES, [0, 1], (MEAN, SCALE)).cuda()
    assert inputs(standardised().cuda()).is_cuda


def test_device_is_followed() -> None:
    inputs = RuleInputs(NAMES, [0, 1], (MEAN, SCALE)).to("meta")
    assert inputs.standardised is not None
    assert inputs.standardised.mean.device.type == "meta"
    assert inputs.standardised.mean.dtype == torch.float64


def test_repr() -> None:
    assert "columns=[0, 1]" in repr(RuleInputs(NAMES, [0, 1], (MEAN, SCALE)))
    assert "outputs=3" in repr(OutputScale(("a", "b", "c"), (MEAN, SCALE)))


# ---- what is refused ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "scale", "message"),
    [
        ([0], None, "rule_inputs: expected 2 columns, one for each of Ta, H, got 1"),
        (["Ta", "H"], None, r"rule_inputs: expected columns .*got list \['Ta', 'H'\]"),
        ([True, False], None, "rule_inputs: expected columns"),
        (1.5, None, "rule_inputs: expected columns .*got float 1.5"),
        ({"Ta": 0}, None, "expected a column for each of Ta, H, got one for Ta"),
        ({"Ta": 0, "h": 1}, None, "got one for Ta, h"),
        ([0, 3], (MEAN, SCALE), r"the input scale has 3 columns, not those of \[0, 3\]"),
        (None, (MEAN, SCALE), "the input scale has 3 columns, and the rules have 2 inputs: Ta, H"),
        (slice(0, 1), (MEAN, SCALE), "the input scale has 3 columns, of which .* takes 1"),
        ([0, 1], (MEAN, [1.0, 2.0]), "input scale: mean has 3 numbers and scale has 2"),
        ([0, 1], (MEAN, [1.0, 0.0, 1.0]), r"positive numbers, got \[0.0\] for column 1.* use 1"),
        ([0, 1], (0.0, 0.0), r"input scale: scale: expected positive numbers, got \[0.0\]\."),
        ([0, 1], (MEAN, [1.0, -2.0, 1.0]), r"got \[-2.0\] for column 1"),
        ([0, 1], ([0.0, math.nan, 1.0], SCALE), "input scale: mean: expected a finite number"),
        ([0, 1], ("a", SCALE), "input scale: mean: expected a finite number .*got str 'a'"),
        ([0, 1], ([[0.0]], 1.0), "input scale: mean: expected a finite number"),
        ([0, 1], 3.0, r"input scale: expected a pair \(mean, scale\), .*got float 3.0"),
    ],
)
def test_bad_inputs(columns: Any, scale: Any, message: str) -> None:
    with pytest.raises(gdpnet.errors.InputError, match=message):
        RuleInputs(NAMES, columns, scale)


def test_bad_x() -> None:
    with pytest.raises(
        gdpnet.errors.InputError, match="x has 3 columns, and the rules have 2 inputs"
    ):
        RuleInputs(NAMES)(torch.zeros(4, 3))
    with pytest.raises(gdpnet.errors.InputError, match=r"x has 3 columns, not those of \[0, 3\]"):
        RuleInputs(NAMES, [0, 3])(torch.zeros(4, 3))
    with pytest.raises(
        gdpnet.errors.InputError, match=r"x: expected 3 columns.* got shape \(4, 5\)"
    ):
        RuleInputs(NAMES, [0, 1], (MEAN, SCALE))(torch.zeros(4, 5))
    with pytest.raises(
        gdpnet.errors.InputError, match=r"x: expected a floating-point tensor.*got dict"
    ):
        RuleInputs(NAMES)({"x": torch.zeros(4, 2)})
    with pytest.raises(gdpnet.errors.InputError, match=r"torch.int64 of shape \(4, 2\)"):
        RuleInputs(NAMES)(torch.zeros(4, 2, dtype=torch.int64))
    with pytest.raises(
        gdpnet.errors.InputError, match=r"must return a tensor with 2 columns .*\(4, 3\)"
    ):
        RuleInputs(NAMES, lambda x: x)(torch.zeros(4, 3))


@pytest.mark.parametrize(
    ("scale", "message"),
    [
        (([0.0, 1.0], 1.0), "output_scale: expected 3 numbers, one for each of a, b, c, got 2"),
        ((0.0, [1.0, 1.0, 0.0]), r"output_scale: scale: .*got \[0.0\] for c"),
        ((0.0, math.inf), "output_scale: scale: expected a finite number"),
        ((0.0, 1.0, 2.0), r"output_scale: expected a pair"),
        ((torch.relu, 1.0), "output_scale: mean: expected a finite number"),
    ],
)
def test_bad_output_scale(scale: Any, message: str) -> None:
    with pytest.raises(gdpnet.errors.InputError, match=message):
        OutputScale(("a", "b", "c"), scale)


def test_bad_scalers() -> None:
    class Unfitted:
        def inverse_transform(self, rows: np.ndarray) -> np.ndarray:
            return rows

    class Squares(Scaler):
        def inverse_transform(self, rows: np.ndarray) -> np.ndarray:
            return rows**3

    with pytest.raises(gdpnet.errors.InputError, match="does not tell its number of columns"):
        RuleInputs(NAMES, [0, 1], Unfitted())
    with pytest.raises(gdpnet.errors.InputError, match="Squares does more than shift and scale"):
        OutputScale(("a", "b", "c"), Squares())
    with pytest.raises(gdpnet.errors.InputError, match="one for each of a, b, got 3"):
        OutputScale(("a", "b"), Scaler())


def test_bad_y() -> None:
    outputs = OutputScale(("a", "b", "c"), (MEAN, SCALE))
    with pytest.raises(
        gdpnet.errors.InputError, match=r"y: expected .* 3 columns \(a, b, c\), got .*4, 2"
    ):
        outputs.to_physical(torch.zeros(4, 2))
    broken = OutputScale(("a", "b", "c"), (lambda y: y[:1], lambda y: y[..., 0]))
    with pytest.raises(
        gdpnet.errors.InputError, match=r"to_physical: .* shape \(4, 3\), got .*\(1, 3\)"
    ):
        broken.to_physical(torch.zeros(4, 3))
    with pytest.raises(gdpnet.errors.InputError, match=r"to_network: .*got .*\(4,\)"):
        broken.to_network(torch.zeros(4, 3))
