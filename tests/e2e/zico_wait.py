# SPDX-License-Identifier: Apache-2.0
"""What the ZICO tests share: waiting, certificates, running cases."""
import concurrent.futures
import os
import subprocess
import time

PATIENCE = float(os.environ.get("PATIENCE", "240"))     # seconds, on a loaded machine


class Failed(Exception):
    pass


def until(condition, what, seconds=PATIENCE):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise Failed(what() if callable(what) else what)
        time.sleep(0.02)


def certificate_of(host, folder):
    """A new key and a certificate signed by itself: files of the certificate, and of both."""
    crt, key = os.path.join(folder, host + ".crt"), os.path.join(folder, host + ".key")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", key, "-out", crt,
                    "-subj", f"/CN={host}", "-addext", f"subjectAltName=DNS:{host}"], check=True, capture_output=True)
    with open(crt + ".pem", "w", encoding="ascii") as out:
        for part in (key, crt):
            with open(part, encoding="ascii") as f:
                out.write(f.read())
    return crt, crt + ".pem"


def run(case, prefix="zico-"):
    name = prefix + case.__name__.replace("_", "-")
    begun, line = time.monotonic(), f"ok {name}"
    try:
        case()
    except Failed as e:
        line = f"FAIL {name}: {e}"
    except Exception as e:  # pylint: disable=broad-except
        line = f"FAIL {name}: {type(e).__name__}: {e} at line {e.__traceback__.tb_next.tb_lineno}"
    print(f"{line}\n# {name}: {time.monotonic() - begun:.1f} s", flush=True)
    return line.startswith("ok")


def cases(known, names, threads, prefix="zico-"):
    """Those that are named, or all; exit status."""
    chosen = [c for c in known if not names or c.__name__.replace("_", "-") in names]
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        return 0 if chosen and all(list(pool.map(lambda c: run(c, prefix), chosen))) else 1
