"""HttpCaller with real servers, correct and hostile."""

import base64
import json

import pytest

from roadstead.extenders.caller import ExtenderError
from roadstead.extenders.http import HttpCaller
from roadstead.extenders.transport import SocketTransport
from roadstead.protocol.errors import InputError
from tests.extenders.servers import Server, config_of, raw_server, reply


def test_a_verb_is_posted_as_json_under_the_prefix():
    with Server(lambda verb, payload: {"verb": verb, **payload}) as server:
        caller = HttpCaller(config_of(server.port))

        answer = caller.call("filter", {"Pod": {"metadata": {"name": "é"}}})

    assert answer == {"verb": "filter", "Pod": {"metadata": {"name": "é"}}}
    assert server.headers[0]["Content-Type"] == "application/json"


def test_user_and_password_are_sent_and_never_shown():
    with Server(lambda *_: lambda handler: reply(handler, 403, b"")) as server:
        config = config_of()
        url = f"http://us%65r:s3cret@127.0.0.1:{server.port}/a/"
        caller = HttpCaller(type(config)(url))

        with pytest.raises(ExtenderError) as caught:
            caller.call("filter", {})

    assert (
        server.headers[0]["Authorization"] == "Basic " + base64.b64encode(b"user:s3cret").decode()
    )
    where = f"http://127.0.0.1:{server.port}/a/filter"
    assert str(caught.value) == f"failed filter with extender at URL {where}, code 403"


def test_a_query_in_the_prefix_stays_before_the_verb_like_upstream():
    seen = []

    def answer(verb, payload):
        return lambda handler: (seen.append(handler.path), reply(handler, 200, b"{}"))

    with Server(answer) as server:
        HttpCaller(type(config_of())(f"http://127.0.0.1:{server.port}/a?b=c")).call("filter", {})

    assert seen == ["/a?b=c/filter"]


def test_a_redirect_is_not_followed():
    def redirect(handler):
        reply(handler, 307, b"", Location=f"http://127.0.0.1:{other.port}/scheduler/filter")

    with Server(lambda *_: {}) as other, Server(lambda *_: redirect) as server:
        caller = HttpCaller(config_of(server.port))
        with pytest.raises(ExtenderError, match="code 307"):
            caller.call("filter", {})

    assert other.asked == []


def test_proxies_in_the_environment_are_not_used(monkeypatch):
    with Server(lambda *_: {"reached": True}) as server:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
            monkeypatch.setenv(name, "http://127.0.0.1:1")

        assert HttpCaller(config_of(server.port)).call("filter", {}) == {"reached": True}


def test_a_too_large_reply_is_refused_with_or_without_a_length():
    def without_length(handler):
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write(b"[" + b" " * 2000)

    for answer in (list(range(1000)), without_length):
        with Server(lambda *_, answer=answer: answer) as server:
            config = config_of(server.port)
            caller = HttpCaller(config, SocketTransport(config, max_reply_bytes=1000))

            with pytest.raises(ExtenderError, match="the reply has more than 1000 bytes"):
                caller.call("filter", {})


def test_a_too_large_request_is_not_sent():
    caller = HttpCaller(config_of(1), max_request_bytes=10)

    with pytest.raises(ExtenderError, match='/filter": 19 bytes are more than 10'):
        caller.call("filter", {"Pod": "123456789"})


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"<html>", "invalid character '<' looking for beginning of value"),
        (b"not json", r"invalid character 'o' in literal null \(expecting 'u'\)"),
        (b"", "^EOF$"),
        (b"{", "unexpected EOF"),
        (b"[NaN]", "invalid character 'N' looking for beginning of value"),
        (b"[" * 100_000, "exceeded max depth"),
    ],
)
def test_a_reply_that_is_not_json_is_refused(body, why):
    with Server(lambda *_: lambda handler: reply(handler, 200, body)) as server:
        caller = HttpCaller(config_of(server.port))
        with pytest.raises(ExtenderError, match=why):
            caller.call("filter", {})


def test_a_truncated_reply_is_refused():
    def short(handler):
        reply(handler, 200, b"{}", **{"Content-Length": "10"})

    with (
        Server(lambda *_: short) as server,
        pytest.raises(ExtenderError, match=r"^unexpected EOF$"),
    ):
        HttpCaller(config_of(server.port)).call("filter", {})


def test_an_unanswered_request_fails_at_the_deadline():
    with raw_server(lambda connection, done: done.wait(30)) as port:
        caller = HttpCaller(config_of(port, http_timeout_s=0.2))
        with pytest.raises(ExtenderError, match="awaiting headers"):
            caller.call("filter", {})


@pytest.mark.parametrize(
    ("start", "message"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n", r"^context deadline exceeded \(.* while reading body\)$"),
        (b"", r'^Post ".*": context deadline exceeded \(.* while awaiting headers\)$'),
    ],
)
def test_a_slow_reply_fails_at_the_deadline(start, message):
    def trickle(connection, done):
        connection.sendall(start)
        while not done.wait(0.02):
            connection.sendall(b" ")

    with raw_server(trickle) as port:
        caller = HttpCaller(config_of(port, http_timeout_s=0.3))
        with pytest.raises(ExtenderError, match=message):
            caller.call("filter", {})


def test_an_endless_handshake_fails_at_the_deadline():
    with raw_server(lambda connection, done: done.wait(30)) as port:
        config = config_of(port, scheme="https", http_timeout_s=0.2)

        with pytest.raises(ExtenderError, match="awaiting headers"):
            HttpCaller(config).call("filter", {})


def test_a_refused_connection_is_reported_with_url_and_verb():
    with raw_server(lambda *_: None) as port:
        pass

    with pytest.raises(ExtenderError) as caught:
        HttpCaller(config_of(port)).call("filter", {})

    url = f"http://127.0.0.1:{port}/scheduler/filter"
    refused = f"dial tcp 127.0.0.1:{port}: connect: connection refused"
    assert str(caught.value) == f'Post "{url}": {refused}'


def test_an_answer_that_is_not_http_is_reported():
    def babble(connection, done):
        connection.recv(65536)
        connection.sendall(b"hello\r\n\r\n")

    with raw_server(babble) as port, pytest.raises(ExtenderError, match="hello"):
        HttpCaller(config_of(port)).call("filter", {})


def test_a_connection_that_closes_without_an_answer_is_reported():
    with raw_server(lambda connection, done: connection.recv(65536)) as port:
        caller = HttpCaller(config_of(port))
        with pytest.raises(ExtenderError, match=r": EOF$|connection reset by peer$"):
            caller.call("filter", {})


@pytest.mark.parametrize("url", ["ftp://h/", "http://", "h:80", "http://h:99999", "http://h/a b"])
def test_a_prefix_that_is_not_a_url_is_refused(url):
    with pytest.raises(InputError, match=r"urlPrefix: .* is not a URL"):
        HttpCaller(type(config_of())(url))


def test_json_of_any_content_type_is_read():
    with Server(lambda *_: [1, "a", None]) as server:
        answer = HttpCaller(config_of(server.port)).call("prioritize", {})

    assert json.dumps(answer) == '[1, "a", null]'
