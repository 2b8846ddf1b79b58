# SPDX-License-Identifier: Apache-2.0
"""What jouled tells of an NVIDIA GPU beside the driver's own counter, and what asking the driver costs (docs/gpu.md).
    gpu.py BUILD SECONDS [COMMAND...]
SECONDS of the agent without a load, then joulectl run of COMMAND, which uses the GPU alone. GPU 0 counts; the library is
libnvidia-ml.so.1, or NVML names another."""
import ctypes
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

nvml = ctypes.CDLL(os.environ.get("NVML", "libnvidia-ml.so.1"))
gpu = ctypes.c_void_p()


def call(name, *arguments):
    code = getattr(nvml, name)(gpu, *arguments)
    if code not in (0, 6):  # 6: nothing new
        raise OSError(f"{name}: NVML answers {code}")


def energy_j():
    mj = ctypes.c_ulonglong()
    call("nvmlDeviceGetTotalEnergyConsumption", ctypes.byref(mj))
    return mj.value / 1000


def power():
    call("nvmlDeviceGetPowerUsage", ctypes.byref(ctypes.c_uint()))


def power_now():
    field = (ctypes.c_uint32 * 10)(186)  # nvmlFieldValue_t: 40 bytes, the first the field
    call("nvmlDeviceGetFieldValues", 1, field)


def use():
    count = ctypes.c_uint(1024)
    room = (ctypes.c_uint64 * (4 * count.value))()
    since = ctypes.c_ulonglong(int(time.time() * 1e6) - 1000000)
    call("nvmlDeviceGetProcessUtilization", room, ctypes.byref(count), since)


def costs():
    for name, function in ("energy", energy_j), ("power", power), ("power now", power_now), ("use", use):
        took = []
        for _ in range(30):
            begun = time.thread_time()
            function()
            took.append((time.thread_time() - begun) * 1000)
            time.sleep(0.02)
        q = statistics.quantiles(took)
        print(f"call {name:9}  CPU {q[1]:.3f} ms ({q[0]:.3f} to {q[2]:.3f})", flush=True)


def threads(pid):
    """CPU seconds by thread."""
    found = {}
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/stat", encoding="utf-8") as f:
            name, rest = f.read().split("(", 1)[1].rsplit(")", 1)
        found[name] = found.get(name, 0) + sum(map(int, rest.split()[11:13])) / os.sysconf("SC_CLK_TCK")
    return found


def told_j(path):
    """Joules of gpu-0 as its reports add up: all, idle, residual, and the rest."""
    sums = {"all": 0, "idle": 0, "residual": 0, "cgroups": 0}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            r = json.loads(line) if line.endswith("\n") else None
            if r and r["metadata"]["domain"] == "gpu-0":
                sums[r["target"] if r["target"] in sums else "cgroups"] += r["metadata"]["energy_uj"] / 1e6
    return sums


def main(build, seconds, command):
    if nvml.nvmlInit_v2() or nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(gpu)):
        sys.exit("gpu.py: NVML finds no GPU; is the driver loaded?")
    costs()
    with tempfile.TemporaryDirectory() as work:
        with open(f"{work}/j.yaml", "w", encoding="utf-8") as f:
            f.write(f"history: off\nstate-dir: {work}/state\ncgroups: {{ names: off }}\n")
            f.write(f"gpu: {{ library: {os.environ['NVML']} }}\n" if "NVML" in os.environ else "")
            f.write(f"outputs: [ {{ format: power, to: 'file://{work}/power.json' }} ]\n")
        agent = subprocess.Popen([f"{build}/jouled", "-q", "-c", f"{work}/j.yaml", "--socket", f"{work}/sock"])
        time.sleep(3)
        before, told_before, cpu = energy_j(), told_j(f"{work}/power.json"), threads(agent.pid)
        time.sleep(seconds)
        for name, s in threads(agent.pid).items():
            print(f"thread {name:15} {(s - cpu.get(name, 0)) / seconds * 100:.2f} % of a CPU", flush=True)
        if command:
            subprocess.run([f"{build}/joulectl", "run", "--socket", f"{work}/sock", "--", *command], check=False)
            time.sleep(2)
        counted, told = energy_j() - before, told_j(f"{work}/power.json")
        agent.terminate()
        agent.wait()
        told = {k: told[k] - told_before[k] for k in told}
        print(f"NVML counted {counted:.1f} J, jouled {told['all']:.1f} J ({told['all'] / counted - 1:+.2%}): "
              f"idle {told['idle']:.1f}, cgroups {told['cgroups']:.1f}, residual {told['residual']:.1f} J")


main(sys.argv[1], float(sys.argv[2]), sys.argv[3:])
