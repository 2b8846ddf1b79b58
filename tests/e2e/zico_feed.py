#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The ZICO output against the strict collector of tests/zico, fed with traces that the test knows to the last field.
zico_feed.py FEED WORK [CASE]...: FEED is the program of tests/zico/feed.c, WORK a folder. "ok NAME" or "FAIL NAME: reason"."""
import concurrent.futures
import os
import random
import sys
import time

from zico_feeder import WORK, Feed, all_there, arrived, collector, content, deliver, key, make, url
from zico_wait import Failed, cases, certificate_of, until


def profiles():
    """Every release by its name and by `auto`, both byte orders, every flag, every form."""
    for profile, option in (("zico-1.90.3", "zico-1.90"), ("zico-1.90.3", "zico-1.90&flags=1.90.3"),
                            ("zico-1.90", "zico-1.90&flags=1.90.4&endian=be"), ("zico-1.90", "auto"), ("zico-1.90.3", "auto"),
                            ("zico-1.90.6", "zico-1.90.6&flags=1.90.4"), ("zico-1.90.6", "auto&endian=be"),
                            ("zico-2", "zico-2"), ("zico-2", "auto"), ("document", "document&form=data"),
                            ("document", "document&endian=be"), ("document", "document&form=ldata")):
        some = make(f"{profile} {option}", 12)
        c = deliver(f"p-{profile}-{option}", profile, f"?profile={option}", some)
        content(c, some, profile)
        if profile != "zico-2" and c.state.registrations != 1:
            raise Failed(f"{profile}: registered {c.state.registrations} times")
        if profile != "zico-2":
            check_agent(c)


def check_agent(c):
    a = next(iter(c.state.agents.values()))
    if a["attributes"].get("HOSTNAME") != "feed" or not a["attributes"].get("KERNEL", "").startswith("Linux "):
        raise Failed(f"agent attributes {a['attributes']}")
    if a["attributes"].get("ENERGY_SOURCES") != "package-0=powercap dram-0=powercap":
        raise Failed(f"ENERGY_SOURCES {a['attributes']}")


def registration():
    c = deliver("reg", "zico-1.90", "?app=shop&env=prod&attrs=rack=7", make("reg", 1))
    a = next(iter(c.state.agents.values()))
    if (a["name"], a["app"], a["env"], a["attrs"].get("rack")) != ("feed", "shop", "prod", "7"):
        raise Failed(str(a))


def asked(c, end):
    return sum(path.endswith(end) for path, _ in c.requests)


def one_404_of(profile, faults=("404:trc:1",)):
    c = collector.Collector(profile).start()
    f = Feed(f"one-404-{profile}", url(c))
    some = make("one 404", 6)
    try:
        f.send(*some[:3])
        all_there(c, some[:3], f)
        c.fault(*faults)
        f.send(*some[3:])
        all_there(c, some, f)
        content(c, some, profile)
        if (asked(c, "register"), c.state.registrations) != (1, 1):
            raise Failed(f"{profile}: {asked(c, 'register')} registrations, {c.state.registrations} hosts")
        f.end()
    finally:
        f.kill()
        c.stop()


def one_404():
    """A proxy that does not know a path for a moment is no reason to register, or to leave off."""
    for profile in ("zico-1.90", "zico-1.90.6"):
        one_404_of(profile)


def again_of(profile, refuses, hosts):
    c = collector.Collector(profile).start()
    c.state.rereg = refuses
    f = Feed(f"again-{profile}-{refuses}", url(c))
    some = make("again", 6)
    try:
        f.send(*some[:3])
        all_there(c, some[:3], f)
        c.state.restart()
        c.fault("401:session:1")       # once it does not know us, although it does
        f.send(*some[3:])
        all_there(c, some, f)
        content(c, some, profile)
        if c.state.registrations != hosts:
            raise Failed(f"{profile} that refuses {refuses}: {c.state.registrations} hosts, not {hosts}")
        f.end()
    finally:
        f.kill()
        c.stop()


def again():
    """500 to a host that registers again unchanged: then without attributes, then as a new one."""
    for profile in ("zico-1.90", "zico-1.90.6"):
        again_of(profile, "attrs", 1)
        again_of(profile, "always", 2)


def many_domains():
    """More domains than a column holds: cut and said once, one host and no orphans."""
    for profile in ("zico-1.90", "zico-1.90.6"):
        c = collector.Collector(profile).start()
        f = Feed(f"many-domains-{profile}", url(c), env={"FEED_DOMAINS": "16"})
        some = make("domains", 3)
        try:
            f.send(*some)
            all_there(c, some, f)
            content(c, some, profile)
            a = next(iter(c.state.agents.values()))
            long = [k for kind in ("attrs", "attributes") for k, v in a[kind].items() if len(v.encode()) > 255]
            if long or not a["attrs"]["ENERGY_SOURCES"].startswith("package-0=powercap dram-0=powercap "):
                raise Failed(f"{profile}: {a}")
            if (c.state.registrations, c.state.orphans) != (1, 0):
                raise Failed(f"{profile}: {c.state.registrations} hosts, {c.state.orphans} orphans")
            if f.said().count("ENERGY_SOURCES") != 1:
                raise Failed(f"{profile}: not said once: {f.said()}")
            f.end()
        finally:
            f.kill()
            c.stop()


def no_registration():
    """500 to each registration, which may leave a host behind each time: growing pauses, then one host."""
    c = collector.Collector("zico-1.90").start()
    c.fault("500:register")
    f = Feed("no-registration", url(c))
    some, begun = make("no registration", 2), time.monotonic()
    try:
        f.send(*some)
        until(lambda: asked(c, "register") == 4, lambda: f"{asked(c, 'register')} registrations; {f.said()}")
        if time.monotonic() - begun < (1 + 2 + 4) / 2:          # each pause is half to one and a half times as long
            raise Failed(f"4 registrations within {time.monotonic() - begun:.1f} s")
        c.fault()
        all_there(c, some, f)
        if c.state.registrations != 1 or "every 10 min" not in f.said():
            raise Failed(f"{c.state.registrations} hosts; {f.said()}")
        f.end()
    finally:
        f.kill()
        c.stop()


FAULTS = (("412:trc:3", "412:agd:2"), ("500::4",), ("close::4", "garbage:trc:1"), ("lost:trc:2", "half:trc:2"),
          ("taken-500:trc:1", "slow::5"), ("giant:trc:1",), ("503::3", "302:trc:2", "404:trc:1"), ("405:agd:1",),
          ("401:trc:1",), ("400:session:1",))


def faulty(faults):
    some = make(str(faults), 4)
    c = deliver("f-" + faults[0].replace(":", "-"), "zico-1.90", "", some, faults)
    content(c, some, "zico-1.90")
    if c.state.registrations > 1:
        raise Failed(f"{faults}: {c.state.registrations} hosts of one agent")


def faulty_answers():
    """Traces arrive once each whatever the answers are; what is taken and answered wrongly comes again by its uuid."""
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(faulty, FAULTS))


def storm_of(profile, status):
    some = make("storm", 6)
    c = collector.Collector(profile).start()
    c.fault(f"{status}:trc")
    f = Feed(f"storm-{profile}", url(c), "" if profile != "document" else "?profile=document")
    try:
        f.send(*some)
        f.wait_spooled(some)
        time.sleep(2)
        n = len(c.requests)
        if n >= 200:
            raise Failed(f"{profile}: {n} requests in 2 s")
        until(lambda: len(c.requests) > 4, lambda: f"{profile}: {len(c.requests)} requests")
        c.fault()
        all_there(c, some, f)
        content(c, some, profile)
        if c.state.registrations > 1:
            raise Failed(f"{profile}: {c.state.registrations} hosts of one agent")
    finally:
        f.kill()
        c.stop()


def storm():
    """A lost session to everything for a while: no flood of requests, then all of it."""
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(storm_of, ("zico-1.90", "zico-1.90.6", "zico-2", "document"), (412, 401, 401, 412)))


def identity():
    """A collector that was replaced, a key that was changed, another release: registered again, delivered."""
    c = collector.Collector("zico-1.90").start()
    f = Feed("identity", url(c))
    some = []
    try:
        for n, change in enumerate((None, c.restart, lambda: c.become("zico-1.90"), lambda: new_key(c),
                                    lambda: c.become("zico-1.90.6"), lambda: c.become("zico-2"), lambda: c.become("zico-1.90"))):
            if change:
                change()
            some += make(f"identity{n}", 3)
            f.send(*some[-3:])
            all_there(c, some, f)
        content(c, some[-3:], "zico-1.90", len(c.state.refusals))
        f.end()
    finally:
        f.kill()
        c.stop()


def new_key(c):
    with c.state.lock:
        c.state.sessions.clear()
        for a in c.state.agents.values():
            a["authkey"] = "anotherkey000000"


def wrong_key():
    c = collector.Collector("zico-1.90", rkey="secret").start()
    f = Feed("key", url(c))
    try:
        f.send(*make("key", 1))
        until(lambda: "set key to the collector's registration key" in f.said(), f.said)
        f.end()
    finally:
        f.kill()
        c.stop()


def refused_by_certificate(c, f):
    until(lambda: "certificate" in f.said(), f.said)
    line = next(x for x in f.said().split("|") if "certificate" in x)
    if c.traces or c.requests:
        raise Failed("sent in spite of the certificate")
    if len(line) > 400 or ";" not in line:
        raise Failed(f"not a clear line: {line}")


def certificate():
    """A certificate that nobody vouches for, and one of another host: refused, and said in a line. With ca-file: taken."""
    for n, (host, with_ca, taken) in enumerate((("localhost", 0, 0), ("elsewhere.example", 1, 0), ("localhost", 1, 1))):
        crt, pem = certificate_of(host, WORK)
        c = collector.Collector("zico-1.90", cert=pem).start()
        f = Feed(f"tls-{n}", f"https://localhost:{c.port}", f"?ca-file={crt}" if with_ca else "")
        some = make("tls", 1)
        try:
            f.send(*some)
            if taken:
                all_there(c, some, f)
            else:
                refused_by_certificate(c, f)
            f.end()
        finally:
            f.kill()
            c.stop()


def silent():
    """One that takes requests and never answers does not keep the program from its end."""
    c = collector.Collector("zico-1.90").start()
    c.fault("hang")
    f = Feed("silent", url(c))
    try:
        some = make("silent", 1)
        f.send(*some)
        f.wait_spooled(some)
        until(lambda: c.requests, "no request")
        f.end(20)
        c.fault()
        c.restart()
        f.start()
        all_there(c, some, f)
    finally:
        f.kill()
        c.stop()


def spool_bytes(f):
    return sum(os.path.getsize(os.path.join(d, x)) for d, _, xs in os.walk(f.state) for x in xs)


def clock_set_back():
    """By an hour, while the collector is away and while nothing is to be sent: neither pause becomes longer."""
    some = make("clock", 6)
    c = collector.Collector("zico-1.90").start()
    c.stop()
    f = Feed("clock", url(c), env={"FEED_AHEAD_S": "3600"})
    try:
        f.send(*some[:3])
        f.wait_spooled(some[:3])
        until(lambda: "Could not connect" in f.said() or "Couldn't connect" in f.said(), f.said)
        c.start()
        all_there(c, some[:3], f)
        f.send(*some[3:])
        all_there(c, some, f)
        f.end()
    finally:
        f.kill()
        c.stop()


def five_hundred():
    """500 for ever: the spool grows up to its bound, the oldest go and are counted; what is left is then delivered."""
    c = collector.Collector("zico-1.90").start()
    c.fault("500")
    f = Feed("bound", url(c), "?spool-size=256KiB")
    some = make("bound", 200)
    try:
        for i in range(0, len(some), 20):
            f.send(*some[i:i + 20])
            f.wait_spooled(some[i:i + 20])
            if spool_bytes(f) > (256 << 10) + 16384:
                raise Failed(f"{spool_bytes(f)} bytes in a spool of 256 KiB")
        until(lambda: "traces dropped so far: " in f.said(), lambda: f"no word of what was dropped: {f.said()}")
        if c.traces:
            raise Failed("a trace behind a 500?")
        c.fault()
        last = {t.uuid.hex for t in some[-20:]}
        until(lambda: last <= arrived(c), lambda: f"{len(c.traces)} traces; {f.said()}")
        kept = [t for t in some if t.uuid.hex in arrived(c)]
        if not 20 < len(kept) < 200 or len(kept) != len(c.traces):
            raise Failed(f"{len(kept)} of 200 kept, {len(c.traces)} arrived")
        content(c, kept, "zico-1.90")
        f.end()
    finally:
        f.kill()
        c.stop()


def shape(name, n, parent_of):
    """A tree of n processes that all failed, with long command lines."""
    t = make(name, 1, 2)[0]
    root = t.spans[0]
    t.spans = [{**root, "id": i + 1, "parent": parent_of(i) + 1 if i else 0, "end": "exited", "signal": 0, "exit_code": 1,
                "cmdline": f"{i} " + "x" * 500, "start_ns": root["start_ns"] + i, "end_ns": root["start_ns"] + 10**9}
               for i in range(n)]
    return t


def size_of(top):
    todo, records, exceptions = [top], 0, 0
    while todo:
        node = todo.pop()
        records, exceptions = records + 1, exceptions + bool(node["exception"])
        todo += node["children"]
    return records, exceptions


def large():
    """Too wide, too deep, too many exceptions: what is left fits the collector, and what was left out is said."""
    wide, deep, many = shape("wide", 12000, lambda i: 0), shape("deep", 3000, lambda i: i - 1), shape("many", 300, lambda i: 0)
    for profile in ("zico-1.90", "zico-1.90.6", "zico-2"):
        c = deliver(f"large-{profile}", profile, "", [wide, deep, many])
        tops = {key(u): e["tree"] for u, e in c.traces.items()}
        for t in (wide, deep, many):
            top = tops[t.uuid.hex]
            records, exceptions = size_of(top)
            left = [int(top["attrs"].get(k, 0)) for k in ("SPANS_LEFT_OUT", "EXCEPTIONS_LEFT_OUT")]
            if records + left[0] != len(t.spans) or (t is many and exceptions + left[1] != 300) or (t is not many and not left[0]):
                raise Failed(f"{profile}: {records} records, {exceptions} exceptions, left out {left} of {len(t.spans)}")
        if c.state.refusals or c.state.complaints:
            raise Failed(f"{profile}: {c.state.refusals[:2]} {c.state.complaints[:2]}")


def strike(rng, c, f):
    """Something ends, or comes back."""
    what = rng.randrange(4)
    if what == 0:
        c.restart()
    elif what == 1:
        c.stop()
    elif what == 2 and not c.server:
        c.start()
    else:
        f.kill()
        f.start()


def kills_of(profile):
    rng = random.Random(profile)
    c = collector.Collector(profile).start()
    f = Feed(f"kills-{profile}", url(c), "?profile=document" if profile == "document" else "")
    some, rounds, end = {}, 0, time.monotonic() + float(os.environ.get("KILL_SECONDS", "6"))
    try:
        while time.monotonic() < end:
            more = make(f"{profile}{rounds}", 8)
            some.update((t.uuid.hex, t) for t in more)
            f.send(*more)
            time.sleep(rng.random() * 0.3)
            rounds += 1
            strike(rng, c, f)
        if not c.server:
            c.start()
        must = set(f.spooled)
        until(lambda: must <= arrived(c), lambda: f"{len(must - arrived(c))} of {len(must)} are missing; {f.said()}")
        if not arrived(c) <= set(some):
            raise Failed("traces that nobody sent")
        content(c, [some[u] for u in arrived(c)], profile)
        # an end between the answer to a registration and the disk leaves a host that nobody uses
        if profile == "zico-2" and c.state.registrations:
            raise Failed(f"{c.state.registrations} registrations")
        if profile != "zico-2" and len(c.state.used) != 1:
            raise Failed(f"{len(c.state.used)} hosts of one agent in use, of {c.state.registrations}")
        print(f"# {profile}: {rounds} rounds, {len(must)} traces, {sum(e['copies'] for e in c.traces.values())} copies")
    finally:
        f.kill()
        c.stop()


def kills():
    """Either side ends at any point, again and again: every trace that was on disk arrives, under one uuid and whole."""
    with concurrent.futures.ThreadPoolExecutor(5) as pool:
        list(pool.map(kills_of, ("zico-1.90.3", "zico-1.90", "zico-1.90.6", "zico-2", "document")))


if __name__ == "__main__":
    sys.exit(cases((profiles, registration, one_404, again, no_registration, many_domains,
                    faulty_answers, storm, identity, wrong_key, certificate, silent, clock_set_back, five_hundred,
                    large, kills), sys.argv[3:], 5))     # they mostly wait
