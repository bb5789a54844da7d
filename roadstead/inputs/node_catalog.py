"""A catalogue of node shapes: which nodes may be added to a cluster, and what they cost.

apiVersion: roadstead.dev/v1
kind: NodeCatalog
shapes:
- name: cpu-16
  pricePerHour: 0.8        # optional, but for all shapes or for none
  maxCount: 50             # default: as many as needed
  node:                    # a Node without a name
    metadata: {labels: {topology.kubernetes.io/zone: a}}
    status: {allocatable: {cpu: "16", memory: 64Gi, pods: "110"}}
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, cast

from roadstead.config.files import read_bytes
from roadstead.facts.compile import compile_node
from roadstead.facts.node import HOSTNAME_LABEL, NodeFacts, class_of_node, named_node
from roadstead.manifests.defaults import default_node
from roadstead.manifests.object_checks import check_node
from roadstead.protocol.documents import read_documents
from roadstead.protocol.errors import InputError, cut_short
from roadstead.protocol.objects import Node, validate

API_VERSION: Final = "roadstead.dev/v1"
KIND: Final = "NodeCatalog"
MAX_BYTES: Final = 1 << 24
SHAPES_MAX: Final = 100
COUNT_MAX: Final = 1_000_000
PRICE_MAX: Final = 1e9
"""Bounds of a catalogue and its values, because the file may be anyone's."""

_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,40}[a-z0-9])?")
_FIELDS: Final = ("name", "pricePerHour", "maxCount", "node")
_TEMPLATE_NAME: Final = "template"
"""Placeholder for the name of a template while it is checked as a Node. The facts have no name."""


@dataclass(frozen=True, slots=True)
class CatalogShape:
    """A shape of nodes that may be added.

    template: facts of such a node, without a name. manifest: the Node as written, without a name.
    price_per_hour: None if the catalogue has no prices. max_count: None for no limit.
    """

    name: str
    template: NodeFacts
    manifest: Mapping[str, object]
    price_per_hour: float | None = None
    max_count: int | None = None

    def node(self, number: int) -> NodeFacts:
        """Return the facts of an added node. number: of the node within its shape, from 1."""
        return named_node(self.template, node_name(self.name, number))

    def node_manifest(self, number: int) -> dict[str, object]:
        """Return the manifest of `node`, for `kubectl` or `--cluster`."""
        name = node_name(self.name, number)
        # A copy for each node: YAML would print the second use of one object as an alias.
        manifest = deepcopy(dict(self.manifest))
        metadata = dict(cast("Mapping[str, object]", manifest.get("metadata") or {}))
        labels = dict(cast("Mapping[str, object]", metadata.get("labels") or {}))
        labels.setdefault(HOSTNAME_LABEL, name)
        metadata |= {"name": name, "labels": labels}
        return {"apiVersion": "v1", "kind": "Node", **manifest, "metadata": metadata}


def node_name(shape: str, number: int) -> str:
    """Return the name of an added node: the shape's, and a number of four digits or more."""
    return f"{shape}-{number:04}"


def read_catalog(path: Path) -> tuple[CatalogShape, ...]:
    """Read a catalogue. Raises InputError with file, shape, field, value and rule."""
    source, text = str(path), read_bytes(path, MAX_BYTES)
    documents = list(read_documents(text, source=source, max_bytes=MAX_BYTES))
    if len(documents) != 1:
        raise InputError(f"holds {len(documents)} documents; want one {KIND}", source=source)
    return catalog_of(documents[0], source)


def catalog_of(document: object, source: str) -> tuple[CatalogShape, ...]:
    """Return the shapes of a catalogue's document. Raises InputError."""
    if not isinstance(document, dict):
        raise InputError(f"must be a map, a {KIND}", source=source, value=cut_short(document))
    for field, wanted in (("apiVersion", API_VERSION), ("kind", KIND)):
        if document.get(field) != wanted:
            value = cut_short(document[field]) if field in document else ""
            raise InputError(f"must be {wanted}", source=source, field=field, value=value)
    _check_fields(document, ("apiVersion", "kind", "metadata", "shapes"), source, "")
    listed = document.get("shapes")
    if not isinstance(listed, list) or not 1 <= len(listed) <= SHAPES_MAX:
        rule = f"must be a list of 1 to {SHAPES_MAX} shapes"
        raise InputError(rule, source=source, field="shapes", value=cut_short(listed))
    shapes = tuple(_shape(each, source, f"shapes[{i}]") for i, each in enumerate(listed))
    _check_names_and_prices(shapes, source)
    return shapes


def _check_fields(
    entry: Mapping[str, object], known: tuple[str, ...], source: str, at: str
) -> None:
    """Raise InputError for an unknown field. at: path of the entry, "" for the document."""
    for key in entry:
        if key not in known:
            problem = f"is not a field here (there are {', '.join(known)})"
            raise InputError(problem, source=source, field=f"{at}.{key}".lstrip(".")[:120])


def _check_names_and_prices(shapes: tuple[CatalogShape, ...], source: str) -> None:
    """Raise InputError for a name that occurs twice, or prices of some shapes only."""
    names: set[str] = set()
    for index, each in enumerate(shapes):
        if each.name in names:
            raise InputError(
                "occurs twice",
                source=source,
                field=f"shapes[{index}].name",
                value=cut_short(each.name),
            )
        names.add(each.name)
    priced = [each.price_per_hour is not None for each in shapes]
    if any(priced) and not all(priced):
        problem = "is missing: prices are given for all shapes or for none"
        raise InputError(
            problem, source=source, field=f"shapes[{priced.index(False)}].pricePerHour"
        )


def _shape(entry: object, source: str, at: str) -> CatalogShape:
    """Check one entry of `shapes`. at: the path of its field, for errors."""
    if not isinstance(entry, dict):
        raise InputError("must be a map", source=source, field=at, value=cut_short(entry))
    _check_fields(entry, _FIELDS, source, at)
    name = entry.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        rule = "must be a name of lower-case letters, digits and '-', of at most 42 characters"
        value = cut_short(name) if "name" in entry else ""
        raise InputError(rule, source=source, field=f"{at}.name", value=value)
    template = entry.get("node")
    if not isinstance(template, dict):
        rule = "must be a Node, as a map"
        raise InputError(rule, source=source, field=f"{at}.node", value=cut_short(template))
    return CatalogShape(
        name,
        _template(template, source, f"{at}.node"),
        template,
        _price(entry, source, at),
        _max_count(entry, source, at),
    )


def _price(entry: Mapping[str, object], source: str, at: str) -> float | None:
    price = entry.get("pricePerHour")
    if price is None:
        return None
    if isinstance(price, bool) or not isinstance(price, int | float) or not 0 <= price <= PRICE_MAX:
        rule = "must be a number from 0 to 1e9"
        raise InputError(rule, source=source, field=f"{at}.pricePerHour", value=cut_short(price))
    return float(price)


def _max_count(entry: Mapping[str, object], source: str, at: str) -> int | None:
    count = entry.get("maxCount")
    if count is None:
        return None
    if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= COUNT_MAX:
        rule = f"must be a whole number from 0 to {COUNT_MAX:,}"
        raise InputError(rule, source=source, field=f"{at}.maxCount", value=cut_short(count))
    return count


def _template(manifest: dict[str, object], source: str, at: str) -> NodeFacts:
    """Compile the template to facts without a name.

    If it sets no hostname label, the label is a placeholder, which `named_node` replaces by the
    name of the added node.
    """
    for field, wanted in (("apiVersion", "v1"), ("kind", "Node")):
        if manifest.get(field, wanted) != wanted:
            value = cut_short(manifest[field])
            raise InputError(f"must be {wanted}", source=source, field=f"{at}.{field}", value=value)
    metadata = manifest.get("metadata") or {}
    if isinstance(metadata, dict):
        if "name" in metadata:
            rule = "must not be set: added nodes are named after their shape"
            raise InputError(rule, source=source, field=f"{at}.metadata.name")
        metadata = {**metadata, "name": _TEMPLATE_NAME}
    try:
        node = validate("Node", {**manifest, "metadata": metadata}, source=source)
        assert isinstance(node, Node)
        check_node(node, source=source)
    except InputError as error:
        raise error.at(field=at) if error.field else error from None
    facts = compile_node(default_node(node))
    if not facts.allocatable_pods:
        rule = "must be set: a node without it has room for no pod"
        raise InputError(rule, source=source, field=f"{at}.status.allocatable.pods")
    labels = dict(facts.labels)
    labels.setdefault(HOSTNAME_LABEL, _TEMPLATE_NAME)
    return class_of_node(replace(facts, labels=tuple(sorted(labels.items()))))
