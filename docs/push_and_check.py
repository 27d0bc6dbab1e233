"""Push a system run, let the judge look at it, and fail the job when the gate or a rate says so.

    TOUCHSTONE_URL=https://touchstone.example.org TOUCHSTONE_TOKEN=ts_... \
        python push_and_check.py support-bot 3 responses.jsonl my-judge hallucination=0.05

The token needs the scopes read, import and judge. Only the standard library is used.
"""

import hashlib
import json
import os
import pathlib
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

slug, version, path, judge, limits = sys.argv[1:6]
base = f"{os.environ['TOUCHSTONE_URL']}/api/v1/evalsets/{slug}/versions/{version}"


def call(method, path, body=None, kind="application/json", **headers):
    headers |= {"Authorization": f"Bearer {os.environ['TOUCHSTONE_TOKEN']}", "Content-Type": kind}
    request = urllib.request.Request(base + path, body, headers, method=method)
    try:
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        sys.exit(error.read().decode())  # a problem document: says what is wrong, and in which line


content = pathlib.Path(path).read_bytes()
key = hashlib.sha256(content).hexdigest()  # a job that runs again pushes and starts nothing twice
call(
    "POST", "/runs/?freeze=true&with_labels=true", content, "application/x-ndjson", **{"Idempotency-Key": key}
)
start = json.dumps({"judge": judge}).encode()
run = call("POST", "/judge-runs/", start, **{"Idempotency-Key": f"{key} {judge}"})
while run["state"] == "running":
    time.sleep(2)
    run = call("GET", f"/judge-runs/{run['run']}/")
for dimension in run["dimensions"]:
    call("POST", f"/judge-runs/{run['run']}/reports/", json.dumps({"dimension": dimension}).encode())
checked = call("GET", "/check/?" + urllib.parse.urlencode({"judge": judge, "max_rate": limits}))
for line in [*checked["gate"], *checked["rates"]]:
    print("pass" if line["passed"] else "FAIL", line["message"])
sys.exit(0 if checked["passed"] and run["state"] == "complete" else 1)
