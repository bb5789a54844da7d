"""Plugin arguments of v1beta2 and v1beta3 in the form of v1."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from pydantic import ValidationError

from roadstead.config.decode import validation_problems
from roadstead.config.errors import Problem, malformed
from roadstead.config.go_struct import to_document
from roadstead.config.legacy.beta_names import (
    FIT,
    OLD_LIMITS,
    STRATEGY_OF,
    VOLUME_LIMITS,
    removal_problem,
)
from roadstead.config.legacy.beta_schema import CapacityRatioArgs, ResourceScorerArgs
from roadstead.config.legacy.notes import Notes
from roadstead.config.legacy.plugins import REMOVED_ARGS_MODELS
from roadstead.config.schema import PluginConfig
from roadstead.config.schema_args import ARGS_MODELS, Args

# Models of the arguments of plugins that are now strategies of NodeResourcesFit.
_SCORER_MODELS: Final[dict[str, type[Args]]] = {
    name: CapacityRatioArgs if name == "RequestedToCapacityRatio" else ResourceScorerArgs
    for name in STRATEGY_OF
}


class BetaArgs:
    """Translate `pluginConfig` of one profile.

    api_version: of the document. strategy: the strategy of NodeResourcesFit that replaces score
    plugins of the profile; "" for none. _scoring: scoringStrategy of NodeResourcesFit, from the
    entries that were read so far.
    """

    def __init__(
        self, api_version: str, strategy: str, notes: Notes, problems: list[Problem]
    ) -> None:
        self.api_version, self.strategy = api_version, strategy
        self.notes, self.problems = notes, problems
        self._scoring: dict[str, Any] = {"type": strategy}

    def to_v1(self, configs: Iterable[PluginConfig], path: str) -> list[dict[str, Any]]:
        """Return the entries as a v1 document has them."""
        entries: list[dict[str, Any]] = []
        for i, config in enumerate(configs):
            where = f"{path}.pluginConfig[{i}]"
            if self._consume(config, where):
                continue
            args = self._without_version(config, where)
            entries.append({"name": config.name, "args": args})
        if self.strategy:
            self._write_scoring(entries, path)
        return entries

    def _consume(self, config: PluginConfig, where: str) -> bool:
        """Handle an entry of a plugin that v1 does not have; return whether it was one.

        It is refused, dropped, or merged into the entry of NodeResourcesFit.
        """
        name = config.name
        problem = removal_problem(self.api_version.rpartition("/")[2], where, name)
        if problem is not None:
            self.problems.append(problem)
        elif name in OLD_LIMITS:
            self.notes.add(where, f"{name} dropped: {VOLUME_LIMITS} counts its volumes")
        elif name in STRATEGY_OF:
            self._read_scoring(config, where)
        else:
            return False
        return True

    def _read_scoring(self, config: PluginConfig, where: str) -> None:
        """Check the arguments of a scoring plugin; if it is enabled, merge them into _scoring."""
        args = self._decode(
            _SCORER_MODELS[config.name], self._without_version(config, where), f"{where}.args"
        )
        if args is None:
            return
        if STRATEGY_OF[config.name] != self.strategy:
            self.notes.add(where, f"{config.name} dropped: the plugin is not enabled at score")
            return
        self.notes.add(where, f"{config.name} → scoringStrategy of {FIT}")
        resources = to_document(getattr(args, "resources", None) or [])
        self._scoring |= {"resources": resources} if resources else {}
        if isinstance(args, CapacityRatioArgs):
            self._scoring["requestedToCapacityRatio"] = {"shape": to_document(args.shape or [])}

    def _write_scoring(self, entries: list[dict[str, Any]], path: str) -> None:
        """Set scoringStrategy in the entry of NodeResourcesFit, or add such an entry."""
        for entry in entries:
            if entry["name"] == FIT and isinstance(entry["args"], dict):
                if entry["args"].get("scoringStrategy") is not None:
                    where = f"{path}.pluginConfig.{FIT}.args.scoringStrategy"
                    reason = f"the profile's score plugins ask for {self.strategy} already"
                    self.problems.append(Problem(where, reason))
                entry["args"] = {**entry["args"], "scoringStrategy": self._scoring}
                return
        entries.append({"name": FIT, "args": {"scoringStrategy": self._scoring}})

    def _without_version(self, config: PluginConfig, where: str) -> Any:  # noqa: ANN401  (any JSON)
        """Return arguments without their apiVersion, which must be that of the document."""
        # REMOVED_ARGS_MODELS: of plugins that 1.34 lacks and Roadstead has, off by default.
        with_typed_args = (*ARGS_MODELS, *REMOVED_ARGS_MODELS, *STRATEGY_OF)
        if config.name not in with_typed_args:
            return config.args
        if config.args is None:
            return {}
        if not isinstance(config.args, dict):
            return config.args
        version = config.args.get("apiVersion")
        # Go's ParseGroupVersion reads "/" as no version, like an absent field.
        if version and version not in (self.api_version, "/"):
            rule = f"must be {self.api_version}"
            self.problems.append(malformed(f"{where}.args.apiVersion", version, rule))
        return {key: value for key, value in config.args.items() if key != "apiVersion"}

    def _decode(self, model: type[Args], args: object, where: str) -> Args | None:
        try:
            decoded = model.model_validate(args, by_alias=True, by_name=False)
        except ValidationError as error:
            self.problems += validation_problems(error, where)
            return None
        return decoded
