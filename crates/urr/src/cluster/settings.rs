//! The settings of the processes of a cluster: a file per role, with that role's secrets and no
//! others, and one for the operator.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use urr_cluster::servers::{ServerCertificates, ServerLogin, ServerPlace, ServerProcess};
use urr_kernel::Secret;
use urr_service::{Caller, InternalCredentials};
use urr_tls::{CertificateAuthority, IdentityFiles};

use super::state::{ClusterFolder, ClusterState, MAIL_SERVER, cluster_port_of, server_names};
use crate::call_graph::{ServerKind, callers_of, connections_of};
use crate::data_folder::replace_private;
use crate::own_authority::{issue, open_authority};
use crate::own_secrets::OWN_SECRETS;
use crate::role::ProcessRole;

/// Of Redis and Kafka.
const USER: &str = "urr";
const OPERATOR: &str = "operator";
/// Settings by their keys; texts and lists of texts.
type SettingsFile = BTreeMap<String, Value>;

/// Makes the settings of a cluster.
pub struct ClusterSettings<'a> {
    folder: &'a ClusterFolder,
    state: &'a ClusterState,
    root: Secret,
    authority: CertificateAuthority,
}

impl<'a> ClusterSettings<'a> {
    pub fn new(folder: &'a ClusterFolder, state: &'a ClusterState) -> Result<ClusterSettings<'a>> {
        let certificates = folder.certificates();
        fs::create_dir_all(&certificates).with_context(|| format!("{}", certificates.display()))?;
        let (root, authority) = (folder.root_secret()?, open_authority(&certificates)?);
        Ok(ClusterSettings { folder, state, root, authority })
    }

    /// Writes the files of all roles and of the operator, and their certificates.
    pub fn write(&self) -> Result<()> {
        for role in ProcessRole::ALL {
            issue(&self.authority, &self.folder.certificates(), role.name(), &[])?;
            self.write_file(role.name(), self.of_role(role))?;
        }
        self.write_file(OPERATOR, self.of_operator())
    }

    fn write_file(&self, name: &str, mut settings: SettingsFile) -> Result<()> {
        let own = &self.state.options.settings;
        settings.extend(own.iter().map(|(key, value)| (key.clone(), json!(value))));
        // A value of JSON is one of TOML, as long as it is a text or a list of texts.
        let line = |(key, value): (&String, &Value)| format!("{key} = {value}\n");
        let text: String = settings.iter().map(line).collect();
        replace_private(&self.folder.settings_path(name), &text)
    }

    fn of_role(&self, role: ProcessRole) -> SettingsFile {
        let connections = connections_of(role);
        let mut settings = self.of_everyone(connections.calls, connections.servers);
        let mut set = |key: &str, value: Value| settings.insert(key.to_owned(), value);
        set("internal.token", json!(self.token(role.name()).expose()));
        set("internal.tls_certificate_path", self.certificate(role.name(), "pem"));
        set("internal.tls_key_path", self.certificate(role.name(), "key"));
        // Longer than any of us keeps a silent connection: whoever has one is told before it closes.
        set("server.not_ready_seconds", json!("3"));
        if role == ProcessRole::Gateway {
            if self.state.options.tls {
                set("server.tls_certificate_path", self.certificate(role.name(), "pem"));
                set("server.tls_key_path", self.certificate(role.name(), "key"));
            }
        } else {
            set("internal.accepted", self.accepted_by(role));
            set("database.url", json!(self.database_url("")));
            let password = self.derive(&format!("database {role}"));
            set(&format!("database.{role}.password"), json!(password.expose()));
        }
        if role == ProcessRole::Queue {
            let place = format!("https://127.0.0.1:{}", self.state.client_port("sqs"));
            set("sqs.tls_root_path", self.certificate("authority", "pem"));
            set("sqs.enabled", json!("true"));
            set("sqs.queue_url", json!(format!("{place}/000000000000/admissions.fifo")));
            set("sqs.endpoint", json!(place));
            set("sqs.access_key_id", json!("private"));
            set("sqs.secret_access_key", json!("private"));
        }
        if role == ProcessRole::Mail {
            set("mail.sender", json!("smtp"));
            set("mail.from", json!("URR <tickets@urr.example>"));
            set("mail.public_url", json!(self.state.site()));
            set("mail.smtp_host", json!("127.0.0.1"));
            set("mail.smtp_port", json!(self.state.client_port(MAIL_SERVER).to_string()));
            set("mail.smtp_security", json!("tls"));
            set("mail.smtp_tls_root_path", self.certificate("authority", "pem"));
            set("mail.smtp_username", json!(USER));
            set("mail.smtp_password", json!(self.derive("mail").expose()));
        }
        for secret in OWN_SECRETS.iter().filter(|secret| secret.holders.contains(&role)) {
            set(secret.key, json!(self.derive(secret.key).expose()));
        }
        settings
    }

    /// Everything: it migrates, audits, and makes accounts for rehearsals.
    fn of_operator(&self) -> SettingsFile {
        use ServerKind::{Kafka, Redis};
        let mut settings = self.of_everyone(&ProcessRole::SERVICES, &[Kafka, Redis]);
        let mut set = |key: &str, value: Value| settings.insert(key.to_owned(), value);
        set("internal.token", json!(self.token(OPERATOR).expose()));
        set("data.dir", json!(self.folder.path().join(OPERATOR)));
        let login = format!("urr_admin:{}@", self.database_password().expose());
        set("database.url", json!(self.database_url(&login)));
        for role in ProcessRole::SERVICES {
            let password = self.derive(&format!("database {role}"));
            set(&format!("database.{role}.password"), json!(password.expose()));
        }
        for secret in OWN_SECRETS {
            set(secret.key, json!(self.derive(secret.key).expose()));
        }
        settings
    }

    /// The addresses of the services and servers that somebody uses.
    fn of_everyone(&self, services: &[ProcessRole], servers: &[ServerKind]) -> SettingsFile {
        let mut settings = SettingsFile::new();
        let mut set = |key: &str, value: Value| settings.insert(key.to_owned(), value);
        for role in services {
            let url = format!("https://127.0.0.1:{}", self.state.port(role.name()));
            set(&format!("services.{role}_url"), json!(url));
        }
        set("internal.tls_root_path", self.certificate("authority", "pem"));
        if servers.contains(&ServerKind::Kafka) {
            let broker = format!("127.0.0.1:{}", self.state.client_port("kafka"));
            set("bus.kafka_bootstrap_servers", json!([broker]));
            set("bus.kafka_tls", json!("true"));
            set("bus.kafka_tls_root_path", self.certificate("authority", "pem"));
            set("bus.kafka_username", json!(USER));
            set("bus.kafka_password", json!(self.kafka_password().expose()));
        }
        if servers.contains(&ServerKind::Redis) {
            let nodes = self.redis_nodes();
            let node = |name: &String| format!("127.0.0.1:{}", self.state.client_port(name));
            set("redis.cluster_nodes", json!(nodes.iter().map(node).collect::<Vec<_>>()));
            set("redis.tls", json!("true"));
            set("redis.tls_root_path", self.certificate("authority", "pem"));
            set("redis.username", json!(USER));
            set("redis.password", json!(self.redis_password().expose()));
        }
        settings
    }

    fn accepted_by(&self, role: ProcessRole) -> Value {
        let entry = |caller: Caller| {
            let credentials = InternalCredentials::from_root(&self.token(caller.as_str()));
            format!("{caller}={}", credentials.for_call(caller, role.name()).expose())
        };
        json!(callers_of(role).into_iter().map(entry).collect::<Vec<_>>())
    }

    fn database_url(&self, login: &str) -> String {
        let (port, root) = (self.state.client_port("postgres"), self.folder.certificates());
        let root = root.join("authority.pem");
        let root = root.display();
        format!(
            "postgres://{login}127.0.0.1:{port}/postgres?sslmode=verify-full&sslrootcert={root}"
        )
    }

    fn certificate(&self, name: &str, kind: &str) -> Value {
        json!(self.folder.certificates().join(format!("{name}.{kind}")))
    }

    fn derive(&self, purpose: &str) -> Secret {
        self.root.derive(purpose)
    }

    fn token(&self, caller: &str) -> Secret {
        self.derive(&format!("calls of {caller}"))
    }

    fn database_password(&self) -> Secret {
        self.derive("database urr_admin")
    }

    fn redis_password(&self) -> Secret {
        self.derive("redis")
    }

    fn kafka_password(&self) -> Secret {
        self.derive("kafka")
    }

    fn redis_nodes(&self) -> Vec<String> {
        server_names().into_iter().filter(|name| name.starts_with("redis")).collect()
    }

    /// A server of this name, which does not run yet.
    pub fn server(&self, name: &str) -> Result<ServerProcess> {
        let folder = self.folder.member(name);
        let (port, announced_port) = (self.state.port(name), self.state.client_port(name));
        let place = ServerPlace { folder: &folder, port, announced_port };
        match name {
            "kafka" => self.with_certificate(name, |certificates| {
                let password = self.kafka_password();
                let login = ServerLogin { user: USER, password: password.expose() };
                place.kafka(&login, certificates)
            }),
            "sqs" => place.sqs(),
            "postgres" => self.with_certificate(name, |certificates| {
                place.postgres(self.database_password().expose(), certificates)
            }),
            node => self.with_certificate(node, |certificates| {
                let cluster_port = self.state.port(&cluster_port_of(node));
                let password = self.redis_password();
                let login = ServerLogin { user: USER, password: password.expose() };
                place.redis_node(cluster_port, &login, certificates)
            }),
        }
    }

    /// A certificate for what the supervisor itself listens with.
    pub fn own_identity(&self, name: &str) -> Result<IdentityFiles> {
        let folder = self.folder.certificates();
        let [certificate, key] = issue(&self.authority, &folder, name, &[])?;
        Ok(IdentityFiles { certificate, key })
    }

    /// Joins the started nodes to a Redis Cluster.
    pub fn form_redis_cluster(&self) -> Result<()> {
        let ports: Vec<u16> = self.redis_nodes().iter().map(|name| self.state.port(name)).collect();
        let password = self.redis_password();
        let login = ServerLogin { user: USER, password: password.expose() };
        urr_cluster::servers::form_redis_cluster(&ports, &login)
    }

    /// Fills a node of Redis, or ends that.
    pub fn set_redis_full(&self, node: &str, is_full: bool) -> Result<()> {
        let password = self.redis_password();
        let login = ServerLogin { user: USER, password: password.expose() };
        urr_cluster::servers::set_redis_full(self.state.port(node), &login, is_full)
    }

    fn with_certificate(
        &self,
        name: &str,
        make: impl FnOnce(&ServerCertificates<'_>) -> Result<ServerProcess>,
    ) -> Result<ServerProcess> {
        let folder = self.folder.certificates();
        let [certificate, key] = issue(&self.authority, &folder, name, &[])?;
        let read = |path: &Path| fs::read_to_string(path).with_context(|| format!("{path:?}"));
        make(&ServerCertificates {
            certificate: &read(&certificate)?,
            key: &read(&key)?,
            authority: self.authority.certificate_pem(),
            demands_certificates: false,
        })
    }
}
