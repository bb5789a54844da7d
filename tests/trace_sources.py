"""A source of one pod for each format that `roadstead trace import` reads, made for tests."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import msgpack

SWF = "; MaxNodes: 2\n; MaxProcs: 8\n1 0 0 60 4 -1 -1 4 -1 -1 1 1 1 1 1 1 -1 -1\n"
MAPPING = """
apiVersion: roadstead.dev/v1
kind: TraceMapping
pods:
  arrival: {column: at}
  duration: {value: 1, unit: h}
  cpu: {column: cpus}
nodes:
  count: {value: 2}
  cpu: {value: 4}
"""
GOOGLE_2019 = [
    {"time": 0, "type": kind, "collection_id": 1, "resource_request": {"cpus": 0.1, "memory": 0.1}}
    for kind in ("SUBMIT", "SCHEDULE")
]


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def azure(path: Path) -> Path:
    with sqlite3.connect(path) as database:
        database.executescript(
            "CREATE TABLE vmType (id, vmTypeId, machineId, core, memory, hdd, ssd, nic);"
            "CREATE TABLE vm (vmId, tenantId, vmTypeId, priority, starttime, endtime);"
            "INSERT INTO vmType VALUES (1, 1, 0, 0.5, 0.5, 0, 0, 0);"
            "INSERT INTO vm VALUES (1, 1, 1, 0, 0.0, 1.0);"
        )
    return path


def write_sources(tmp_path: Path) -> dict[str, list[object]]:
    """Write a source of one pod for each format; return the arguments of its command."""
    google, alibaba, gpu, philly = (tmp_path / name for name in ("g", "a", "p", "y"))
    write(google / "machine_events" / "part-0.csv", "0,1,0,x,0.5,0.5\n")
    events = "".join(f"1,,2,0,,{kind},u,0,0,0.1,0.1,,\n" for kind in (0, 1))
    write(google / "task_events" / "part-0.csv", events)
    write(google / "machine_events.json", '{"time": 0, "machine_id": 1, "type": 1}\n')
    write(google / "instance_events.json", "\n".join(map(json.dumps, GOOGLE_2019)))
    write(alibaba / "machine_meta.csv", "m,0,1,1,96,100,USING\n")
    write(alibaba / "batch_task.csv", "t,1,j,1,Terminated,5,9,100,1.5\n")
    write(gpu / "pai_machine_spec.csv", "m,T4,96,512,2\n")
    write(gpu / "pai_task_table.csv", "j,t,1,Terminated,5,9,600,30,50,T4\n")
    write(philly / "cluster_machine_list", "machineId,number of GPUs, single GPU mem\nm,8, 24GB\n")
    detail = [{"ip": "m", "gpus": ["gpu0"]}]
    attempt = {"start_time": "2017-10-07 01:12:09", "end_time": None, "detail": detail}
    job = {"jobid": "j", "submitted_time": "2017-10-07 01:11:39", "attempts": [attempt]}
    write(philly / "cluster_job_log", json.dumps([job]))
    pod = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p"}}
    pod["spec"] = {"containers": [{"name": "c", "image": "i"}]}
    event = {"ts": 5, "applied_objs": [pod], "deleted_objs": []}
    simkube = tmp_path / "t.sktrace"
    simkube.write_bytes(msgpack.packb({"version": 2, "events": [event], "pod_lifecycles": {}}))
    table, mapping = (
        write(tmp_path / "t.csv", "at,cpus\n0,1\n"),
        write(tmp_path / "m.yaml", MAPPING),
    )
    return {
        "swf": [write(tmp_path / "log.swf", SWF)],
        "azure-packing": [azure(tmp_path / "z.sqlite"), "--nodes", "2"],
        "google-2011": [google],
        "google-2019": [google],
        "alibaba-2018": [alibaba],
        "alibaba-gpu-2020": [gpu],
        "philly": [philly],
        "simkube": [simkube],
        "table": [table, "--mapping", mapping],
    }
