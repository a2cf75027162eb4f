//! Makes `deploy/kubernetes/roles.yaml` and `network-policies.yaml` from the table.

use std::fmt::Write as _;

use super::{CONNECTIONS, RoleConnections, ServerKind};
use crate::role::ProcessRole;

const HEAD: &str = "# Made from crates/urr/src/call_graph.rs: change the table or the template \
                    there, then\n# `URR_TEST_UPDATE=1 cargo test -p urr --lib call_graph`.\n";
const HTTP_PORT: u16 = 3001;
/// The gateway serves the public on the HTTP port, and metrics on this one.
const GATEWAY_METRICS_PORT: u16 = 3002;
const OTLP_PORT: u16 = 4318;
const TEMPLATE: &str = include_str!("role.yaml");

/// A secret that processes read from a file: the setting, the name of the file, and its key in the
/// Secret of the installation.
struct SecretFile {
    setting: String,
    path: &'static str,
    key: String,
}

/// The secrets of a role, and nobody else's.
fn secrets_of(row: &RoleConnections) -> Vec<SecretFile> {
    use ProcessRole::{Auth, Gateway, Queue, Ticket};
    let role = row.role;
    let shared = [
        ("URR_AUTH_JWT_SECRET_FILE", "auth_jwt_secret", [Auth, Gateway].contains(&role)),
        ("URR_AUTH_DATA_KEY_FILE", "auth_data_key", role == Auth),
        (
            "URR_GATEWAY_ENTRY_TOKEN_SECRET_FILE",
            "entry_token_secret",
            [Gateway, Queue].contains(&role),
        ),
        ("URR_SEATS_TICKET_SIGNING_KEY_FILE", "ticket_signing_key", role == Ticket),
        ("URR_REDIS_PASSWORD_FILE", "redis_password", row.servers.contains(&ServerKind::Redis)),
    ];
    let password = format!("URR_DATABASE_{}_PASSWORD_FILE", role.name().to_uppercase());
    let own = [
        ("URR_INTERNAL_TOKEN_FILE".to_owned(), "internal_token", true),
        // Nobody calls the gateway, and it has no tables.
        ("URR_INTERNAL_ACCEPTED_FILE".to_owned(), "internal_accepted", role != Gateway),
        (password, "database_password", role != Gateway),
    ];
    let own = own.map(|(setting, path, needed)| (setting, path, format!("{path}_{role}"), needed));
    let shared =
        shared.map(|(setting, path, needed)| (setting.to_owned(), path, path.to_owned(), needed));
    let needed = own.into_iter().chain(shared).filter(|(.., needed)| *needed);
    needed.map(|(setting, path, key, _)| SecretFile { setting, path, key }).collect()
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

fn role(row: &RoleConnections) -> String {
    let has_redis = row.servers.contains(&ServerKind::Redis);
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
    if has_redis {
        own_settings.push_str("\n            - { name: URR_REDIS_HOST, value: redis }");
    }
    if is_gateway {
        let port = GATEWAY_METRICS_PORT;
        write!(
            own_settings,
            "\n            - {{ name: URR_SERVER_MANAGEMENT_PORT, value: \"{port}\" }}"
        )
        .expect("a text takes it");
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
