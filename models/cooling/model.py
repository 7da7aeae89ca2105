"""Cooling control: fan, chiller and pump of a plant under seven operating rules.

The synthetic task of the DisjunctiveNet paper (its appendix "Synthetic cooling-control problem
details"). Inputs are x = (Ta, H, w, price, dr, mf, mc): ambient temperature, humidity, workload,
electricity price, and the events demand response, fan maintenance, chiller maintenance. Outputs
are y = (f, c, p) in [0, 1]: fan speed, chiller level, pump power. The cooling delivered must cover
the load, the pump never stops, and the rules R1 to R7 apply when their conditions on x hold.

The paper does not print its constants; those chosen here are in `Constants`, and README.md of
this folder lists them and proves that every x of both ranges has a feasible y.

`build()` gives the rules, `sample()` inputs with the outputs of an optimal controller,
`network()` the paper's backbone. The file is loaded by its path; it needs only its neighbour
`oracle.py`.
"""

import importlib.util
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray
from pyomo.gdp import Disjunction
from pyomo.repn import generate_standard_repn

import gdpnet

if TYPE_CHECKING:
    import torch

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Constants:
    """All numbers that the paper leaves open; the same table is in README.md.

    Loads, cooling and power are fractions of the plant's nominal values.
    """

    # Required load L(x) = L_0 + L_w w + L_T max(0, Ta - T_free)
    L_0: float = 0.20  # base load at zero workload on a cool day
    L_w: float = 0.35  # load added by full workload
    L_T: float = 0.012  # load per degree above T_free, 1/degC
    T_free: float = 20.0  # ambient temperature below which the envelope adds no load, degC
    # Cooling delivered, a_f f + a_c c
    a_f: float = 0.60  # by the fan at full speed
    a_c: float = 1.00  # by the chiller at full level
    # Power P(y) = alpha_f f + alpha_c c + alpha_p p; all at full give 1
    alpha_f: float = 0.20  # share of the fan
    alpha_c: float = 0.65  # share of the chiller
    alpha_p: float = 0.15  # share of the pump
    P_dr: float = 0.45  # power cap during demand response
    p_min: float = 0.20  # pump power that keeps the circuit flowing
    # Conditions of the rules
    hot: float = 28.0  # R1 applies above, degC
    cold: float = 12.0  # R2 applies below, degC
    humid: float = 62.0  # R3 applies above, % relative humidity
    busy: float = 0.62  # R4 applies above, workload
    event: float = 0.5  # R5 to R7 apply from here on; events are 0 or 1
    # Set points of the optimal controller: f_ref = f_0 + f_w w,
    # c_ref = c_0 + c_w w + c_T max(0, Ta - T_free), p_ref = p_min
    f_0: float = 0.20  # fan set point at zero workload
    f_w: float = 0.60  # fan set point added by full workload
    c_0: float = 0.05  # chiller set point at zero workload on a cool day
    c_w: float = 0.20  # chiller set point added by full workload
    c_T: float = 0.020  # chiller set point per degree above T_free, 1/degC
    # Objective: kappa price P(y) + q_f (f - f_ref)^2 + q_c (c - c_ref)^2 + q_p (p - p_ref)^2
    kappa: float = 0.30  # weight of the power cost, per unit of price
    q_f: float = 1.0  # weight of the fan's squared deviation
    q_c: float = 1.0  # weight of the chiller's squared deviation
    q_p: float = 1.0  # weight of the pump's; price > 0 keeps p at p_min whatever its value
    sigma: float = 0.01  # standard deviation of the noise on the targets


CONSTANTS = Constants()

INPUTS = ("Ta", "H", "w", "price", "dr", "mf", "mc")
OUTPUTS = ("f", "c", "p")
RULES = ("R1_hot", "R2_cold", "R3_humid", "R4_busy", "R5_demand_response", "R6_fan", "R7_chiller")


@dataclass(frozen=True)
class Distribution:
    """Independent uniform ranges of (Ta, H, w, price) and probabilities of (dr, mf, mc)."""

    low: tuple[float, float, float, float]
    high: tuple[float, float, float, float]
    events: tuple[float, float, float]


IID = Distribution((0.0, 10.0, 0.0, 0.05), (40.0, 95.0, 1.0, 0.50), (0.10, 0.05, 0.05))
OOD = Distribution((18.0, 50.0, 0.4, 0.20), (45.0, 100.0, 1.0, 0.80), (0.35, 0.08, 0.08))
SPLITS = {"train": IID, "iid": IID, "ood": OOD}

TEST_SIZE = 2000
TEST_SEEDS = {"iid": 2, "ood": 3}
"""Size and seeds of the two test sets of the study."""

INPUT_BOUNDS: Array = np.array(
    [
        *zip(np.minimum(IID.low, OOD.low), np.maximum(IID.high, OOD.high), strict=True),
        *[(0.0, 1.0)] * 3,
    ]
)
"""(7, 2), the smallest box that contains both ranges of x."""


def pyomo_model(k: Constants = CONSTANTS) -> pyo.ConcreteModel:
    """The rules as an ordinary Pyomo.GDP model.

    Args:
        k: the constants.

    Returns:
        A model with the inputs as mutable Params and the conditions in the Suffix `active_when`.
    """
    m = pyo.ConcreteModel("cooling")
    m.Ta = pyo.Param(mutable=True, initialize=20.0, doc="ambient temperature, degC")
    m.H = pyo.Param(mutable=True, initialize=50.0, doc="relative humidity, %")
    m.w = pyo.Param(mutable=True, initialize=0.5, doc="workload")
    m.price = pyo.Param(mutable=True, initialize=0.2, doc="electricity price")
    m.dr = pyo.Param(mutable=True, initialize=0.0, doc="demand response event")
    m.mf = pyo.Param(mutable=True, initialize=0.0, doc="fan maintenance")
    m.mc = pyo.Param(mutable=True, initialize=0.0, doc="chiller maintenance")

    m.f = pyo.Var(bounds=(0, 1), doc="fan speed")
    m.c = pyo.Var(bounds=(0, 1), doc="chiller level")
    m.p = pyo.Var(bounds=(0, 1), doc="pump power")

    m.required = pyo.Expression(expr=k.L_0 + k.L_w * m.w + k.L_T * gdpnet.relu(m.Ta - k.T_free))
    m.power = pyo.Expression(expr=k.alpha_f * m.f + k.alpha_c * m.c + k.alpha_p * m.p)
    m.demand = pyo.Constraint(expr=k.a_f * m.f + k.a_c * m.c >= m.required)
    m.pump = pyo.Constraint(expr=m.p >= k.p_min)

    m.R1_hot = Disjunction(expr=[[m.c >= 0.45], [m.f >= 0.75]])
    m.R2_cold = Disjunction(expr=[[m.c <= 0.05], [m.f >= 0.60]])
    m.R3_humid = Disjunction(expr=[[m.f <= 0.70], [m.c >= 0.30]])
    m.R4_busy = Disjunction(expr=[[m.f >= 0.65], [m.c >= 0.35]])
    m.R5_demand_response = Disjunction(expr=[[m.power <= k.P_dr], [m.f <= 0.50, m.c <= 0.40]])
    m.R6_fan = Disjunction(expr=[[m.f <= 0.40], [m.c >= 0.40]])
    m.R7_chiller = Disjunction(expr=[[m.c <= 0.40], [m.f >= 0.70]])

    m.active_when = pyo.Suffix(direction=pyo.Suffix.LOCAL)
    m.active_when[m.R1_hot] = m.Ta > k.hot
    m.active_when[m.R2_cold] = m.Ta < k.cold
    m.active_when[m.R3_humid] = m.H > k.humid
    m.active_when[m.R4_busy] = m.w > k.busy
    m.active_when[m.R5_demand_response] = m.dr >= k.event
    m.active_when[m.R6_fan] = m.mf >= k.event
    m.active_when[m.R7_chiller] = m.mc >= k.event
    return m


def build(k: Constants = CONSTANTS) -> gdpnet.RuleModel:
    """The rules with outputs (f, c, p) and inputs (Ta, H, w, price, dr, mf, mc).

    Args:
        k: the constants.

    Returns:
        The rule model, with the box around both ranges of x as `input_bounds`.
    """
    m = pyomo_model(k)
    return gdpnet.RuleModel(
        m,
        outputs=[m.component(name) for name in OUTPUTS],
        inputs=[m.component(name) for name in INPUTS],
        input_bounds=INPUT_BOUNDS,
    )


def load(x: Array, k: Constants = CONSTANTS) -> Array:
    """Required cooling load L(x), (n,), of inputs (n, 7)."""
    return k.L_0 + k.L_w * x[:, 2] + k.L_T * np.maximum(0.0, x[:, 0] - k.T_free)


def active(x: Array, k: Constants = CONSTANTS) -> NDArray[np.bool_]:
    """Which rules apply, (n, 7), at inputs (n, 7); columns as in `RULES`."""
    temperature, humidity, workload = x[:, 0], x[:, 1], x[:, 2]
    return np.column_stack(
        [
            temperature > k.hot,
            temperature < k.cold,
            humidity > k.humid,
            workload > k.busy,
            x[:, 4:] >= k.event,
        ]
    )


def reference(x: Array, k: Constants = CONSTANTS) -> Array:
    """Set points (f_ref, c_ref, p_ref), (n, 3), of inputs (n, 7)."""
    workload, warm = x[:, 2], np.maximum(0.0, x[:, 0] - k.T_free)
    return np.column_stack(
        [
            k.f_0 + k.f_w * workload,
            k.c_0 + k.c_w * workload + k.c_T * warm,
            np.full(len(x), k.p_min),
        ]
    )


def objective(x: Array, y: Array, k: Constants = CONSTANTS) -> Array:
    """What the optimal controller minimises, (n,): power cost plus deviation from set points."""
    power = y @ np.array([k.alpha_f, k.alpha_c, k.alpha_p])
    deviation = (y - reference(x, k)) ** 2 @ np.array([k.q_f, k.q_c, k.q_p])
    return k.kappa * x[:, 3] * power + deviation


def centre(x: Array, k: Constants = CONSTANTS) -> Array:
    """Unconstrained minimiser of `objective`, (n, 3): set points less half the scaled cost."""
    slope = k.kappa * np.array([k.alpha_f / k.q_f, k.alpha_c / k.q_c, k.alpha_p / k.q_p])
    return reference(x, k) - 0.5 * x[:, 3:4] * slope


def optimal(x: Array, k: Constants = CONSTANTS) -> Array:
    """Outputs of the optimal controller, (n, 3): minimal `objective` subject to all active rules.

    The minimum is over all feasible selections of disjuncts, and exact.
    """
    problem, right, demand = _rows(k)
    rhs = np.tile(right, (len(x), 1))
    rhs[:, demand] = -load(x, k)
    return _oracle().solve(problem, centre(x, k), rhs, active(x, k)).y


def sample(
    n: int, split: str = "iid", seed: int = 0, k: Constants = CONSTANTS
) -> "tuple[torch.Tensor, torch.Tensor]":
    """Draw inputs and the noisy outputs of the optimal controller.

    The same arguments give the same numbers, and the first rows do not depend on n, so that
    training sets of growing size are nested. "train" and "iid" have the same distribution but
    never share their random stream, so a training set cannot contain the test set. The noise
    is not clipped: a target may leave the unit box, or break a rule that is tight, by a few sigma.

    Args:
        n: number of samples.
        split: "train", "iid" or "ood".
        seed: a non-negative integer; the test sets of the study use `TEST_SEEDS`.
        k: the constants.

    Returns:
        x (n, 7) and target (n, 3), both float64.
    """
    import torch

    if split not in SPLITS:
        raise ValueError(f"split must be one of {', '.join(SPLITS)}; got {split!r}")
    if n < 0:
        raise ValueError(f"n must not be negative; got {n}")
    stream = [seed, list(SPLITS).index(split)]
    x = _draw(SPLITS[split], np.random.default_rng([*stream, 0]).random((n, 7)))
    noise = k.sigma * np.random.default_rng([*stream, 1]).standard_normal((n, 3))
    return torch.from_numpy(x), torch.from_numpy(optimal(x, k) + noise)


def network() -> "torch.nn.Module":
    """The paper's backbone, 7-8-8-3 with ReLU, behind a fixed scaling of the inputs.

    The scaling maps the IID range to the unit box and is not trained: degrees and per cent next
    to events of 0 and 1 would otherwise decide how the first layer learns.
    """
    import torch
    from torch import nn

    low = torch.tensor([*IID.low, 0.0, 0.0, 0.0])
    width = torch.tensor([*IID.high, 1.0, 1.0, 1.0]) - low
    scale = nn.Linear(7, 7).requires_grad_(False)
    scale.weight.copy_(torch.diag(1.0 / width))
    scale.bias.copy_(-low / width)
    layers = [nn.Linear(7, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3)]
    return nn.Sequential(scale, *layers)


def _draw(distribution: Distribution, u: Array) -> Array:
    """Inputs (n, 7) from uniform numbers (n, 7)."""
    low, high = np.array(distribution.low), np.array(distribution.high)
    x = u.copy()
    x[:, :4] = low + u[:, :4] * (high - low)
    x[:, 4:] = u[:, 4:] < np.array(distribution.events)
    return x


@lru_cache(maxsize=8)
def _rows(k: Constants) -> tuple[Any, Array, int]:
    """The Pyomo model's rows as a y <= b: (oracle problem, right sides, index of the load row).

    Read from the model so that the rules are written once. The load row is the only one whose
    right side depends on x.
    """
    m = pyomo_model(k)
    outputs = [m.component(name) for name in OUTPUTS]
    column = {id(v): j for j, v in enumerate(outputs)}
    normals: list[Array] = []
    right: list[float] = []

    def add(normal: Array, bound: float) -> int:
        normals.append(normal)
        right.append(bound)
        return len(right) - 1

    def read(constraint: pyo.Constraint) -> list[int]:
        repn = generate_standard_repn(constraint.body)
        normal = np.zeros(len(outputs))
        for v, coefficient in zip(repn.linear_vars, repn.linear_coefs, strict=True):
            normal[column[id(v)]] += coefficient
        found = []
        if constraint.lower is not None:
            found.append(add(-normal, repn.constant - pyo.value(constraint.lower)))
        if constraint.upper is not None:
            found.append(add(normal, pyo.value(constraint.upper) - repn.constant))
        return found

    unit = np.eye(len(outputs))
    always = [add(-e, -v.lb) for v, e in zip(outputs, unit, strict=True)]
    always += [add(e, v.ub) for v, e in zip(outputs, unit, strict=True)]
    (demand,) = read(m.demand)
    always += [demand, *read(m.pump)]
    rules = tuple(
        tuple(
            tuple(i for c in d.component_data_objects(pyo.Constraint, active=True) for i in read(c))
            for d in m.component(name).disjuncts
        )
        for name in RULES
    )
    weights = np.array([k.q_f, k.q_c, k.q_p])
    problem = _oracle().Problem(np.array(normals), tuple(always), rules, weights)
    return problem, np.array(right), demand


@lru_cache(maxsize=1)
def _oracle() -> ModuleType:
    """The neighbouring oracle.py, by path: this file may be loaded from anywhere."""
    path = Path(__file__).resolve().with_name("oracle.py")
    name = "gdpnet_models_cooling_oracle"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot load {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up while it is being executed
    spec.loader.exec_module(module)
    return module
