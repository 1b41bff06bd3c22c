"""Starts `saltus studio` and talks to it without a browser: raw requests, and a WebSocket of its own."""
import base64
import json
import os
import re
import socket
import struct
import subprocess
import tempfile


class Studio:
    """The program, serving; `port` and `token` from the link it prints."""

    def __init__(self, binary, *arguments):
        self.folder = tempfile.TemporaryDirectory()
        self.process = subprocess.Popen([binary, "studio", "--no-browser", *arguments], cwd=self.folder.name,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.link = self.process.stdout.readline().strip()
        found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/#([\w-]{32})", self.link)
        assert found, self.link
        self.port, self.token = int(found[1]), found[2]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        assert self.process.wait(10) == 0
        self.process.stdout.close()
        self.folder.cleanup()

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=15)

    def raw(self, request):
        """The status of the answer, its headers in small letters, its body; status 0 if there is none."""
        with self.connect() as s:
            s.sendall(request)
            answer = b""
            try:
                while more := s.recv(65536):
                    answer += more
            except (ConnectionResetError, socket.timeout):
                pass
        head, _, body = answer.partition(b"\r\n\r\n")
        lines = head.decode("latin1").split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines[1:])
        return (int(lines[0].split()[1]) if answer else 0), headers, body

    def get(self, target="/", method="GET", host=None, **headers):
        host = f"127.0.0.1:{self.port}" if host is None else host
        lines = [f"{method} {target} HTTP/1.1", f"Host: {host}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        return self.raw(("\r\n".join(lines) + "\r\n\r\n").encode())

    def upgrade(self, token=None, host=None, origin="own", protocol=None):
        """The status that a WebSocket of such a page gets."""
        host = f"127.0.0.1:{self.port}" if host is None else host
        token = self.token if token is None else token
        headers = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec_WebSocket_Version": "13",
                   "Sec_WebSocket_Key": base64.b64encode(os.urandom(16)).decode(),
                   "Sec_WebSocket_Protocol": protocol or f"saltus.v1, saltus.token.{token}"}
        if origin:
            headers["Origin"] = f"http://{host}" if origin == "own" else origin
        lines = [f"GET /ws HTTP/1.1", f"Host: {host}"] + [f"{n.replace('_', '-')}: {v}" for n, v in headers.items()]
        s = self.connect()
        s.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        head = b""
        while b"\r\n\r\n" not in head:
            more = s.recv(1)
            if not more:
                break
            head += more
        status = int(head.split()[1]) if head else 0
        if status != 101:
            s.close()
            return status, None, head.decode("latin1").lower()
        return status, Socket(s), head.decode("latin1").lower()

    def page(self):
        status, page, _ = self.upgrade()
        assert status == 101, status
        return page


class Socket:
    """A WebSocket that is upgraded already."""

    def __init__(self, s):
        self.socket, self.last_id = s, 0

    def close(self):
        self.socket.close()

    def send_frame(self, payload, opcode=1):
        mask = os.urandom(4)
        n = len(payload)
        head = bytes([0x80 | opcode])
        head += bytes([0x80 | n]) if n < 126 else bytes([0x80 | 126]) + struct.pack(">H", n) if n < 65536 else \
            bytes([0x80 | 127]) + struct.pack(">Q", n)
        whole = (mask * (n // 4 + 1))[:n]
        masked = (int.from_bytes(payload, "big") ^ int.from_bytes(whole, "big")).to_bytes(n, "big") if n else b""
        self.socket.sendall(head + mask + masked)

    def read(self, n):
        out = b""
        while len(out) < n:
            more = self.socket.recv(n - len(out))
            if not more:
                raise ConnectionError("closed")
            out += more
        return out

    def receive(self):
        """The next answer, with its arrays as lists."""
        while True:
            first, second = self.read(2)
            n = second & 127
            if n == 126:
                n = struct.unpack(">H", self.read(2))[0]
            elif n == 127:
                n = struct.unpack(">Q", self.read(8))[0]
            payload = self.read(n)
            opcode = first & 15
            if opcode == 8:
                raise ConnectionError("closed")
            if opcode == 1:
                return json.loads(payload)
            if opcode == 2:
                return decode(payload)

    def send(self, **message):
        self.last_id += 1
        message["id"] = self.last_id
        self.send_frame(json.dumps(message).encode())
        return self.last_id

    def ask(self, **message):
        """The last answer to a request, and those before it."""
        wanted, before = self.send(**message), []
        while True:
            answer = self.receive()
            if answer["id"] != wanted:
                continue
            if answer["kind"] in ("dots", "points", "cells", "orbit", "progress"):
                before.append(answer)
                continue
            return (answer, before) if before else answer


def decode(payload):
    assert payload[:4] == b"SAL1"
    length = struct.unpack("<I", payload[4:8])[0]
    header = json.loads(payload[8:8 + length])
    assert length % 8 == 0
    arrays = {}
    for a in header["arrays"]:
        size, letter = (8, "d") if a["type"] == "f64" else (4, "i")
        at = 8 + length + a["offset"]
        assert at % 8 == 0
        arrays[a["name"]] = list(struct.unpack(f"<{a['length']}{letter}", payload[at:at + size * a["length"]]))
    header["arrays"] = arrays
    return header
