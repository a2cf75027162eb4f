//! The table against the code that makes calls, the contracts, the documents and the deployment.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;

use urr_contracts::internal;
use urr_service::Caller;
use urr_test::snapshot::assert_fresh;

use super::{CONNECTIONS, kubernetes};
use crate::compose::{ClockAndIds, System};
use crate::config::{self, CommandLineOverrides, LoadMode, LoadOptions};
use crate::data_folder::DataFolder;
use crate::hops::{HopProtection, hops};
use crate::role::ProcessRole;

const ARCHITECTURE: &str = include_str!("../../../../docs/ARCHITECTURE.md");

type RolePairs = BTreeSet<(ProcessRole, ProcessRole)>;

fn table() -> RolePairs {
    let calls = |row: &super::RoleConnections| {
        let role = row.role;
        row.calls.iter().map(move |called| (role, *called)).collect::<Vec<_>>()
    };
    CONNECTIONS.iter().flat_map(calls).collect()
}

#[test]
fn the_table_has_a_row_for_every_role_in_their_order() {
    assert_eq!(CONNECTIONS.map(|row| row.role), ProcessRole::ALL);
}

/// A row that nobody uses would open the network for nothing.
#[tokio::test(flavor = "multi_thread")]
async fn the_composition_makes_exactly_the_calls_of_the_table() {
    let folder = tempfile::tempdir().unwrap();
    let overrides =
        CommandLineOverrides { data_dir: Some(folder.path().into()), ..Default::default() };
    let options = LoadOptions { mode: LoadMode::Embedded, config_file: None, overrides };
    let config = config::load(options, std::iter::empty::<(OsString, OsString)>()).unwrap();
    let locked = DataFolder::lock(folder.path()).unwrap();
    let (roles, sources) = (ProcessRole::all(), ClockAndIds::system());
    let system = System::start(&config, &roles, sources, Some(locked)).await.unwrap();
    let made: RolePairs = system.calls().clone();
    system.stop().await;
    assert_eq!(made, table());
}

/// A call that no contract allows is refused by the service that is called.
#[test]
fn the_contracts_allow_the_calls_of_the_table_and_name_no_others() {
    let role = |name: &str| ProcessRole::parse(name).ok();
    let target = |path: &str| role(path.split('/').nth(2).unwrap()).unwrap();
    let calls: Vec<_> = internal::calls().collect();
    for (caller, called) in table().into_iter().filter(|(from, _)| *from != ProcessRole::Gateway) {
        let allows = |call: &&&urr_service::CallSpec| {
            let named = call.callers.iter().any(|one| role(one.as_str()) == Some(caller));
            target(call.path) == called && named
        };
        assert!(calls.iter().find(allows).is_some(), "{caller} calls {called} without a contract");
    }
    let closed = calls.iter().filter(|call| call.callers.len() < Caller::ALL.len());
    for call in closed {
        for caller in call.callers.iter().filter_map(|one| role(one.as_str())) {
            let pair = (caller, target(call.path));
            assert!(table().contains(&pair), "{pair:?} of {} is not in the table", call.path);
        }
    }
}

/// The roles that the last column of the table of roles names.
#[test]
fn the_architecture_names_the_calls_of_the_table() {
    let head = "| role | publishes | consumes | calls |\n";
    let rows = ARCHITECTURE.split_once(head).unwrap().1.lines().skip(1);
    let rows: Vec<&str> = rows.take_while(|line| line.starts_with('|')).collect();
    assert_eq!(rows.len(), ProcessRole::ALL.len());
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let caller = ProcessRole::parse(cells[0]).unwrap();
        let words = cells[3].split(|letter: char| !letter.is_ascii_lowercase());
        let named: BTreeSet<_> = words.filter_map(|word| ProcessRole::parse(word).ok()).collect();
        let called = super::connections_of(caller).calls.iter().copied().collect();
        match cells[3].starts_with("every service") {
            true => assert_eq!(called, ProcessRole::SERVICES.into_iter().collect(), "{row}"),
            false => assert_eq!(named, called, "{row}"),
        }
    }
}

#[test]
fn the_deployments_of_kubernetes_are_made_from_the_table() {
    assert_fresh("deploy/kubernetes/roles.yaml", &kubernetes::roles());
}

#[test]
fn the_network_policies_are_made_from_the_table() {
    assert_fresh("deploy/kubernetes/network-policies.yaml", &kubernetes::network_policies());
}

/// Each role of the manifests has what a process of it demands, and nothing that it does not: the
/// controls are the same without one of them.
#[test]
fn the_roles_of_kubernetes_have_the_secrets_that_their_processes_demand() {
    let folder = tempfile::tempdir().unwrap();
    for row in CONNECTIONS {
        let secrets = kubernetes::secrets_of(&row);
        let settings: Vec<&str> = secrets
            .iter()
            .map(|secret| secret.setting.trim_end_matches("_FILE"))
            .filter(|setting| *setting != "URR_INTERNAL_ACCEPTED")
            .collect();
        let load = |left_out: Option<&str>| {
            let given = settings.iter().filter(|setting| Some(**setting) != left_out);
            let value = |name: &&str| OsString::from(format!("a secret of this test: {name}"));
            let environment = given.map(|name| (OsString::from(name), value(name)));
            let overrides =
                CommandLineOverrides { data_dir: Some(folder.path().into()), ..Default::default() };
            let mode = LoadMode::Distributed([row.role].into());
            let options = LoadOptions { mode, config_file: None, overrides };
            config::load(options, environment).map_err(|refused| refused.to_string())
        };
        load(None).unwrap();
        for setting in settings.iter().filter(|setting| **setting != "URR_REDIS_PASSWORD") {
            let refused = load(Some(setting)).unwrap_err();
            let demanded = match setting.ends_with("_PASSWORD") {
                true => "URR_DATABASE_ROLE_SECRET",
                false => setting,
            };
            assert!(refused.contains(demanded), "{} without {setting}: {refused}", row.role);
        }
    }
}

/// What `urr doctor` would say of each role. The control has one address without TLS.
#[test]
fn no_connection_of_the_roles_of_kubernetes_is_without_tls() {
    let shared = include_str!("../../../../deploy/kubernetes/settings.yaml");
    let shared = shared.lines().filter_map(|line| line.strip_prefix("  URR_")?.split_once(": "));
    let shared: Vec<(String, String)> = shared
        .map(|(name, value)| (format!("URR_{name}"), value.trim_matches('"').to_owned()))
        .collect();
    let weak = |row: &super::RoleConnections, more: &[(&str, &str)]| {
        let own =
            kubernetes::settings_of(row).into_iter().map(|(name, value)| (name.into(), value));
        let more = more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let given: BTreeMap<String, String> =
            shared.iter().cloned().chain(own).chain(more).collect();
        let options = LoadOptions {
            mode: LoadMode::Inspect,
            config_file: None,
            overrides: CommandLineOverrides::default(),
        };
        let config = config::load(options, given.into_iter().map(|(n, v)| (n.into(), v.into())));
        let hops = hops(&config.unwrap()).into_iter();
        // A listener for browsers is the gateway's alone.
        let is_gateway = row.role == ProcessRole::Gateway;
        hops.filter(|hop| hop.protection != HopProtection::Verified)
            .map(|hop| hop.peer)
            .filter(|peer| is_gateway || !peer.starts_with("browsers"))
            .collect::<Vec<String>>()
    };
    for row in CONNECTIONS {
        assert_eq!(weak(&row, &[]), [] as [&str; 0], "{}", row.role);
        let control = weak(&row, &[("URR_SERVICES_MAIL_URL", "http://urr-mail:3001")]);
        assert_eq!(control, ["the mail service at urr-mail"]);
    }
}

/// The script makes the lists of accepted credentials, and the passwords of logins.
#[test]
fn the_script_of_secrets_has_the_callers_and_logins_of_the_tables() {
    let script = include_str!("../../../../deploy/make-secrets.sh");
    for lines in [kubernetes::callers(), kubernetes::database_users()] {
        assert!(script.contains(&lines), "expected:\n{lines}");
    }
}
