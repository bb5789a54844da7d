"""The nodes of one scheduler without its actor."""

from roadstead.cycle.tentative import Tentative


class NotedNodes:
    """Nodes that record whether their table is read; row versions are not compared."""

    def __init__(self, table):
        self.table, self.tentative, self.is_held = table, Tentative(table), False

    def hold(self):
        self.is_held = True

    def release(self):
        self.is_held = False

    def row_versions(self, decisions):
        return None
