"""Single cells: rules from marker genes, applied to AnnData.

Importing this needs none of the packages of the extra; what does need them says so
(`pip install 'gdpnet[bio]'`).
"""

from gdpnet.bio._cells import apply_rules
from gdpnet.bio._explain import explain_cells
from gdpnet.bio._markers import MarkerRule, MarkerRules, marker_rules
from gdpnet.bio._statistics import MarkerStatistics, marker_statistics

__all__ = [
    "MarkerRule",
    "MarkerRules",
    "MarkerStatistics",
    "apply_rules",
    "explain_cells",
    "marker_rules",
    "marker_statistics",
]
