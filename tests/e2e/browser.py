# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium, driven over its DevTools pipe (no port, no library). Used as a module by web.py."""
import base64
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser")


def program():
    return next((p for p in map(shutil.which, NAMES) if p), None)


class Browser:
    def __init__(self):
        self.profile = tempfile.mkdtemp(prefix="jouled-browser-")
        down_read, down_write = os.pipe()
        up_read, up_write = os.pipe()

        def pipes():
            # the browser reads 3 and writes 4
            a, b = os.dup(down_read), os.dup(up_write)
            os.dup2(a, 3)
            os.dup2(b, 4)

        self.process = subprocess.Popen(
            [program(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--hide-scrollbars",
             "--user-data-dir=" + self.profile, "--remote-debugging-pipe", "about:blank"],
            close_fds=False, preexec_fn=pipes, start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(down_read)
        os.close(up_write)
        self.out, self.into, self.rest, self.last = down_write, up_read, b"", 0
        self.events, self.answers = [], {}

    def close(self):
        os.killpg(self.process.pid, signal.SIGKILL)     # and those that it has started, which write there too
        self.process.wait()
        for _ in range(300):
            shutil.rmtree(self.profile, ignore_errors=True)
            if not os.path.exists(self.profile):
                break
            time.sleep(0.1)

    def pump(self, seconds):
        """Takes what comes within the time; True when something did."""
        if not select.select([self.into], [], [], seconds)[0]:
            return False
        data = os.read(self.into, 1 << 20)
        if not data:
            raise RuntimeError("the browser has ended")
        *whole, self.rest = (self.rest + data).split(b"\0")
        for message in map(json.loads, whole):
            if "id" in message:
                self.answers[message["id"]] = message
            else:
                self.events.append(message)
        return True

    def send(self, method, session=None, **params):
        self.last += 1
        message = {"id": self.last, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.out, data):]
        end = time.monotonic() + 240
        while self.last not in self.answers:
            if time.monotonic() > end:
                raise TimeoutError(method)
            self.pump(1)
        answer = self.answers.pop(self.last)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]


class Page:
    """A tab that notes every request, every error and every refusal of the policy."""

    def __init__(self, browser, width=1400, height=900, dark=False):
        self.browser = browser
        target = browser.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(domain + ".enable")
        self.look(width, height, dark)

    def send(self, method, **params):
        return self.browser.send(method, session=self.session, **params)

    def look(self, width, height, dark):
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500)
        self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def go(self, url):
        self.send("Page.navigate", url=url)

    def run(self, script):
        result = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"].get("exception", {}).get("description", "exception"))
        return result["result"].get("value")

    def wait(self, script, seconds=240):
        """Until the expression is true; its value."""
        end = time.monotonic() + seconds
        while True:
            value = self.run(script)
            if value:
                return value
            if time.monotonic() > end:
                raise TimeoutError(script)
            self.browser.pump(0.1)

    def shot(self, path):
        with open(path, "wb") as f:
            f.write(base64.b64decode(self.send("Page.captureScreenshot")["data"]))

    def mine(self, method):
        return [e["params"] for e in self.browser.events if e.get("sessionId") == self.session and e["method"] == method]

    def requests(self):
        return [e["request"]["url"] for e in self.mine("Network.requestWillBeSent")]

    def errors(self):
        """What went wrong in the page: exceptions, and what the console was told as an error."""
        text = [e["exceptionDetails"].get("exception", {}).get("description", "exception") for e in self.mine("Runtime.exceptionThrown")]
        return text + [e["entry"]["text"] for e in self.mine("Log.entryAdded") if e["entry"]["level"] == "error"]
