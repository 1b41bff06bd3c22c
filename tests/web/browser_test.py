#!/usr/bin/env python3
"""The studio in Chromium: what a person sees and does. Skipped where Chromium or its driver is missing.

    browser_test.py SALTUS SOURCE [--pictures FOLDER] [--times FILE] [TEST ...]

Equality, counts and refusals are asserted; times are printed, and written to FILE as JSON."""
import argparse
import http.server
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import xml.dom.minidom

from studio import Studio

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
try:
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
except ImportError:
    CHROMIUM = None

arguments = argparse.ArgumentParser()
arguments.add_argument("saltus")
arguments.add_argument("source")
arguments.add_argument("--pictures")
arguments.add_argument("--times")
known, rest = arguments.parse_known_args()
SALTUS = os.path.abspath(known.saltus)
SOURCE = os.path.abspath(known.source)
TIMES = {}


def start_browser(downloads):
    options = Options()
    options.binary_location = CHROMIUM
    for flag in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1440,900", "--force-color-profile=srgb",
                 "--hide-scrollbars", "--disable-gpu"):
        options.add_argument(flag)
    options.add_experimental_option("prefs", {"download.default_directory": downloads})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(service=Service(DRIVER), options=options)
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": downloads})
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                            {"width": 1440, "height": 820, "deviceScaleFactor": 1, "mobile": False})
    return browser


@unittest.skipUnless(CHROMIUM and DRIVER, "Chromium, its driver or selenium is missing")
class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.browser = start_browser(cls.folder.name)
        begin = time.time()
        cls.studio = Studio(SALTUS)
        cls.browser.get(cls.studio.link)
        cls.until(cls, "saltus.ready")
        TIMES["first picture, s"] = round(time.time() - begin, 3)
        cls.bytes = cls.browser.execute_script(
            "return performance.getEntries().reduce((sum, e) => sum + (e.transferSize || 0), 0)")

    @classmethod
    def tearDownClass(cls):
        log = [entry for entry in cls.browser.get_log("browser") if entry["level"] == "SEVERE"]
        cls.browser.quit()
        cls.studio.__exit__()
        cls.folder.cleanup()
        assert not log, log

    # ---- hands and eyes ----

    def js(self, code, *values):
        return self.browser.execute_script(code, *values)

    def until(self, condition, seconds=15):
        end = time.time() + seconds
        while not self.browser.execute_script(f"return Boolean(window.saltus && ({condition}))"):
            assert time.time() < end, condition
            time.sleep(0.02)

    def rest(self):
        self.until("saltus.idle() && saltus.state.run && !saltus.state.run.drag")

    def open(self, name):
        self.js("document.getElementById('tab-run').click(); const g = document.getElementById('gallery');"
                "saltus.state.run = null; g.value = arguments[0]; g.dispatchEvent(new Event('change'))", name)
        self.until(f"saltus.state.call === '{name}' && saltus.state.run")
        self.rest()
        self.settle()

    def settle(self):
        """Until what has been told is painted."""
        self.js("return new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def find(self, identity):
        return self.browser.find_element(By.ID, identity)

    def picture(self, name):
        if known.pictures:
            os.makedirs(known.pictures, exist_ok=True)
            self.js("document.getElementById('toast').hidden = true")
            self.browser.save_screenshot(os.path.join(known.pictures, name + ".png"))

    def pixel(self, canvas, x, y):
        """Colour at a point of the phase plane, in its coordinates."""
        return self.js("""const c = document.getElementById(arguments[0]), d = c.getContext('2d');
            const p = d.getImageData(Math.round(arguments[1] * devicePixelRatio), Math.round(arguments[2] * devicePixelRatio), 1, 1).data;
            return [p[0], p[1], p[2]]""", canvas, x, y)

    # ---- what is shown ----

    def test_first_page_is_complete(self):
        self.open("dry_friction")
        self.assertEqual(self.js("return location.hash"), "")
        self.assertEqual(len(self.browser.find_elements(By.CSS_SELECTOR, "#parameters .slider")), 2)
        self.assertEqual(len(self.browser.find_elements(By.CSS_SELECTOR, "#initial .slider")), 2)
        self.assertEqual(len(self.browser.find_elements(By.CSS_SELECTOR, "#equations mtr")), 3)
        self.assertEqual(len(self.browser.find_elements(By.CSS_SELECTOR, "#events tbody tr")), 17)
        self.assertIn("17 events", self.find("status").text)
        self.assertEqual(self.js("return saltus.errors"), [])
        self.assertLess(self.bytes, 900_000)
        self.assertGreater(self.bytes, 50_000)
        TIMES["bytes of the page"] = self.bytes

    def test_dragging_a_slider(self):
        for name, slider in (("dry_friction", "p-F"), ("popp", "p-a0"), ("impact_oscillator", "p-r"), ("bouncing_ball", "p-r")):
            self.open(name)
            handle = self.find(slider)
            width = handle.size["width"]
            self.js("saltus.latencies.length = 0; saltus.frames = 0")
            hand = ActionChains(self.browser, duration=10).move_to_element_with_offset(handle, -width // 10, 0).click_and_hold()
            for k in range(80):
                hand.move_by_offset(2 if k < 40 else -1, 0)
            hand.perform()
            times = self.js("return saltus.latencies")
            frames = self.js("return saltus.frames")
            ActionChains(self.browser).release().perform()
            self.rest()
            self.assertGreaterEqual(frames, 3, name)  # the picture follows the hand; how closely is recorded
            TIMES[f"hand to picture, {name}, ms"] = {
                "frames": frames, "median": round(statistics.median(times), 1), "p95": round(sorted(times)[int(0.95 * (len(times) - 1))], 1)}
            value = self.js("return Object.values(saltus.state.p)[0]")
            told = json.loads(subprocess.run([SALTUS, "run", name, "--json", "-p", f"{slider[2:]}={value}"], capture_output=True, text=True).stdout)
            shown = self.js("return {end: saltus.state.run.end, times: saltus.state.run.events.map(e => e[0])}")
            self.assertEqual(shown["end"], told["end"], name)
            self.assertEqual(shown["times"], [e["t"] for e in told["events"]][:2000], name)

    def test_dragging_the_start(self):
        self.open("dry_friction")
        plane = self.find("plane")
        ActionChains(self.browser, duration=20).move_to_element_with_offset(plane, 0, 0).click_and_hold() \
            .move_by_offset(40, -30).move_by_offset(20, 10).release().perform()
        self.rest()
        start = self.js("return saltus.state.run.start")
        self.assertEqual(start, [float(v) for v in self.js("return [saltus.state.x.y, saltus.state.x.v]")])
        x, y = self.js("return saltus.planePixel(...saltus.state.run.start)")
        self.assertAlmostEqual(x, plane.size["width"] / 2 + 60, delta=1.5)
        self.assertAlmostEqual(y, plane.size["height"] / 2 - 20, delta=1.5)
        self.assertEqual(self.js("return document.querySelectorAll('#initial .slider.changed').length"), 2)

    def test_sliding_part_in_the_plane(self):
        self.open("popp")
        self.until("document.getElementById('plane-caption').textContent.includes('attracting')")
        self.settle()
        for x, orange in ((0.5, True), (-0.2, True), (2.2, False)):  # held where |x - F cos(nu t)| <= a0 = 1.5
            where = self.js("return saltus.planePixel(arguments[0], 1)", x)
            pixel = self.pixel("plane", *where)
            self.assertEqual(self.is_orange(pixel), orange, (x, pixel))
        self.picture("run")

    @staticmethod
    def is_orange(pixel):
        return all(abs(a - b) < 12 for a, b in zip(pixel, (0xe8, 0x87, 0x1e)))  # marks of events have another orange

    def test_sliding_part_follows_the_time_cursor(self):
        self.open("dry_friction")  # v = 0 holds where |y - sin(t/3)| <= F = 0.4
        for sine in (0.2, -0.3):  # where no mark of an event covers the ends
            self.js("const c = document.getElementById('cursor'); c.value = arguments[0]; c.dispatchEvent(new Event('input'))", 3 * math.asin(sine) + 18 * math.pi * (sine < 0))
            self.until("saltus.planeTime() === saltus.state.cursor")
            self.settle()
            cells = self.js("""const [a, y] = saltus.planePixel(-1.5, 0), [b] = saltus.planePixel(1.5, 0), d = document.getElementById('plane').getContext('2d');
                return [Math.ceil(a), ...d.getImageData(Math.ceil(a), Math.round(y) - 2, Math.floor(b) - Math.ceil(a), 1).data]""")
            left, data = cells[0], cells[1:]
            orange = [left + i for i in range(len(data) // 4) if self.is_orange(data[4 * i:4 * i + 3])]
            ends = [self.js("return saltus.planePixel(arguments[0], 0)", sine + side)[0] for side in (-0.4, 0.4)]
            self.assertAlmostEqual(orange[0], ends[0], delta=2.5)
            self.assertAlmostEqual(orange[-1] + 1, ends[1], delta=2.5)

    def test_ribbon_has_the_modes(self):
        self.open("dry_friction")
        run = self.js("return {from: [...saltus.state.run.arrays['stay.from']], to: [...saltus.state.run.arrays['stay.to']],"
                      "mode: [...saltus.state.run.arrays['stay.mode']], modes: saltus.state.run.modes}")
        told = json.loads(subprocess.run([SALTUS, "run", "dry_friction", "--json"], capture_output=True, text=True).stdout)
        t, mode, expected = 0, told["start"]["mode"], []
        for e in told["events"]:
            if e["mode"][0] != e["mode"][1]:
                expected.append((t, e["t"], mode))
                t, mode = e["t"], e["mode"][1]
        expected.append((t, told["end"]["t"], mode))
        joined = []
        for a, b, m in zip(run["from"], run["to"], run["mode"]):
            if joined and joined[-1][2] == run["modes"][m]:
                joined[-1] = (joined[-1][0], b, run["modes"][m])
            else:
                joined.append((a, b, run["modes"][m]))
        self.assertEqual([m for _, _, m in joined], [m for _, _, m in expected])
        for got, want in zip(joined, expected):
            self.assertAlmostEqual(got[0], want[0], places=9)
        colours = {"+": [0x9e, 0xca, 0xe1], "-": [0xfd, 0xbe, 0x85], "0": [0xa1, 0xd9, 0x9b]}
        seen = 0
        for begin, end, mode in expected:
            x, y, width = self.js("return saltus.ribbonPixel(arguments[0], arguments[1], 0)", begin, end)
            if width < 4:
                continue
            self.assertEqual(self.pixel("series", x - width / 2 + 2, y), colours[mode], (begin, end, mode))
            seen += 1
        self.assertGreater(seen, 8)

    def test_mistakes_while_typing(self):
        self.open("dry_friction")
        frames = self.js("return saltus.frames")
        area = self.find("text")
        begin = self.js("return document.getElementById('text').value.indexOf('omega*t')")
        self.js("const a = document.getElementById('text'); a.focus(); a.setSelectionRange(arguments[0] + 1, arguments[0] + 3)", begin)
        area.send_keys("mg")  # omega -> omgga
        self.js("const a = document.getElementById('text'); a.setSelectionRange(arguments[0] + 3, arguments[0] + 4)", begin)
        area.send_keys(Keys.DELETE)
        self.until("saltus.idle() && !document.getElementById('mistake').hidden && document.querySelector('.paint .mark')?.textContent === 'omga'")
        self.assertEqual(len(self.browser.find_elements(By.CSS_SELECTOR, ".paint .mark")), 1)
        self.assertIn("did you mean 'omega'", self.find("mistake").text)
        self.assertIn("line 9, column 18", self.find("mistake").text)
        self.assertIn("stale", self.find("view-run").get_attribute("class"))
        self.assertGreaterEqual(self.js("return saltus.frames"), frames)
        self.assertEqual(self.js("return saltus.state.run.events.length"), 17)
        self.picture("mistake")
        area.send_keys(Keys.CONTROL, "z")
        for _ in range(3):
            if self.js("return document.getElementById('text').value === saltus.state.opened"):
                break
            area.send_keys(Keys.CONTROL, "z")
        self.until("document.getElementById('mistake').hidden && saltus.idle() && !document.getElementById('view-run').classList.contains('stale')")

    def test_wrong_values_are_refused_at_their_place(self):
        self.open("dry_friction")
        give = "const f = document.querySelector('#parameters .slider input[type=text]'); f.value = arguments[0]; f.dispatchEvent(new Event('change'))"
        for text, words in (("abc", "unknown name 'abc'"), ("1/0", "is inf"), ("F", "given by itself")):
            self.js(give, text)
            self.until("saltus.state.wrong && saltus.idle()")
            self.assertIn(words, self.find("status").text)
            self.assertNotIn("`", self.find("status").text)
            self.assertEqual(self.js("return document.querySelectorAll('input.wrong').length"), 1)
            self.assertEqual(self.js("return saltus.state.run.events.length"), 17)
        self.js(give, "2*pi/16")
        self.until("!saltus.state.wrong && saltus.idle()")
        self.assertEqual(self.js("return document.querySelectorAll('input.wrong').length"), 0)

    def test_every_option_of_how_to_compute_has_a_control(self):
        self.open("dry_friction")
        for option in self.js("return saltus.state.model.options"):
            give = {"flag": "c.checked = true", "word": "c.selectedIndex = 1", "settings": "c.value = 'v=+1'"}.get(option["kind"], "c.value = '0.75'")
            self.js(f"const c = document.getElementById('{option['name']}'); {give}; c.dispatchEvent(new Event('change'))")
            self.assertTrue(self.js(f"return saltus.state.solve['{option['name']}']"), option["name"])
        self.open("popp")
        self.assertEqual(self.js("return Object.keys(saltus.state.solve).length"), 0)
        self.until("saltus.idle() && saltus.state.run && saltus.state.run.until === 60")

    def test_equations_of_the_gallery(self):
        strange = self.js("""return import('/latex.js').then(async ({equations}) => {
            const bad = [];
            for (const text of arguments[0]) {
              const math = equations(text);
              if (!math.querySelector('mtr') || math.querySelector('mtext')) bad.push(text);
              for (const node of math.querySelectorAll('mi, mo, mn')) if (/[\\\\{}_^&]/.test(node.textContent) && !node.textContent.includes('{')) bad.push(node.textContent);
            }
            return bad; })""", [subprocess.run([SALTUS, "check", name, "--latex"], capture_output=True, text=True).stdout
                                for name in sorted(os.listdir(f"{SOURCE}/models")) if os.path.exists(f"{SOURCE}/models/{name}/model.toml")])
        self.assertEqual(strange, [])

    def test_slow_model_keeps_the_hand_free(self):
        self.open("stick_slip_whirl")
        self.js("window.longest = 0; new PerformanceObserver(l => { for (const e of l.getEntries()) longest = Math.max(longest, e.duration) })"
                ".observe({type: 'longtask'}); saltus.frames = 0")
        handle = self.browser.find_element(By.CSS_SELECTOR, "#parameters input[type=range]:enabled")
        hand = ActionChains(self.browser, duration=10).move_to_element(handle).click_and_hold()
        for _ in range(30):
            hand.move_by_offset(1, 0)
        hand.release().perform()
        self.rest()
        self.assertGreater(self.js("return saltus.frames"), 3)
        (name, value), = self.js("return Object.entries(saltus.state.p)")
        told = json.loads(subprocess.run([SALTUS, "run", "stick_slip_whirl", "--json", "-p", f"{name}={value}"], capture_output=True, text=True).stdout)
        self.assertEqual(self.js("return saltus.state.run.end"), told["end"])
        TIMES["longest task of the page while a slow model is dragged, ms"] = self.js("return longest")

    def test_keyboard(self):
        self.open("dry_friction")
        self.find("p-F").send_keys(Keys.ARROW_RIGHT * 10)
        self.until("saltus.state.p.F !== undefined")
        self.rest()
        self.assertAlmostEqual(float(self.js("return saltus.state.p.F")), 0.45, places=9)  # ten times 1/200 of 0..1
        self.find("tab-run").send_keys(Keys.ARROW_RIGHT)
        self.assertTrue(self.find("view-section").is_displayed())
        self.find("tab-section").send_keys(Keys.ARROW_LEFT)
        self.assertTrue(self.find("view-run").is_displayed())
        for node in self.browser.find_elements(By.CSS_SELECTOR, "input, select, textarea, canvas"):
            name = self.js("const n = arguments[0]; return n.getAttribute('aria-label') || (n.labels && n.labels.length) || n.closest('label') !== null", node)
            self.assertTrue(name, node.get_attribute("outerHTML"))

    def test_diagram(self):
        self.open("buck")
        self.find("tab-sweep").click()
        self.js("const v = saltus.views.sweep; v.from.value = '22'; v.to.value = '33'; v.count.value = 160; v.points.value = 60; v.skip.value = 200;"
                "v.shown.value = 'v'; v.colour.value = 'none'; const p = v.parameter; p.value = 'Vin'; window.began = performance.now(); window.first = 0; window.parts = 0;"
                "const take = v.receive.bind(v); v.receive = a => { take(a); if (!first) first = performance.now() - began;"
                "if (!parts && v.runs >= 8) { const s = new Set(); for (let i = 0; i < v.value.length; i++) s.add(Math.floor((v.value.data[i] - 22) / 11 * 15.999)); window.parts = s.size } };"
                "v.start()")
        self.until("saltus.views.sweep.done", 60)
        TIMES["first dots of a diagram, ms"] = round(self.js("return first"))
        self.assertEqual(self.js("return saltus.views.sweep.runs"), 160)
        self.assertEqual(self.js("return saltus.views.sweep.value.length"), 160 * 60)
        self.assertGreaterEqual(self.js("return parts"), 7)  # of 16, after 8 runs of 160
        self.settle()
        self.picture("sweep")
        canvas = self.find("sweep-canvas")
        w, h = canvas.size["width"], canvas.size["height"]
        ActionChains(self.browser, duration=20).move_to_element_with_offset(canvas, w // 8, -h // 5).click_and_hold() \
            .move_by_offset(60, 60).move_by_offset(60, 60).release().perform()
        self.until("!saltus.views.sweep.done || saltus.views.sweep.runs > 0")
        self.assertGreater(float(self.js("return saltus.views.sweep.from.value")), 22)
        self.browser.find_element(By.XPATH, "//section[@id='view-sweep']//button[.='Stop']").click()
        self.until("saltus.views.sweep.done")
        stopped = self.js("return saltus.views.sweep.runs")
        self.settle()
        self.assertEqual(self.js("return saltus.views.sweep.runs"), stopped)
        self.browser.find_element(By.XPATH, "//section[@id='view-sweep']//button[.='Back']").click()
        self.assertEqual(self.js("return saltus.views.sweep.from.value"), "22")
        self.until("saltus.views.sweep.runs > 5")
        self.js("const v = saltus.views.sweep; v.stop(); v.click(v.value.data[0], v.pointsData.data[1])")
        self.until("saltus.state.p.Vin !== undefined")
        self.rest()
        self.assertTrue(self.find("view-run").is_displayed())

    def test_map_of_two_parameters(self):
        self.open("impact_oscillator")
        self.find("tab-sweep").click()
        self.js("const v = saltus.views.sweep; v.parameter.value = 'w'; v.second.value = 'r'; v.second.onchange(); v.from.value = '2'; v.to.value = '4';"
                "v.from2.value = '0.3'; v.to2.value = '0.9'; v.count.value = 16; v.count2.value = 9; v.section.value = 'strobe'; v.points.value = 80; v.skip.value = 400; v.start()")
        self.until("saltus.views.sweep.done", 60)
        shown = self.js("const v = saltus.views.sweep; return [...v.map.run].map(i => v.period.data[i])")
        told = json.loads(subprocess.run([SALTUS, "sweep", "impact_oscillator", "w=2:4:16", "r=0.3:0.9:9", "--section", "strobe", "-n", "80", "--json"],
                                         capture_output=True, text=True).stdout)
        self.assertEqual(shown, [row["period"] for row in told["rows"]])
        self.assertIn("sweep impact_oscillator w=2:4:16 r=0.3:0.9:9", self.js("return saltus.command()"))
        self.settle()
        self.picture("map")
        self.js("const v = saltus.views.sweep; v.click(v.map.x.from + 3 * v.map.x.step, v.map.y.from + 2 * v.map.y.step)")
        self.until("saltus.state.p.w !== undefined && saltus.state.p.r !== undefined")
        self.rest()
        for got, expected in zip(self.js("return [saltus.state.p.w, saltus.state.p.r]"), (2.4, 0.45)):
            self.assertAlmostEqual(float(got), expected, places=12)

    def test_a_formula_is_varied(self):
        self.open("dry_friction")
        self.find("tab-sweep").click()
        self.js("const v = saltus.views.sweep; v.second.value = '–'; v.second.onchange(); v.parameter.value = '1/omega'; v.from.value = '2'; v.to.value = '4'; v.count.value = 5;"
                "v.points.value = 4; v.skip.value = 10; v.start()")
        self.until("saltus.views.sweep.done", 60)
        self.assertEqual(self.js("return [saltus.views.sweep.runs, saltus.views.sweep.value.length]"), [5, 20])
        self.js("const v = saltus.views.sweep, i = v.value.data.indexOf(4); v.click(4, v.pointsData.data[2 * i])")
        self.until("saltus.state.p.omega !== undefined")
        self.assertAlmostEqual(float(self.js("return saltus.state.p.omega")), 0.25, places=12)

    def test_dragging_a_section(self):
        self.open("chua")  # its section lies at x = 0
        self.find("tab-section").click()
        self.until("saltus.views.section.done && saltus.views.section.lines.length", 30)
        canvas = self.find("section-canvas")
        x, y = self.js("const v = saltus.views.section, f = v.frame; return [f.px(v.lines[0]), f.place.y + f.place.h / 2]")
        ActionChains(self.browser, duration=20).move_to_element_with_offset(canvas, x - canvas.size["width"] / 2, y - canvas.size["height"] / 2) \
            .click_and_hold().move_by_offset(30, 0).move_by_offset(30, 0).release().perform()
        self.until("saltus.views.section.level.value !== '0' && saltus.views.section.done && saltus.views.section.data && saltus.views.section.data.arrays.t.length === 2000", 30)
        level = self.js("return saltus.views.section.level.value")
        self.assertAlmostEqual(float(level), 60 / self.js("const f = saltus.views.section.frame; return f.place.w / (f.xs[1] - f.xs[0])"), delta=0.02)
        command = self.js("return saltus.command()")
        self.assertIn(f"--level {level}", command)
        told = json.loads(subprocess.run(command.replace("saltus", SALTUS, 1) + " --json", shell=True, capture_output=True, text=True).stdout)
        self.assertEqual(self.js("return [...saltus.views.section.data.arrays.t]"), [p["t"] for p in told["points"]])
        self.settle()
        self.picture("level")

    def test_basins(self):
        self.open("impact_oscillator")
        self.find("tab-basins").click()
        self.js("const v = saltus.views.basins; v.x0.value = '0'; v.x1.value = '5'; v.y0.value = '-5'; v.y1.value = '5'; v.finest.value = '100';"
                "window.began = performance.now(); window.first = 0; const take = v.receive.bind(v); v.receive = a => { take(a); if (!first) first = performance.now() - began }; v.start()")
        self.until("saltus.views.basins.done", 60)
        TIMES["first basins, 50 x 50, ms"] = round(self.js("return first"))
        self.assertEqual(self.js("return [saltus.views.basins.levels, saltus.views.basins.data.cells[0]]"), [2, 100])
        self.settle()
        self.picture("basins")

    def test_section(self):
        self.open("duffing")
        self.find("tab-section").click()
        self.until("saltus.views.section.done && saltus.views.section.data", 30)
        self.assertEqual(self.js("return saltus.views.section.data.arrays.t.length"), 2000)
        self.settle()
        self.picture("section")

    def test_orbit(self):
        self.open("dry_friction")
        self.find("tab-orbit").click()
        self.js("saltus.views.orbit.start()")
        self.until("saltus.views.orbit.done", 30)
        self.assertTrue(self.js("return saltus.views.orbit.data.found && saltus.views.orbit.data.stable"))
        self.settle()
        self.picture("orbit")
        self.browser.find_element(By.XPATH, "//button[.='Show in Run']").click()
        self.until("saltus.state.run && saltus.state.run.until - saltus.state.run.from < 20")
        self.rest()
        start, end, period = self.js("const r = saltus.state.run; return [r.start, Object.values(r.end.state), r.until - r.from]")
        self.assertAlmostEqual(period, 6 * 3.141592653589793, places=9)
        for a, b in zip(start, end):
            self.assertAlmostEqual(a, b, places=7)

    def test_a_point_of_rest(self):
        self.open("dry_friction")
        self.find("tab-orbit").click()
        self.js("const v = saltus.views.orbit; v.method.value = 'equilibrium'; v.start()")
        self.until("saltus.views.orbit.done", 30)
        self.assertEqual(self.js("return saltus.views.orbit.word.textContent.includes('error')"), False)
        self.assertTrue(self.js("return saltus.views.orbit.data !== null"))
        self.js("saltus.views.orbit.method.value = ''")

    def test_branch(self):
        self.open("impact_oscillator")
        self.find("tab-branch").click()
        self.js("const v = saltus.views.branch; v.parameter.value = 'w'; v.from.value = '2'; v.to.value = '4'; v.section.value = 'strobe';"
                "v.measure.value = 'max(u)'; window.began = performance.now(); window.first = 0; window.frames = 0;"
                "const take = v.receive.bind(v); v.receive = a => { take(a); frames++; if (!first) first = performance.now() - began }; v.start()")
        self.until("saltus.views.branch.done", 60)
        TIMES["first points of a branch, ms"] = round(self.js("return first"))
        shown = self.js("const v = saltus.views.branch; return {points: v.count, special: v.branch.special.map(s => [s.label, s.type, s.value]),"
                        "values: [...v.points.value.data.slice(0, v.count)], stable: [...v.points.stable.data.slice(0, v.count)]}")
        theirs = json.loads(subprocess.run([SALTUS, "follow", "impact_oscillator", "w=2:4", "--section", "strobe", "--json"],
                                           capture_output=True, text=True).stdout)
        self.assertEqual(shown["values"], [p["value"] for p in theirs["points"]])
        self.assertEqual(shown["stable"], [int(p["stable"]) for p in theirs["points"]])
        self.assertEqual(shown["special"], [[s["label"], s["type"], s["value"]] for s in theirs["special"]])
        self.assertEqual(set(shown["stable"]), {0, 1})
        # A click shows the multipliers of that point, and its orbit in Run.
        canvas, at = self.find("branch-canvas"), shown["points"] // 3
        x, y = self.js("const v = saltus.views.branch; return [v.frame.px(v.points.value.data[arguments[0]]), v.frame.py(v.y(arguments[0]))]", at)
        ActionChains(self.browser).move_to_element_with_offset(canvas, x - canvas.size["width"] / 2, y - canvas.size["height"] / 2).click().perform()
        chosen = self.js("return saltus.views.branch.chosen")
        self.assertLessEqual(abs(chosen - at), 2)
        multipliers = self.js("return saltus.views.branch.spectrumOf(arguments[0])", chosen)
        self.assertEqual(multipliers, theirs["points"][chosen]["multipliers"])
        self.settle()
        self.picture("branch")
        self.assertIn("follow impact_oscillator w=2:4", self.js("return saltus.command()"))
        self.browser.find_element(By.XPATH, "//section[@id='view-branch']//button[.='Show in Run']").click()
        self.until("saltus.state.p.w !== undefined && saltus.state.run")
        self.rest()
        start, end, period = self.js("const r = saltus.state.run; return [r.start, Object.values(r.end.state), r.until - r.from]")
        self.assertAlmostEqual(period, theirs["points"][chosen]["period"], places=9)
        for a, b in zip(start, end):
            self.assertAlmostEqual(a, b, places=5)

    def test_branches_go_on_at_special_points(self):
        self.open("impact_oscillator")
        self.find("tab-branch").click()
        self.js("const v = saltus.views.branch; v.parameter.value = 'w'; v.from.value = '2'; v.to.value = '2.7'; v.section.value = 'strobe'; v.start()")
        self.until("saltus.views.branch.done && saltus.views.branch.branch", 60)
        self.assertEqual(self.js("return saltus.views.branch.branch.special[0].label"), "PD1")
        period = self.js("const v = saltus.views.branch; return v.points.period.data[v.branch.special[0].point]")
        self.browser.find_element(By.XPATH, "//section[@id='view-branch']//button[.='other branch']").click()
        self.until("saltus.views.branch.done && saltus.views.branch.branch && saltus.views.branch.branch.of === 'PD1'", 60)
        self.assertAlmostEqual(self.js("return saltus.views.branch.points.period.data[0]") / period, 2, places=3)
        self.browser.find_element(By.XPATH, "//section[@id='view-branch']//button[.='Back']").click()
        self.until("saltus.views.branch.done && saltus.views.branch.branch && saltus.views.branch.branch.of === ''", 60)
        self.js("const s = document.querySelector('#view-branch select[aria-label=\"second parameter of PD1\"]'); s.value = 'r'; s.onchange()")
        self.until("saltus.views.branch.done && saltus.views.branch.branch && saltus.views.branch.branch.ranges.length === 2", 60)
        self.assertGreater(self.js("return saltus.views.branch.count"), 10)

    def test_words_are_completed(self):
        self.open("dry_friction")
        area = self.find("text")
        begin = self.js("return document.getElementById('text').value.indexOf('omega*t')")
        self.js("const a = document.getElementById('text'); a.focus(); a.setSelectionRange(arguments[0], arguments[0] + 5)", begin)
        area.send_keys("ome")
        self.assertEqual(self.js("return [...document.querySelectorAll('#completion li')].map(l => l.textContent)"), ["omega"])
        area.send_keys(Keys.TAB)
        self.assertEqual(self.js("return document.getElementById('text').value.slice(arguments[0], arguments[0] + 7)", begin), "omega*t")
        self.assertTrue(self.js("return document.getElementById('completion').hidden && document.activeElement.id === 'text'"))
        self.until("saltus.idle() && document.getElementById('mistake').hidden")
        area.send_keys("zz")
        self.assertTrue(self.js("return document.getElementById('completion').hidden"))
        area.send_keys(Keys.BACKSPACE * 2)
        self.until("saltus.idle() && document.getElementById('mistake').hidden")

    def test_the_end_of_time_is_dragged(self):
        self.open("dry_friction")
        canvas = self.find("series")
        w = canvas.size["width"]
        ActionChains(self.browser, duration=20).move_to_element_with_offset(canvas, w / 2 - 12, 0).click_and_hold() \
            .move_by_offset(-60, 0).move_by_offset(-60, 0).release().perform()
        self.rest()
        until = self.js("return saltus.state.run.until")
        self.assertAlmostEqual(until, 60 * (1 - 120 / (w - 70)), delta=0.5)
        self.assertEqual(float(self.js("return document.getElementById('until').value")), until)
        told = json.loads(subprocess.run(self.js("return saltus.command()").replace("saltus", SALTUS, 1) + " --json", shell=True, capture_output=True, text=True).stdout)
        self.assertEqual(self.js("return saltus.state.run.end"), told["end"])
        self.find("backward").click()
        self.until("saltus.state.run && saltus.state.run.until === -" + str(until))
        self.rest()
        told = json.loads(subprocess.run(self.js("return saltus.command()").replace("saltus", SALTUS, 1) + " --json", shell=True, capture_output=True, text=True).stdout)
        self.assertEqual(self.js("return saltus.state.run.end"), told["end"])

    def test_field(self):
        self.open("chua")
        self.find("field").click()
        self.until("saltus.planeField() === 361")
        self.settle()
        self.picture("field")
        self.find("field").click()

    def drop(self, text):
        """A file dropped on the window."""
        self.js("saltus.state.run = null; const d = new DataTransfer(); d.items.add(new File([arguments[0]], 'model.toml'));"
                "document.dispatchEvent(new DragEvent('drop', {dataTransfer: d, bubbles: true, cancelable: true}))", text)
        self.until("saltus.state.text === " + json.dumps(text) + " && saltus.state.run")
        self.rest()
        self.settle()

    def test_names_that_mean_something_to_scripts(self):
        self.drop("""name = "<script>document.title = 'taken'</script>"
ref = "<img src=x onerror=alert(1)>"
equations = \"\"\"
  __proto__' = constructor
  constructor' = -toString*__proto__ - sign(constructor)
\"\"\"
[parameters]
toString = 2   # [0, 5] </pre><script>alert(1)</script>
[initial]
__proto__ = 1
constructor = 0
[section.hasOwnProperty]
on = "constructor"
[run]
until = 10
""")
        self.assertEqual(self.js("return [document.scripts.length, document.images.length, document.title]"),
                         [1, 0, "<script>document.title = 'taken'</script> · saltus"])
        self.find("p-toString").send_keys(Keys.ARROW_RIGHT)
        self.find("x-__proto__").send_keys(Keys.ARROW_RIGHT)
        self.until("saltus.state.p.toString && Object.hasOwn(saltus.state.x, '__proto__')")
        self.rest()
        start = self.js("return saltus.state.run.start")
        self.assertEqual(start, [float(self.js("return saltus.state.x['__proto__']")), 0])
        self.assertIn("-p toString=", self.js("return saltus.command()"))
        self.assertIn("-x __proto__=", self.js("return saltus.command()"))
        for tab in ("section", "sweep", "basins", "orbit", "branch", "run"):
            self.find("tab-" + tab).click()
            self.settle()
        self.assertEqual(self.js("return saltus.errors"), [])

    def test_many_states_and_no_time(self):
        names = range(200)
        self.drop('equations = """\n' + "\n".join(f"x{i}' = -x{i} + sign(x{(i + 1) % 200})" for i in names) + '\n"""\n[initial]\n'
                  + "\n".join(f"x{i} = {i - 100}" for i in names) + "\n[run]\nuntil = 5\n")
        self.assertEqual(len(self.browser.find_elements(By.CSS_SELECTOR, "#initial .slider")), 60)  # the others are in the file
        self.assertEqual(self.js("return saltus.state.run.end.why"), "time")
        self.js("const u = document.getElementById('until'); u.value = '0'; u.dispatchEvent(new Event('change'))")
        self.until("saltus.idle() && saltus.state.run.until === 0")
        self.settle()
        self.js("document.getElementById('play').click()")
        self.js("const u = document.getElementById('until'); u.value = '-1'; u.dispatchEvent(new Event('change'))")  # backward
        self.until("saltus.idle() && saltus.state.run.until === -1")
        self.settle()
        self.assertEqual(self.js("return saltus.errors"), [])

    def test_two_pages_at_once(self):
        self.open("dry_friction")
        first = self.browser.current_window_handle
        self.browser.switch_to.new_window("tab")
        self.browser.get(self.studio.link)
        self.until("saltus.ready")
        self.open("chua")
        self.assertEqual(self.js("return saltus.state.run.columns.slice(1, 4)"), ["x", "y", "z"])
        self.browser.switch_to.window(first)
        self.find("p-F").send_keys(Keys.ARROW_RIGHT)
        self.until("saltus.state.p.F !== undefined")
        self.rest()
        self.assertEqual(self.js("return saltus.state.run.columns.slice(1, 3)"), ["y", "v"])
        self.browser.switch_to.window(self.browser.window_handles[-1])
        self.browser.close()
        self.browser.switch_to.window(first)

    def test_zoom_in_time(self):
        self.open("lorenz")
        canvas = self.find("series")
        before = self.js("return saltus.closeRows()")
        ActionChains(self.browser, duration=20).move_to_element_with_offset(canvas, -20, -60).click_and_hold() \
            .move_by_offset(10, 0).move_by_offset(10, 0).release().perform()
        self.until("saltus.closeRows() === 2001")
        self.assertEqual(before, 0)
        ActionChains(self.browser).double_click(canvas).perform()
        self.until("saltus.closeRows() === 0")

    def test_a_server_that_has_gone(self):
        gone = Studio(SALTUS)
        self.browser.switch_to.new_window("tab")
        self.browser.get(gone.link)
        self.until("saltus.ready")
        gone.__exit__()
        self.until("document.getElementById('connection').textContent.includes('ended')")
        with Studio(SALTUS, "--port", str(gone.port)):
            self.until("document.getElementById('connection').textContent.includes('no connection')", 10)
            self.assertGreater(self.js("return saltus.state.run.events.length"), 0)
        self.browser.get_log("browser")  # failed connections are reported there
        self.browser.close()
        self.browser.switch_to.window(self.browser.window_handles[0])

    def test_what_leaves(self):
        self.open("dry_friction")
        self.js("saltus.state.p.F = '0.31'")
        self.find("p-F").send_keys(Keys.ARROW_LEFT)
        self.rest()
        command = self.js("return saltus.command()")
        told = subprocess.run(command.replace("saltus", SALTUS, 1) + " --json", shell=True, capture_output=True, text=True)
        self.assertEqual(json.loads(told.stdout)["end"], self.js("return saltus.state.run.end"))
        for what, name in (("svg", "dry_friction.svg"), ("page", "dry_friction.html"), ("png", "dry_friction.png"), ("events", "dry_friction-events.csv")):
            self.js(f"document.querySelector('[data-export={what}]').click()")
            path = os.path.join(self.folder.name, name)
            end = time.time() + 10
            while not os.path.exists(path):
                self.assertLess(time.time(), end, name)
                time.sleep(0.05)
        time.sleep(0.2)
        svg = xml.dom.minidom.parse(os.path.join(self.folder.name, "dry_friction.svg"))
        marks = [g for g in svg.getElementsByTagName("*") if g.getAttribute("class") == "event"]
        self.assertEqual(len(marks), 3 * self.js("return saltus.state.run.events.length"))  # y, v and the plane
        page = open(os.path.join(self.folder.name, "dry_friction.html")).read()
        self.assertNotIn("<script", page)
        self.assertNotRegex(page.replace("http://www.w3.org", ""), r"(https?:)?//\w")
        self.browser.switch_to.new_window("tab")
        self.browser.get("file://" + os.path.join(self.folder.name, "dry_friction.html"))
        self.assertEqual(self.js("return document.querySelectorAll('svg').length"), 1)
        self.assertEqual(self.js("return performance.getEntriesByType('resource').length"), 0)
        self.browser.close()
        self.browser.switch_to.window(self.browser.window_handles[0])

    def test_other_origins_are_kept_out(self):
        class Quiet(http.server.SimpleHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                self.wfile.write(b"<!doctype html><title>elsewhere</title>")

            def log_message(self, *_):
                pass
        server = http.server.HTTPServer(("127.0.0.1", 0), Quiet)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.browser.switch_to.new_window("tab")
        self.browser.get(f"http://127.0.0.1:{server.server_address[1]}/")
        outcome = self.browser.execute_async_script("""const done = arguments[2], base = '127.0.0.1:' + arguments[0], out = {};
            const ws = new WebSocket('ws://' + base + '/ws', ['saltus.v1', 'saltus.token.' + arguments[1]]);
            ws.onopen = () => { out.socket = 'open' }; ws.onerror = () => { out.socket = 'refused' };
            const script = document.createElement('script'); script.type = 'module'; script.src = 'http://' + base + '/studio.js';
            script.onload = () => { out.script = 'loaded' }; script.onerror = () => { out.script = 'refused' }; document.head.append(script);
            const frame = document.createElement('iframe'); frame.src = 'http://' + base + '/'; document.body.append(frame);
            fetch('http://' + base + '/').then(() => { out.fetch = 'read' }, () => { out.fetch = 'refused' });
            setTimeout(() => { try { out.frame = frame.contentWindow.document.title } catch { out.frame = 'refused' } done(out) }, 1500)""",
            self.studio.port, self.studio.token)
        self.browser.get_log("browser")  # the refusals are reported there
        self.browser.close()
        self.browser.switch_to.window(self.browser.window_handles[0])
        server.shutdown()
        self.assertEqual(outcome, {"socket": "refused", "script": "refused", "fetch": "refused", "frame": "refused"})

    def test_no_growth(self):
        self.open("dry_friction")

        def resident():
            with open(f"/proc/{self.studio.process.pid}/statm") as f:
                return int(f.read().split()[1]) * 4096
        drag = """const done = arguments[1], s = document.getElementById('p-F'); let k = 0;
            const step = () => { s.value = 0.2 + 0.6 * Math.random(); s.dispatchEvent(new Event('input'));
              if (++k < arguments[0]) setTimeout(step, 4); else done(k) }; step()"""
        def heap():
            self.browser.execute_cdp_cmd("HeapProfiler.collectGarbage", {})
            return self.browser.execute_cdp_cmd("Runtime.getHeapUsage", {})["usedSize"]
        self.browser.set_script_timeout(120)
        self.browser.execute_async_script(drag, 200)
        self.rest()
        before, before_page = resident(), heap()
        self.browser.execute_async_script(drag, 2000)
        self.rest()
        TIMES["growth in 2000 moves, MB of the program and the page"] = [round((resident() - before) / 1e6, 1), round((heap() - before_page) / 1e6, 1)]
        self.assertLess(resident() - before, 20e6)
        self.assertLess(heap() - before_page, 10e6)

    def test_z_dark(self):
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark"}]})
        self.open("chua")
        self.until("saltus.idle()")
        time.sleep(0.2)
        self.picture("dark")
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


if __name__ == "__main__":
    program = unittest.main(argv=sys.argv[:1] + rest, verbosity=2, exit=False, warnings="ignore")
    if TIMES:
        print(json.dumps(TIMES, indent=1))
    if known.times:
        json.dump(TIMES, open(known.times, "w"), indent=1)
    sys.exit(not program.result.wasSuccessful())
