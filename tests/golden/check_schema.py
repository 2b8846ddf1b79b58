#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_schema.py SCHEMA [FILE...]: validates every JSON document of the files (or of standard input).

Documents may follow each other with or without newlines. Exit status 1 with the first document that
does not validate and why; 2 for bad usage; 77 when Python's jsonschema is not installed.
"""
import json
import sys


def documents(text):
    decoder = json.JSONDecoder()
    at = 0
    while True:
        while at < len(text) and text[at].isspace():
            at += 1
        if at == len(text):
            return
        document, at = decoder.raw_decode(text, at)
        yield document


def main(argv):
    if len(argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        import jsonschema
    except ImportError:
        print("SKIP schema: Python's jsonschema is not installed")
        return 77
    with open(argv[1], encoding="utf-8") as f:
        schema = json.load(f)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    count = 0
    for name in argv[2:] or ["/dev/stdin"]:
        with open(name, encoding="utf-8") as f:
            text = f.read()
        for document in documents(text):
            error = jsonschema.exceptions.best_match(validator.iter_errors(document))
            if error:
                place = "/".join(str(p) for p in error.absolute_path)
                print(f"{name}: document {count + 1}: {place}: {error.message}", file=sys.stderr)
                return 1
            count += 1
    print(f"ok: {count} documents")
    return 0 if count else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv))
