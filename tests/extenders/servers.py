"""Real HTTP and TLS servers in this process that stand for extenders."""

import contextlib
import json
import socket
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from roadstead.config.model import ExtenderConfig


class Server:
    """Answers POSTs with the result of `answer(verb, payload)`, and keeps the requests."""

    def __init__(self, answer, context=None):
        self.asked = []
        self.headers = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                verb, payload = self.path.rpartition("/")[2], json.loads(body)
                outer.asked.append((verb, payload))
                outer.headers.append(dict(self.headers))
                content = answer(verb, payload)
                if callable(content):
                    content(self)
                    return
                reply(self, 200, json.dumps(content).encode())

            def log_message(self, *_):
                pass

        self._httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._httpd.daemon_threads = True
        if context is not None:
            self._httpd.socket = context.wrap_socket(self._httpd.socket, server_side=True)
        self.port = self._httpd.server_address[1]
        self._thread = threading.Thread(
            target=self._httpd.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._httpd.shutdown()
        self._httpd.server_close()
        self._thread.join()


def reply(handler, status, body, **headers):
    handler.send_response(status)
    for name, value in {"Content-Length": str(len(body)), **headers}.items():
        handler.send_header(name, value)
    handler.end_headers()
    with contextlib.suppress(OSError):
        handler.wfile.write(body)


@contextlib.contextmanager
def raw_server(answer):
    """Run a server that calls `answer(connection)` for each connection."""
    listener = socket.create_server(("127.0.0.1", 0))
    done = threading.Event()

    def serve():
        with contextlib.suppress(OSError):
            while not done.is_set():
                connection, _ = listener.accept()
                with connection, contextlib.suppress(OSError):
                    answer(connection, done)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        done.set()
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def tls_server_context(certificate, *, client_roots=None):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    if client_roots is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        client_roots.configure_trust(context)
    return context


def config_of(port=1, *, scheme="http", managed=(), **fields):
    return ExtenderConfig(
        f"{scheme}://127.0.0.1:{port}/scheduler",
        managed_resources=tuple(managed),
        **{"http_timeout_s": 5.0, **fields},
    )
