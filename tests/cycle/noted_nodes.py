"""The nodes of one scheduler without its actor."""

from roadstead.cycle.tentative import Tentative


class NotedNodes:
    """Notes whether its table is held; nobody compares versions of its rows."""

    def __init__(self, table):
        self.table, self.tentative, self.is_held = table, Tentative(table), False

    def hold(self):
        self.is_held = True

    def release(self):
        self.is_held = False

    def row_versions(self, decisions):
        return None
