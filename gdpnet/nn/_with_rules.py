"""with_rules: rules added to an existing network."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from gdpnet.errors import InputError
from gdpnet.model import RuleModel
from gdpnet.nn.layer import ProjectionLayer
from gdpnet.nn.scaling import OutputScale, RuleInputs


class WithRules(nn.Module):
    """A network whose outputs satisfy rules; made by `with_rules`.

    Args:
        backbone: the network.
        layer: the rules.
        rule_inputs: from what the network sees to the inputs of the rules.
        output_scale: from the network's units to those of the rules, and back.
    """

    def __init__(
        self,
        backbone: nn.Module,
        layer: ProjectionLayer,
        rule_inputs: RuleInputs,
        output_scale: OutputScale,
    ) -> None:
        super().__init__()
        self.backbone = backbone
        self.layer = layer
        self.rule_inputs = rule_inputs
        self.output_scale = output_scale

    def forward(self, x: Any, *arguments: Any, **keywords: Any) -> torch.Tensor:
        """Outputs in the network's own units, `... x d`.

        Args:
            x: what the network sees; the rules get their inputs from it.
            *arguments: what else the network takes.
            **keywords: what else the network takes.
        """
        prediction = self.backbone(x, *arguments, **keywords)
        y = self._projected(prediction, x)
        return self.output_scale.to_network(y, prediction.dtype)

    def physical(self, x: Any, *arguments: Any, **keywords: Any) -> torch.Tensor:
        """Outputs in the units of the rules, `... x d`; arguments as in `forward`."""
        return self._projected(self.backbone(x, *arguments, **keywords), x)

    def _projected(self, prediction: torch.Tensor, x: Any) -> torch.Tensor:
        return self.layer(self.output_scale.to_physical(prediction), self.rule_inputs(x))


def with_rules(
    backbone: nn.Module,
    rules: RuleModel,
    rule_inputs: Any = None,
    output_scale: Any = None,
    *,
    input_scale: Any = None,
    **keywords: Any,
) -> WithRules:
    """Adds rules to a network.

    Networks see standardised numbers and rules speak of physical ones: say how they were
    standardised, and the rules switch at the right temperature.

    Args:
        backbone: the network, from x to predictions `... x d`.
        rules: the rules.
        rule_inputs: which columns of x are the rules' inputs (numbers, a slice, {input: number}),
            or a function of x that returns them in physical units. None: all columns, in order.
        output_scale: mean and scale of the standardised targets, a fitted scaler, or two functions
            (to physical units, and back). None: the network predicts in physical units.
        input_scale: mean and scale of the standardised columns of x, or a fitted scaler. None: x is
            in physical units.
        **keywords: of `ProjectionLayer`: relaxation, gradient, weights and so on. Distances are
            measured in physical units, whatever the scales: `weights=1 / scale` of the outputs
            measures them in standardised ones.

    Returns:
        A module that takes what the backbone takes and returns outputs in the backbone's units,
        so standardised ones with `output_scale`; its method `physical` returns them in the rules'.

    Example:
        >>> import pyomo.environ as pyo, gdpnet, torch
        >>> m = pyo.ConcreteModel()
        >>> m.Ta = pyo.Param(mutable=True, initialize=20.0)
        >>> m.c = pyo.Var(bounds=(0, 100))
        >>> m.hot = pyo.Constraint(expr=m.c >= 2 * m.Ta)
        >>> rules = gdpnet.RuleModel(m, outputs=[m.c], inputs=[m.Ta])
        >>> network = torch.nn.Linear(4, 1)  # of standardised features, the third is Ta
        >>> ruled = gdpnet.nn.with_rules(
        ...     network, rules, rule_inputs=[2], output_scale=(50.0, 10.0), input_scale=(20.0, 5.0)
        ... )
        >>> x = torch.randn(8, 4)
        >>> bool((ruled.physical(x) >= 2 * (20 + 5 * x[:, 2:3]) - 1e-4).all())
        True
    """
    if not isinstance(backbone, nn.Module):
        raise InputError(
            f"with_rules: expected a torch.nn.Module as backbone, got {type(backbone).__name__}."
        )
    layer = ProjectionLayer(rules, **keywords)
    inputs = RuleInputs(rules.input_names, rule_inputs, input_scale)
    return WithRules(backbone, layer, inputs, OutputScale(rules.output_names, output_scale))
