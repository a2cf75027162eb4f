"""Tests of deploy/: every file is accepted by the tool that knows its form, refused by it once broken, and
names only settings, metrics, paths and alerts that exist."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent
DEPLOY = ROOT / "deploy"
PROGRAM = pathlib.Path(os.environ.get("URR_PROGRAM", ROOT / "target/debug/urr")).resolve()
ROLES = ["gateway", "auth", "catalog", "queue", "ticket", "payment", "stats", "mail", "community"]
MANIFESTS = ["namespace", "settings", "migrate", "roles", "network-policies", "ingress"]
METRIC = re.compile(r"\burr_[a-z_]+\b")


def run(*command, env=None, cwd=ROOT):
    return subprocess.run(
        [str(part) for part in command], cwd=cwd, env=env, capture_output=True, text=True, check=False
    )


class Case(unittest.TestCase):
    def accepts(self, *command):
        outcome = run(*command)
        self.assertEqual(outcome.returncode, 0, outcome.stdout + outcome.stderr)

    def refuses(self, command, source, old, new):
        """The same check fails on a copy in which `old` became `new`."""
        text = source.read_text()
        self.assertIn(old, text)
        with tempfile.TemporaryDirectory() as folder:
            broken = pathlib.Path(folder) / source.name
            broken.write_text(text.replace(old, new, 1))
            outcome = run(*command, broken)
        self.assertNotEqual(outcome.returncode, 0, f"{source.name} with {new!r} was accepted")


class Forms(Case):
    def test_scripts(self):
        scripts = sorted(ROOT.glob("scripts/*.sh")) + [DEPLOY / "make-secrets.sh"]
        check = ["shellcheck", "--external-sources", "--shell=bash"]
        self.accepts(*check, *scripts)
        self.refuses(check, DEPLOY / "make-secrets.sh", '"$(random)"', "$(random)")

    def test_container_file(self):
        self.accepts("hadolint", DEPLOY / "Dockerfile")
        self.refuses(["hadolint"], DEPLOY / "Dockerfile", "WORKDIR /urr", "WORKDIR urr")

    def test_container_runs_as_nobody_special(self):
        lines = (DEPLOY / "Dockerfile").read_text().splitlines()
        last_stage = lines[max(n for n, line in enumerate(lines) if line.startswith("FROM ")) :]
        self.assertIn("USER 10001:10001", last_stage)
        self.assertTrue(any(line.startswith("HEALTHCHECK ") for line in last_stage))

    def test_compose_file(self):
        check = ["check-jsonschema", "--builtin-schema", "vendor.compose-spec"]
        self.accepts(*check, DEPLOY / "compose.yaml")
        self.refuses(check, DEPLOY / "compose.yaml", "cap_drop: [ALL]", "cap_drop: ALL")

    def test_manifests(self):
        check = ["kubernetes-validate", "--strict", "--quiet", "--kubernetes-version", "1.33"]
        files = [DEPLOY / f"kubernetes/{name}.yaml" for name in MANIFESTS]
        self.accepts(*check, *files)
        roles = DEPLOY / "kubernetes/roles.yaml"
        self.refuses(check, roles, "readOnlyRootFilesystem: true", "readOnlyRoot: true")
        self.refuses(check, roles, "maxUnavailable: 1", "maxUnavailable: []")

    def test_kustomization(self):
        listed = yaml.safe_load((DEPLOY / "kubernetes/kustomization.yaml").read_text())["resources"]
        self.assertEqual(sorted(listed), sorted(f"{name}.yaml" for name in MANIFESTS))
        if shutil.which("kubectl"):
            self.accepts("kubectl", "kustomize", DEPLOY / "kubernetes")

    def test_prometheus(self):
        self.accepts("promtool", "check", "config", DEPLOY / "prometheus/prometheus.yml")
        alerts = DEPLOY / "prometheus/alerts.yml"
        self.accepts("promtool", "check", "rules", alerts)
        self.refuses(["promtool", "check", "rules"], alerts, "sum(rate(", "sum(rat(")


class Compose(Case):
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    services = compose["services"]

    def own(self):
        return {name: one for name, one in self.services.items() if one["image"].startswith("urr")}

    def test_every_role_runs_and_nothing_else(self):
        commands = {name: one["command"] for name, one in self.own().items()}
        roles = {role: ["serve", "--roles", role] for role in ROLES}
        self.assertEqual(commands, roles | {"migrate": ["migrate"], "worker": ["worker"]})

    def test_every_server_has_a_health_check_that_others_wait_for(self):
        for name, service in self.services.items():
            for other, condition in service.get("depends_on", {}).items():
                if condition["condition"] == "service_healthy":
                    self.assertIn("test", self.services[other]["healthcheck"], f"{name}: {other}")
            if name not in ("migrate", "collector"):
                self.assertIn("test", service["healthcheck"], name)

    def test_our_processes_are_locked_down(self):
        for name, service in self.own().items():
            self.assertTrue(service["read_only"], name)
            self.assertEqual(service["cap_drop"], ["ALL"], name)

    def test_mounted_files_exist(self):
        for service in self.services.values():
            for volume in service.get("volumes", []):
                source = volume.split(":")[0]
                if source.startswith("."):
                    self.assertTrue((DEPLOY / source).exists(), source)

    def test_secrets_are_those_that_the_script_makes(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(DEPLOY / "make-secrets.sh", folder)
            for _ in range(2):
                made = run("bash", f"{folder}/make-secrets.sh")
                self.assertEqual(made.returncode, 0, made.stderr)
            self.assertEqual(made.stdout, "", "a second run makes nothing")
            made = {path.name for path in pathlib.Path(folder, "secrets").iterdir()}
        self.assertEqual(made, set(self.compose["secrets"]))
        for name, one in self.compose["secrets"].items():
            self.assertEqual(one["file"], f"./secrets/{name}")
        for name, service in self.services.items():
            files = [value for value in env_of(service).values() if value.startswith("/run/secrets/")]
            given = service.get("secrets", [])
            given = {one if isinstance(one, str) else one["target"] for one in given}
            self.assertEqual({pathlib.Path(file).name for file in files} - given, set(), name)

    def test_only_the_migration_has_the_secret_of_all_passwords(self):
        for name, service in self.services.items():
            has_it = "database_role_secret" in service.get("secrets", [])
            self.assertEqual(has_it, name == "migrate", name)

    def test_passwords_are_those_that_the_program_derives(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(DEPLOY / "make-secrets.sh", folder)
            self.accepts("bash", f"{folder}/make-secrets.sh")
            secrets = pathlib.Path(folder, "secrets")
            env = {"PATH": os.environ["PATH"]}
            env["URR_DATABASE_ROLE_SECRET_FILE"] = str(secrets / "database_role_secret")
            for role in ROLES:
                printed = run(PROGRAM, "credentials", "--database", role, env=env, cwd=folder)
                if role == "gateway":
                    self.assertIn("has no database", printed.stderr)
                    continue
                made = (secrets / f"database_password_{role}").read_text()
                self.assertEqual(printed.stdout.strip(), made, role)

    def test_the_program_takes_every_setting(self):
        for name, service in self.own().items():
            with tempfile.TemporaryDirectory() as folder:
                outcome = configured(env_of(service), folder)
            self.assertEqual(outcome.returncode, 0, f"{name}: {outcome.stderr}")
        with tempfile.TemporaryDirectory() as folder:
            outcome = configured({"URR_REDIS_HOTS": "redis"}, folder)
        self.assertIn("URR_REDIS_HOTS", outcome.stderr, "the control")

    def test_prometheus_scrapes_every_role_where_its_metrics_are(self):
        config = yaml.safe_load((DEPLOY / "prometheus/prometheus.yml").read_text())
        targets = config["scrape_configs"][0]["static_configs"]
        found = {one["labels"]["role"]: one["targets"] for one in targets}
        internal = "URR_SERVER_MANAGEMENT_PORT"
        port = {role: env_of(self.services[role])[internal] for role in ("gateway", "worker")}
        expected = {role: [f"{role}:{port.get(role, '3001')}"] for role in [*ROLES, "worker"]}
        self.assertEqual(found, expected)


class Kubernetes(Case):
    documents = [
        document
        for name in MANIFESTS
        for document in yaml.safe_load_all((DEPLOY / f"kubernetes/{name}.yaml").read_text())
    ]

    def of_kind(self, kind):
        return {one["metadata"]["name"]: one for one in self.documents if one["kind"] == kind}

    def test_the_program_takes_every_setting(self):
        shared = self.of_kind("ConfigMap")["urr-settings"]["data"]
        deployments = self.of_kind("Deployment")
        self.assertEqual(set(deployments), {f"urr-{role}" for role in ROLES})
        for name, deployment in deployments.items():
            container = deployment["spec"]["template"]["spec"]["containers"][0]
            own = {one["name"]: one["value"] for one in container.get("env", [])}
            with tempfile.TemporaryDirectory() as folder:
                outcome = configured(shared | own, folder)
            self.assertEqual(outcome.returncode, 0, f"{name}: {outcome.stderr}")
            paths = [item["path"] for item in self.volume(deployment)["items"]]
            files = [value for value in (shared | own).values() if value.startswith("/run/secrets/")]
            self.assertEqual({pathlib.Path(file).name for file in files}, set(paths), name)

    def test_only_the_migration_has_the_secret_of_all_passwords(self):
        of_role = [self.volume(one)["items"] for one in self.of_kind("Deployment").values()]
        of_job = self.volume(self.of_kind("Job")["urr-migrate"])["items"]
        keys = {item["key"] for items in of_role for item in items}
        self.assertNotIn("database_role_secret", keys)
        self.assertIn("database_role_secret", {item["key"] for item in of_job})

    def test_a_role_has_the_same_secrets_as_in_the_compose_file(self):
        for role in ROLES:
            items = self.volume(self.of_kind("Deployment")[f"urr-{role}"])["items"]
            given = Compose.services[role]["secrets"]
            given = {one if isinstance(one, str) else one["source"] for one in given}
            self.assertEqual({item["key"] for item in items}, given, role)

    def volume(self, deployment):
        return deployment["spec"]["template"]["spec"]["volumes"][0]["secret"]

    def test_addresses_are_those_of_services(self):
        shared = self.of_kind("ConfigMap")["urr-settings"]["data"]
        services = self.of_kind("Service")
        for name, value in shared.items():
            if name.startswith("URR_SERVICES_"):
                host, port = value.removeprefix("https://").split(":")
                self.assertIn(int(port), [one["port"] for one in services[host]["spec"]["ports"]])

    def test_everything_is_forbidden_that_is_not_allowed(self):
        policies = self.of_kind("NetworkPolicy")
        expected = {"urr-nothing-else", "urr-migrate"} | {f"urr-{role}" for role in ROLES}
        self.assertEqual(set(policies), expected)
        for name, policy in policies.items():
            self.assertEqual(policy["spec"]["policyTypes"], ["Ingress", "Egress"], name)


class Figures(Case):
    """Alerts and dashboards name metrics that the program exports.

    A metric with labels appears with its first value, so a running program shows only some. The names that
    its source registers are all; those that it shows prove that they were found."""

    rules = [
        rule
        for group in yaml.safe_load((DEPLOY / "prometheus/alerts.yml").read_text())["groups"]
        for rule in group["rules"]
    ]
    boards = [json.loads(path.read_text()) for path in sorted(DEPLOY.glob("grafana/dashboards/*.json"))]

    @classmethod
    def setUpClass(cls):
        cls.exported = registered_metrics()

    def expressions(self):
        for rule in self.rules:
            yield rule["alert"], rule["expr"]
        for board in self.boards:
            for panel in board["panels"]:
                for target in panel["targets"]:
                    yield f"{board['title']}, {panel['title']}", target["expr"]
        adapter = (DEPLOY / "kubernetes/prometheus-adapter.yaml").read_text()
        yield "prometheus-adapter.yaml", adapter
        yield "roles.yaml", (DEPLOY / "kubernetes/roles.yaml").read_text()

    def test_a_running_program_shows_what_the_source_registers(self):
        shown = shown_metrics()
        self.assertGreater(len(shown), 40)
        self.assertLessEqual(shown, self.exported)

    def test_prometheus_takes_the_metrics_and_their_exemplars(self):
        command = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["prometheus"]["command"]
        exemplars = "--enable-feature=exemplar-storage"
        self.assertIn(exemplars, command)
        with running_program() as (public, internal), tempfile.TemporaryDirectory() as folder:
            get(f"{public}/api/events")
            port, config = free_port(), pathlib.Path(folder, "prometheus.yml")
            target = {"targets": [internal.removeprefix("http://")]}
            job = {"job_name": "urr", "scrape_interval": "1s", "static_configs": [target]}
            config.write_text(yaml.safe_dump({"scrape_configs": [job]}))
            started = ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder}/data"]
            with process_of([*started, f"--web.listen-address=127.0.0.1:{port}", exemplars]):
                api = f"http://127.0.0.1:{port}/api/v1"
                query = "query=urr_http_request_duration_seconds_bucket&start=0&end=9999999999"
                found = eventually(
                    "there are exemplars",
                    lambda: json.loads(get(f"{api}/query_exemplars?{query}"))["data"],
                )
                health = json.loads(get(f"{api}/targets"))["data"]["activeTargets"][0]
        self.assertEqual(health["lastError"], "")
        labels = [one["labels"] for series in found for one in series["exemplars"]]
        self.assertRegex(labels[0]["trace_id"], "^[0-9a-f]{32}$")

    def test_metrics_exist(self):
        self.assertNotIn("urr_queue_wating", self.exported, "the control")
        for where, expression in self.expressions():
            for name in METRIC.findall(expression):
                base = re.sub(r"_(total|bucket)$", "", name)
                self.assertIn(base, self.exported, where)

    def test_expressions_of_dashboards_are_valid(self):
        targets = [target["expr"] for board in self.boards for p in board["panels"] for target in p["targets"]]
        rules = [{"record": f"panel:{n}", "expr": expr} for n, expr in enumerate(targets)]
        with tempfile.TemporaryDirectory() as folder:
            for name, extra in (("valid", []), ("control", [{"record": "a:b", "expr": "sum(up"}])):
                file = pathlib.Path(folder, f"{name}.yml")
                file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules + extra}]}))
                outcome = run("promtool", "check", "rules", file)
                self.assertEqual(outcome.returncode != 0, bool(extra), outcome.stdout + outcome.stderr)

    def test_dashboards_are_complete(self):
        self.assertEqual(
            [board["uid"] for board in self.boards],
            ["urr-bus", "urr-money", "urr-processes", "urr-queue", "urr-sale"],
        )
        for board in self.boards:
            ids = [panel["id"] for panel in board["panels"]]
            self.assertEqual(ids, list(range(1, len(ids) + 1)), board["title"])

    def test_each_alert_fires_and_has_its_row_in_the_runbook(self):
        tests = DEPLOY / "prometheus/alerts_test.yml"
        self.accepts("promtool", "test", "rules", tests)
        names = [rule["alert"] for rule in self.rules]
        tested = [test["alert_rule_test"][0] for test in yaml.safe_load(tests.read_text())["tests"]]
        firing = [one["alertname"] for one in tested if one["exp_alerts"]]
        silent = [one["alertname"] for one in tested if not one["exp_alerts"]]
        self.assertEqual(sorted(firing), sorted(names))
        self.assertEqual(sorted(silent), sorted(names))
        runbook = (ROOT / "docs/OPERATIONS.md").read_text()
        rows = re.findall(r"^\| `(Urr[A-Za-z]+)` \|", runbook, re.MULTILINE)
        self.assertEqual(sorted(rows), sorted(names))

    def test_an_alert_that_is_broken_does_not_fire(self):
        with tempfile.TemporaryDirectory() as folder:
            for file in ("alerts.yml", "alerts_test.yml"):
                shutil.copy(DEPLOY / "prometheus" / file, folder)
            alerts = pathlib.Path(folder, "alerts.yml")
            alerts.write_text(alerts.read_text().replace("urr_payments_stuck) > 0", "urr_payments_stuck) > 9"))
            outcome = run("promtool", "test", "rules", pathlib.Path(folder, "alerts_test.yml"))
        self.assertNotEqual(outcome.returncode, 0)


def env_of(service):
    return {name: str(value) for name, value in service.get("environment", {}).items()}


def configured(settings, folder):
    """Lets the program read settings. Files of secrets are made, each with a content of its own."""
    env = {"PATH": os.environ["PATH"]}
    for name, value in settings.items():
        if name.endswith("_FILE"):
            file = pathlib.Path(folder, pathlib.Path(value).name)
            url = "postgres://admin:password@postgres:5432/urr"
            text = url if "url" in file.name else f"a long secret of this test: {file.name}"
            file.write_text("gateway=" + "0" * 64 if "accepted" in file.name else text)
            value = str(file)
        env[name] = value
    return run(PROGRAM, "config", "--data", f"{folder}/data", env=env, cwd=folder)


def registered_metrics():
    """The names that the source registers. The bus puts its own under a prefix."""
    names = set()
    for path in ROOT.glob("crates/*/src/**/*.rs"):
        text = path.read_text().split("#[cfg(test)]")[0]
        names |= set(re.findall(r'"(urr_[a-z_]+)"', text))
        if path.match("urr-bus/src/metrics.rs"):
            names |= {f"urr_bus_{name}" for name in re.findall(r'register\(\s*"([a-z_]+)"', text)}
    return names


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def get(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read().decode()


def eventually(what, look):
    """The first answer of `look` that is not empty. Servers that do not answer yet are asked again."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            if found := look():
                return found
        except OSError:
            pass
        time.sleep(0.1)
    raise AssertionError(f"waited in vain: {what}")


@contextlib.contextmanager
def process_of(command, **options):
    process = subprocess.Popen(
        [str(part) for part in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait()


@contextlib.contextmanager
def running_program():
    """Starts the program. Gives the addresses of its public and of its internal listener."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        env = {"PATH": os.environ["PATH"], "URR_DEMO_SEED": "false"}
        # Notices and spans have metrics only where they are sent.
        env |= {"SQS_ENABLED": "true", "SQS_QUEUE_URL": "http://127.0.0.1:9/q.fifo"}
        env |= {"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "a key of this test"}
        env |= {"AWS_SQS_ENDPOINT": "http://127.0.0.1:9", "URR_TRACES_OTLP_URL": "http://127.0.0.1:9"}
        command = [PROGRAM, "up", "--port", str(port), "--data", f"{folder}/data"]
        with process_of(command, env=env, cwd=folder):
            internal = pathlib.Path(folder, "data/internal-url")
            address = eventually("the program starts", lambda: internal.read_text().strip())
            ready = "urr_gateway_revoked_tokens_age_seconds"
            eventually("the gateway is ready", lambda: ready in get(f"{address}/metrics"))
            yield f"http://127.0.0.1:{port}", address


def shown_metrics():
    """The names in `/metrics` of a running program."""
    with running_program() as (_, internal):
        text = get(f"{internal}/metrics")
    return set(re.findall(r"^# TYPE (urr_[a-z_]+)", text, re.MULTILINE))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "--verbose", *sys.argv[1:]])
