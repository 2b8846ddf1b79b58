# SPDX-License-Identifier: Apache-2.0
"""What a collector answers, by release. It knows agents, sessions and their dictionaries, and keeps the traces; what it
would not have liked is in `refusals` and `complaints`. Answers are (status, content type, body)."""
import base64
import binascii
import json
import re
import threading
import urllib.parse
import uuid
import zlib

import agent_data
import lz4
import records
from rules import PROFILES, Dictionary, Refused

CBOR = "application/zorka+cbor+v1"
BODY_MAX = 8 << 20
# Bytes that the columns of the data base hold, up to 1.90.6.
COLUMNS = {"name": 128, "app": 64, "env": 64}
ATTRIBUTE_MAX = 255
UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\Z")
HEX16, HEX32 = re.compile(r"[0-9a-f]{16}\Z"), re.compile(r"[0-9a-f]{32}\Z")


def page(status, data):
    """JSON as these servers write it: / and all that is not ASCII escaped."""
    return status, "application/json", json.dumps(data).replace("/", "\\/").encode()


def empty(status):
    return status, None, b""


def flat(attrs):
    return isinstance(attrs, dict) and all(isinstance(v, str) for v in attrs.values())


class State:
    """What survives a restart (agents, traces), and what does not (sessions)."""
    def __init__(self, profile, rkey="zorka", log=None):
        self.profile, self.rkey, self.log = PROFILES[profile], rkey, log
        self.lock = threading.RLock()
        self.agents, self.sessions, self.traces = {}, {}, {}
        self.refusals, self.complaints, self.serial, self.registrations = [], [], 0, 0
        self.used = set()            # hosts that asked for a session
        self.orphans = 0             # hosts that were made by registrations which then failed
        self.rereg = "attrs"         # an unchanged host is refused: with "attrs", "always", or not: None
        self.closed = False          # automatic registration switched off

    def restart(self):
        with self.lock:
            self.sessions.clear()

    def write(self, entry):
        if self.log:
            self.log.write(json.dumps(entry) + "\n")
            self.log.flush()

    def refuse(self, error, where):
        self.refusals.append({"where": where, "reason": str(error), "poison": getattr(error, "poison", False)})
        self.write({"refused": self.refusals[-1]})

    def complain(self, texts, where):
        for text in texts:
            self.complaints.append({"where": where, "reason": text})
            self.write({"complaint": self.complaints[-1]})

    def keep(self, trace, agent, session, data):
        """Under its uuid; the last copy wins."""
        tree, complaints = records.take(data, session.dictionary, self.profile)
        old = self.traces.get(trace)
        if old and old["tree"] != tree:
            complaints = [*complaints, f"trace {trace} came again and is another one"]
        entry = {"trace": trace, "agent": agent, "copies": old["copies"] + 1 if old else 1, "bytes": len(data),
                 "serial": len(self.traces) if not old else old["serial"], "tree": tree}
        self.complain(complaints, f"trace {trace}")
        self.traces[trace] = entry
        self.write(entry)

    def define(self, agent, session, data):
        before = len(session.dictionary.complaints)
        try:
            agent_data.take(data, session.dictionary, self.profile)
        finally:
            self.complain(session.dictionary.complaints[before:], f"agent data of {agent}")
            if agent in self.agents:
                self.agents[agent]["attributes"] = session.dictionary.attributes


class Session:
    def __init__(self, name, agent):
        self.name, self.agent, self.dictionary = name, agent, Dictionary()


class First:
    """1.90.1 to 1.90.5."""
    ID, KEY = "uuid", "uuid"
    KEYS = None                      # closed schema of registrations

    def __init__(self, state):
        self.s = state

    def error(self, status, text):
        return page(status, {"error": text})

    def new_id(self):
        self.s.serial += 1
        return f"21c00000-0501-0000-{self.s.serial:04x}-{uuid.uuid4().hex[:12]}"

    def paths(self):
        return {"/agent/register": self.register, "/agent/session": self.session,
                "/agent/submit/agd": self.agent, "/agent/submit/trc": self.trace}

    def parse(self, q):
        """The JSON map of a request, or an answer."""
        kind = q.header("Content-Type").split(";")[0]
        if not q.body or not (kind in ("application/json", "application/edn") or kind.startswith("application/zorka")):
            return None, empty(405)
        try:
            j = json.loads(q.body)
            if kind == "application/json" and isinstance(j, dict):
                return j, None
        except ValueError:
            pass
        return None, (500, "text/html", b"<html><body><h1>500</h1></body></html>")

    def registered(self, i, a, new):
        return page(201 if new else 200, {"uuid": i, "authkey": a["authkey"]})

    def known(self, j):
        """The agent of a registration, None: unknown or not given."""
        i = j.get("uuid")
        return i if isinstance(i, str) and i in self.s.agents else None

    def wrong(self, j):
        """Why the map of a registration is not taken."""
        texts = [j.get(k) for k in ("rkey", "name")]
        if not all(isinstance(t, str) and t for t in texts):
            return self.error(400, "Missing arguments.")
        if self.KEYS and set(j) - self.KEYS:
            return self.error(400, "Invalid request.")
        if j["rkey"] != self.s.rkey:
            return self.error(401, "Access denied.")
        if not flat(j.get("attrs", {})) or not all(isinstance(j.get(k, ""), str) for k in ("app", "env", "akey")):
            return self.error(500, "Internal error.")
        return None

    @staticmethod
    def long_name(j):
        return any(len(j.get(k, "").encode()) > most for k, most in COLUMNS.items())

    @staticmethod
    def long_attribute(j):
        return any(len(t.encode()) > ATTRIBUTE_MAX for kv in j.get("attrs", {}).items() for t in kv)

    def unchanged(self, i, j):
        """As observed at 1.90.4 and 1.90.6: a host that registers again as what it is."""
        a = self.s.agents[i]
        same = all(j.get(k, a[k]) == a[k] for k in ("name", "app", "env"))
        return same and self.s.profile.rereg and (self.s.rereg == "always" or (self.s.rereg == "attrs" and "attrs" in j))

    def broken(self, j, i):
        """500 of the data base; the host of a new registration is in it already."""
        if self.long_name(j):
            return True
        if i:
            return self.unchanged(i, j) or self.long_attribute(j)
        if self.long_attribute(j):
            self.s.orphans += 1
            return True
        return False

    def register(self, q):
        j, answer = self.parse(q)
        answer = answer or self.wrong(j)
        if answer:
            return answer
        i = self.known(j)
        if i and j.get("akey") != self.s.agents[i]["authkey"]:
            return self.error(401, "Access denied.")
        if not i and self.s.closed:
            return self.error(500, "No such host.")
        if self.broken(j, i):
            return self.error(500, "Internal error.")
        new = not i
        if new:
            i = self.new_id()
            self.s.agents[i] = {"authkey": uuid.uuid4().hex[:16], "attributes": {}}
            self.s.registrations += 1
        self.s.agents[i].update({"name": j["name"], "app": j.get("app", "DSC"), "env": j.get("env", "TST"),
                                 "attrs": j.get("attrs", {})})
        self.s.write({"registered": i, **{k: v for k, v in self.s.agents[i].items() if k != "authkey"}})
        return self.registered(i, self.s.agents[i], new)

    def session(self, q):
        j, answer = self.parse(q)
        if answer:
            return answer
        i, key = j.get(self.ID), j.get("authkey")
        if not isinstance(i, str) or not isinstance(key, str):
            return self.error(400, "Missing arguments.")
        if i not in self.s.agents:
            return self.error(400, "No such agent.")
        if key != self.s.agents[i]["authkey"]:
            return self.error(401, "Access denied.")
        self.s.used.add(i)
        for name, s in self.s.sessions.items():
            if s.agent == i:
                return page(200, {"session": name})
        name = str(uuid.uuid4())
        self.s.sessions[name] = Session(name, i)
        return page(200, {"session": name})

    def find(self, q):
        s = self.s.sessions.get(q.header("X-Zorka-Session-UUID"))
        return s if s and s.agent == q.header("X-Zorka-Agent-UUID") else None

    def body(self, q):
        try:
            return base64.b64decode(re.sub(rb"[\r\n]", b"", q.body), validate=True)
        except (ValueError, binascii.Error) as e:
            raise Refused(f"no base64: {e}") from e

    def unfit(self, q):
        """By content type and length."""
        kind = q.header("Content-Type")
        if not q.body or (kind and not kind.startswith(("application/json", CBOR))):
            return empty(405)
        if not kind.startswith(CBOR):
            self.s.refuse(f"content type {kind!r}", q.path)
            return self.error(500, "Internal error.")
        return None

    def submitted(self):
        return page(202, {"result": "Submitted"})

    def trouble(self, q, error):
        self.s.refuse(error, q.path)
        return self.error(500, "Internal error.")

    def agent(self, q):
        """The body is read before the session is looked for."""
        session, answer = self.find(q), self.unfit(q)
        if answer:
            return answer
        try:
            data = self.body(q)
            if not session:
                return self.error(412, "No such session.")
            self.s.define(session.agent, session, data)
        except Refused as e:
            return self.trouble(q, e)
        return self.submitted()

    def lost(self, q):
        if q.header("X-Zorka-Agent-UUID") not in self.s.agents:
            return self.error(401, "No such agent.")
        return self.error(412, "No such session.")

    def trace_id(self, q):
        t = q.header("X-Zorka-Trace-UUID")
        if not UUID.match(t):
            raise Refused(f"trace uuid {t!r}")
        return t.lower()

    def trace(self, q):
        session, answer = self.find(q), self.unfit(q)
        if answer:
            return answer
        try:
            data = self.body(q)
            if not session:
                return self.lost(q)
            self.s.keep(self.trace_id(q), session.agent, session, data)
        except Refused as e:
            return self.trouble(q, e)
        return self.submitted()


class Sixth(First):
    """1.90.6: numbers for agents, raw bodies, a closed schema, 400 and 401 for a lost session."""
    ID = "id"
    KEYS = {"rkey", "name", "app", "env", "id", "akey", "attrs"}

    def error(self, status, text):
        return page(status, {"reason": text})

    def new_id(self):
        self.s.serial += 1
        return str(self.s.serial)

    def registered(self, i, a, new):
        return page(200, {"id": int(i), "authkey": a["authkey"]})

    def wrong(self, j):
        if "id" in j and (not isinstance(j["id"], int) or isinstance(j["id"], bool)):
            return self.error(400, "Invalid request.")
        return super().wrong(j)

    def known(self, j):
        i = str(j.get("id"))
        return i if i in self.s.agents else None

    def find(self, q):
        s = self.s.sessions.get(q.header("X-Zorka-Session-UUID"))
        return s if s and s.agent == q.header("X-Zorka-Agent-ID") else None

    def body(self, q):
        return q.body

    def unfit(self, q):
        return None if q.body else empty(405)

    def submitted(self):
        return empty(202)

    def lost(self, q):
        return self.error(400 if q.path.endswith("agd") else 401, "Invalid session.")

    def agent(self, q):
        return super().agent(q) if self.find(q) or not q.body else self.lost(q)


class Second(Sixth):
    """1.90.7 and later: nobody registers, the client names its session."""
    def paths(self):
        return {"/agent/submit/agd": self.agent, "/agent/submit/trc": self.trace}

    def find(self, q):
        return self.s.sessions.get(q.header("X-Zorka-Session-ID"))

    def lost(self, q):
        return self.error(401, "No such session.")

    def trouble(self, q, error):
        self.s.refuse(error, q.path)
        return self.error(401, "Invalid data.")

    def agent(self, q):
        name = q.header("X-Zorka-Session-ID")
        if q.header("X-Zorka-Session-Reset") == "true":
            if not HEX16.match(name):
                return self.trouble(q, f"session id {name!r}")
            self.s.sessions[name] = Session(name, name)
        return super().agent(q)

    def trace_id(self, q):
        t = q.header("X-Zorka-Trace-ID")
        if not HEX16.match(t) and not HEX32.match(t):
            raise Refused(f"trace id {t!r}")
        return t


class Document(First):
    """The protocol document: agent data by form, the rest as its contemporaries."""
    UNPACK = {"data": bytes, "zdata": zlib.decompress, "ldata": lz4.unpack}

    def paths(self):
        return {"/agent/register": self.register, "/agent/session": self.session,
                "/submit/agent": self.agent, "/agent/submit/trc": self.trace}

    def form(self, q):
        """The fields, one of data, zdata and ldata unpacked as `bytes`."""
        fields = urllib.parse.parse_qs(q.body.decode("ascii"), strict_parsing=True, encoding="ascii", errors="strict")
        data = [k for k in self.UNPACK if k in fields]
        if set(fields) != {"host", *data} or len(data) != 1 or any(len(v) != 1 for v in fields.values()):
            raise ValueError(f"fields {sorted(fields)}; host and one of data, zdata, ldata are expected")
        return fields["host"][0], self.UNPACK[data[0]](base64.b64decode(fields[data[0]][0], validate=True))

    def agent(self, q):
        try:
            host, data = self.form(q)
        except (ValueError, zlib.error) as e:
            self.s.refuse(e, q.path)
            return self.error(400, "Invalid arguments.")
        if host not in self.s.agents:
            return self.error(401, "Access denied.")
        session = next((s for s in self.s.sessions.values() if s.agent == host), None)
        if not session:
            return self.error(412, "No such session.")
        try:
            self.s.define(host, session, data)
        except Refused as e:
            return self.trouble(q, e)
        return empty(200)


KINDS = {"F1": First, "F2": Sixth, "F3": Second, "document": Document}


def answer(state, q):
    """To one request, whole."""
    with state.lock:
        handler = KINDS[state.profile.family](state).paths().get(q.path)
        if not handler:
            return empty(404)
        if q.method != "POST":
            return empty(405)
        return handler(q)
