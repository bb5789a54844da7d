"""Random faults of the cache's stream, for situations that runs seldom reach: workers that miss
changes, alone or together, recover or do not, and are replaced while they are being filled; a
scheduler that does not answer.

Each worker has a plain model of the messages sent to it. In the end, every worker that answers has
all changes, and every worker that fell behind was filled as often as allowed.
"""

import asyncio
import random
from dataclasses import replace
from unittest.mock import patch

from roadstead.actors.cache import refill, stream
from roadstead.actors.cache.actor import CacheActor
from roadstead.actors.interface import NOTHING, UNFENCED, DeadlineError, clock_s
from roadstead.actors.messages import APPLY, ChangesApplied, node_batch
from roadstead.actors.messages.changes import NodeNames
from roadstead.actors.messages.recovery import RESTORE, Restream
from roadstead.actors.names import scheduler_name, worker_name
from roadstead.config.settings import Settings
from roadstead.protocol.errors import RoadsteadError

STEPS = 40
WORKERS = 3
SLOW_S = (0.0, 0.0, 0.1, 0.3)


async def problems_of(plan, scenario, drawn):
    """Return the first few violations by a stream and its followers."""
    draw = random.Random(f"ramble stream {drawn}")
    settings = Settings(workers=WORKERS, schedulers=1)
    small = replace(plan, settings=settings, first_epoch=1)
    with patch.object(stream, "ResendingRef", lambda ref: ref):
        ramble = _Ramble(small, scenario.nodes, draw)
        try:
            for _ in range(STEPS):
                await ramble.step()
            await ramble.end()
        finally:
            ramble.cache.release()
    return [f"stream at random: {each}" for each in ramble.problems[:2]]


class _Follower:
    """One follower. Of a worker: has, the last change up to which it has all; is_behind: it needs a
    fill; fills: of its present life, that began; tries: number of failed fills since it fell
    behind; not_before_s: earliest time of the next try. is_replaced: the supervisor is about to
    fill a new life of it. is_loose: that life began while the cache was about to fill it, too, and
    either fill may be first.
    """

    def __init__(self, name, ramble):
        self.name, self._ramble = name, ramble
        self.is_deaf = self.is_behind = self.is_replaced = self.is_loose = False
        self.epoch, self.has, self.tries, self.fills = 1, 0, 0, 0
        self.filled_to = self.not_before_s = self._behind_s = 0.0
        self._early, self._parts = {}, set()

    def begin_life(self):
        """Begin another life, which the supervisor has filled."""
        self.epoch += 1
        self.has, self._early = -1, {}
        self.is_replaced, self.is_behind, self.tries, self.fills = True, False, 0, 0
        self.is_loose = self._ramble.cache.stream.refill.is_under_way(self.name)

    def look(self):
        """Between two steps: the order of fills is certain again when no message is in transit."""
        is_under_way = self._ramble.cache.stream.refill.is_under_way(self.name)
        if self.is_loose and not (is_under_way or self.is_behind or self.is_replaced):
            self.is_loose, self.tries = False, 0

    async def call(self, method, message, *, timeout_s):
        draw, is_worker = self._ramble.draw, self.name != scheduler_name(0)
        if is_worker and method is RESTORE and message.part == 0:
            self._begin_fill(message)
        elif is_worker and method is APPLY and self.is_behind and clock_s() > self._behind_s:
            self._ramble.wrong(f"{self.name} is behind, and is sent a change")
        is_deaf = self.is_deaf
        await asyncio.sleep(draw.choice(SLOW_S))
        if is_deaf or self.is_deaf:
            self._fail(method, message)
            raise DeadlineError(f"{self.name} did not answer")
        if method is APPLY:
            changes = message.unpacked()
            self._follow(changes.first_seq, changes.count)
            return ChangesApplied(receives_requests=draw.random() < 0.3)
        if message.epoch == self.epoch:
            self._take_part(message)
        return NOTHING

    def _begin_fill(self, message):
        now_s = clock_s()
        if message.epoch == self.epoch:
            self.fills += 1
        if self.fills > 1 and message.epoch == self.epoch > 1 and not self.is_behind:
            # Whichever was first, the supervisor has had this life filled.
            self._ramble.wrong(f"{self.name} is filled again, and missed nothing")
        if not (self.is_replaced or self.is_loose):
            if not self.is_behind:
                self._ramble.wrong(f"{self.name} is filled, and missed nothing")
            if now_s < self.not_before_s - 1e-6:
                self._ramble.wrong(f"{self.name} is filled without a pause")
            self.tries += 1
            if self.tries > refill.FILLS:
                self._ramble.wrong(f"{self.name} is filled {self.tries} times")
        self.is_behind, self.filled_to, self._parts = False, message.seq, set()

    def _fail(self, method, message):
        """A worker that misses a message of a fill, or a change after the last one, is behind."""
        is_old = False
        if method is APPLY:
            changes = message.unpacked()
            is_old = changes.first_seq + changes.count - 1 <= self.filled_to
        if is_old or message_epoch(message, self.epoch) != self.epoch:
            return
        if not self.is_behind:
            self.is_behind, self._behind_s = True, clock_s()
            self.not_before_s = self._behind_s + refill.PAUSE_S

    def _follow(self, first_seq, count):
        self._early[first_seq] = first_seq + count - 1
        self._advance()

    def _advance(self):
        while (first := min(self._early, default=None)) is not None and first <= self.has + 1:
            if self.has < 0:
                break
            self.has = max(self.has, self._early.pop(first))

    def _take_part(self, message):
        self._parts.add(message.part)
        if len(self._parts) == message.parts:
            self.has = max(self.has, message.seq)
            self.is_replaced = self.is_replaced and self.is_behind
            self.tries = self.tries if self.is_behind else 0
            self._advance()


def message_epoch(message, default):
    """The life for which a message of a fill is sent."""
    return getattr(message, "epoch", default)


class _Directory:
    def __init__(self, followers):
        self._followers = followers

    def find(self, name, stamp=UNFENCED):
        return self._followers[name]


class _Ramble:
    def __init__(self, plan, nodes, draw):
        self.draw, self.problems = draw, []
        names = scheduler_name(0), *map(worker_name, range(WORKERS))
        self._followers = {name: _Follower(name, self) for name in names}
        self._scheduler, *self._workers = self._followers.values()
        self.cache = CacheActor(plan, _Directory(self._followers))
        self._hosts, self._here, self._changes = nodes[:6], set(), 0

    def wrong(self, text):
        self.problems.append(text)

    async def step(self):
        kinds = {self._change: 8, self._turn_deaf: 3, self._get_well: 4, self._replace: 1}
        (kind,) = self.draw.choices([*kinds], [*kinds.values()])
        await kind()
        for each in self._workers:
            each.look()
        await asyncio.sleep(self.draw.choice((0.0, 0.0, 0.2, 1.0)))

    async def _change(self):
        facts = self.draw.choice(self._hosts)
        if facts.name in self._here and len(self._here) > 1:
            self._here.remove(facts.name)
            await self.cache.remove_nodes(NodeNames((facts.name,)))
            self._compare_scheduler()
        else:
            # An existing node changes its labels: this is always a change.
            self._here.add(facts.name)
            self._changes += 1
            labels = (*facts.labels, ("change", str(self._changes)))
            await self.cache.add_nodes(node_batch([replace(facts, labels=labels)]))
            self._compare_scheduler()

    def _compare_scheduler(self):
        """Callers that change the cluster continue when all schedulers have the change, whatever
        workers do.
        """
        has, seq = self._scheduler.has, self.cache.stream.seq
        if not self._scheduler.is_deaf and has != seq:
            self.wrong(f"a change is over, and the scheduler has {has} of {seq}")

    async def _turn_deaf(self):
        self.draw.choice(self._workers).is_deaf = True

    async def _get_well(self):
        self.draw.choice(self._workers).is_deaf = False

    async def _replace(self):
        worker = self.draw.choice(self._workers)
        worker.is_deaf = False
        worker.begin_life()
        try:
            await self.cache.restream(Restream(worker.name, worker.epoch))
        except DeadlineError:
            # The supervisor would begin yet another life.
            worker.is_behind = True

    async def end(self):
        """All workers but one recover, and have all changes once all tries are over."""
        silent = self.draw.choice(self._workers)
        for each in self._workers:
            each.is_deaf = each is silent
        await self._change()
        await asyncio.sleep(refill.FILLS * WORKERS * (refill.PAUSE_S + max(SLOW_S)) * 2)
        seq, unfilled = self.cache.stream.seq, self.cache.stream.unfilled
        for each in self._workers:
            if each.is_behind != (each.name in unfilled):
                self.wrong(f"{each.name} is behind: {each.is_behind}; {sorted(unfilled)} are not")
            if each.is_behind and not each.is_loose and each.tries != refill.FILLS:
                self.wrong(f"{each.name} is left behind after {each.tries} tries")
            if not each.is_behind and each.has != seq:
                self.wrong(f"{each.name} has change {each.has} of {seq}")
        await self._lose_the_scheduler()

    async def _lose_the_scheduler(self):
        self._scheduler.is_deaf = True
        try:
            for _ in range(3):
                await self._change()
                await asyncio.sleep(1.0)
        except RoadsteadError as lost:
            if self._scheduler.name not in str(lost):
                self.wrong(f"a scheduler is lost: {lost}")
        else:
            self.wrong("a scheduler takes no changes, and the stream goes on")
