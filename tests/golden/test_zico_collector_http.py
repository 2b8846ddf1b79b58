#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the strict ZICO collector (tests/zico) answers to requests: the statuses and bodies of each release, and faults."""
import base64
import http.client
import json
import os
import sys
import unittest
import urllib.parse
import uuid
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "zico"))
import collector  # noqa: E402
import lz4  # noqa: E402
from samples import LITERAL, MINIMAL, SECOND, definitions, h  # noqa: E402

CBOR = "application/zorka+cbor+v1"


class Http(unittest.TestCase):
    def serve(self, profile):
        self.c = collector.Collector(profile).start()
        self.addCleanup(self.c.stop)
        self.trace = str(uuid.uuid4())

    def post(self, path, body, kind=None, **headers):
        conn = http.client.HTTPConnection("127.0.0.1", self.c.port, timeout=120)
        if isinstance(body, dict):
            body, kind = json.dumps(body).encode(), "application/json"
        headers = {f"X-Zorka-{k.replace('_', '-')}": v for k, v in headers.items()}
        if kind:
            headers["Content-Type"] = kind
        try:
            conn.request("POST", path, body, headers)
            r = conn.getresponse()
            data = r.read()
            r.close()
        finally:
            conn.close()
        try:
            return r.status, json.loads(data)
        except ValueError:
            return r.status, data

    def login(self, number=False, **more):
        status, a = self.post("/agent/register", {"rkey": "zorka", "name": "n", **more})
        self.assertEqual(status, 200 if number else 201)
        i = str(a["id"]) if number else a["uuid"]
        status, s = self.post("/agent/session", {"id" if number else "uuid": i, "authkey": a["authkey"]})
        self.assertEqual(status, 200)
        return i, a["authkey"], s["session"]

    def test_first_identity(self):
        self.serve("zico-1.90")
        reg, ses = "/agent/register", "/agent/session"
        i, key, session = self.login(attrs={"a": "b/c"}, unknown=1)
        self.assertRegex(i, "^21c00000-0501-0000-[0-9a-f]{4}-[0-9a-f]{12}$")
        again = {"rkey": "zorka", "name": "m", "uuid": i, "akey": key}
        self.assertEqual(self.post(reg, again), (200, {"uuid": i, "authkey": key}))
        denied = (401, {"error": "Access denied."})
        self.assertEqual(self.post(reg, {**again, "akey": "x"}), denied)
        self.assertEqual(self.post(reg, {"rkey": "zorka", "name": "m", "uuid": i}), denied)
        self.assertEqual(self.post(reg, {**again, "rkey": "x"})[0], 401)
        status, other = self.post(reg, {**again, "uuid": "21c00000-0501-0000-ffff-000000000000"})
        self.assertEqual((status, other["uuid"] != i), (201, True))
        self.assertEqual(self.post(reg, {"rkey": "zorka"})[0], 400)
        self.assertEqual(self.post(reg, b""), (405, b""))
        self.assertEqual(self.post(reg, b"{}", "text/plain"), (405, b""))
        self.assertEqual(self.post(reg, b"{", "application/json")[0], 500)
        self.assertEqual(self.post(ses, {"uuid": i, "authkey": key})[1]["session"], session)
        self.assertEqual(self.post(ses, {"uuid": i, "authkey": "x"}), denied)
        self.assertEqual(self.post(ses, {"uuid": "x", "authkey": key}), (400, {"error": "No such agent."}))
        self.assertEqual(self.post(ses, {"uuid": i})[0], 400)
        self.assertEqual(self.post("/agent/nothing", b"x")[0], 404)
        self.assertEqual(self.c.state.agents[i]["name"], "m")
        self.c.state.closed = True
        self.assertEqual(self.post(reg, {"rkey": "zorka", "name": "z"}), (500, {"error": "No such host."}))

    def test_first_submit(self):
        self.serve("zico-1.90")
        i, _, session = self.login()
        agd, trc = "/agent/submit/agd", "/agent/submit/trc"
        ids = {"Agent_UUID": i, "Session_UUID": session}
        good = base64.b64encode(definitions())
        done = (202, {"result": "Submitted"})
        wrong = (500, {"error": "Internal error."})
        self.assertEqual(self.post(agd, good[:76] + b"\r\n" + good[76:], CBOR, **ids), done)
        self.assertEqual(self.post(agd, good, CBOR)[0], 412)
        self.assertEqual(self.post(agd, good, CBOR, **{**ids, "Agent_UUID": "x"})[0], 412)
        self.assertEqual(self.post(agd, good, None, **ids), wrong)
        self.assertEqual(self.post(agd, good, "text/plain", **ids)[0], 405)
        self.assertEqual(self.post(agd, b"", CBOR, **ids)[0], 405)
        self.assertEqual(self.post(agd, definitions(), CBOR, **ids), wrong)
        t = base64.b64encode(MINIMAL)
        self.assertEqual(self.post(trc, t, CBOR, **ids), wrong)
        self.assertEqual(self.post(trc, t, CBOR, Trace_UUID="x", **ids), wrong)
        ids["Trace_UUID"] = self.trace
        self.assertEqual(self.post(trc, t, CBOR, **ids), done)
        self.assertEqual(self.post(trc, t, CBOR, **ids), done)
        self.assertEqual([(e["copies"], e["tree"]["attrs"]) for e in self.c.traces.values()], [(2, {"HOST": "libcbor"})])
        self.assertEqual(self.post(trc, t, CBOR, **{**ids, "Session_UUID": "x"})[0], 412)
        self.assertEqual(self.post(trc, t, CBOR, **{**ids, "Agent_UUID": "x"}), (401, {"error": "No such agent."}))
        self.c.restart()
        self.assertEqual(self.post(trc, t, CBOR, **ids)[0], 412)
        self.assertEqual(self.post(agd, b"A" * (9 << 20), CBOR, **ids)[0], 413)
        self.assertEqual(self.c.state.complaints, [])

    def test_sixth(self):
        self.serve("zico-1.90.6")
        i, key, session = self.login(number=True)
        reg = {"rkey": "zorka", "name": "n"}
        self.assertEqual(self.post("/agent/register", {**reg, "id": int(i), "akey": key}), (200, {"id": int(i), "authkey": key}))
        self.assertEqual(self.post("/agent/register", {**reg, "id": i, "akey": key})[0], 400)
        self.assertEqual(self.post("/agent/register", {**reg, "uuid": i})[0], 400)
        self.assertIn("reason", self.post("/agent/register", {**reg, "rkey": "x"})[1])
        self.assertEqual(self.post("/agent/session", {"id": int(i), "authkey": key})[0], 400)
        ids = {"Agent_ID": i, "Session_UUID": session, "Trace_UUID": self.trace}
        self.assertEqual(self.post("/agent/submit/agd", definitions(), **ids), (202, b""))
        self.assertEqual(self.post("/agent/submit/trc", MINIMAL, **ids), (202, b""))
        self.assertEqual(self.post("/agent/submit/trc", base64.b64encode(MINIMAL), **ids)[0], 500)
        self.c.restart()
        self.assertEqual(self.post("/agent/submit/agd", definitions(), **ids)[0], 400)
        self.assertEqual(self.post("/agent/submit/trc", MINIMAL, **ids)[0], 401)
        self.assertEqual(list(self.c.traces), [self.trace])

    def test_second(self):
        self.serve("zico-2")
        self.assertEqual(self.post("/agent/register", {"rkey": "zorka", "name": "n"})[0], 404)
        agd, trc, data = "/agent/submit/agd", "/agent/submit/trc", definitions(typed=False)
        ids = {"Session_ID": "0123456789abcdef", "Trace_ID": "f" * 32}
        self.assertEqual(self.post(agd, data, **ids)[0], 401)
        self.assertEqual(self.post(agd, data, Session_Reset="true", **ids)[0], 202)
        self.assertEqual(self.post(trc, SECOND, **ids)[0], 202)
        self.assertEqual(self.post(trc, MINIMAL, **ids)[0], 401)
        self.assertEqual(self.post(trc, SECOND, **{**ids, "Trace_ID": "g" * 32})[0], 401)
        self.assertEqual(self.post(agd, data[:20], Session_Reset="true", **ids)[0], 401)
        self.assertEqual(self.post(trc, SECOND, **ids)[0], 401)   # the reset has emptied the dictionary
        self.assertEqual(len(self.c.traces), 1)

    def test_document(self):
        self.serve("document")
        i, _, session = self.login()
        form, data = "application/x-www-form-urlencoded", definitions("cd", "ce")
        frame = h("04224d18 60 40 82") + (len(data) | 1 << 31).to_bytes(4, "little") + data + bytes(4)
        for field, packed in (("data", data), ("zdata", zlib.compress(data)), ("ldata", frame)):
            body = urllib.parse.urlencode({"host": i, field: base64.b64encode(packed)}).encode()
            self.assertEqual(self.post("/submit/agent", body, form)[0], 200, field)
        self.assertEqual(self.post("/submit/agent", b"host=" + i.encode(), form)[0], 400)
        self.assertEqual(self.post("/submit/agent", b"host=" + i.encode() + b"&data=ab+/", form)[0], 400)
        self.assertEqual(self.post("/submit/agent", body.replace(i.encode(), b"x"), form)[0], 401)
        self.assertEqual(self.post("/agent/submit/agd", data, CBOR)[0], 404)
        ids = {"Agent_UUID": i, "Session_UUID": session, "Trace_UUID": self.trace}
        self.assertEqual(self.post("/agent/submit/trc", base64.b64encode(LITERAL), CBOR, **ids)[0], 202)
        self.assertEqual(self.post("/agent/submit/trc", base64.b64encode(MINIMAL), CBOR, **ids)[0], 500)

    def test_faults(self):
        self.serve("zico-2")
        data = definitions(typed=False)
        ids = {"Session_ID": "0123456789abcdef", "Session_Reset": "true"}
        self.c.fault("412:agd:2", "taken-500:agd:1", "slow:agd:1", "lost:agd:1", "half:agd:1", "close:agd:1", "garbage::1")
        got = []
        for _ in range(9):
            try:
                got.append(self.post("/agent/submit/agd", data, **ids)[0])
            except (http.client.HTTPException, OSError) as e:
                got.append(type(e).__name__)
        self.assertEqual(got[:4], [412, 412, 500, 202])
        self.assertEqual(got[4:8], ["RemoteDisconnected", "IncompleteRead", "RemoteDisconnected", "BadStatusLine"])
        self.assertEqual(got[8], 202)
        self.assertEqual([s for _, s in self.c.statuses], [202] * 5)   # the faults among them that take it

    def test_lz4_matches(self):
        """A match that overlaps itself: "ab", then six bytes from two before."""
        block = h("22") + b"ab" + h("0200") + h("10") + b"c"
        frame = h("04224d18 60 40 82") + len(block).to_bytes(4, "little") + block + bytes(4)
        self.assertEqual(lz4.unpack(frame), b"abababab" + b"c")
        for n in range(len(frame)):
            with self.assertRaises(ValueError):
                lz4.unpack(frame[:n])


if __name__ == "__main__":
    unittest.main()
