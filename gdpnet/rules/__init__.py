"""What the modeller writes, read once: rules, rows, conditions, formulas."""

from gdpnet.rules.checking import ModelCheck, check
from gdpnet.rules.formulas import Formula, all_of, any_of, implies, none_of, rule
from gdpnet.rules.functions import maximum, minimum, relu

__all__ = [
    "Formula",
    "ModelCheck",
    "all_of",
    "any_of",
    "check",
    "implies",
    "maximum",
    "minimum",
    "none_of",
    "relu",
    "rule",
]
