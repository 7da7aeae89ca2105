"""Tables and figures of a study, drawn from its table of results alone."""

from gdpnet.study.report._figures import convexification_figure, size_figure
from gdpnet.study.report._page import write_report
from gdpnet.study.report._results import Results, Statistic

__all__ = ["Results", "Statistic", "convexification_figure", "size_figure", "write_report"]
