"""A local server for the tests, whose answers a test gives, and a client of it on a clock that nobody waits for."""

import contextlib
import json
import socket
import threading
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Callable

from doorplate_client import Client, DoorplateError

KEY = "dp_live_key"


def error(code: str) -> dict[str, Any]:
    return {"error": {"code": code, "message": "..."}, "request_id": "id-1"}


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Says nothing of a client that has gone."""


class Service:
    """Answers with (status, headers, body): by a script, its last entry for ever, or by a function of the request.

    None cuts the connection.
    """

    def __init__(self, *script: Any) -> None:
        self.script = list(script)
        self.requests: list[dict[str, Any]] = []
        service = self

        class Handler(BaseHTTPRequestHandler):
            def handle_any(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                sent = json.loads(self.rfile.read(length)) if length else None
                request = {"method": self.command, "path": self.path, "headers": dict(self.headers), "body": sent}
                service.requests.append(request)
                answer = service.script.pop(0) if len(service.script) > 1 else service.script[0]
                if callable(answer):
                    answer = answer(request)
                if answer is None:
                    self.close_connection = True
                    self.connection.close()
                    return
                status, headers, body = answer
                raw = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                if "Content-Length" not in headers:
                    self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            do_GET = do_POST = do_PATCH = do_DELETE = handle_any

            def log_message(self, *args: Any) -> None:
                pass

        self.server = _Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


class ServiceTestCase(unittest.TestCase):
    def serve(self, *script: Any) -> Client:
        self.service = Service(*script)
        self.addCleanup(self.service.close)
        client = Client(self.service.url, KEY)
        self.now = 0.0
        self.slept: list[float] = []

        def sleep(seconds: float) -> None:
            self.slept.append(seconds)
            self.now += seconds

        object.__setattr__(client._transport, "sleep", sleep)
        object.__setattr__(client._transport, "clock", lambda: self.now)
        return client

    def drip(self, sent: bytes) -> Client:
        """A client of a server that sends this, then a byte of a header or body every tenth of a second."""
        ended = threading.Event()
        self.addCleanup(ended.set)

        def answer(connection: socket.socket) -> None:
            connection.sendall(sent)
            while not ended.wait(0.1):
                connection.sendall(b"X")

        return self._client_of(answer)

    def cut_off(self, sent: bytes) -> Client:
        """A client of a server that sends this and closes the connection."""

        def answer(connection: socket.socket) -> None:
            connection.recv(65_536)
            connection.sendall(sent)

        return self._client_of(answer)

    def _client_of(self, answer: Callable[[socket.socket], None]) -> Client:
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)

        def serve(connection: socket.socket) -> None:
            with connection, contextlib.suppress(OSError):
                answer(connection)

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        return Client(f"http://127.0.0.1:{listener.getsockname()[1]}", KEY, timeout=0.5, retries=0)

    def failure(self, call: Any) -> DoorplateError:
        with self.assertRaises(DoorplateError) as raised:
            call()
        return raised.exception

    def methods(self) -> list[str]:
        return [f"{one['method']} {one['path']}" for one in self.service.requests]
