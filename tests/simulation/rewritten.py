"""A file of a journal rewritten with other contents and correct checksums.

The file is valid by itself; only the data before and after it can show that it was replaced.
"""

import struct
import zlib

from tests.simulation.plain_journal import CONTINUED, FRAME_BYTES, PlainFile, chained


def rewritten(data, header=None, frame=None):
    """header: new values of first_lsn, number and before. frame: (index, new values of first_lsn
    and count).

    The data after its last frame stays unchanged.
    """
    file, data = PlainFile("").read(data), bytes(data)
    place, other = frame or (-1, {})
    head = {"first_lsn": file.first_lsn, "number": file.number, "before": file.before}
    head |= header or {}
    found = data[:20] + struct.pack("<Q", head["first_lsn"]) + data[28:32]
    found += struct.pack("<I", zlib.crc32(found))
    found += struct.pack("<QQ", head["number"], head["before"])
    found += struct.pack("<I", zlib.crc32(found))
    segment = zlib.crc32(found)
    digest = chained(head["before"], segment)
    for number, each in enumerate(file.frames):
        fields = {"first_lsn": each.first_lsn, "count": each.count}
        fields |= other if number == place else {}
        numbers = segment, fields["first_lsn"], fields["count"], digest, each.durable_bytes
        body = data[each.offset + FRAME_BYTES : each.end]
        checked = struct.pack("<BIQIQQ", each.kind, *numbers) + body
        checksum = zlib.crc32(checked)
        found += struct.pack("<4sII", b"\xf2RJ\n", len(body), checksum) + checked
        digest = digest if each.kind == CONTINUED else chained(digest, checksum)
    return found + data[file.offset :]
