"""A session of the explorer behind its server, in a thread."""

import http.client
import json
import logging
import threading
import time

import uvicorn

from rehearsal_torch.explorer.loopback import listening
from rehearsal_torch.explorer.server import configured


class Served:
    """A session behind a server in a thread."""

    def __init__(self, session):
        self.session = session
        self.socket = listening("127.0.0.1", 0)
        self.port = self.socket.getsockname()[1]
        self.uvicorn = uvicorn.Server(configured(session, self.port))
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        self.thread = threading.Thread(target=self.uvicorn.run, args=([self.socket],))
        self.thread.start()
        while not self.uvicorn.started:
            time.sleep(0.01)

    def end(self):
        self.uvicorn.should_exit = True
        self.thread.join(10)
        self.socket.close()

    def ask(self, path, body=None, **headers):
        """Status, content type and content of a request."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        text = None if body is None else body if isinstance(body, str) else json.dumps(body)
        kind = {} if body is None else {"content-type": "application/json"}
        connection.request("GET" if body is None else "POST", path, text, kind | headers)
        answer = connection.getresponse()
        content, form = answer.read(), answer.headers["content-type"]
        connection.close()
        return answer.status, form, json.loads(content) if form == "application/json" else content.decode()
