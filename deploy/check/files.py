"""Looks over the files of this folder that nothing else reads before they are deployed.

Usage: files.py ROOT GODEX: the root of the repository, and a binary that checks the configurations.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

root, godex = Path(sys.argv[1]), sys.argv[2]
problems = []


def check(good, what):
    if not good:
        problems.append(what)


def documents(path):
    return [document for document in yaml.safe_load_all((root / path).read_text()) if document is not None]


# --- everything that is YAML parses
paths = sorted(p.relative_to(root) for folder in ("deploy", ".github") for p in (root / folder).rglob("*.y*ml"))
parsed = {str(path): documents(path) for path in paths}
check(len(paths) >= 10, f"only {len(paths)} files of YAML")

# --- Dockerfile
text = (root / "deploy/docker/Dockerfile").read_text()
instructions = [line.split(None, 1) for line in re.sub(r"\\\n", " ", text).splitlines() if line and line[0] not in "# "]
names = [name for name, _ in instructions]
stages = [rest.split()[0] for name, rest in instructions if name == "FROM"]
for image in stages:
    check(":" in image and not image.endswith(":latest"), f"Dockerfile: {image} can be anything")
last = len(names) - 1 - names[::-1].index("FROM")
final = {name: rest for name, rest in instructions[last:]}
user = final.get("USER", "root").split(":")[0]
check(user not in ("root", "0") and user.isdigit(), f"Dockerfile: runs as {user}; Kubernetes wants a number")
check("godex" in final.get("HEALTHCHECK", "") and "health" in final.get("HEALTHCHECK", ""), "Dockerfile: no health check")
check("slim" in final["FROM"], "Dockerfile: the base is not slim")
check(final.get("ENTRYPOINT", "").startswith("["), "Dockerfile: a shell would be between signals and godex")
check(final.get("VOLUME") == "/data", "Dockerfile: /data is no volume")
check(not re.search(r"(?i)(api_key|password|secret)\s*=", text), "Dockerfile: a secret?")
ignored = (root / ".dockerignore").read_text().split()
for source in ("Cargo.toml", "Cargo.lock", "crates", "specs", "deploy/docker/godex.yaml"):
    check(f"!{source}" in ignored, f".dockerignore: {source} does not get in")

# --- compose
compose = parsed["deploy/docker/compose.yaml"][0]
for name, service in compose["services"].items():
    check(":" in service["image"] or "build" in service, f"compose.yaml: {name} can be anything")
godexes = compose["services"]["godex"]
check(godexes["read_only"] and godexes["cap_drop"] == ["ALL"], "compose.yaml: godex is not confined")
for port in compose["services"]["balancer"]["ports"]:
    check(port.startswith("127.0.0.1:"), f"compose.yaml: {port} is open to everybody")
for name, service in compose["services"].items():
    reached = [compose["networks"].get(network) or {} for network in service.get("networks", [])]
    internal = bool(reached) and all(network.get("internal") for network in reached)
    check(not (service.get("ports") and internal), f"compose.yaml: the ports of {name} lead nowhere: its networks are internal")
balancer = re.sub(r"#.*", "", compose["configs"]["balancer"]["content"])
check("non_idempotent" not in balancer, "compose.yaml: the balancer has what an instance was sent done twice")
for wanted in ("proxy_set_header Upgrade $$http_upgrade;", "proxy_set_header Connection $$connection_upgrade;"):
    check(wanted in balancer, f"compose.yaml: no WebSocket passes without {wanted}")

# --- Kubernetes, beyond what the schemas say
kinds = {}
for path, found in parsed.items():
    if path.startswith("deploy/kubernetes/"):
        for document in found:
            kinds.setdefault(document["kind"], []).append(document)
listed = set(parsed["deploy/kubernetes/kustomization.yaml"][0]["resources"]) | {"kustomization.yaml"}
there = {p.name for p in (root / "deploy/kubernetes").iterdir()}
check(listed == there, f"kustomization.yaml lists {sorted(listed)}, and there is {sorted(there)}")
for workload in kinds["Deployment"] + kinds["StatefulSet"]:
    name, pod = workload["metadata"]["name"], workload["spec"]["template"]["spec"]
    check(pod["securityContext"]["runAsNonRoot"], f"{name} may be root")
    check(pod["automountServiceAccountToken"] is False, f"{name} gets a token of the cluster")
    for container in pod["containers"]:
        context = container["securityContext"]
        check(context["allowPrivilegeEscalation"] is False and context["readOnlyRootFilesystem"], f"{name} is not confined")
        check(context["capabilities"] == {"drop": ["ALL"]}, f"{name} has capabilities")
        check("limits" in container["resources"], f"{name} has no limits")
        check(not container["image"].endswith(":latest") and ":" in container["image"], f"{name} can be anything")
deployment = kinds["Deployment"][0]
pod = deployment["spec"]["template"]["spec"]
container = pod["containers"][0]
check(deployment["spec"]["replicas"] == 2, "Kubernetes: two replicas")
check(container["readinessProbe"]["httpGet"]["path"] == "/ready", "Kubernetes: readiness")
check(container["livenessProbe"]["httpGet"]["path"] == "/health", "Kubernetes: liveness")
check("drain" in container["lifecycle"]["preStop"]["exec"]["command"], "Kubernetes: nothing drains")
selector = deployment["spec"]["selector"]["matchLabels"]
check(kinds["PodDisruptionBudget"][0]["spec"]["selector"]["matchLabels"] == selector, "Kubernetes: the budget is of others")
policies = {policy["spec"]["podSelector"]["matchLabels"]["app.kubernetes.io/name"] for policy in kinds["NetworkPolicy"]}
check(policies == {"godex", "postgres"}, f"Kubernetes: policies for {policies}")
in_map = kinds["ConfigMap"][0]["data"]["godex.yaml"]
secrets = {secret["metadata"]["name"]: secret["stringData"] for secret in kinds["Secret"]}
wanted = set(re.findall(r"\$\{(\w+)\}", in_map)) - {"GODEX_DATABASE_URL"}
check(wanted <= set(secrets["godex"]), f"Kubernetes: the configuration wants {wanted}")


def seconds(text):
    return int(text.removesuffix("s"))


grace = pod["terminationGracePeriodSeconds"]
server = yaml.safe_load(in_map)["server"]
check(grace > seconds(server["drain_delay"]) + seconds(server["drain_timeout"]) + 5, "Kubernetes: killed while it drains")
in_compose = compose["configs"]["godex"]["content"].replace("$$", "$")
server = yaml.safe_load(in_compose)["server"]
check(
    seconds(godexes["stop_grace_period"]) > seconds(server["drain_delay"]) + seconds(server["drain_timeout"]) + 5,
    "compose.yaml: killed while it drains",
)

# --- what they count can be scraped although there are keys, and not where clients are let in
def metrics_port(configuration):
    return int(configuration.get("metrics", {}).get("listen", ":0").rpartition(":")[2])


for name, text in (("compose.yaml", in_compose), ("kubernetes", in_map)):
    port = metrics_port(yaml.safe_load(text))
    check(port not in (0, 5678), f"{name}: nobody can scrape /metrics")
check(metrics_port(parsed["deploy/systemd/godex.yaml"][0]) not in (0, 5678), "systemd: nobody can scrape /metrics")
port = metrics_port(yaml.safe_load(in_map))
check({"name": "metrics", "containerPort": port} in container["ports"], "Kubernetes: the port of metrics has no name")
annotations = deployment["spec"]["template"]["metadata"].get("annotations", {})
check(annotations.get("prometheus.io/port") == str(port), "Kubernetes: the annotations name another port")
services = {service["metadata"]["name"]: service["spec"] for service in kinds["Service"]}
check([one["targetPort"] for one in services["godex"]["ports"]] == ["http"], "Kubernetes: clients reach more than they need")
scraped = services.get("godex-metrics", {"ports": []})
check([one["targetPort"] for one in scraped["ports"]] == ["metrics"], "Kubernetes: no service for metrics")
check(str(metrics_port(yaml.safe_load(in_compose))) not in balancer, "compose.yaml: the balancer leads to metrics")

# --- alerts: what clients are refused with 5xx is told by a rule
rules = {rule["alert"]: rule["expr"] for rule in parsed["deploy/alerts/godex.yaml"][0]["groups"][0]["rules"]}
panels = json.loads((root / "deploy/grafana/godex.json").read_text())["panels"]
rules["panel Failed"] = next(panel for panel in panels if panel["title"] == "Failed")["targets"][0]["expr"]


def selects(query, metric, labels):
    """Whether a selector of the metric in the query takes a series with these labels."""
    for inside in re.findall(metric + r"\{(.*?)\}", query):
        terms = re.findall(r'(\w+)(=~|!~|!=|=)"(.*?)"', inside)
        found = [(re.fullmatch(wanted, labels.get(name, "")) is not None) == (how[0] == "=") for name, how, wanted in terms]
        if all(found):
            return True
    return False


for name in ("GodexFailing", "panel Failed"):
    failed, _, whole = rules[name].replace('instance=~"$instance"', 'instance=~".*"').rpartition(") / ")
    for outcome, status, counts in (
        ("failed", "200", True),
        ("late", "504", True),
        ("answered", "503", True),
        ("answered", "500", True),
        ("answered", "429", False),
        ("completed", "200", False),
    ):
        labels = {"route": "/v1/responses", "outcome": outcome, "status": status}
        told = f"{name}: {outcome} with {status}"
        check(selects(failed, "godex_requests_total", labels) == counts, f"{told} {'is not' if counts else 'is'} counted")
        check(selects(whole, "godex_requests_total", labels), f"{told} is not among all")
    labels = {"route": "/ready", "outcome": "answered", "status": "503"}
    check(not selects(failed, "godex_requests_total", labels), f"{name}: an instance that drains is counted")
    check("godex_errors_total" in failed and 'code="overloaded"' in failed, f"{name}: overload has a rule of its own")
refused = re.findall(r"^\| \S+ \| (5\d\d) \| `(\w+)`", (root / "docs/errors.md").read_text(), re.MULTILINE)
stored = [code for _, code in refused if code.startswith("storage_")]
check(len(stored) >= 3, f"docs/errors.md: of the store only {stored}")
for code in ["overloaded", *stored]:
    told = [name for name in rules if name.startswith("Godex") and selects(rules[name], "godex_errors_total", {"code": code})]
    check(any(name != "GodexFailing" for name in told), f"alerts: nobody is told of {code}")

# --- every configuration is one
configurations = {
    "deploy/docker/godex.yaml": (root / "deploy/docker/godex.yaml").read_text(),
    "deploy/systemd/godex.yaml": (root / "deploy/systemd/godex.yaml").read_text(),
    "deploy/docker/compose.yaml": in_compose,
    "deploy/kubernetes/godex.yaml": in_map,
}
environment = {
    "PATH": os.environ["PATH"],
    "GODEX_DATABASE_URL": "postgres://godex:p@postgres/godex",
    "GODEX_API_KEY": "k" * 48,
    "GODEX_FIRST_KEY": "k" * 48,
    "GODEX_SEAL_KEY": "s" * 64,
    "GODEX_STORE_KEY": "0" * 64,
}
for name, configuration in configurations.items():
    with tempfile.TemporaryDirectory() as home:
        path = Path(home) / "godex.yaml"
        path.write_text(configuration)
        command = [godex, "--config", str(path), "config", "check"]
        done = subprocess.run(command, env={**environment, "HOME": home}, capture_output=True, text=True)
        check(done.returncode == 0, f"{name}: {done.stderr}")
        # The package's file names its providers itself; the others take what keys they are given.
        if "systemd" not in name:
            given = {**environment, "HOME": home, "DEEPSEEK_API_KEY": "k"}
            done = subprocess.run(command, env=given, capture_output=True, text=True)
            check("providers: deepseek, demo" in done.stdout, f"{name}: a provider's key is not used: {done.stdout}")

# --- workflows: whose code runs there is said to the version, and with which rights
for path, found in parsed.items():
    if path.startswith(".github/workflows/"):
        workflow = found[0]
        check(workflow.get("permissions") == {"contents": "read"}, f"{path}: may do more than it needs")
        for job in workflow["jobs"].values():
            check("timeout-minutes" in job or "publish" in path or job.get("needs"), f"{path}: may hang")
            for step in job["steps"]:
                uses = step.get("uses")
                check(uses is None or re.fullmatch(r"actions/[\w-]+@v\d+\.\d+\.\d+", uses), f"{path}: {uses}")
check(".ci/run" in (root / ".github/workflows/test.yml").read_text(), "test.yml: not the gate")

for problem in problems:
    print(problem)
print(f"{len(paths)} files of YAML, {len(configurations)} configurations, the Dockerfile: {len(problems)} problems")
sys.exit(bool(problems))
