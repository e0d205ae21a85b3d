"""A web server of the test's own, that receives webhooks and answers as it was told to."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple


class Received(NamedTuple):
	body: bytes
	headers: dict


class Receiver:
	"""Answers with each of `statuses` in turn, and then with 200."""

	def __init__(self, *statuses: int):
		self.statuses, self.received = list(statuses), []
		self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
		self.url = f"http://127.0.0.1:{self.server.server_port}/hook"

	def __enter__(self) -> "Receiver":
		threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
		return self

	def __exit__(self, *_error) -> None:
		self.server.shutdown()
		self.server.server_close()

	def _handler(self) -> type:
		receiver = self

		class Handler(BaseHTTPRequestHandler):
			def do_POST(self) -> None:
				body = self.rfile.read(int(self.headers["Content-Length"]))
				receiver.received.append(Received(body, dict(self.headers)))
				self.send_response(receiver.statuses.pop(0) if receiver.statuses else 200)
				self.send_header("Content-Length", "0")
				self.send_header("Location", receiver.url)  # for those that are redirected
				self.end_headers()

			def log_message(self, *_words) -> None:
				pass

		return Handler
