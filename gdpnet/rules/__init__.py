"""What the modeller writes, read once: rules, rows, conditions, formulas."""

from gdpnet.rules.formulas import Formula, all_of, any_of, implies, none_of, rule
from gdpnet.rules.functions import maximum, minimum, relu

__all__ = [
    "Formula",
    "all_of",
    "any_of",
    "implies",
    "maximum",
    "minimum",
    "none_of",
    "relu",
    "rule",
]
