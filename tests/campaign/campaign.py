"""Parts of the campaign that run the real program as a child: see run.sh."""

import collections
import http.client
import json
import os
import random
import re
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

BUILD = sys.argv[1]
PROGRAM = os.path.join(BUILD, "vitrine")
SCHEMA = {"type": "object", "required": ["a"], "properties": {"a": {"type": "string", "maxLength": 8}}}
random.seed(21)


class Server:
    """`vitrine serve` on the built-in model."""

    def __init__(self, *flags, port=0, threads=1, preload=None, faults="", limits=(), stderr=subprocess.DEVNULL):
        def limit():
            for kind, value in limits:
                resource.setrlimit(kind, (value, value))

        env = dict(os.environ)
        if preload:
            env.update(LD_PRELOAD=preload, VITRINE_FAULTS=faults)
        self.child = subprocess.Popen(
            [PROGRAM, "serve", "--port", str(port), "--threads", str(threads), *flags],
            stdout=subprocess.PIPE, stderr=stderr, env=env, preexec_fn=limit, text=True)
        self.port = None
        for line in self.child.stdout:
            if found := re.search(r"ready: http://[^:]+:(\d+)", line):
                self.port = int(found[1])
                break
        threading.Thread(target=self.child.stdout.read, daemon=True).start()

    def end(self, how=signal.SIGTERM, patience=60):
        self.child.send_signal(how)
        return self.child.wait(patience)


def call(port, path, body=None, timeout=60, leave_after=None, method=None, label=None):
    """(status, text); status 0: no answer began. `leave_after` bytes of the answer: goes away. `label`: the
    request's own name."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        data = body if body is None or isinstance(body, str) else json.dumps(body)
        connection.request(method or ("GET" if body is None else "POST"), path, data,
                           {"X-Request-Id": label} if label else {})
        answer = connection.getresponse()
    except (OSError, http.client.HTTPException) as error:
        connection.close()
        return 0, "" if isinstance(error, ConnectionRefusedError) else "LOST"
    try:
        data = answer.read(leave_after)
        return answer.status, data.decode(errors="replace")
    except (OSError, http.client.HTTPException) as error:
        return answer.status, "CUT " + repr(error)
    finally:
        connection.close()


def reference(port):
    status, text = call(port, "/v1/completions",
                        {"prompt": "Once upon a time", "max_tokens": 8, "temperature": 0})
    return json.loads(text)["choices"][0]["text"] if status == 200 else f"status {status}"


def held(port, label):
    """A request that draws token by token as it is allowed, and then the rest."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("POST", "/v1/completions", json.dumps({
            "prompt": "The fox", "max_tokens": 12, "ignore_eos": True, "stream": True,
            "vitrine": {"record": True, "allow": 1}}), {"X-Request-Id": label})
        answer = connection.getresponse()
        answer.read(20)
        call(port, f"/api/requests/{label}/hold", {"allow": 2})
        if random.random() < 0.2:
            return 200, ""  # leaves while it is held
        status, text = call(port, f"/api/requests/{label}/hold", {"release": True})
        answer.read()
        return status, text
    except (OSError, http.client.HTTPException) as error:
        return 200, "CUT " + repr(error)
    finally:
        connection.close()


def recorded(port):
    """A request that is kept, and one of all that can be done with it."""
    label = f"soak-{random.randrange(1 << 30)}"
    if random.random() < 0.15:
        return held(port, label)
    status, text = call(port, "/v1/completions", {
        "prompt": "The fox and the crow", "max_tokens": 24, "n": random.choice([1, 3]), "temperature": 1,
        "vitrine": {"record": True}}, label=label)
    if status != 200:
        return status, text
    at = "/api/requests/" + label
    status, text = call(port, at + "/tokens")
    if status != 200 or text.startswith("CUT"):
        return status, text
    first = json.loads(text)["prompt_tokens"]
    return random.choice([
        lambda: call(port, at + "/stages", {"position": first, "draws": 10, "sampling": {"temperature": 0.5}}),
        lambda: call(port, at + "/scan", {"sampling": {"top_k": 5}}),
        lambda: call(port, at + "/scan", {}, leave_after=1),
        lambda: call(port, at + "/fork", {"position": first, "token": 5, "n": 2}, label=label + "-fork"),
        lambda: call(port, at),
        lambda: call(port, at + "/tokens?choice=0"),
        lambda: call(port, at + "/export?format=perfetto&text=1"),
        lambda: call(port, at + "/export?format=otlp"),
        lambda: call(port, at, method="DELETE"),
    ])()


def watch(port):
    """What is told of the engine; streams are left while they run."""
    return random.choice([
        lambda: call(port, "/api/trace", leave_after=random.randrange(1, 40000)),
        lambda: call(port, "/api/trace?from=1", leave_after=2000),
        lambda: call(port, "/api/steps/export?format=vtr&seconds=1"),
        lambda: call(port, "/api/steps/export?format=vtr&seconds=9", leave_after=9000),
        lambda: call(port, "/api/steps/export?format=perfetto"),
        lambda: call(port, "/api/steps?limit=20"),
        lambda: call(port, "/api/tree"),
        lambda: call(port, "/api/pages"),
        lambda: call(port, "/api/requests"),
        lambda: call(port, "/api/snapshot"),
        lambda: call(port, "/api/lab/company", {"n": 2, "max_tokens": 4}),
        lambda: call(port, "/tokenize", {"content": "The fox, the crow", "trace": True}),
        lambda: call(port, "/apply-template", {"messages": [{"role": "user", "content": "a"}], "spans": True}),
    ])()


def good(port, constraints):
    if random.random() < 0.3:
        return random.choice([recorded, watch])(port)
    tokens = random.randint(1, 24)
    chat = {"messages": [{"role": "user", "content": "Tell me a story."}], "max_tokens": tokens}
    if constraints:
        chat |= {"response_format": {"type": "json_schema", "json_schema": {
            "name": "x", "schema": SCHEMA | {"title": str(random.randrange(50))}}}}
        if random.random() < 0.3:
            chat["stream"] = True
        return call(port, "/v1/chat/completions", chat)
    return random.choice([
        lambda: call(port, "/v1/chat/completions", chat),
        lambda: call(port, "/v1/chat/completions", chat | {"stream": True}),
        lambda: call(port, "/v1/completions",
                     {"prompt": "The fox", "max_tokens": tokens, "n": 4, "logprobs": 3}),
        lambda: call(port, "/v1/completions", {"prompt": "a", "max_tokens": 8, "regex": "[a-z ]+"}),
        lambda: call(port, "/v1/embeddings", {"input": ["a fox", "a crow"]}),
        lambda: call(port, "/tokenize", {"content": "some words " * 50}),
        lambda: call(port, "/metrics"),
    ])()


def half_a_request(port):
    with socket.create_connection(("127.0.0.1", port), timeout=10) as s:
        s.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
        time.sleep(0.05)
    return 400, ""


def bad(port):
    return random.choice([
        lambda: call(port, "/v1/completions", '{"prompt":'),
        lambda: call(port, "/v1/completions", {"prompt": "x " * 100000}),
        lambda: call(port, "/v1/completions", {"prompt": "x", "regex": "(" * 500}),
        lambda: call(port, "/v1/completions", {"prompt": "x", "nonsense": 1}),
        lambda: call(port, "/v1/chat/completions", {"messages": [{"role": "king", "content": ""}]}),
        lambda: call(port, "/v1/completions", {"prompt": "x", "max_tokens": 200, "stream": True},
                     leave_after=200),
        lambda: call(port, "/nowhere"),
        lambda: half_a_request(port),
    ])()


class Load:
    """Clients that ask until stop()."""

    def __init__(self, server, clients, ask):
        self.kinds, self.lock, self.on = collections.Counter(), threading.Lock(), True
        self.threads = [threading.Thread(target=self.run, args=(server.port, ask)) for _ in range(clients)]
        for thread in self.threads:
            thread.start()

    def run(self, port, ask):
        while self.on:
            try:
                status, text = ask(port)
            except OSError:
                status, text = 0, ""
            told = status == 503 or '"code":"shutting_down"' in text
            kind = ("lost" if text == "LOST" else "refused" if status == 0 else "told" if told else
                    "cut" if text.startswith("CUT") else str(status))
            with self.lock:
                self.kinds[kind] += 1
            if status == 0:
                time.sleep(0.01)

    def stop(self):
        self.on = False
        for thread in self.threads:
            thread.join()
        return self.kinds


def sigterm(times=100):
    """A request may be lost only where the system had taken its connection and the server had not."""
    total, failures, slowest = collections.Counter(), 0, 0.0
    for _ in range(times):
        with tempfile.TemporaryFile("w+") as log:
            server = Server("--drain-seconds", "2", stderr=log)
            load = Load(server, 12, lambda port: good(port, False))
            time.sleep(random.uniform(0.1, 1))
            began = time.monotonic()
            code = server.end()
            slowest = max(slowest, time.monotonic() - began)
            kinds = load.stop()
            log.seek(0)
            left = any(line in log.read() for line in ("did not end in time", "handler failed"))
        total += kinds
        failures += code != 0 or left or kinds["cut"] > 0 or kinds["lost"] > 12
    print(f"SIGTERM x {times}: {dict(total)}; slowest end {slowest:.1f} s; failures {failures}")
    return failures


def kill(times=200):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    server = Server(port=port)
    expected, failures, slowest = reference(server.port), 0, 0.0
    for _ in range(times):
        load = Load(server, 4, lambda port: good(port, False))
        time.sleep(random.uniform(0.05, 0.5))
        server.end(signal.SIGKILL)
        began = time.monotonic()
        server = Server(port=port)
        slowest = max(slowest, time.monotonic() - began)
        load.stop()
        failures += server.port != port or reference(port) != expected
    failures += server.end() != 0
    print(f"kill -9 x {times}: slowest restart {slowest:.1f} s; failures {failures}")
    return failures


def state(pid):
    with open(f"/proc/{pid}/status") as f:
        fields = dict(line.split(":", 1) for line in f)
    return (int(fields["Threads"]), len(os.listdir(f"/proc/{pid}/fd")), int(fields["VmRSS"].split()[0]) / 1024)


def soak(seconds=3600, constraints=False):
    # Soon full: memory of pages is touched as they are used, and recorded requests make room for each other.
    server = Server("--kv-tokens", "8192", "--record-mib", "4")
    expected = reference(server.port)
    clients = 8
    load = Load(server, clients,
                lambda port: good(port, constraints) if random.random() < 0.7 else bad(port))
    began, rows = time.monotonic(), []
    print("  seconds  threads  descriptors  RSS MiB  answers")
    while (now := time.monotonic() - began) < seconds and server.child.poll() is None:
        rows.append((now, *state(server.child.pid)))
        if len(rows) % max(1, seconds // 100) == 1 or seconds <= 100:
            print("  %7.0f  %7d  %11d  %7.1f  %7d" % (*rows[-1], sum(load.kinds.values())), flush=True)
        time.sleep(min(5, seconds / 30))
    kinds = load.stop()
    alive = server.child.poll() is None
    same = alive and reference(server.port) == expected
    late = rows[len(rows) // 3:]  # after warm-up
    middle, last = late[:len(late) // 2], late[len(late) // 2:]
    threads_flat = max(r[1] for r in last) <= max(r[1] for r in middle)
    descriptors_flat = max(r[2] for r in last) <= max(r[2] for r in middle) + clients
    growth = sum(r[3] for r in last) / len(last) - sum(r[3] for r in middle) / len(middle)
    memory_flat = growth <= max(4.0, 0.02 * last[-1][3])
    code = server.end() if alive else server.child.returncode
    ok = same and threads_flat and descriptors_flat and memory_flat and code == 0 and not kinds["500"] \
        and not kinds["cut"]
    print(f"soak {seconds} s{', constraints' if constraints else ''}: {dict(kinds)}; threads flat: "
          f"{threads_flat}, descriptors flat: {descriptors_flat}, memory flat: {memory_flat} "
          f"({growth:+.1f} MiB); answers as before: {same}; exit {code}; {'ok' if ok else 'FAILED'}")
    return not ok


def machine():
    """Threads, memory, descriptors and disks that are not to be had, with the real program."""
    failures = 0

    def check(what, ok):
        nonlocal failures
        failures += not ok
        print(f"  {'ok' if ok else 'FAILED'}  {what}")

    preload = next((p for p in (os.path.join(BUILD, "tests", n) for n in ("libvt_faults.so", "vt_faults.so"))
                    if os.path.exists(p)), None)
    check("the library of faults is there", preload is not None)
    server = Server()
    expected = reference(server.port)
    server.end()
    n = 1
    while preload and n < 20:
        with tempfile.TemporaryFile("w+") as log:
            server = Server(threads=3, preload=preload, faults=f"thread:{n}", stderr=log)
            if server.port and server.child.poll() is None:
                check(f"all {n - 1} threads are there: serves", reference(server.port) == expected)
                server.end()
                break
            code = server.child.wait(20)
            log.seek(0)
            check(f"thread {n} cannot be had: exit 1 and a message", code == 1 and "thread" in log.read())
        n += 1
    server = Server(preload=preload, faults="clock:1:1000000000")
    check("a time of day that jumps by years: serves", reference(server.port) == expected)
    check("a time of day that jumps by years: ends well", server.end() == 0)
    # The limit lies a little above what the idle server has, so that requests meet it.
    flags = "--kv-tokens", "16384", "--sequences", "64"
    server = Server(*flags)
    with open(f"/proc/{server.child.pid}/status") as f:
        size = int(re.search(r"VmSize:\s+(\d+)", f.read())[1]) << 10
    server.end()
    for extra in (-8, 2, 8, 24, 48):
        server = Server(*flags, limits=[(resource.RLIMIT_AS, size + (extra << 20))])
        if not server.port or call(server.port, "/health")[0] != 200:
            check(f"{extra} MiB over idle: does not start, exit {server.child.wait(20)}", server.child.wait() == 1)
            continue
        load = Load(server, 30, lambda port: call(port, "/v1/completions", {
            "prompt": "x", "n": 64, "logprobs": 20, "max_tokens": 16, "regex": "[a-z ]{1,%d}" % random.randint(9, 99)}))
        time.sleep(5)
        kinds = load.stop()
        check(f"{extra} MiB over idle: {dict(kinds)}",
              server.child.poll() is None and reference(server.port).strip() != "status 0" and not kinds["500"])
        server.end()
    server = Server(limits=[(resource.RLIMIT_NOFILE, 24)])
    many = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(40)]
    time.sleep(0.5)
    for s in many:
        s.close()
    time.sleep(0.5)
    check("24 descriptors and 40 connections: serves afterwards", call(server.port, "/health")[0] == 200)
    server.end()
    with open("/dev/full", "w") as full:
        server = Server(stderr=full)
        check("logs to a full disk: serves", call(server.port, "/health")[0] == 200)
        check("logs to a full disk: ends well", server.end() == 0)
    with open("/dev/full", "w") as full:
        done = subprocess.run([PROGRAM, "inspect", "demo"], stdout=full, stderr=subprocess.PIPE, text=True)
        check("output to a full disk: exit 1 and a message", done.returncode == 1 and "written" in done.stderr)
    print(f"limits of the machine: failures {failures}")
    return failures


if __name__ == "__main__":
    name, args = sys.argv[2], [int(x) for x in sys.argv[3:]]
    parts = {"sigterm": sigterm, "kill": kill, "soak": soak, "machine": machine,
             "soak-constraints": lambda seconds=3600: soak(seconds, True)}
    sys.exit(1 if parts[name](*args) else 0)
