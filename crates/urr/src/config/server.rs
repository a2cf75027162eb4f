//! The process itself: its folder, its listeners, its log, and where the other services are.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

use urr_kernel::Secret;
use urr_service::{AcceptedCredential, InternalCredentials};
use urr_tls::{ClientTls, IdentityFiles};

use super::reader::SettingReader;
use super::rule::{
    OWN_SECRET_BYTES_MIN, caller_credential, choice, file, flag, http_url, ip_address, list,
    log_filter, number, optional, path, port, secret, service_url,
};
use super::section::section;
use super::storage::{identity, trust};
use crate::role::ProcessRole;

section! {
    DataConfig = "data" {
        dir: PathBuf = value(path());
    }
}

section! {
    ServerConfig = "server" {
        host: IpAddr = value(ip_address());
        port: u16 = value(port()), "PORT";
        /// 0: there is no internal listener beside the gateway's.
        management_port: u16 = value(number(0..=u16::MAX)), "MANAGEMENT_PORT";
        not_ready_seconds: u64 = value(number(0..=600));
        shutdown_grace_seconds: u64 = value(number(0..=600));
        /// None: the public listener is without TLS.
        tls_certificate_path: Option<PathBuf> = value(optional(file()));
        tls_key_path: Option<PathBuf> = value(optional(file()));
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    Text,
    Json,
}

const LOG_FORMATS: &[(&str, LogFormat)] = &[("text", LogFormat::Text), ("json", LogFormat::Json)];

section! {
    LogConfig = "log" {
        /// Levels in the syntax of `tracing_subscriber::EnvFilter`.
        level: String = value(log_filter());
        format: LogFormat = value(choice(LOG_FORMATS));
    }
}

section! {
    TracesConfig = "traces" {
        /// None: spans are not exported.
        otlp_url: Option<String> = value(optional(http_url()));
        /// None: the authorities of the web.
        tls_root_path: Option<PathBuf> = value(optional(file()));
        sampled_percent: u8 = value(number(0..=100));
    }
}

impl TracesConfig {
    /// How the collector is verified at an `https` address.
    pub fn client_tls(&self) -> ClientTls {
        ClientTls::trusting(trust(self.tls_root_path.as_ref()))
    }

    /// How many of a hundred traces can be looked up; 0 without a collector.
    pub fn exported_percent(&self) -> u8 {
        if self.otlp_url.is_some() { self.sampled_percent } else { 0 }
    }
}

section! {
    DemoConfig = "demo" {
        seed: bool = value(flag());
    }
}

section! {
    InternalConfig = "internal" {
        token: Secret = own_secret(secret(OWN_SECRET_BYTES_MIN)), "INTERNAL_API_TOKEN";
        other_token: Option<Secret> = secret(secret(OWN_SECRET_BYTES_MIN));
        /// Empty: what follows from the token is accepted.
        accepted: Vec<AcceptedCredential> = value(list(caller_credential()));
        /// None: the internal listener is without TLS.
        tls_certificate_path: Option<PathBuf> = value(optional(file()));
        tls_key_path: Option<PathBuf> = value(optional(file()));
        /// None: the authorities of the web.
        tls_root_path: Option<PathBuf> = value(optional(file()));
    }
}

impl ServerConfig {
    /// The certificate of the public listener.
    pub fn identity(&self) -> Option<IdentityFiles> {
        identity(self.tls_certificate_path.as_ref(), self.tls_key_path.as_ref())
    }
}

impl InternalConfig {
    /// The certificate of the internal listener.
    pub fn identity(&self) -> Option<IdentityFiles> {
        identity(self.tls_certificate_path.as_ref(), self.tls_key_path.as_ref())
    }

    /// How our own processes are verified at `https` addresses.
    pub fn client_tls(&self) -> ClientTls {
        ClientTls::trusting(trust(self.tls_root_path.as_ref()))
    }

    pub fn credentials(&self) -> InternalCredentials {
        InternalCredentials::from_root(&self.token)
            .or_root(self.other_token.clone())
            .accepting(&self.accepted)
    }
}

/// Where other processes run: one address for each role, or several.
#[derive(Debug, Clone)]
pub struct ServicesConfig(BTreeMap<ProcessRole, Vec<String>>);

impl ServicesConfig {
    pub(super) fn read(read: &mut SettingReader) -> ServicesConfig {
        let services = ProcessRole::SERVICES.into_iter().map(|role| {
            let alias = format!("{}_SERVICE_URL", role.name().to_ascii_uppercase());
            let key = format!("services.{role}_url");
            (role, read.value(&key, &[&alias], list(service_url())))
        });
        let mut urls: BTreeMap<_, _> = services.collect();
        let gateway = read.value("services.gateway_url", &[], list(service_url()));
        urls.insert(ProcessRole::Gateway, gateway);
        ServicesConfig(urls)
    }

    /// The addresses of a role; none if they are not known.
    pub fn urls(&self, role: ProcessRole) -> &[String] {
        self.0.get(&role).map_or(&[], Vec::as_slice)
    }

    /// The same as one text.
    pub fn joined_urls(&self, role: ProcessRole) -> Option<String> {
        Some(self.urls(role).join(",")).filter(|urls| !urls.is_empty())
    }
}
