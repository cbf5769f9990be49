"""Pages for people: one self-contained HTML file for each migration, and an index.

Everything is read from the published file. What the verdicts are computed from does not belong here, nor does
any knowledge of who calls it.
"""

from warehouse.report.write import write_reports

__all__ = ["write_reports"]
