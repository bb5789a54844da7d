"""Share: a number of objects, or a percentage of them, as the IntOrString of Kubernetes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Share:
    """A number, or a percentage of a number that is known later.

    count: the number, if there are no basis points. basis_points: hundredths of a percent.
    """

    count: int = 0
    basis_points: int | None = None

    def of(self, total: int, *, rounds_up: bool) -> int:
        """Return the number that this is of `total`; percentages are rounded up or down."""
        if self.basis_points is None:
            return self.count
        whole, remainder = divmod(total * self.basis_points, 10_000)
        return whole + (1 if remainder and rounds_up else 0)
