#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Text rules of the house: lint.py ROOT prints file:line: rule: message, exit status 1 when there is any.

The include table is includes.table, what is excused stands in exceptions.txt, both in the tree's tests/lint.
"""
import ast
import os
import re
import subprocess
import sys

MAX_FILE_LINES = 720
MAX_FUNCTION_LINES = 60
GENERATED = ("vmlinux/", "build/", ".git/")
SOURCE = (".c", ".h", ".sh", ".py", ".mk")
BANNED = ("strcpy", "strcat", "sprintf", "vsprintf", "gets", "atoi", "atol", "atoll", "system", "popen")
OPENERS = ("open", "openat", "fopen", "opendir", "access", "stat", "lstat", "readlink", "creat")
MACHINE = r'"/?(?:proc|sys|dev/cpu)[/"]'
UNFINISHED = ("TO" "DO", "FIX" "ME", "X" "XX")
TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def blank(text):
    """Spaces of the same shape, so that line numbers survive."""
    return re.sub(r"[^\n]", " ", text)


def without_comments(text):
    return TOKEN.sub(lambda m: m[0] if m[0][0] in "\"'" else blank(m[0]), text)


def code_only(text):
    return TOKEN.sub(lambda m: m[0][0] + blank(m[0][1:-1]) + m[0][0] if m[0][0] in "\"'" else blank(m[0]), text)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


# Where a key of JSON is written: by the writers, as a whole text, or as a field of IN_JSON under a name of its own.
KEY = re.compile(r'(?:json_key\w*\s*\([^,()"]*,|json_object_set(?:_new)?\s*\([^,"]*,|FIELD_AS\s*\(|FIELD_LENGTH_OF\s*\()'
                 r'\s*"(\w+)"|\\"(\w+)\\":')


class Lint:
    def __init__(self, root):
        self.root = root
        self.found = []
        self.files = sorted(f for f in self.list_files() if not f.startswith(GENERATED))
        self.table = self.read_table()

    def list_files(self):
        if os.path.exists(os.path.join(self.root, ".git")):
            out = subprocess.run(["git", "-C", self.root, "ls-files", "--cached", "--others", "--exclude-standard"],
                                 check=True, capture_output=True, text=True).stdout.splitlines()
            return [f for f in out if os.path.isfile(os.path.join(self.root, f))]
        return [os.path.relpath(os.path.join(d, f), self.root) for d, _, fs in os.walk(self.root) for f in fs]

    def read(self, name):
        with open(os.path.join(self.root, name), encoding="utf-8", errors="replace") as f:
            return f.read()

    def say(self, name, line, rule, message):
        self.found.append((name, line, rule, message))

    def read_table(self):
        table = {}
        for line in self.read("tests/lint/includes.table").splitlines():
            if line.strip() and not line.startswith("#"):
                folder, allowed = line.split(":")
                table[folder] = set(allowed.split()) | {folder}
        for folder in (f for f in table if "/" in f):
            table[folder] |= {a for a in table[folder.split("/")[0]] if "/" not in a and a != folder.split("/")[0]}
        return table

    def check_table(self):
        """No room may come back to itself."""
        for room in self.table:
            seen, ahead = set(), self.table[room] - {room}
            while ahead:
                seen |= ahead
                ahead = set().union(*(self.table.get(r, set()) - {r} for r in ahead)) - seen
            if room in seen:
                self.say("tests/lint/includes.table", 1, "loop", f"{room} includes what includes it")

    def folder(self, path):
        parts = path.split("/")
        if parts[0] == "user" and len(parts) > 3 and "/".join(parts[1:3]) in self.table:
            return "/".join(parts[1:3])
        if parts[0] == "user" and len(parts) > 2:
            return parts[1]
        return {"include": "kernel", "bpf": "bpf", "vmlinux": "vmlinux"}.get(parts[0])

    def resolve(self, name, target):
        """Folder that an include leads to, "" for one of the system, None when it is nowhere."""
        if target.endswith(".skel.h"):
            return "skel"
        near = os.path.normpath(os.path.join(os.path.dirname(name), target))
        here = [near, "user/" + target, "include/" + target, "vmlinux/x86_64/" + target]
        for path in here:
            if os.path.isfile(os.path.join(self.root, path)):
                return self.folder(path) or path
        return None

    def check_includes(self, name, text):
        mine = self.folder(name)
        if mine is None:
            return
        if mine not in self.table:
            return self.say(name, 1, "include", f"folder {mine} is not in tests/lint/includes.table")
        for m in re.finditer(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">]+)[">]', without_comments(text), re.M):
            other = self.resolve(name, m[2])
            if other is None:
                if m[1] == '"':
                    self.say(name, line_of(text, m.start()), "include", f'"{m[2]}" leads nowhere')
            elif other not in self.table[mine]:
                self.say(name, line_of(text, m.start()), "include", f"{mine} may not include {other} ({m[2]})")

    def check_licence(self, name, text):
        head = "\n".join(text.splitlines()[:3])
        m = re.search(r"SPDX-License-Identifier: ([^\n*]+)", head)
        want = "Apache-2.0"
        if name.startswith("bpf/"):
            want = "GPL-2.0-only"
        elif name.startswith("include/"):
            want = "GPL-2.0-only OR Apache-2.0"
        if not m:
            self.say(name, 1, "spdx", f"no SPDX line, expected {want}")
        elif m[1].strip() != want and not (name.startswith("tests/") and m[1].strip() == "GPL-2.0-only"):
            self.say(name, 1, "spdx", f"{m[1].strip()}, expected {want}")

    def check_paths(self, name, text):
        """Sources open nothing by path but through fsroot; nobody opens a machine's file past it."""
        if not name.startswith("user/") or re.match(r"user/base/fsroot[^/]*$", name):
            return
        plain = without_comments(text)
        call = r"(?<![\w.>])(" + "|".join(OPENERS) + r")\s*\("
        if name.startswith("user/source/"):
            for m in re.finditer(call, code_only(text)):
                if m[1] != "openat":
                    self.say(name, line_of(plain, m.start()), "path", f"{m[1]}() in a source, not base/fsroot")
        named = re.findall(r'^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+' + MACHINE, plain, re.M)
        named += re.findall(r"(\w+)(?:\[\w*\])?\s*=\s*\{?\s*" + MACHINE, plain)
        for m in re.finditer(call + r"([^;]*)", plain):
            if re.search(MACHINE, m[2]) or any(re.search(rf"\b{n}\b", m[2]) for n in named):
                self.say(name, line_of(plain, m.start()), "path", f"{m[1]}() of a machine's file past base/fsroot")

    def check_code(self, name, text):
        code = code_only(text)
        product = name.startswith(("user/", "bpf/", "include/"))   # tests feed themselves
        for m in re.finditer(r"(?<![\w.>])(" + "|".join(BANNED if product else ("gets",)) + r")\s*\(", code):
            self.say(name, line_of(code, m.start()), "banned", f"{m[1]}()")
        if product and name != "user/base/thread.c":
            for m in re.finditer(r"\b(pthread_cond_timedwait|pthread_mutex_timedlock|sem_timedwait)\b", code):
                self.say(name, line_of(code, m.start()), "clock", f"{m[1]}() may wait by the wall clock; thread_cond_wait() does not")
        for m in re.finditer(r"\bvolatile\s+bool\b", code if name.startswith("user/") else ""):
            self.say(name, line_of(code, m.start()), "volatile", "orders nothing between threads; atomic_bool does")
        for m in re.finditer(r'"(?:\\.|[^"\\\n])*"', without_comments(text) if name.startswith("user/") else ""):
            if re.search(r"\bno memory\b|(?<!kernel)(?<!killed): out of memory(?!; )", m[0]):
                self.say(name, line_of(text, m.start()), "memory", 'one wording: "SUBJECT: out of memory; REMEDY"')
        for m in re.finditer(r"^[ \t]*#[ \t]*if[ \t]+0\b", code, re.M):
            self.say(name, line_of(code, m.start()), "dead", "code under #if 0")

    def check_tests(self, name, text):
        """A test that no list names never runs."""
        for m in re.finditer(r"^static void (\w+)\(void \*\*\w+\)\n\{", text, re.M):
            if len(re.findall(rf"\b{m[1]}\b", text)) < 2:
                self.say(name, line_of(text, m.start()), "test", f"{m[1]}: no list of tests has it")

    def read_glossary(self):
        """The words of docs/query.md, "Words": retired word, or "_suffix" of one, -> the word that holds."""
        retired = {}
        text = self.read("docs/query.md") if "docs/query.md" in self.files else ""
        section = re.search(r"^## Words$(.*?)(?=^## |\Z)", text, re.M | re.S)
        for line in section[1].splitlines() if section else ():
            cells = line.split("|")
            if len(cells) == 5 and cells[1].strip().startswith("`"):
                retired.update({w: cells[1].strip() for w in re.findall(r"`([^`]+)`", cells[3])})
        if not retired:
            self.say("docs/query.md", 1, "glossary", 'no table under "## Words"')
        return retired, section

    def check_glossary(self):
        """One word for one thing: in every JSON, and in the documents but those of formats."""
        retired, section = self.read_glossary()
        suffixes = tuple(w for w in retired if w.startswith("_"))
        for name in self.files:
            if name.startswith("user/") and name.endswith((".c", ".h")):
                text = without_comments(self.read(name))
                found = [(m.start(), m[1] or m[2]) for m in KEY.finditer(text)]
            elif re.match(r"(docs/[^/]+|README)\.md$", name):
                text = self.read(name)
                if name == "docs/query.md" and section:
                    text = text[:section.start()] + blank(section[0]) + text[section.end():]
                found = [(m.start(), m[1]) for m in re.finditer(r"`(\w+)`", text) if m[1] in retired]
            else:
                continue
            for at, word in found:
                held = retired.get(word) or next((retired[s] for s in suffixes if word.endswith(s)), None)
                if held:
                    self.say(name, line_of(text, at), "glossary", f"{word}: the word is {held} (docs/query.md, Words)")

    def check_words(self, name, text):
        for m in re.finditer(r"\b(" + "|".join(UNFINISHED) + r")\b", text):
            self.say(name, line_of(text, m.start()), "unfinished", m[1])

    def check_functions(self, names):
        if not names:
            return
        out = subprocess.run(["ctags", "-x", "--c-kinds=f", "--_xformat=%N\t%{end}\t%n\t%F"] + names, cwd=self.root,
                             check=True, capture_output=True, text=True).stdout
        for line in out.splitlines():
            function, end, start, name = line.split("\t")
            if end.isdigit() and int(end) - int(start) + 1 > MAX_FUNCTION_LINES:
                self.say(name, int(start), "function", f"{function}: {int(end) - int(start) + 1} lines, "
                         f"at most {MAX_FUNCTION_LINES}")

    def check_names(self):
        """A base name stands once in each half; a function that no other file names is static."""
        half, words, defined = {}, {}, []
        for name in self.files:
            if not name.endswith((".c", ".h")):
                continue
            if name.startswith(("user/", "bpf/", "include/")):
                key = ("user" if name.startswith("user/") else "kernel", os.path.basename(name))
                if key in half:
                    self.say(name, 1, "basename", f"{half[key]} has that name already")
                half[key] = name
            if name.startswith(("user/", "tests/", "docs/")) and name.endswith(".c") or name.startswith("tests/"):
                for word in set(re.findall(r"\w+", code_only(self.read(name)))):
                    words.setdefault(word, set()).add(name)
        sources = [f for f in self.files if f.startswith("user/") and f.endswith(".c")]
        if sources:
            out = subprocess.run(["ctags", "-x", "--c-kinds=f", "--extras=-F", "--fields=+f", "--_xformat=%N\t%n\t%F\t%{file}"]
                                 + sources, cwd=self.root, check=True, capture_output=True, text=True).stdout
            defined = [line.split("\t") for line in out.splitlines()]
        for function, line, name, local in defined:
            if not local.strip("-") and function != "main" and words.get(function, set()) <= {name}:
                self.say(name, int(line), "extern", f"{function}() is named by no other file; make it static")

    def check_python(self, name, text):
        try:
            tree = ast.parse(text)
        except SyntaxError as e:
            return self.say(name, e.lineno or 1, "syntax", e.msg)
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and \
               node.end_lineno - node.lineno + 1 > MAX_FUNCTION_LINES:
                self.say(name, node.lineno, "function", f"{node.name}: over {MAX_FUNCTION_LINES} lines")

    def excuse(self):
        """Takes out what exceptions.txt names; what it names in vain is found itself."""
        left, used = [], set()
        lines = self.read("tests/lint/exceptions.txt").splitlines()
        excused = {}
        for number, line in enumerate(lines, 1):
            m = re.match(r"(\S+) (\S+): \S", line)
            if m:
                excused[(m[1], m[2])] = number
            elif line.strip() and not line.startswith("#"):
                self.say("tests/lint/exceptions.txt", number, "exception", "not of the form: rule path: reason")
        for item in self.found:
            key = (item[2], item[0])
            (used.add(key) if key in excused else left.append(item))
        for key, number in excused.items():
            if key not in used:
                left.append(("tests/lint/exceptions.txt", number, "exception", f"{key[0]} {key[1]} excuses nothing"))
        return left

    def run(self):
        self.check_table()
        for name in self.files:
            base = os.path.basename(name)
            if not name.endswith(SOURCE) and base != "Makefile" and not name.startswith(".ci/"):
                continue
            text = self.read(name)
            self.check_licence(name, text)
            self.check_words(name, text)
            if len(text.splitlines()) > MAX_FILE_LINES:
                self.say(name, MAX_FILE_LINES + 1, "length", f"{len(text.splitlines())} lines, at most {MAX_FILE_LINES}")
            if name.endswith((".c", ".h")):
                self.check_includes(name, text)
                self.check_paths(name, text)
                self.check_code(name, text)
            if name.startswith("tests/") and name.endswith(".c"):
                self.check_tests(name, without_comments(text))
            if name.endswith(".py"):
                self.check_python(name, text)
        self.check_functions([f for f in self.files if f.endswith((".c", ".h"))])
        self.check_names()
        self.check_glossary()
        found = self.excuse()
        for name, line, rule, message in sorted(found):
            print(f"{name}:{line}: {rule}: {message}")
        return 1 if found else 0


if __name__ == "__main__":
    sys.exit(Lint(sys.argv[1] if len(sys.argv) > 1 else ".").run())
