#!/usr/bin/env python3
"""The last messages of an actor whose run ended with a bug, from the file next to its logs.

    scripts/transcript.py DIR/queue.transcript      the error, then each message and its content

`replay` sends them to a new actor; see `tests/scripts/test_transcript.py`. Where the transcript is
whole, the new actor raises the same error. Otherwise the earlier messages are missing: run with
`--log` on an input that is small enough.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import roadstead.actors.messages  # noqa: E402, F401  (declares the methods)
from roadstead.actors.interface import METHODS, clock_s  # noqa: E402
from roadstead.actors.messages import PackedChanges  # noqa: E402
from roadstead.actors.runtime.transcript import SavedTranscript, read_transcript  # noqa: E402
from roadstead.protocol.codec import Envelope, from_wire  # noqa: E402
from roadstead.protocol.errors import cut_short, printable  # noqa: E402
from roadstead.protocol.plain_data import CodecError  # noqa: E402

BODY_MAX_CHARS = 400


async def replay(
    saved: SavedTranscript, receive: Callable[[bytes], Awaitable[bytes]]
) -> list[bytes]:
    """Send the messages to a new actor, in their order and at their times; return the replies.

    receive: of the new actor's Dispatcher. On a VirtualLoop the replay does not wait.
    """
    handling: list[asyncio.Task[bytes]] = []
    began_s = clock_s()
    for message in saved.messages:
        due_s = began_s + message.at_s - saved.messages[0].at_s
        # Also sleep if it is due now, so that the handler of the message before begins first.
        await asyncio.sleep(max(0.0, due_s - clock_s()))
        handling.append(asyncio.ensure_future(receive(message.data)))
    return await asyncio.gather(*handling)


def lines_of(saved: SavedTranscript) -> Iterator[str]:
    """Yield the transcript as lines of text."""
    yield f"{saved.actor}: {saved.error}"
    missing = saved.handled - len(saved.messages)
    yield f"{len(saved.messages)} messages" + (f", {missing} before them missing" * (missing > 0))
    for message in saved.messages:
        try:
            yield f"{message.at_s:.6f} {_line_of(Envelope.decode(message.data))}"
        except CodecError as error:
            yield f"{message.at_s:.6f} {len(message.data)} bytes: {error}"


def _line_of(envelope: Envelope) -> str:
    method = METHODS.get(envelope.kind)
    body = envelope.body if method is None else from_wire(method.message, envelope.body)
    if isinstance(body, PackedChanges):
        body = body.unpacked()
    text = repr(body)
    short = text if len(text) <= BODY_MAX_CHARS else text[: BODY_MAX_CHARS - 1] + "…"
    sender = f"{envelope.token} (epoch {envelope.epoch})" if envelope.token else "the driver"
    return f"{envelope.kind} from {sender}: {short}"


def main(arguments: Sequence[str]) -> int:
    """Print a transcript; return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path, help="ACTOR.transcript, in the folder of --log")
    path = parser.parse_args(arguments).file
    try:
        saved = read_transcript(path)
    except (OSError, CodecError) as error:
        print(f"{cut_short(str(path))}: {error}", file=sys.stderr)
        return 1
    for line in lines_of(saved):
        print(printable(line))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
