"""Tables and figures of a study, drawn from its table of results alone."""

from gdpnet.study.report._figures import convexification_figure, size_figure, size_groups
from gdpnet.study.report._mixtures import mixture_figure, mixtures
from gdpnet.study.report._one_size import one_size_figure
from gdpnet.study.report._page import write_report
from gdpnet.study.report._results import Results, Statistic
from gdpnet.study.report._violations import violations

__all__ = [
    "Results",
    "Statistic",
    "convexification_figure",
    "mixture_figure",
    "mixtures",
    "one_size_figure",
    "size_figure",
    "size_groups",
    "violations",
    "write_report",
]
