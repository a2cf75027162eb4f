//! How a connection to Kafka is encrypted, and who logs in.

use std::path::PathBuf;

use rdkafka::ClientConfig;
use urr_kernel::Secret;
use urr_tls::IdentityFiles;

/// Certificates of an encrypted connection. The broker is always verified, also its name. The files
/// are read when a client is made, so replaced ones count after a restart.
#[derive(Clone, Debug)]
pub struct KafkaEncryption {
    /// Who may sign the certificates of brokers. None: the authorities that the system knows.
    pub root_path: Option<PathBuf>,
    /// Shown to a broker that asks for one.
    pub identity: Option<IdentityFiles>,
}

/// A user of Kafka.
#[derive(Clone, Debug)]
pub struct KafkaLogin {
    pub mechanism: SaslMechanism,
    pub username: String,
    pub password: Secret,
}

/// How the password is proved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaslMechanism {
    /// It is sent as it is.
    Plain,
    ScramSha256,
    ScramSha512,
}

impl SaslMechanism {
    fn name(self) -> &'static str {
        match self {
            SaslMechanism::Plain => "PLAIN",
            SaslMechanism::ScramSha256 => "SCRAM-SHA-256",
            SaslMechanism::ScramSha512 => "SCRAM-SHA-512",
        }
    }
}

pub(super) fn configure(
    config: &mut ClientConfig,
    encryption: Option<&KafkaEncryption>,
    login: Option<&KafkaLogin>,
) {
    let protocol = match (encryption, login) {
        (None, None) => "plaintext",
        (Some(_), None) => "ssl",
        (None, Some(_)) => "sasl_plaintext",
        (Some(_), Some(_)) => "sasl_ssl",
    };
    config.set("security.protocol", protocol);
    if let Some(KafkaEncryption { root_path, identity }) = encryption {
        let roots = root_path.as_ref().map_or("probe".into(), |path| path.to_string_lossy());
        config.set("ssl.ca.location", roots);
        if let Some(identity) = identity {
            config.set("ssl.certificate.location", identity.certificate.to_string_lossy());
            config.set("ssl.key.location", identity.key.to_string_lossy());
        }
    }
    if let Some(login) = login {
        config.set("sasl.mechanisms", login.mechanism.name());
        config.set("sasl.username", &login.username);
        config.set("sasl.password", login.password.expose());
    }
}
