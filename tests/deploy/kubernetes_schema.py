#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kubernetes_schema.py SWAGGER > kubernetes.schema.json: what of the API's own description (api/openapi-spec/swagger.json,
which tests/cluster/build.sh keeps) our manifests can use, without texts, and with every unknown field refused."""
import json
import sys

KINDS = {
    "v1/Namespace": "io.k8s.api.core.v1.Namespace",
    "v1/ServiceAccount": "io.k8s.api.core.v1.ServiceAccount",
    "v1/ConfigMap": "io.k8s.api.core.v1.ConfigMap",
    "v1/Pod": "io.k8s.api.core.v1.Pod",
    "apps/v1/DaemonSet": "io.k8s.api.apps.v1.DaemonSet",
    "scheduling.k8s.io/v1/PriorityClass": "io.k8s.api.scheduling.v1.PriorityClass",
    "rbac.authorization.k8s.io/v1/ClusterRole": "io.k8s.api.rbac.v1.ClusterRole",
    "rbac.authorization.k8s.io/v1/ClusterRoleBinding": "io.k8s.api.rbac.v1.ClusterRoleBinding",
    "networking.k8s.io/v1/NetworkPolicy": "io.k8s.api.networking.v1.NetworkPolicy",
}
KEPT = ("type", "format", "required", "properties", "items", "additionalProperties", "$ref")


def slim(node):
    out = {}
    for key in KEPT:
        value = node.get(key)
        if value is None:
            continue
        if key == "properties":
            value = {name: slim(v) for name, v in sorted(value.items())}
        elif isinstance(value, dict):
            value = slim(value)
        out[key] = value
    # a scalar that may be written as a number or as text
    if out.get("format") == "int-or-string":
        out["type"] = ["integer", "string"]
    if out.get("properties"):
        out["additionalProperties"] = False
    return out


def references(node):
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "$ref" and isinstance(value, str):
                yield value.rsplit("/", 1)[-1]
            else:
                yield from references(value)


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        all_of_it = json.load(f)["definitions"]
    definitions, todo = {}, list(KINDS.values())
    while todo:
        name = todo.pop()
        if name not in definitions:
            definitions[name] = slim(all_of_it[name])
            todo += references(definitions[name])
    # Quantity is text in the description; the server takes numbers too
    definitions["io.k8s.apimachinery.pkg.api.resource.Quantity"] = {"type": ["string", "number"]}
    print('{\n"kinds": ' + json.dumps(KINDS, sort_keys=True) + ',\n"definitions": {')
    print(",\n".join(f"{json.dumps(n)}: {json.dumps(d, sort_keys=True)}" for n, d in sorted(definitions.items())))
    print("}\n}")


main()
