"""What the modeller writes, read once: rules, rows, conditions, formulas."""

from gdpnet.rules.checking import ModelCheck, check
from gdpnet.rules.formulas import Formula, all_of, any_of, implies, none_of, rule
from gdpnet.rules.functions import maximum, minimum, relu
from gdpnet.rules.model import RuleModel, load_rules

__all__ = [
    "Formula",
    "ModelCheck",
    "RuleModel",
    "all_of",
    "any_of",
    "check",
    "implies",
    "load_rules",
    "maximum",
    "minimum",
    "none_of",
    "relu",
    "rule",
]
