"""Taints and tolerations (upstream staging/src/k8s.io/api/core/v1/toleration.go, 1.34)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Taint:
    key: str
    value: str
    effect: str


@dataclass(frozen=True, slots=True)
class Toleration:
    """A toleration. operator: "Exists", "Equal" or "" (Equal). effect: "" means all effects."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: Taint) -> bool:
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        if self.operator in ("", "Equal"):
            return self.value == taint.value
        return self.operator == "Exists"


def tolerated(taint: Taint, tolerations: tuple[Toleration, ...]) -> bool:
    return any(toleration.tolerates(taint) for toleration in tolerations)
