"""RuleSatisfaction: how many outputs satisfy the rules, as a metric."""

from __future__ import annotations

from typing import Any

import torch

from gdpnet.checks import check_tolerance
from gdpnet.errors import InputError, MissingPackageError
from gdpnet.ir.batch import as_batch
from gdpnet.ir.tolerances import TOLERANCES
from gdpnet.model import RuleModel
from gdpnet.projection import Status, project

try:
    from torchmetrics import Metric
except ImportError as error:
    raise MissingPackageError(
        "gdpnet.nn.RuleSatisfaction needs torchmetrics: pip install 'gdpnet[metrics]'. Without it, "
        "rules.satisfied(y, x) tells the same for one batch."
    ) from error


class RuleSatisfaction(Metric):
    """Constraint satisfaction (CSAT) over samples and processes.

    `compute` gives a flat dict of scalars, ready to be logged:

    - `csat`: share of the samples that satisfy everything: active rules, propositions, global
      constraints and bounds.
    - `csat_conflict_free`: the same over samples that some output could satisfy. A contradiction
      is a matter of x alone and no fault of the output, so it is looked for only where the output
      breaks something, by `gdpnet.project`; a search that reached its limit is no proof and leaves
      the sample in.
    - `csat/NAME`: for each rule, share of the samples where it is active that satisfy it.
    - `csat_priced`: share of the samples that satisfy every active rule that may be broken at a
      price, and `csat_all` of those that satisfy these as well as all that has to hold; only where
      there are such rules, which `csat` does not ask for.
    - `samples`, `samples_conflict_free`, `samples/NAME`: what these are shares of.

    A share of no samples is NaN. All are sums over processes (DDP) when torch.distributed runs.

    Args:
        rules: the rules.
        tol: as in `RuleModel.satisfied`.
        **options: of `torchmetrics.Metric`.

    Example:
        >>> import pyomo.environ as pyo, gdpnet, torch
        >>> from gdpnet.nn import RuleSatisfaction
        >>> m = pyo.ConcreteModel()
        >>> m.y = pyo.Var(bounds=(0, 10))
        >>> m.gap = gdpnet.rule(gdpnet.any_of(m.y <= 3, m.y >= 7))
        >>> metric = RuleSatisfaction(gdpnet.RuleModel(m, outputs=[m.y]))
        >>> metric.update(torch.tensor([[2.0], [4.5], [8.0], [11.0]]))
        >>> found = metric.compute()
        >>> found["csat"].item(), found["csat/gap"].item(), found["samples"].item()
        (0.5, 0.75, 4)
    """

    higher_is_better = True
    is_differentiable = False
    full_state_update = False

    samples: torch.Tensor
    satisfied: torch.Tensor
    contradictory: torch.Tensor
    priced: torch.Tensor
    everything: torch.Tensor
    active: torch.Tensor
    held: torch.Tensor

    def __init__(self, rules: RuleModel, tol: float = TOLERANCES.satisfied, **options: Any) -> None:
        super().__init__(**options)
        if not isinstance(rules, RuleModel):
            raise InputError(f"rules: expected a gdpnet.RuleModel, got {type(rules).__name__}.")
        check_tolerance(tol)
        self.rules = rules
        self.tol = float(tol)
        for name in ("samples", "satisfied", "contradictory", "priced", "everything"):
            self.add_state(name, torch.tensor(0), dist_reduce_fx="sum")
        for name in ("active", "held"):
            zeros = torch.zeros(len(rules.names), dtype=torch.int64)
            self.add_state(name, zeros, dist_reduce_fx="sum")

    def update(self, y: Any, x: Any = None) -> None:
        """Count samples.

        Args:
            y: outputs, `... x d`.
            x: inputs, `... x p`; a single one of shape `p` is used for all samples; None where the
                rules have none.
        """
        batch = as_batch(x, y, self.rules.input_names, self.rules.output_names, on_device=True)
        x, y = batch.x.detach(), batch.y.detach()
        if not len(y):
            return
        satisfied = self.rules.satisfied(y, x, self.tol)
        active = self.rules.active(x)
        held = active & (self.rules.violation(y, x) <= self.tol)
        hard = self.rules.satisfaction.hard.to(held.device)
        priced = (held | ~active)[:, ~hard].all(1)
        self.priced += priced.sum().to(self.priced.device)
        self.everything += (satisfied & priced).sum().to(self.everything.device)
        self.samples += len(y)
        self.satisfied += satisfied.sum().to(self.satisfied.device)
        self.active += active.sum(0).to(self.active.device)
        self.held += held.sum(0).to(self.held.device)
        broken = ~satisfied
        if bool(broken.any()):
            status = project(self.rules, y[broken], x[broken]).status
            self.contradictory += (status == Status.CONFLICT).sum().to(self.contradictory.device)

    def compute(self) -> dict[str, torch.Tensor]:
        """Shares and counts of all samples so far, by name."""
        conflict_free = self.samples - self.contradictory
        found = {
            "csat": self.satisfied / self.samples,
            "csat_conflict_free": self.satisfied / conflict_free,
            "samples": self.samples,
            "samples_conflict_free": conflict_free,
        }
        if not all(self.rules.data.hard):
            found["csat_priced"] = self.priced / self.samples
            found["csat_all"] = self.everything / self.samples
        share = self.held / self.active
        for r, name in enumerate(self.rules.names):
            found[f"csat/{name}"] = share[r]
            found[f"samples/{name}"] = self.active[r]
        return found
