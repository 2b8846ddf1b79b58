# SPDX-License-Identifier: Apache-2.0
"""Reads an ExportProfilesServiceRequest: by what protoc makes of the published messages (tests/golden/otlp_profiles.proto), or by
OpenTelemetry's own package. Whatever breaks a rule of these messages is an error. otlp_profiles.py protoc|package FILE: what is in
it, by these classes, which are in PYTHONPATH."""
import gzip
import importlib
import sys


class Broken(Exception):
    pass


def want(fact, what):
    if not fact:
        raise Broken(what)


def whole_table(table, name, empty=b""):
    """Its first entry is empty, and no entry stands twice."""
    parts = [x if isinstance(x, str) else x.SerializeToString(deterministic=True) for x in table]
    want(parts and not parts[0], f"{name}: its first entry is {parts[:1]}")
    want(len(set(parts)) == len(parts), f"{name}: an entry stands twice")


def attributes_of(d, indices, what):
    found = {}
    for i in indices:
        want(0 < i < len(d.attribute_table), f"{what}: attribute {i}")
        a = d.attribute_table[i]
        kind = a.value.WhichOneof("value")
        want(0 < a.key_strindex < len(d.string_table) and kind and not a.unit_strindex, f"{what}: attribute {a}")
        want(d.string_table[a.key_strindex] not in found, f"{what}: an attribute twice")
        found[d.string_table[a.key_strindex]] = getattr(a.value, kind)
    return found


def frames_of(d, stack):
    names = []
    for i in d.stack_table[stack].location_indices:
        want(0 < i < len(d.location_table), f"location {i}")
        place = d.location_table[i]
        want(0 <= place.mapping_index < len(d.mapping_table), f"mapping {place.mapping_index}")
        for line in place.lines:
            want(0 < line.function_index < len(d.function_table), f"function {line.function_index}")
            names.append(d.string_table[d.function_table[line.function_index].name_strindex])
    return names


def read(messages, body):
    """Of the request: its resource; for each type of value in their order (name, unit, {cgroup: sum}, {function: sum}); (start,
    duration). messages has ExportProfilesServiceRequest."""
    body = gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body
    request = messages.ExportProfilesServiceRequest.FromString(body)
    want(len(request.SerializeToString()) == len(body), "what it encodes again is not as long as what was sent")
    request.DiscardUnknownFields()
    want(request.ByteSize() == len(body), "unknown fields")
    d = request.dictionary
    for name in ("mapping", "location", "function", "link", "string", "attribute", "stack"):
        whole_table(getattr(d, f"{name}_table"), name)
    for m in d.mapping_table[1:]:
        ids = attributes_of(d, m.attribute_indices, "mapping")
        want(set(ids) <= {"process.executable.build_id.gnu"} and all(v and not set(v) - set("0123456789abcdef") for v in ids.values()),
             f"attributes of a mapping: {ids}")
    want(len(request.resource_profiles) == 1 and len(request.resource_profiles[0].scope_profiles) == 1, "not one resource, one scope")
    resource = {a.key: a.value.string_value for a in request.resource_profiles[0].resource.attributes}
    types, times = [], set()
    for p in request.resource_profiles[0].scope_profiles[0].profiles:
        rows, functions = {}, {}
        times.add((p.time_unix_nano, p.duration_nano))
        want(len(p.profile_id) == 16 and any(p.profile_id), "no id")
        for s in p.samples:
            want(len(s.values) == 1 and s.values[0] > 0 and 0 < s.stack_index < len(d.stack_table), f"sample {s}")
            labels = attributes_of(d, s.attribute_indices, "sample")
            want("process.linux.cgroup" in labels and "jouled.energy_quality" in labels, f"attributes of a sample: {labels}")
            row = labels["process.linux.cgroup"]
            rows[row] = rows.get(row, 0) + s.values[0]
            for f in set(frames_of(d, s.stack_index)):
                functions[f] = functions.get(f, 0) + s.values[0]
        types.append((d.string_table[p.sample_type.type_strindex], d.string_table[p.sample_type.unit_strindex], rows, functions))
    want(len(times) == 1 and len({t[0] for t in types}) == len(types), f"times {times}, types {[t[0] for t in types]}")
    return resource, types, times.pop()


if __name__ == "__main__":
    CLASSES = {"protoc": "otlp_profiles_pb2", "package": "opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2"}
    with open(sys.argv[2], "rb") as f:
        resource_, types_, times_ = read(importlib.import_module(CLASSES[sys.argv[1]]), f.read())
    print(sorted(resource_.items()), times_)
    for t in types_:
        print(*t[:2], sorted(t[2].items()), sorted(t[3].items()))
