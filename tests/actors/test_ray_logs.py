"""Logs of a cluster's nodes are gathered at the driver, bounded in size and in time."""

import asyncio
import json
import stat

import pytest
from ray.exceptions import RayActorError

from roadstead.actors.runtime import log_location, ray_logs
from roadstead.actors.runtime.log_location import PART_BYTES, read_on_node
from roadstead.actors.runtime.ray_logs import NodeLogs, RunLogs, gather
from roadstead.actors.runtime.ray_placement import RayNode
from roadstead.protocol.plain_data import DecodeLimits, pack, unpack
from tests.actors.world import GENEROUS_S

H1 = RayNode("aaaaaaaa1", "h1", "10.0.0.1", 7000, 4.0, 4.0)
H2 = RayNode("bbbbbbbb2", "h2", "10.0.0.2", 7000, 4.0, 4.0)


class Disk:
    """The folder of a run on one node. hangs_at: request after which it does not answer."""

    def __init__(self, hangs_at=None, **files):
        self.files = {name.replace("_", "-"): data for name, data in files.items()}
        self.hangs_at = hangs_at
        self.asked = []

    async def ask(self, name, start, count):
        if self.hangs_at == len(self.asked):
            await asyncio.Event().wait()
        self.asked.append((name, start, count))
        if not name:
            sizes = [[each, len(data)] for each, data in self.files.items()]
            return pack(["/ray/logs/run", sizes])
        return pack(self.files[name][start : start + count])


async def broken(name, start, count):
    raise RayActorError


def node(*asks, label="h2", processes=("scheduler-0",)):
    return NodeLogs(label, f"{label} (10.0.0.2)", processes, asks)


def lines(count):
    return b"".join(b'{"event": "%06d"}\n' % number for number in range(count))


async def test_files_get_the_name_of_their_node_and_are_copied_in_small_parts(tmp_path):
    data = lines(20_000)
    disk = Disk(**{"scheduler-0.jsonl": data})

    missing = await gather([node(disk.ask)], tmp_path / "new", GENEROUS_S)

    assert missing == []
    assert (tmp_path / "new" / "scheduler-0@h2.jsonl").read_bytes() == data
    assert len(disk.asked) > 2, "the file is copied in several parts"
    assert max(count for _, _, count in disk.asked) <= PART_BYTES


async def test_both_lives_of_a_replaced_process_are_copied(tmp_path):
    first = Disk(**{"scheduler-0.jsonl": b"1\n"})
    second = Disk(**{"scheduler-0.2.jsonl": b"2\n"})

    await gather(
        [
            node(first.ask, label="h1"),
            node(second.ask, label="h2", processes=("scheduler-0.2",)),
        ],
        tmp_path,
        GENEROUS_S,
    )

    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        "scheduler-0@h1.jsonl": b"1\n",
        "scheduler-0.2@h2.jsonl": b"2\n",
    }


async def test_logs_of_an_earlier_run_stay(tmp_path):
    (tmp_path / "scheduler-0@h2.jsonl").write_bytes(b"earlier\n")

    await gather([node(Disk(**{"scheduler-0.jsonl": b"now\n"}).ask)], tmp_path, GENEROUS_S)

    assert (tmp_path / "scheduler-0@h2.jsonl").read_bytes() == b"earlier\nnow\n"


async def test_the_newest_lines_of_a_long_log_are_copied_and_omitted_ones_counted(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(ray_logs, "MAX_FILE_BYTES", 1_000)
    data = lines(100)

    missing = await gather([node(Disk(**{"scheduler-0.jsonl": data}).ask)], tmp_path, GENEROUS_S)

    note, *kept = (tmp_path / "scheduler-0@h2.jsonl").read_bytes().splitlines(keepends=True)
    assert data.endswith(b"".join(kept)), "whole lines, up to the end"
    assert sum(map(len, kept)) <= 1_000, "no more than the bound is kept"
    assert json.loads(note)["bytes"] == len(data) - sum(map(len, kept))
    where = "all of it is there in /ray/logs/run/scheduler-0.jsonl"
    left_out = len(data) - 1_000
    assert missing == [f"{left_out:,} bytes of scheduler-0.jsonl on h2 (10.0.0.2) ({where})"]


async def test_a_transcript_is_copied_first_and_for_its_owner_only(tmp_path):
    disk = Disk(**{"control.jsonl": b"{}\n", "queue.transcript": b"bytes"})

    await gather([node(disk.ask, processes=("control",))], tmp_path, GENEROUS_S)

    path = tmp_path / "queue@h2.transcript"
    assert path.read_bytes() == b"bytes"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [name for name, _, _ in disk.asked] == ["", "queue.transcript", "control.jsonl"]


async def test_a_process_that_ended_is_answered_for_by_the_next_way_to_ask(tmp_path):
    disk = Disk(**{"scheduler-0.jsonl": b"{}\n"})

    missing = await gather([node(broken, disk.ask)], tmp_path, GENEROUS_S)

    assert missing == []
    assert (tmp_path / "scheduler-0@h2.jsonl").exists()


async def test_an_unresponsive_node_is_reported_and_the_others_are_copied(tmp_path):
    disk = Disk(**{"worker-0.jsonl": b"{}\n"})
    nodes = [node(broken), node(disk.ask, label="h1", processes=("worker-0",))]

    missing = await gather(nodes, tmp_path, GENEROUS_S)

    assert len(missing) == 1
    assert missing[0].startswith("scheduler-0 on h2 (10.0.0.2) (")
    assert (tmp_path / "worker-0@h1.jsonl").exists()


async def test_the_deadline_ends_a_node_that_hangs_and_keeps_what_arrived(tmp_path):
    data = lines(20_000)
    # The list of files and one part are answered.
    disk = Disk(hangs_at=2, **{"scheduler-0.jsonl": data})

    missing = await gather([node(disk.ask)], tmp_path, 0.05)

    assert missing == ["scheduler-0 on h2 (10.0.0.2) (not received within 0.05 s)"]
    kept = (tmp_path / "scheduler-0@h2.jsonl").read_bytes().partition(b"\n")[2]
    assert data.endswith(kept)
    assert 0 < len(kept) <= PART_BYTES, "the first part arrived, and no complete file"


async def test_a_process_without_a_file_is_reported(tmp_path):
    missing = await gather([node(Disk().ask)], tmp_path, GENEROUS_S)

    assert missing == ["scheduler-0 on h2 (10.0.0.2) (no file in /ray/logs/run)"]


@pytest.mark.parametrize("name", ["../../etc/cron", "a/b.jsonl", "..", ""])
async def test_names_that_leave_the_folder_are_refused(tmp_path, name):
    async def ask(*_):
        return pack(["/ray/logs/run", [[name, 3]]])

    missing = await gather([node(ask)], tmp_path / "logs", GENEROUS_S)

    assert missing == ["scheduler-0 on h2 (10.0.0.2) (not a name and size of a file)"]
    assert not (tmp_path / "logs").exists()


def test_other_and_removed_files_are_not_listed(tmp_path, monkeypatch):
    monkeypatch.setattr(log_location, "folder_on_node", lambda run: tmp_path / run)
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "queue.jsonl").write_bytes(b"1\n")
    (folder / "core.12").write_bytes(b"")
    # Its name is there, and it has no size.
    (folder / "removed.jsonl").symlink_to(folder / "nothing")

    assert unpack(read_on_node("run", "", 0, 0), DecodeLimits()) == [
        str(folder),
        [["queue.jsonl", 2]],
    ]


async def test_a_folder_that_cannot_be_written_does_not_fail_the_run(tmp_path):
    (tmp_path / "logs").write_text("a file")

    disk = Disk(**{"scheduler-0.jsonl": b"{}\n"})
    (missing,) = await gather([node(disk.ask)], tmp_path / "logs", GENEROUS_S)

    assert missing.startswith("scheduler-0 on h2 (10.0.0.2) (")


def test_a_replaced_process_gets_a_name_of_its_own(tmp_path):
    logs = RunLogs("roadstead-1", tmp_path)

    places = [logs.location_for("scheduler-0", each) for each in (H1, H2, H2)]

    assert [place.name for place in places] == ["scheduler-0", "scheduler-0.2", "scheduler-0.3"]
    assert {place.run for place in places} == {"roadstead-1"}


async def test_processes_of_lost_nodes_are_named_in_one_message(tmp_path):
    logs = RunLogs("roadstead-1", tmp_path)
    logs.location_for("scheduler-0", H1)
    logs.location_for("worker-0", H1)

    missing = await logs.gather({}, {}, {H1.id}, GENEROUS_S)

    text = "scheduler-0, worker-0 on h1 (10.0.0.1) (the node is lost)"
    assert missing == f"Not all logs are in {tmp_path}: {text}."


async def test_a_run_without_processes_has_nothing_to_say(tmp_path):
    assert await RunLogs("roadstead-1", tmp_path).gather({}, {}, set(), GENEROUS_S) == ""
