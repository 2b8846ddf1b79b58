# SPDX-License-Identifier: Apache-2.0
"""Other people's readers of joulectl profile's files say what stands in them.
profile_readers.py pprof PB2 FILE GO | pprof-format PB2 FILE NPM | speedscope-schema FILE NPM | speedscope FILE NPM"""
import base64
import gzip
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ORDER = ["work_large", "work_middle", "work_small"]


def decode(folder, path):
    """Types, and a list of (names from where it ran on, values)."""
    sys.path.insert(0, folder)
    import profile_pb2
    p = profile_pb2.Profile()
    with gzip.open(path) as f:
        p.ParseFromString(f.read())
    functions = {f.id: p.string_table[f.name] for f in p.function}
    names = {x.id: [functions[line.function_id] for line in x.line] for x in p.location}
    types = [(p.string_table[t.type], p.string_table[t.unit]) for t in p.sample_type]
    files = [(p.string_table[m.filename], p.string_table[m.build_id]) for m in p.mapping]
    return types, [([n for i in s.location_id for n in names[i]], list(s.value)) for s in p.sample], files


def sums(samples, at):
    """Own and total of each function, and of all."""
    own, total, everything = {}, {}, 0
    for names, values in samples:
        everything += values[at]
        own[names[0]] = own.get(names[0], 0) + values[at]
        for name in set(names):
            total[name] = total.get(name, 0) + values[at]
    return own, total, everything


def pprof(folder, path, go):
    types, samples, _ = decode(folder, path)
    assert len(types) > 3, types
    environment = dict(os.environ, GOROOT=os.path.dirname(os.path.dirname(go)))
    for at, (kind, unit) in enumerate(types):
        out = subprocess.run([go, "tool", "pprof", "-top", "-nodefraction=0", "-sample_index=" + kind, "-unit=" + unit, path],
                             env=environment, check=True, capture_output=True, text=True).stdout
        own, total, everything = sums(samples, at)
        assert f"Type: {kind}" in out, out
        shown = int(re.search(r"Showing nodes accounting for .* of (\d+)", out)[1])
        assert shown == everything > 0, (kind, shown, everything)
        rows = {}
        for line in out.splitlines():
            m = re.match(r" *(\d+)\S* +\S+% +\S+% +(\d+)\S* +\S+%  (.*)", line)
            if m:
                rows[m[3]] = (int(m[1]), int(m[2]))
        for name in ORDER + ["main", "[no sample]"]:
            assert rows.get(name, (0, 0)) == (own.get(name, 0), total.get(name, 0)), (kind, name, rows.get(name))
        if unit == "microjoules":
            first = list(rows)[:3]
            assert first[0] == ORDER[0] and ORDER[1] in first, (kind, first)
    print(f"{len(types)} kinds, {everything} {unit}")


def pprof_format(folder, path, npm):
    types, samples, files = decode(folder, path)
    out = json.loads(subprocess.run(["node", HERE + "/profile_pprof.js", npm, path], check=True, capture_output=True, text=True).stdout)
    assert [tuple(t) for t in out["types"]] == types, out["types"]
    assert [tuple(f) for f in out["files"]] == files and len(files) > 1, out["files"]
    assert [(names, values) for names, values in out["samples"]] == samples and samples, "samples differ"


def speedscope_schema(path, npm):
    import jsonschema
    with open(npm + "/node_modules/speedscope/dist/release/file-format-schema.json", encoding="utf-8") as f:
        schema = json.load(f)
    with open(path, encoding="utf-8") as f:
        document = json.load(f)
    jsonschema.validate(document, schema)
    # the schema sees what is wrong
    del document["profiles"][0]["weights"]
    try:
        jsonschema.validate(document, schema)
    except jsonschema.ValidationError:
        return
    raise AssertionError("the schema takes a profile without weights")


def speedscope(path, npm):
    """The list of functions as speedscope's page shows it."""
    import browser as chromium
    with open(path, "rb") as f:
        data = f.read()
    document = json.loads(data)
    frames = [f["name"] for f in document["shared"]["frames"]]
    first = document["profiles"][0]
    own = {}
    for sample, weight in zip(first["samples"], first["weights"]):
        own[frames[sample[-1]]] = own.get(frames[sample[-1]], 0) + weight
    script = path + ".js"
    with open(script, "w", encoding="utf-8") as f:
        f.write(f"speedscope.loadFileFromBase64('x.speedscope.json', {json.dumps(base64.b64encode(data).decode())})")
    b = chromium.Browser()
    try:
        page = chromium.Page(b)
        page.go(f"file://{npm}/node_modules/speedscope/dist/release/index.html#localProfilePath={script}&view=sandwich")
        text = page.wait("document.body && document.body.innerText.includes('all_work') && document.body.innerText")
        errors = page.errors()
    finally:
        b.close()
    assert not errors, errors
    assert f"energy, microjoules (1/{len(document['profiles'])})" in text, text[:200]
    shown = {m[2]: int(m[1].replace(",", "")) for m in re.finditer(r"\n\t([\d,]+) \([^)]*\)\n\t(.+)", text)}
    for name in ORDER:
        assert shown.get(name) == own[name] > 0, (name, shown.get(name), own[name])
    assert shown["main"] == own.get("main", 0), (shown["main"], own.get("main"))


{"pprof": pprof, "pprof-format": pprof_format, "speedscope-schema": speedscope_schema, "speedscope": speedscope}[sys.argv[1]](*sys.argv[2:])
