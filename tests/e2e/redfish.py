#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""redfish.py CERTIFICATE KEY PORT-FILE MODE-FILE ASKED-FILE: a management controller over TLS, with the resources of the published
schemas ServiceRoot, ChassisCollection, Chassis, EnvironmentMetrics and Power. The mode, or a path before that of Redfish, says what is wrong with it. Each request is a
line of ASKED-FILE; requests that overlap are written as such."""
import base64
import http.server
import json
import ssl
import sys
import threading
import time

certificate, key, port_file, mode_file, asked_file = sys.argv[1:]
V1 = "/redfish/v1"
LOGIN = "Basic " + base64.b64encode(b"power:of the board").decode()
busy = threading.Lock()
tokens = set()


def link(path):
    return {"@odata.id": V1 + path}


def chassis(name, around=None, **more):
    links = {"ContainedBy": link("/Chassis/" + around)} if around else {}
    return {"@odata.id": V1 + "/Chassis/" + name, "@odata.type": "#Chassis.v1_23_0.Chassis", "Id": name, "Name": name, "ChassisType":
            "RackMount", "Links": links, **more}


def metrics(watts):
    return {"@odata.type": "#EnvironmentMetrics.v1_3_0.EnvironmentMetrics", "Id": "m", "Name": "m",
            "PowerWatts": {"Reading": watts}, "EnergykWh": {"Reading": 374}}


def control(watts):
    return {"@odata.type": "#Power.v1_7_1.Power", "Id": "Power", "Name": "Power",
            "PowerControl": [{"MemberId": "0", "Name": "System", "PowerConsumedWatts": watts, "PowerCapacityWatts": 800}]}


def tree(mode):
    watts = None if mode == "null" else 120.5
    members = [link("/Chassis/" + n) for n in ("fans", "sled", "tray", "box", "box", "twin", "older")]     # box is named twice
    if mode == "hostile":
        members = [{"@odata.id": p} for p in ("http://192.0.2.1/x", "/redfish/v1/../../etc", "/redfish/v1/%2e%2e/%2E%2E/etc", "/redfish/v1/a?b", "/redfish/" + "x" * 999, 7)]
        members += [7, None, []]
    if mode in ("many", "pages"):       # more than a meter asks for
        members = [link(f"/Chassis/{mode}{i}") for i in range(14 if mode == "many" else 70)]
    if mode == "crowd":
        members = [link(f"/Chassis/crowd{i}") for i in range(12)] + [link("/Chassis/rack"), link("/Chassis/room")]
    if mode == "pages":
        members.insert(0, link("/Chassis/box"))
    t = {
        "/": {"@odata.type": "#ServiceRoot.v1_15_0.ServiceRoot", "RedfishVersion": "1.17.0", "Chassis": link("/Chassis")},
        "/Chassis": {"@odata.type": "#ChassisCollection.ChassisCollection", "Members@odata.count": 4, "Members": members},
        "/Chassis/fans": chassis("fans"),
        "/Chassis/tray": chassis("tray", around="box/"),
        "/Chassis/sled": chassis("sled", around="tray", EnvironmentMetrics=link("/Chassis/sled/EnvironmentMetrics")),
        "/Chassis/sled/EnvironmentMetrics": metrics(55),
        "/Chassis/box": chassis("box", EnvironmentMetrics=link("/Chassis/box/EnvironmentMetrics"), Power=link("/Chassis/box/Power")),
        "/Chassis/box/EnvironmentMetrics": metrics(watts),
        "/Chassis/box/Power": control(None if mode == "null" else 999),
        "/Chassis/twin": chassis("twin", EnvironmentMetrics=link("/Chassis/box/EnvironmentMetrics")),      # the same document
        "/Chassis/older": chassis("older", Power=link("/Chassis/older/Power"), EnvironmentMetrics=link("/Chassis/older/Env")),
        "/Chassis/older/Power": control(None if mode == "null" else 30),
    }
    t["/Chassis/older/Env"] = {"@odata.type": "#EnvironmentMetrics.v1_3_0.EnvironmentMetrics", "FanSpeedsPercent": []}
    if mode == "session":
        t["/"]["Links"] = {"Sessions": link("/SessionService/Sessions")}
    if mode == "many":
        for i in range(14):
            t[f"/Chassis/many{i}"] = chassis(f"many{i}", Power=link(f"/Chassis/many{i}/Power"))
            t[f"/Chassis/many{i}/Power"] = control(10 + i)
    if mode == "crowd":     # twelve within one that comes last, and two that are within one another
        for i in range(12):
            t[f"/Chassis/crowd{i}"] = chassis(f"crowd{i}", around="rack", Power=link(f"/Chassis/crowd{i}/Power"))
            t[f"/Chassis/crowd{i}/Power"] = control(10 + i)
        t["/Chassis/rack"] = chassis("rack", around="room", Power=link("/Chassis/rack/Power"))
        t["/Chassis/rack/Power"] = control(500)
        t["/Chassis/room"] = chassis("room", around="rack")
    if mode == "pages":
        t["/Chassis"]["Members@odata.nextLink"] = V1 + "/Chassis?$skip=71"
        for i in range(70):
            t[f"/Chassis/pages{i}"] = chassis(f"pages{i}")
    if mode == "none":
        del t["/Chassis/box"], t["/Chassis/sled"], t["/Chassis/older"], t["/Chassis/twin"]
    return t


class Controller(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body, **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def noted(self, what):
        self.path = self.path.replace("/session/", "/", 1)
        with open(asked_file, "a", encoding="utf-8") as f:
            f.write(f"{what} {self.path}\n")

    # DSP0266 1.17, 13.3.4: 201 with X-Auth-Token and Location; the password has to be in the body alone
    def do_POST(self):
        self.noted("POST")
        who = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path != V1 + "/SessionService/Sessions" or "Authorization" in self.headers or who != {"UserName": "power", "Password": "of the board"}:
            self.answer(401, b"{}")
            return
        token = f"token{len(tokens)}"
        tokens.add(token)
        path = self.path + "/" + token
        self.answer(201, json.dumps({"@odata.id": path, "@odata.type": "#Session.v1_7_0.Session", "Id": token, "Name": token}).encode(),
                    X_Auth_Token=token, Location=path)

    def do_DELETE(self):
        self.noted("DELETE")
        token = self.path.rsplit("/", 1)[1]
        mine = token in tokens and self.headers.get("X-Auth-Token") == token
        tokens.discard(token)
        self.answer(204 if mine else 401, b"")

    def do_GET(self):
        alone = busy.acquire(blocking=False)
        with open(mode_file, encoding="utf-8") as f:
            mode = f.read().strip()
        if not self.path.startswith("/redfish/"):  # a path before it says what is wrong this time
            mode, self.path = self.path[1:].split("/", 1)
            self.path = "/" + self.path
        with open(asked_file, "a", encoding="utf-8") as f:
            f.write(("" if alone else "OVERLAPS ") + self.path + "\n")
        try:
            path = self.path[len(V1):] or "/"
            if mode == "session" and self.headers.get("X-Auth-Token") == "token0" and path.endswith("Power") and len(tokens) == 1:
                tokens.add("gone")      # the first session ends in the middle
                tokens.discard("token0")
            if path == "/" and "Authorization" in self.headers:     # everybody may read it: no password is needed there
                self.answer(400, b"{}")
            elif mode == "session" and path != "/" and ("Authorization" in self.headers or self.headers.get("X-Auth-Token") not in tokens):
                self.answer(401, b'{"error":{"code":"Base.1.8.NoValidSession"}}')
            elif mode != "session" and path != "/" and self.headers.get("Authorization") != LOGIN:
                self.answer(401, b'{"error":{"code":"Base.1.8.AccessDenied"}}')
            elif mode == "slow":
                if alone:  # who asks has given up long before the end
                    busy.release()
                    alone = False
                time.sleep(3)
                self.answer(200, b"{}")
            elif mode == "deep":
                self.answer(200, b'{"Chassis":' + b"[" * 100000)
            elif mode == "long":
                self.answer(200, b" " * 400000)
            elif path in tree(mode):
                self.answer(200, json.dumps(tree(mode)[path]).encode())
            else:
                self.answer(404, b"{}")
        except OSError:
            self.close_connection = True
        finally:
            if alone:
                busy.release()


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Controller)
server.daemon_threads = True
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate, key)
server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
with open(port_file, "w", encoding="utf-8") as f:
    f.write(str(server.server_address[1]))
server.serve_forever()
