"""The index of volumes."""

from roadstead.facts.storage import ClaimReference
from roadstead.storage.volume_index import VolumeIndex
from tests.inside import objects_in
from tests.storage.world import claim, volume


def test_the_claims_of_removed_volumes_are_not_remembered():
    stays = volume("stays", claim=ClaimReference("default", "shared"))
    index = VolumeIndex([stays])
    for name in ("a", "b"):
        index.add(named := volume(name, claim=ClaimReference("default", f"claim-{name}")))
        index.add(other := volume(f"other-{name}", claim=ClaimReference("default", "shared")))
        index.remove(named)
        index.remove(other)

    assert index.volumes_naming(claim("shared")) == [stays]
    assert not {"claim-a", "claim-b"}.intersection(objects_in(index, str))
