#!/usr/bin/env python3
"""The studio without a browser: who is let in, what is answered, and that it is what the command line computes.

    protocol_test.py SALTUS SOURCE"""
import csv
import json
import math
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
import unittest

from studio import Studio

SALTUS, SOURCE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])


def read(path, **how):
    with open(path, encoding="utf-8", **how) as file:
        return file.read()


def write(path, text, mode="w"):
    with open(path, mode) as file:
        file.write(text)


def table(path):
    return list(csv.DictReader(read(path).splitlines()))


def saltus(*arguments, cwd=None):
    done = subprocess.run([SALTUS, *arguments], capture_output=True, text=True, cwd=cwd)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


class Gate(unittest.TestCase):
    """Threats: other pages in the same browser, other people on the machine, rebound names."""

    @classmethod
    def setUpClass(cls):
        cls.studio = Studio(SALTUS)

    @classmethod
    def tearDownClass(cls):
        cls.studio.__exit__()

    def test_serves_its_page_and_nothing_else(self):
        status, headers, body = self.studio.get("/")
        self.assertEqual(status, 200)
        self.assertIn(b"saltus", body)
        for target in ("/studio.js", "/studio.css", "/link.js", "/favicon.svg"):
            self.assertEqual(self.studio.get(target)[0], 200, target)
        for target in ("/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/etc/passwd", "//studio.js", "/studio.js/..",
                       "/studio.js?x", "/index.htm", "http://example.com/", "/.git/config", "/web/studio.js", "*"):
            self.assertEqual(self.studio.get(target)[0], 404, target)

    def test_headers_forbid_what_the_page_does_not_need(self):
        _, headers, _ = self.studio.get("/")
        policy = headers["content-security-policy"]
        for part in ("default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'",
                     "form-action 'none'", f"connect-src 'self' ws://127.0.0.1:{self.studio.port}"):
            self.assertIn(part, policy)
        self.assertNotIn("unsafe", policy)
        self.assertEqual(headers["x-frame-options"], "deny")
        self.assertEqual(headers["x-content-type-options"], "nosniff")
        self.assertEqual(headers["referrer-policy"], "no-referrer")
        self.assertEqual(headers["cross-origin-opener-policy"], "same-origin")
        self.assertEqual(headers["cross-origin-resource-policy"], "same-origin")
        self.assertEqual(headers["cache-control"], "no-store")
        self.assertNotIn("set-cookie", headers)

    def test_host_is_exact(self):
        port = self.studio.port
        for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}"):
            self.assertEqual(self.studio.get("/", host=host)[0], 200, host)
        for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", "localhost", f"127.0.0.1:{port + 1}",
                     f"127.0.0.1.evil.example:{port}", f"0.0.0.0:{port}", f"127.0.0.1:{port}.", ""):
            self.assertEqual(self.studio.get("/", host=host)[0], 403, host)
        self.assertIn(self.studio.raw(b"GET / HTTP/1.1\r\n\r\n")[0], (400, 403))
        self.assertIn(self.studio.raw(f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nHost: evil\r\n\r\n".encode())[0],
                      (400, 403))

    def test_other_sites_are_refused(self):
        for site in ("cross-site", "same-site"):
            self.assertEqual(self.studio.get("/", Sec_Fetch_Site=site)[0], 403)
        for site in ("none", "same-origin"):
            self.assertEqual(self.studio.get("/", Sec_Fetch_Site=site)[0], 200)

    def test_methods_and_bodies(self):
        status, headers, body = self.studio.get("/", method="HEAD")
        self.assertEqual((status, body), (200, b""))
        self.assertGreater(int(headers["content-length"]), 100)
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "CONNECT", "TRACE"):
            self.assertEqual(self.studio.get("/", method=method)[0], 405, method)
        self.assertEqual(self.studio.get("/", Content_Length=5)[0], 400)
        self.assertEqual(self.studio.get("/", Transfer_Encoding="chunked")[0], 400)
        self.assertEqual(self.studio.get("/", X_Long="x" * 20000)[0], 400)
        self.assertEqual(self.studio.raw(b"\x00\x01nonsense\r\n\r\n")[0], 400)

    def test_socket_needs_origin_and_token(self):
        port = self.studio.port
        for origin in ("", "null", "http://evil.example", f"http://127.0.0.1:{port + 1}", f"https://127.0.0.1:{port}",
                       f"http://localhost:{port}", f"http://127.0.0.1:{port}/"):
            self.assertEqual(self.studio.upgrade(origin=origin)[0], 403, origin)
        self.assertEqual(self.studio.upgrade(host=f"evil.example:{port}")[0], 403)
        wrong = ("A" if self.studio.token[0] != "A" else "B") + self.studio.token[1:]
        for token in ("", wrong, self.studio.token[:-1], self.studio.token + "A"):
            self.assertEqual(self.studio.upgrade(token=token)[0], 401, token)
        for protocol in ("saltus.v1", f"saltus.token.{self.studio.token}", f"saltus.v2, saltus.token.{self.studio.token}"):
            self.assertEqual(self.studio.upgrade(protocol=protocol)[0], 401, protocol)
        status, page, head = self.studio.upgrade()
        self.assertEqual(status, 101)
        self.assertIn("sec-websocket-protocol: saltus.v1\r\n", head)
        self.assertNotIn(self.studio.token.lower(), head)
        page.close()
        self.assertEqual(self.studio.get("/ws")[0], 400)

    def test_listens_on_loopback_alone(self):
        with open("/proc/net/tcp") as f:
            local = [line.split()[1] for line in f.readlines()[1:] if line.split()[3] == "0A"]
        mine = [address for address in local if int(address.split(":")[1], 16) == self.studio.port]
        self.assertEqual(mine, [f"0100007F:{self.studio.port:04X}"])

    def test_link_is_not_on_the_command_line(self):
        with open(f"/proc/{self.studio.process.pid}/cmdline") as f:
            self.assertNotIn(self.studio.token, f.read())

    def test_half_a_request_is_closed(self):
        with self.studio.connect() as s:
            begin = time.time()
            s.sendall(b"GET / HT")
            self.assertEqual(s.recv(100), b"")
            self.assertLess(time.time() - begin, 14)

    def test_at_most_four_pages(self):
        pages = [self.studio.page() for _ in range(4)]
        self.assertEqual(self.studio.upgrade()[0], 503)
        pages.pop().close()
        deadline = time.time() + 5
        while (status := self.studio.upgrade())[0] == 503 and time.time() < deadline:
            time.sleep(0.05)
        self.assertEqual(status[0], 101)
        for page in pages:
            page.close()


class Robust(unittest.TestCase):
    def test_nonsense_is_answered_or_closed(self):
        random.seed(1)
        with Studio(SALTUS) as studio:
            page = studio.page()
            messages = [b"", b"{}", b"[]", b"null", b'{"do":1}', b'{"do":"run","p":[]}', b'{"do":"run","id":"x"}',
                        b'{"do":"plane","axes":["y","v"]}', b'{"do":"plane","axes":["y","v"],"box":[1,0,0,1],"state":[0,0]}',
                        b'{"do":"sweep","vary":["F=0:1:99999999"]}', b'{"do":"sweep","vary":["y=0:1:9"]}',
                        b'{"do":"sweep","vary":["F=0:1:5000"],"points":1000000}',
                        b'{"do":"sweep","vary":["F=@/etc/passwd"]}', b'{"do":"basins","axes":["y=0:1"],"levels":[5]}',
                        b'{"do":"basins","axes":["y=0:1","v=0:1"],"levels":[1000000]}', b'{"do":"section","section":"none"}',
                        b'{"do":"orbit","method":"guesswork"}', b'{"do":"window","window":[1e308,-1e308]}', b'{"do":"run","tolerance":0}',
                        b'{"do":"run","until":"1e400"}', b'{"do":"section","level":"1e999"}', b'{"do":"section","through":[1]}',
                        b'{"do":"plane","axes":["y","v"],"box":[-1e308,1e308,-1,1],"state":[0,0],"t":1e300}',
                        b'{"do":"branch","vary":["F=1:2"],"label":"PD1"}', b'{"do":"sweep","vary":["F=0:1:3","omega=1:2:3","y=0:1:2"]}',
                        b'{"do":"export","what":"passwd"}', b'{"do":"save","text":"x"}', b'{"do":"open","name":"../x"}',
                        b'{"do":"check","text":"' + b"\\u0000" * 50 + b'"}', b"[" * (1 << 19)]
            messages += [bytes(random.choices(b'{}[]":,0123456789 dorunxptechk', k=random.randint(1, 200)))
                         for _ in range(100)]
            for message in messages:
                page.send_frame(message)
            page.send_frame(os.urandom(1000), opcode=2)
            answer = page.ask(do="open", name="harmonic")
            self.assertEqual(answer["kind"], "model")
            for closing in (b"[" * (1 << 20) + b"x", b'{"do":"\xff\xfe"}'):
                page = studio.page()
                with self.assertRaises(ConnectionError):  # the end may come while the rest is still being sent
                    page.send_frame(closing)
                    page.receive()
            self.assertEqual(studio.page().ask(do="open")["kind"], "model")
            self.assertIsNone(studio.process.poll())

    def test_files_are_not_read_for_the_page(self):
        with Studio(SALTUS) as studio:
            page = studio.page()
            page.ask(do="open")
            answer = page.ask(do="sweep", vary=["F=@/etc/hostname"])
            self.assertEqual(answer["kind"], "error")
            self.assertIn("file", answer["error"]["message"])
            text = page.ask(do="open", name="harmonic")["text"] + '\n[table.road]\nfile = "/etc/passwd"\n'
            for request in (dict(do="open", text=text), dict(do="check", text=text)):
                answer = page.ask(**request)
                self.assertEqual(answer["kind"], "error")
                self.assertIn("is not read", answer["error"]["message"])
                self.assertNotIn("root:", json.dumps(answer))

    def test_tables_of_the_own_file_are_read(self):
        with tempfile.TemporaryDirectory() as folder:
            write(f"{folder}/road.csv", "0, 0\n1, 2\n")
            text = saltus("examples", "harmonic") + '\n[table.road]\nfile = "road.csv"\noutside = "hold"\n'
            write(f"{folder}/mine.toml", text)
            with Studio(SALTUS, f"{folder}/mine.toml") as studio:
                page = studio.page()
                self.assertEqual(page.ask(do="open")["kind"], "model")
                self.assertEqual(page.ask(do="run")["kind"], "run")
                self.assertEqual(page.ask(do="check", text=text + "# more\n")["kind"], "checked")
                other = page.ask(do="check", text=text.replace("road.csv", "other.csv"))
                self.assertIn("is not read", other["error"]["message"])
                page.close()

    def test_work_stops_when_the_page_goes(self):
        with Studio(SALTUS) as studio:
            page = studio.page()
            page.ask(do="open", name="impact_oscillator")
            page.send(do="basins", axes=["u=0:5", "v=-5:5"], section="strobe", levels=[400])
            def ticks():
                with open(f"/proc/{studio.process.pid}/stat") as f:
                    return sum(map(int, f.read().rsplit(")", 1)[1].split()[11:13]))
            while page.receive()["kind"] != "progress":
                pass
            page.close()
            deadline, before = time.time() + 10, ticks()  # left alone it would take minutes
            while True:
                time.sleep(0.5)
                before, worked = ticks(), ticks() - before
                if worked <= 2:
                    break
                self.assertLess(time.time(), deadline)


class SameNumbers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.studio = Studio(SALTUS)
        cls.page = cls.studio.page()

    @classmethod
    def tearDownClass(cls):
        cls.page.close()
        cls.studio.__exit__()

    def test_runs_equal_the_command_line(self):
        for name, p in {"dry_friction": {"F": 0.31}, "popp": {}, "impact_oscillator": {"r": 0.7}, "bouncing_ball": {},
                        "buck": {"Vin": 16.5}, "chua": {}, "lorenz": {}, "harmonic": {}, "relay3": {},
                        "drill_string": {}}.items():
            if not os.path.isdir(f"{SOURCE}/models/{name}"):
                continue
            self.assertEqual(self.page.ask(do="open", name=name)["kind"], "model")
            for _ in range(3):
                self.assertTrue(self.page.ask(do="run", p=p, drag=True)["drag"], name)
            run = self.page.ask(do="run", p=p)
            flags = [word for k, v in p.items() for word in ("-p", f"{k}={v}")]
            told = json.loads(saltus("run", name, "--json", *flags))
            self.assertEqual(run["end"], told["end"], name)
            self.assertEqual([e[:2] for e in run["events"]], [[e["t"], e["kind"]] for e in told["events"]][:2000], name)
            states = [x for e in told["events"][:2000] for x in e["state"].values()]
            self.assertEqual(run["arrays"]["event.state"], states, name)

    def test_every_option_of_how_to_compute_reaches_the_engine(self):
        with Studio(SALTUS) as studio:
            page = studio.page()
            options = page.ask(do="open", name="dry_friction")["options"]
            known = saltus("help", "options")
            for option in options:
                self.assertIn(option["sentence"], known)
                value = {"formula": "2*pi/3", "number": "0.75", "flag": True, "count": 2, "settings": {"v": "+1"}}.get(
                    option["kind"]) or option["words"][1]
                value = {"tolerance": "1e-3"}.get(option["name"], value)
                if "run" not in option["commands"]:
                    self.assertIn("sweep", option["commands"], option["name"])
                    continue
                ran = page.ask(do="run", **{option["name"]: value})
                if ran["kind"] == "error":
                    self.assertIn("belongs to the engine 'step'", ran["error"]["message"])
                    ran = page.ask(do="run", engine="step", **{option["name"]: value})
                self.assertEqual(ran["kind"], "run", option["name"])
                record = page.ask(do="export", what="toml")["text"]
                self.assertRegex(record, rf"(?m)^{option['name']} = ")
            wrong = page.ask(do="run", tolerance="fast")
            self.assertEqual(wrong["kind"], "error")
            self.assertIn("tolerance fast", wrong["error"]["message"])

    def test_a_stretch_of_time_is_seen_closely(self):
        self.page.ask(do="open", name="harmonic")
        whole = self.page.ask(do="run")
        close = self.page.ask(do="window", window=[1, 1.01])
        t = close["arrays"]["t"]
        self.assertEqual((len(t), t[0], t[-1]), (2001, 1, 1.01))
        self.assertEqual(close["end"], whole["end"])
        self.assertEqual(self.page.ask(do="window", window=[1])["kind"], "error")

    def test_newest_wins_and_long_runs_are_cut(self):
        self.page.ask(do="open", name="lorenz")
        long = self.page.send(do="run", until=1e6)
        time.sleep(0.2)
        begin = time.time()
        short = self.page.ask(do="run", until=1)
        self.assertEqual(short["kind"], "run")
        self.assertLess(time.time() - begin, 15)  # not the 20 s that the long one may take
        drag = self.page.ask(do="run", until=1e6, drag=True)
        self.assertTrue(drag["late"])
        self.assertEqual(drag["until"], 1e6)
        self.assertLess(drag["end"]["t"], 1e6)
        self.assertLess(long, short["id"])

    def test_mistakes_have_their_place(self):
        folder = f"{SOURCE}/tests/errors"
        checked = 0
        for name in sorted(os.listdir(folder)):
            if not name.endswith(".toml"):
                continue
            text = read(f"{folder}/{name}", errors="surrogateescape")
            golden = read(f"{folder}/{name[:-5]}.txt")
            try:
                text.encode()
            except UnicodeEncodeError:
                continue
            answer = self.page.ask(do="check", text=text)
            self.assertEqual(answer["kind"], "error", name)
            first = golden.split("\n")[0].split(": ", 1)[0].rsplit(":", 2)
            if len(first) == 3 and first[1].isdigit() and first[2].isdigit():
                error = answer["error"]
                self.assertEqual((error.get("line"), error.get("column")), (int(first[1]), int(first[2])), name)
                checked += 1
        self.assertGreater(checked, 20)

    def test_sliding_part_of_a_surface(self):
        self.page.ask(do="open", name="dry_friction")
        plane = self.page.ask(do="plane", axes=["y", "v"], box=[-2, 2, -1.5, 1.7], t=3.141592653589793 / 2, state=[0, 0])
        ends, at, spans = plane["arrays"]["ends"], 0, {}
        for lines in plane["lines"]:
            xs = ends[at:at + 4 * lines["count"]:2]
            spans[lines["kind"]] = (min(xs), max(xs))
            self.assertLess(max(map(abs, ends[at + 1:at + 4 * lines["count"]:2])), 1e-6)
            at += 4 * lines["count"]
        self.assertAlmostEqual(spans["attracting"][0], 0.1, delta=1e-3)  # |sin(omega t) - y| <= F with sin = 0.5
        self.assertAlmostEqual(spans["attracting"][1], 0.9, delta=1e-3)
        self.assertEqual(spans["crossing"], (-2, 2))

    def test_field_of_a_plane(self):
        self.page.ask(do="open", name="harmonic")
        plane = self.page.ask(do="plane", axes=["x", "v"], box=[-2, 2, -1, 1], state=[0, 0], field=True)
        field = plane["arrays"]["field"]
        self.assertEqual(len(field), 4 * 19 * 19)
        for x, v, dx, dv in zip(field[0::4], field[1::4], field[2::4], field[3::4]):
            self.assertAlmostEqual(dx, v, places=12)
            self.assertAlmostEqual(dv, -x, places=12)
        self.page.ask(do="open", name="dry_friction")  # sticks where |y - sin(t/3)| <= 0.4
        field = self.page.ask(do="plane", axes=["y", "v"], box=[-1.9, 1.9, -19, 19], state=[0, 0], t=0, field=True)["arrays"]["field"]
        stuck = [(y, dv) for y, v, dv in zip(field[0::4], field[1::4], field[3::4]) if abs(v) < 1e-9]
        self.assertEqual(len(stuck), 19)
        for y, dv in stuck:
            self.assertAlmostEqual(dv, 0 if abs(y) <= 0.4 + 1e-9 else -y + math.copysign(0.4, y), places=9)

    def test_exports_repeat_the_run(self):
        self.page.ask(do="open", name="dry_friction")
        run = self.page.ask(do="run", p={"F": 0.37}, x={"v": "2*F"})
        folder = self.studio.folder.name
        toml = self.page.ask(do="export", what="toml")["text"]
        with open(f"{folder}/run.toml", "w") as f:
            f.write(toml)
        again = json.loads(saltus("again", f"{folder}/run.toml", "--json"))
        self.assertEqual(again["end"], run["end"])
        self.assertEqual([e["t"] for e in again["events"]], [e[0] for e in run["events"]])
        events = list(csv.DictReader(self.page.ask(do="export", what="events")["text"].splitlines()))
        self.assertEqual([float(e["t"]) for e in events], [e[0] for e in run["events"]])
        saltus("run", "dry_friction", "-p", "F=0.37", "-x", "v=2*F", "-o", f"{folder}/out", "--no-plot", "-q")
        self.assertEqual(self.page.ask(do="export", what="data")["text"], read(f"{folder}/out/data.csv"))
        opened = self.page.ask(do="open", text=toml)
        self.assertEqual(opened["kind"], "model")

    def test_a_section_has_a_level(self):
        self.page.ask(do="open", name="chua")
        done, before = self.page.ask(do="section", points=40, through=[0.5, 0.1, 0])
        told = json.loads(saltus("section", "chua", "-n", "40", "--level", "0.5", "--json"))
        self.assertEqual([t for a in before if a["kind"] == "points" for t in a["arrays"]["t"]], [p["t"] for p in told["points"]])
        self.assertEqual({a["level"] for a in before if a["kind"] == "points"}, {0.5})
        plane = self.page.ask(do="plane", axes=["x", "y"], box=[-1, 1, -1, 1], state=[0, 0, 0], section="middle", level=0.5)
        ends, at = plane["arrays"]["ends"], 0
        for lines in plane["lines"]:
            if lines["kind"] == "section":
                self.assertLess(max(abs(x - 0.5) for x in ends[at:at + 4 * lines["count"]:2]), 1e-9)
            at += 4 * lines["count"]
        self.page.ask(do="open", name="dry_friction")
        for wrong in (dict(level=1), dict(through=[1, 2]), dict(through=[1])):
            self.assertEqual(self.page.ask(do="section", points=5, **wrong)["kind"], "error")

    def test_map_of_two_parameters_equals_the_command(self):
        self.page.ask(do="open", name="dry_friction")
        done, before = self.page.ask(do="sweep", vary=["omega=0.4:1.2:7", "F=0.2:0.6:5"], points=12, skip=30)
        self.assertEqual(done["ended"], "count")
        dots = [d["arrays"] for d in before if d["kind"] == "dots"]
        got = {(x, y): k for d in dots for x, y, k in zip(d["value"], d["second"], d["period"])}
        rows = json.loads(saltus("sweep", "dry_friction", "omega=0.4:1.2:7", "F=0.2:0.6:5", "-n", "12", "--skip", "30", "--json"))["rows"]
        self.assertEqual(len(got), 35)
        self.assertEqual(got, {tuple(r["value"]): r["period"] for r in rows})
        self.assertEqual(self.page.ask(do="sweep", vary=["omega=0:1:3", "F=0:1:3", "F=0:1:3"])["kind"], "error")
        self.assertEqual(self.page.ask(do="sweep", vary=["omega=1:2:3000", "F=0:1:3000"])["kind"], "error")

    def test_section_points(self):
        self.page.ask(do="open", name="dry_friction")
        done, before = self.page.ask(do="section", points=50, skip=5)
        points = [x for a in before if a["kind"] == "points" for x in a["arrays"]["points"]]
        folder = self.studio.folder.name
        saltus("section", "dry_friction", "-n", "50", "--skip", "5", "-o", f"{folder}/section", "--no-plot", "-q")
        rows = table(f"{folder}/section/data.csv")
        self.assertEqual(points, [float(r[c]) for r in rows for c in ("y", "v")])

    def test_sweep_fills_coarse_to_fine_and_equals_the_command(self):
        self.page.ask(do="open", name="dry_friction")
        done, before = self.page.ask(do="sweep", vary=["omega=0.3:1.2:64"], points=8, skip=20)
        self.assertEqual(done["ended"], "count")
        dots = [d for d in before if d["kind"] == "dots"]
        values = [v for d in dots for v in d["arrays"]["value"]]
        order = list(dict.fromkeys(values))
        self.assertEqual(len(order), 64)
        parts = {min(7, int(8 * (v - 0.3) / 0.9)) for v in order[:9]}
        self.assertGreaterEqual(len(parts), 7, order[:9])  # after 9 of 64 values every eighth of the axis has dots
        points = [x for d in dots for x in d["arrays"]["points"]]
        got = sorted(zip(values, points[0::2], points[1::2]))
        folder = self.studio.folder.name
        saltus("sweep", "dry_friction", "omega=0.3:1.2:64", "-n", "8", "--skip", "20", "-o", f"{folder}/sweep", "--no-plot", "-q")
        rows = table(f"{folder}/sweep/points.csv")
        self.assertEqual(got, sorted((float(r["omega"]), float(r["y"]), float(r["v"])) for r in rows))

    def test_basins_equal_the_command(self):
        self.page.ask(do="open", name="impact_oscillator")
        done, before = self.page.ask(do="basins", axes=["u=0:5", "v=-5:5"], section="strobe", levels=[20, 40])
        cells = [c for c in before if c["kind"] == "cells"]
        self.assertEqual([c["cells"] for c in cells], [[20, 20], [40, 40]])
        folder = self.studio.folder.name
        saltus("basins", "impact_oscillator", "u=0:5:40", "v=-5:5:40", "--section", "strobe", "-o", f"{folder}/basins", "--no-plot", "-q")
        rows = table(f"{folder}/basins/data.csv")
        groups = [int(float(r["group"])) for r in rows]
        shown = cells[-1]["arrays"]["group"]
        pairs = set(zip(groups, shown))
        self.assertEqual(len(pairs), len(set(groups)))  # one number of the page for each of the command, and back
        self.assertEqual(len(pairs), len(set(shown)))
        kept = {a["id"] for a in cells[0]["attractors"]} & {a["id"] for a in cells[1]["attractors"]}
        self.assertTrue(kept)

    def test_orbit_equals_the_command(self):
        self.page.ask(do="open", name="dry_friction")
        done, before = self.page.ask(do="orbit", section="strobe")
        orbit = next(a for a in before if a["kind"] == "orbit")
        told = json.loads(saltus("orbit", "dry_friction", "--section", "strobe", "--json"))
        self.assertTrue(orbit["found"] and orbit["stable"])
        self.assertEqual(orbit["period"], told["period"])
        self.assertEqual(orbit["state"], list(told["state"].values()))
        self.assertEqual(len(orbit["multipliers"]), len(told["multipliers"]))
        y = orbit["arrays"]["y"]
        self.assertAlmostEqual(y[0], y[-1], places=7)  # it closes


class Saving(unittest.TestCase):
    def test_writes_its_own_file_only(self):
        text = saltus("examples", "harmonic")
        with Studio(SALTUS) as studio:
            page = studio.page()
            page.ask(do="open")
            self.assertEqual(page.ask(do="save", text=text)["kind"], "error")
            page.close()
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/mine.toml"
            write(path, text)
            with Studio(SALTUS, path) as studio:
                page = studio.page()
                self.assertTrue(page.ask(do="open")["file"])
                self.assertEqual(page.ask(do="save", text=text + "# more\n")["kind"], "saved")
                self.assertEqual(read(path), text + "# more\n")
                write(path, "# from elsewhere\n", "a")
                self.assertEqual(page.ask(do="save", text=text)["kind"], "error")
                self.assertIn("elsewhere", read(path))
                self.assertEqual(page.ask(do="save", text=text, force=True)["kind"], "saved")
                self.assertEqual(read(path), text)
                page.close()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=1, warnings="ignore")
