"""A second allocator, as slow and as close to upstream's text as possible, to compare with.

It recurses, caches nothing, keeps sets instead of bits and tries every order of devices. It reads
the pools that the allocator under test has gathered.
"""

from dataclasses import dataclass, field

from roadstead.devices import DeviceSelectorError
from roadstead.facts.taints import tolerated
from roadstead.protocol.quantity import parse_quantity

MANY = "allocation max size exceeded"


class Refused(Exception):
    """An error of upstream."""


@dataclass
class Reference:
    """One allocation. pools: of `DevicePools`; in_use: ids; compile: as of the allocator."""

    gates: object
    classes: dict
    pools: tuple
    in_use: frozenset
    compile: object
    claims: tuple
    steps: int = 0
    allocating: dict = field(default_factory=dict)
    counters: dict = field(default_factory=dict)
    results: list = field(default_factory=list)
    data: dict = field(default_factory=dict)
    constraints: list = field(default_factory=list)

    def allocate(self):
        """Return (request, device id) by claim, None, or raise Refused."""
        for index, claim in enumerate(self.claims):
            self.results.append([])
            self._validate(index, claim)
            self.constraints.append([Attribute(each) for each in claim.spec.constraints])
        found = self._one(0, 0, 0, 0, False)
        if found == MANY:
            raise Refused(MANY)
        return [[each[:2] for each in chosen] for chosen in self.results] if found else None

    def _validate(self, index, claim):
        least = 0
        for number, request in enumerate(claim.spec.requests):
            counts = []
            for position, form in enumerate(request.alternatives or (request,)):
                devices = []
                if form.mode == "All":
                    devices = self._all(index, claim, request, position)
                wanted = len(devices) if form.mode == "All" else form.count
                self.data[index, number, position] = (form, wanted, devices)
                counts.append(wanted)
            least += min(counts)
        if least > 32:
            raise Refused(
                f"claim {claim.key}: number of requested devices {least} "
                "exceeds the claim limit of 32"
            )

    def _all(self, index, claim, request, position):
        forms = request.alternatives or (request,)
        form = forms[position]
        matched = forms[0] if position == 1 and forms[0].mode == "All" else form
        where = f"claim {claim.key}, request {form.name}: asks for all devices, but resource pool"
        devices = []
        for pool in self.pools:
            if pool.is_incomplete:
                raise Refused(f"{where} {pool} is currently being updated")
            if pool.invalid:
                raise Refused(f"{where} {pool} is currently invalid")
            devices += [each for each in pool.devices if self._selectable(claim, matched, each)]
        return devices

    def _selectable(self, claim, form, device):
        device_class = self.classes[form.device_class]
        if device.facts.binding_conditions and not self.gates.binding_conditions:
            return False
        for owner, selectors in (
            (f"class {device_class.name}", device_class.selectors),
            (f"claim {claim.key}", form.selectors),
        ):
            for number, expression in enumerate(selectors):
                try:
                    if not self.compile(expression).matches(device.id[0], device.facts):
                        return False
                except DeviceSelectorError as error:
                    text = f"{owner}: selector #{number}: CEL runtime error: {error}"
                    raise Refused(text) from error
        return True

    def _one(self, c, r, sub, d, in_sub):
        self.steps += 1
        if c >= len(self.claims):
            return True
        requests = self.claims[c].spec.requests
        if r >= len(requests):
            found = self._one(c + 1, 0, 0, 0, False)
            return False if found == MANY else found
        if requests[r].alternatives and not in_sub:
            only_many = True
            for position in range(len(requests[r].alternatives)):
                found = self._one(c, r, position, d, True)
                if found is True:
                    return True
                only_many = only_many and found == MANY
            return MANY if only_many else False
        form, wanted, devices = self.data[c, r, sub]
        is_all = form.mode == "All"
        if is_all and not devices:
            return False
        if d >= wanted:
            return self._one(c, r + 1, 0, 0, False)
        if len(self.results[c]) + wanted - d > 32:
            return MANY
        if is_all:
            undo = self._choose(c, r, form, devices[d], must=True)
            if undo is None:
                return False
            found = self._one(c, r, 0, d + 1, in_sub)
            if found is not True:
                undo()
            return found
        for pool in self.pools:
            if pool.invalid:
                raise Refused(f"pool {pool.name} is invalid: {pool.invalid}")
            for device in pool.devices:
                if self._occupied(c, form, device):
                    continue
                if not self._selectable(self.claims[c], form, device):
                    continue
                undo = self._choose(c, r, form, device, must=False)
                if undo is None:
                    continue
                found = self._one(c, r, sub, d + 1, in_sub)
                if found is True:
                    return True
                undo()
                if found == MANY:
                    return MANY
        return False

    def _occupied(self, c, form, device):
        claims = self.allocating.get(device.id, set())
        if form.has_admin_access:
            return c in claims
        return device.id in self.in_use or bool(claims)

    def _choose(self, c, r, form, device, *, must):
        if self._occupied(c, form, device):
            return None
        if device.facts.consumes and not (self.gates.partitionable and self._consume(device)):
            return None
        if self.gates.taints and not all(
            tolerated(each, form.tolerations) for each in device.facts.taints
        ):
            return None
        request = self.claims[c].spec.requests[r]
        name = f"{request.name}/{form.name}" if request.alternatives else form.name
        added = []
        for each in self.constraints[c]:
            if not each.add(request.name, name, device):
                if must:
                    raise Refused(
                        f"claim {self.claims[c].key}, request {form.name}: cannot add device "
                        f"{'/'.join(device.id)} because a claim constraint would not be satisfied"
                    )
                for other in added:
                    other.remove(request.name, name)
                return None
            added.append(each)
        self.allocating.setdefault(device.id, set()).add(c)
        self.results[c].append((name, device.id, device))

        def undo():
            for each in added:
                each.remove(request.name, name)
            self.allocating[device.id].discard(c)
            self._count(device, -1)
            self.results[c].pop()

        return undo

    def _consume(self, device):
        self._count(device, 1)
        facts = device.slice
        for each in facts.shared_counters:
            for name, text in each.counters:
                left = _milli(text)
                for other in facts.devices:
                    if (facts.driver, facts.pool, other.name) in self.in_use:
                        left -= sum(
                            _milli(amount)
                            for used in other.consumes
                            if used.name == each.name
                            for counter, amount in used.counters
                            if counter == name
                        )
                if self.counters.get((facts.name, each.name, name), 0) > left:
                    self._count(device, -1)
                    return False
        return True

    def _count(self, device, factor):
        if not self.gates.partitionable:
            return
        for each in device.facts.consumes:
            for name, text in each.counters:
                key = (device.slice.name, each.name, name)
                self.counters[key] = self.counters.get(key, 0) + factor * _milli(text)


def _milli(text):
    return parse_quantity(text).milli_value()


class Attribute:
    """matchAttribute only."""

    def __init__(self, facts):
        self.facts = facts
        self.devices = []

    def _concerns(self, request, name):
        return (
            not self.facts.requests or request in self.facts.requests or name in self.facts.requests
        )

    def add(self, request, name, device):
        if not self._concerns(request, name):
            return True
        domain, _, bare = self.facts.match_attribute.partition("/")
        known = {each.name: (each.kind, each.value) for each in device.facts.attributes}
        value = known.get(self.facts.match_attribute)
        if value is None and domain == device.id[0]:
            value = known.get(bare)
        if value is None or any(value != other for other in self.devices):
            return False
        self.devices.append(value)
        return True

    def remove(self, request, name):
        if self._concerns(request, name):
            self.devices.pop()
