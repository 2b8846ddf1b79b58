#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""manifests.py schema FILE...: rendered manifests against the API's own description, and planted faults that it must refuse.
manifests.py rights FILE [RESOURCE]: what a rendered overlay asks of the node and, of the API, to get RESOURCE; against what
docs/kubernetes.md promises.
manifests.py config FILE: the configuration in its ConfigMap.
manifests.py metrics PAGE FILE...: metric and label names of dashboards and rules against a page of /metrics.
manifests.py parse FILE...: the expressions of dashboards as rules, with values for the variables, for promtool to read."""
import copy
import json
import os
import re
import sys

import jsonschema
import yaml

HERE = os.path.dirname(os.path.abspath(__file__))
# what the design lets the agent have at all
CAPABILITIES = {"BPF", "PERFMON", "NET_ADMIN", "DAC_READ_SEARCH", "SYS_PTRACE", "SYS_RAWIO", "SYS_RESOURCE"}
HOST_PATHS = {"/sys/fs/cgroup": True, "/run/jouled": False, "/var/lib/jouled": False, "/var/log/pods": True,
              "/var/log/containers": True}
# from Prometheus itself and from the words of its language
NOT_OURS = {"up", "ALERTS"}
WORDS = {"job", "instance", "alertname"}


def documents(path):
    with open(path, encoding="utf-8") as f:
        return [d for d in yaml.safe_load_all(f) if d]


def schemas():
    kinds = {}
    for name in ("kubernetes.schema.json", "podmonitor.schema.json"):
        with open(os.path.join(HERE, name), encoding="utf-8") as f:
            part = json.load(f)
        for kind, definition in part["kinds"].items():
            kinds[kind] = {"definitions": part["definitions"], "$ref": "#/definitions/" + definition}
    return kinds


def faults(document, kinds):
    schema = kinds.get(f"{document.get('apiVersion')}/{document.get('kind')}")
    if not schema:
        return [f"no kind {document.get('apiVersion')}/{document.get('kind')}"]
    checker = jsonschema.Draft4Validator(schema)
    return [f"{'/'.join(map(str, e.absolute_path))}: {e.message[:120]}" for e in checker.iter_errors(document)]


def daemonset(path):
    return next(d for d in documents(path) if d["kind"] == "DaemonSet")


def misspell(d):
    container = d["spec"]["template"]["spec"]["containers"][0]
    container["imagePulPolicy"] = container.pop("imagePullPolicy")


def wrong_type(d):
    d["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = "soon"


def no_selector(d):
    del d["spec"]["selector"]


def stray(d):
    d["spec"]["replicas"] = 1


def wrong_kind(d):
    d["apiVersion"] = "extensions/v1beta1"


def say(name, bad):
    print(f"FAIL {name}: {'; '.join(bad)}" if bad else f"ok {name}")
    return bool(bad)


def check_schema(paths):
    kinds, failed, sample = schemas(), False, None
    for path in paths:
        for d in documents(path):
            name = f"{os.path.basename(path)}: {d['kind']} {d['metadata']['name']}"
            failed |= say(name, faults(d, kinds))
            sample = d if d["kind"] == "DaemonSet" else sample
    for plant in (misspell, wrong_type, no_selector, stray, wrong_kind):
        d = copy.deepcopy(sample)
        plant(d)
        failed |= say(f"planted fault is refused: {plant.__name__}", [] if faults(d, kinds) else ["taken"])
    return failed


def rights_of_host(pod):
    bad = [f"{key} is set" for key in ("hostNetwork", "hostPID", "hostIPC") if pod.get(key)]
    container = pod["containers"][0]
    read_only = {m["name"]: m.get("readOnly", False) for m in container["volumeMounts"]}
    wanted = {v["hostPath"]["path"]: read_only.get(v["name"]) for v in pod["volumes"] if "hostPath" in v}
    if wanted != HOST_PATHS:
        bad.append(f"host paths {wanted}, promised {HOST_PATHS}")
    return bad


def rights_of_api(docs, pod, resource):
    """None of it, or to get one resource by the token of the account that is bound."""
    bad = []
    if pod.get("automountServiceAccountToken") is not bool(resource):
        bad.append("a token is mounted" if not resource else "no token is mounted")
    asked = [d for d in docs if "Role" in d["kind"]]
    if not resource:
        return bad + [f"asks for {d['kind']}" for d in asked]
    roles = {d["kind"]: d for d in asked}
    if len(asked) != 2 or set(roles) != {"ClusterRole", "ClusterRoleBinding"}:
        return bad + [f"asks for {[d['kind'] for d in asked]}"]
    role, binding = roles["ClusterRole"], roles["ClusterRoleBinding"]
    if role.get("rules") != [{"apiGroups": [""], "resources": [resource], "verbs": ["get"]}]:
        bad.append(f"rules {role.get('rules')}")
    if binding["roleRef"] != {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role["metadata"]["name"]}:
        bad.append(f"binds {binding['roleRef']}")
    if binding["subjects"] != [{"kind": "ServiceAccount", "name": pod["serviceAccountName"], "namespace": "jouled"}]:
        bad.append(f"binds {binding['subjects']}")
    return bad


def check_rights(path, resource=None):
    pod = daemonset(path)["spec"]["template"]["spec"]
    security = pod["containers"][0]["securityContext"]
    bad = rights_of_host(pod) + rights_of_api(documents(path), pod, resource)
    if security.get("readOnlyRootFilesystem") is not True:
        bad.append("the root file system can be written")
    if not security.get("privileged"):
        added = set(security["capabilities"]["add"])
        if security["capabilities"]["drop"] != ["ALL"] or not added <= CAPABILITIES:
            bad.append(f"capabilities {security['capabilities']}")
        if security.get("allowPrivilegeEscalation") is not False:
            bad.append("privileges can grow")
        if pod["securityContext"]["seccompProfile"] != {"type": "RuntimeDefault"}:
            bad.append("no seccomp")
    return say(f"{os.path.basename(path)}: rights", bad)


def print_config(path):
    config = next(d for d in documents(path) if d["kind"] == "ConfigMap")
    print(config["data"]["jouled.yaml"], end="")


def expressions(path):
    if path.endswith(".json"):
        with open(path, encoding="utf-8") as f:
            board = json.load(f)
        yield from (t["expr"] for p in board["panels"] for t in p["targets"])
        yield from (v["query"]["query"] for v in board["templating"]["list"] if isinstance(v["query"], dict))
        return
    for group in documents(path)[0]["groups"]:
        yield from (rule["expr"] for rule in group["rules"])


def recorded(paths):
    """the names that recording rules make"""
    rules = (r for p in paths if not p.endswith(".json") for g in documents(p)[0]["groups"] for r in g["rules"])
    return {r["record"] for r in rules if "record" in r}


def print_parse(paths):
    values = {"$__rate_interval": "5m", "$__range": "1h", "$instance": ".*", "$namespace": ".*", "$price": "0.30", "$carbon": "400"}
    rules = []
    for path in paths:
        for expr in expressions(path):
            for name, value in values.items():
                expr = expr.replace(name, value)
            if not expr.startswith("label_values("):     # Grafana's own function
                rules.append({"record": "dashboard:expression", "labels": {"number": str(len(rules))}, "expr": expr})
    print(json.dumps({"groups": [{"name": "dashboards", "rules": rules}]}))


def page_names(path):
    """metric -> its labels; a family without a sample on this machine has none"""
    families, labels = set(), {}
    with open(path, encoding="utf-8") as f:
        for line in f:
            kind = re.match(r"# TYPE (\S+) ", line)
            sample = re.match(r"(\w+)\{(.*)\}", line)
            if kind:
                families.add(kind[1])
            elif sample:
                labels.setdefault(sample[1], set()).update(re.findall(r'(\w+)="', sample[2]))
    return families, labels


def check_metrics(page, paths):
    families, labels = page_names(page)
    named = {"namespace", "pod", "container", "machine", "unit", "user"}
    failed, made = False, recorded(paths)
    for path in paths:
        bad, count = [], 0
        for expr in expressions(path):
            text = re.sub(r'"[^"]*"', '""', expr)
            rules = set(re.findall(r"\b\w+:jouled_\w+:\w+\b", text))
            bad += [f"no rule records {r}" for r in rules - made]
            for rule in rules:
                text = text.replace(rule, "")
            metrics = set(re.findall(r"\b(jouled_\w+|up|ALERTS)\b", text)) - NOT_OURS
            count += len(metrics) + len(rules)
            bad += [f"no metric {m}" for m in metrics - families]
            known = WORDS | named.union(*(labels.get(m, set()) for m in metrics))
            used = set(re.findall(r"(\w+)\s*(?:=~|!=|!~|=)\s*\"", text))
            for group in re.findall(r"\bby \(([^)]*)\)", text):
                used |= {w.strip() for w in group.split(",")}
            bad += [f"no label {w} in {expr}" for w in used - known]
        failed |= say(f"{os.path.basename(path)}: {count} uses of metrics", bad or ([] if count else ["none"]))
    return failed


def main():
    what, args = sys.argv[1], sys.argv[2:]
    if what == "schema":
        return check_schema(args)
    if what == "rights":
        return check_rights(*args)
    if what == "config":
        return print_config(args[0])
    if what == "parse":
        return print_parse(args)
    return check_metrics(args[0], args[1:])


sys.exit(1 if main() else 0)
