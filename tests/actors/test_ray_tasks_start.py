"""A sweep on Ray whose shared input cannot be stored: one error, and Ray is shut down."""

import pytest
from ray.exceptions import RayError

from roadstead.actors.interface import RunFailedError
from roadstead.actors.runtime.ray_session import BorrowedRay, RaySession
from roadstead.actors.sweeps import ray_tasks
from roadstead.actors.sweeps.ray_tasks import RayTasks
from roadstead.config.settings import Settings
from roadstead.sweeps.tasks import Work

WORK = Work("roadstead.lab.sweep:run", {}, ())


class LocalRay(RaySession):
    """A local Ray that is not started. folder: does not exist, as on a disk without room."""

    def __init__(self, folder):
        self._folder = str(folder)
        self.ends = 0

    def leave(self, *, by_force=False):
        self.ends += 1


class JoinedRay(BorrowedRay):
    ends = 0

    def leave(self, *, by_force=False):
        self.ends += 1


def fail(_):
    raise RayError("the object store is full")


@pytest.mark.parametrize(
    ("make", "text"),
    [(LocalRay, "sweep: cannot be written: "), (lambda _: JoinedRay(), "the object store is full")],
)
def test_a_shared_input_that_cannot_be_stored_ends_ray(monkeypatch, tmp_path, make, text):
    session = make(tmp_path / "missing")
    monkeypatch.setattr(ray_tasks, "open_session", lambda *_: session)
    monkeypatch.setattr(ray_tasks.ray, "put", fail)

    with pytest.raises(RunFailedError, match=text):
        RayTasks(WORK, Settings(), 1, print)

    assert session.ends == 1
