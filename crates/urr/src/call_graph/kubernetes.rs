//! Makes `deploy/kubernetes/roles.yaml` and `network-policies.yaml` from the table.

use std::fmt::Write as _;

use super::{CONNECTIONS, RoleConnections, ServerKind};
use crate::own_secrets::OWN_SECRETS;
use crate::role::ProcessRole;

const HEAD: &str = "# Made from crates/urr/src/call_graph.rs: change the table or the template \
                    there, then\n# `URR_TEST_UPDATE=1 cargo test -p urr --lib call_graph`.\n";
const HTTP_PORT: u16 = 3001;
/// The gateway serves the public on the HTTP port, and metrics on this one.
const GATEWAY_METRICS_PORT: u16 = 3002;
const OTLP_PORT: u16 = 4318;
/// Where processes find their certificates.
const CERTIFICATES: &str = "/run/certificates";
const TEMPLATE: &str = include_str!("role.yaml");

/// A secret that processes read from a file: the setting, the name of the file, and its key in the
/// Secret of the installation.
pub struct SecretFile {
    /// The environment variable.
    pub setting: String,
    path: &'static str,
    key: String,
}

/// The file of a secret in `deploy/secrets`.
fn file_of(key: &str) -> &'static str {
    match key {
        "auth.jwt_secret" => "auth_jwt_secret",
        "auth.data_key" => "auth_data_key",
        "gateway.entry_token_secret" => "entry_token_secret",
        "seats.ticket_signing_key" => "ticket_signing_key",
        key => panic!("{key} has no file in deploy/secrets"),
    }
}

/// The secrets of a role, and nobody else's.
pub fn secrets_of(row: &RoleConnections) -> Vec<SecretFile> {
    let role = row.role;
    let file = |setting: &str, path, key| {
        let setting = setting.replace('.', "_").to_uppercase();
        SecretFile { setting: format!("URR_{setting}_FILE"), path, key }
    };
    let of_role = |setting: &str, path| file(setting, path, format!("{path}_{role}"));
    let mut files = vec![of_role("internal.token", "internal_token")];
    // Nobody calls the gateway, and it has no tables.
    if role != ProcessRole::Gateway {
        files.push(of_role("internal.accepted", "internal_accepted"));
        files.push(of_role(&format!("database.{role}.password"), "database_password"));
    }
    let shared = OWN_SECRETS.iter().filter(|secret| secret.holders.contains(&role));
    files.extend(shared.map(|secret| {
        let name = file_of(secret.key);
        file(secret.key, name, name.to_owned())
    }));
    if row.servers.contains(&ServerKind::Redis) {
        files.push(file("redis.password", "redis_password", "redis_password".to_owned()));
    }
    files
}

/// The lines of `deploy/make-secrets.sh` that say who calls a service.
pub fn callers() -> String {
    let mut text = String::new();
    for role in ProcessRole::SERVICES {
        let callers = CONNECTIONS.iter().filter(|row| row.calls.contains(&role));
        let callers: Vec<&str> = callers.map(|row| row.role.name()).collect();
        writeln!(text, "    {role}) echo {} ;;", callers.join(" ")).expect("a text takes it");
    }
    text
}

/// Its lines that say with which login a service connects.
pub fn database_users() -> String {
    let mut text = String::new();
    for role in ProcessRole::SERVICES {
        writeln!(text, "    {role}) echo {} ;;", role.database_user()).expect("a text takes it");
    }
    text
}

impl ServerKind {
    fn name(self) -> &'static str {
        match self {
            ServerKind::Postgres => "PostgreSQL",
            ServerKind::Kafka => "Kafka",
            ServerKind::Redis => "Redis",
            ServerKind::Https => "providers, the beacon or SQS",
            ServerKind::Smtp => "the mail server",
        }
    }

    fn port(self) -> u16 {
        match self {
            ServerKind::Postgres => 5432,
            ServerKind::Kafka => 9092,
            ServerKind::Redis => 6379,
            ServerKind::Https => 443,
            ServerKind::Smtp => 587,
        }
    }
}

/// The metric that says that a role is short of processes, beside its CPU: name, labels, and the
/// average of a process above which there shall be more.
fn scaled_by(role: ProcessRole) -> Option<(&'static str, &'static str, u32)> {
    match role {
        ProcessRole::Gateway => Some(("urr_gateway_permits_used", "target: all", 1_000)),
        ProcessRole::Auth => Some(("urr_auth_passwords_waiting", "", 8)),
        ProcessRole::Ticket => Some(("urr_storage_queue_length", "service: ticket", 100)),
        ProcessRole::Payment => Some(("urr_storage_queue_length", "service: payment", 100)),
        ProcessRole::Queue => Some(("urr_queue_streams", "", 1_000)),
        // Consumers follow in time; their processor tells enough.
        ProcessRole::Catalog | ProcessRole::Stats | ProcessRole::Mail | ProcessRole::Community => {
            None
        }
    }
}

fn metrics_port(role: ProcessRole) -> u16 {
    if role == ProcessRole::Gateway { GATEWAY_METRICS_PORT } else { HTTP_PORT }
}

/// Deployment, service, disruption budget and autoscaler of every role.
pub fn roles() -> String {
    let mut text = HEAD.to_owned();
    for row in CONNECTIONS {
        text.push_str(&role(&row));
    }
    text
}

/// The settings of a role beside its secrets.
pub fn settings_of(row: &RoleConnections) -> Vec<(&'static str, String)> {
    let mut settings = Vec::new();
    if row.servers.contains(&ServerKind::Redis) {
        settings.push(("URR_REDIS_HOST", "redis".to_owned()));
        settings.push(("URR_REDIS_TLS", "true".to_owned()));
        settings.push(("URR_REDIS_TLS_ROOT_PATH", format!("{CERTIFICATES}/authority.pem")));
    }
    if row.role == ProcessRole::Gateway {
        settings.push(("URR_SERVER_MANAGEMENT_PORT", GATEWAY_METRICS_PORT.to_string()));
        settings.push(("URR_SERVER_TLS_CERTIFICATE_PATH", format!("{CERTIFICATES}/own.pem")));
        settings.push(("URR_SERVER_TLS_KEY_PATH", format!("{CERTIFICATES}/own.key")));
    }
    settings
}

fn role(row: &RoleConnections) -> String {
    let is_gateway = row.role == ProcessRole::Gateway;
    let mut own_settings = String::new();
    let mut ports = format!("            - {{ name: http, containerPort: {HTTP_PORT} }}");
    own_settings.push_str("          env:");
    let secrets = secrets_of(row);
    for SecretFile { setting, path, .. } in &secrets {
        let value = format!("/run/secrets/{path}");
        write!(own_settings, "\n            - {{ name: {setting}, value: {value} }}")
            .expect("a text takes it");
    }
    for (setting, value) in settings_of(row) {
        write!(own_settings, "\n            - {{ name: {setting}, value: \"{value}\" }}")
            .expect("a text takes it");
    }
    if is_gateway {
        let port = GATEWAY_METRICS_PORT;
        write!(ports, "\n            - {{ name: metrics, containerPort: {port} }}")
            .expect("a text takes it");
    }
    let item = |secret: SecretFile| {
        format!("              - {{ key: {}, path: {} }}", secret.key, secret.path)
    };
    let secrets: Vec<String> = secrets.into_iter().map(item).collect();
    TEMPLATE
        // First: names of settings contain the word.
        .replace("ROLE", row.role.name())
        .replace("OWN_SETTINGS\n", &line(&own_settings))
        .replace("PORTS\n", &line(&ports))
        .replace("SECRET_ITEMS\n", &line(&secrets.join("\n")))
        .replace("SCALED_BY\n", &line(&scaling(row.role)))
        .replace("METRICS_PORT", &metrics_port(row.role).to_string())
        .replace("REPLICAS_MAX", if scaled_by(row.role).is_some() { "20" } else { "6" })
}

/// The text as lines of its own, or nothing.
fn line(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("{text}\n") }
}

fn scaling(role: ProcessRole) -> String {
    let Some((metric, labels, average)) = scaled_by(role) else { return String::new() };
    let selector = match labels {
        "" => String::new(),
        labels => format!(", selector: {{ matchLabels: {{ {labels} }} }}"),
    };
    format!(
        "    - type: Pods\n      pods:\n        metric: {{ name: {metric}{selector} }}\n        \
         target: {{ type: AverageValue, averageValue: \"{average}\" }}"
    )
}

/// Everything is forbidden but what the table has.
pub fn network_policies() -> String {
    let mut text = HEAD.to_owned();
    text.push_str(
        "# Servers are allowed by port: narrow them down to their addresses in an overlay.\n\
         ---\napiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata:\n  \
         name: urr-nothing-else\nspec:\n  podSelector:\n    \
         matchLabels: { app.kubernetes.io/part-of: urr }\n  policyTypes: [Ingress, Egress]\n  \
         egress:\n    # Names.\n    - to:\n        - namespaceSelector:\n            \
         matchLabels: { kubernetes.io/metadata.name: kube-system }\n      ports:\n        \
         - { protocol: UDP, port: 53 }\n        - { protocol: TCP, port: 53 }\n    \
         # Traces.\n    - to:\n        - podSelector:\n            \
         matchLabels: { app.kubernetes.io/name: collector }\n      ports:\n",
    );
    writeln!(text, "        - {{ protocol: TCP, port: {OTLP_PORT} }}").expect("a text takes it");
    for row in CONNECTIONS {
        text.push_str(&network_policy(&row));
    }
    text
}

fn network_policy(row: &RoleConnections) -> String {
    let name = row.role.name();
    let mut text = format!(
        "---\napiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata:\n  \
         name: urr-{name}\nspec:\n  podSelector:\n    matchLabels: \
         {{ app.kubernetes.io/part-of: urr, app.kubernetes.io/component: {name} }}\n  \
         policyTypes: [Ingress, Egress]\n  ingress:\n"
    );
    let callers = CONNECTIONS.into_iter().filter(|caller| caller.calls.contains(&row.role));
    let callers: Vec<&str> = callers.map(|caller| caller.role.name()).collect();
    if row.role == ProcessRole::Gateway {
        text.push_str("    # The public, by way of the ingress.\n    - ports:\n");
        text.push_str(&port(HTTP_PORT));
    } else {
        text.push_str(&peers("from", &callers, HTTP_PORT));
    }
    text.push_str(
        "    # Prometheus.\n    - from:\n        - namespaceSelector:\n            \
         matchLabels: { kubernetes.io/metadata.name: monitoring }\n      ports:\n",
    );
    text.push_str(&port(metrics_port(row.role)));
    text.push_str("  egress:\n");
    let calls: Vec<&str> = row.calls.iter().map(|called| called.name()).collect();
    if !calls.is_empty() {
        text.push_str(&peers("to", &calls, HTTP_PORT));
    }
    for server in row.servers {
        writeln!(text, "    # {}.\n    - ports:", server.name()).expect("a text takes it");
        text.push_str(&port(server.port()));
    }
    text
}

/// A rule about processes of some roles.
fn peers(direction: &str, roles: &[&str], to_port: u16) -> String {
    format!(
        "    - {direction}:\n        - podSelector:\n            matchLabels: \
         {{ app.kubernetes.io/part-of: urr }}\n            matchExpressions:\n              - \
         {{ key: app.kubernetes.io/component, operator: In, values: [{}] }}\n      ports:\n{}",
        roles.join(", "),
        port(to_port)
    )
}

fn port(port: u16) -> String {
    format!("        - {{ protocol: TCP, port: {port} }}\n")
}
