//! Secrets: never shown, made once, required of distributed processes.

use std::os::unix::fs::PermissionsExt;

use super::super::source::SettingSource;
use super::super::*;
use super::{Folder, inspect, problems_of, setting};
use crate::role::ProcessRole;

const SECRET: &str = "hunter2-hunter2-hunter2-hunter2-hunter2";

#[test]
fn d_18_a_short_secret_is_refused_and_not_repeated() {
    let env = [("JWT_SECRET", "hunter2"), ("QUEUE_ENTRY_TOKEN_SECRET", "hunter3")];
    let problems = problems_of(&env);
    assert_eq!(problems.len(), 2);
    assert!(problems[0].starts_with(
        "auth.jwt_secret = \"[set]\" (from environment variable JWT_SECRET): not long enough; use \
         Base64 of at least 32 bytes"
    ));
    assert!(problems[1].contains("at least 32 bytes"));
    assert!(!problems.concat().contains("hunter"), "{problems:?}");
}

#[test]
fn d_7_one_secret_for_two_purposes_is_refused() {
    let problems = problems_of(&[("JWT_SECRET", SECRET), ("QUEUE_ENTRY_TOKEN_SECRET", SECRET)]);
    assert!(problems[0].ends_with("the same secret for two purposes; give each its own"));
    assert!(problems[0].contains("JWT_SECRET") && problems[0].contains("QUEUE_ENTRY_TOKEN_SECRET"));
    // Databases may share a password: it is not ours to choose.
    inspect(&[("AUTH_DB_PASSWORD", SECRET), ("TICKET_DB_PASSWORD", SECRET)]);
}

#[test]
fn secrets_are_never_shown() {
    let config = inspect(&[
        ("JWT_SECRET", SECRET),
        ("REDIS_PASSWORD", "hunter2"),
        ("URR_DATABASE_URL", "postgres://admin:hunter2@db/urr"),
        ("AUTH_DB_URL", "jdbc:postgresql://db/auth?user=a&password=hunter2"),
        ("TOSS_SECRET_KEY", "hunter2-toss"),
    ]);
    for shown in [format!("{config:?}"), config.render_text(), config.render_json()] {
        assert!(!shown.contains("hunter2"), "{shown}");
    }
    assert_eq!(setting(&config, "auth.jwt_secret").display_value, "[set]");
    assert_eq!(setting(&config, "internal.token").display_value, "[empty]");
    assert_eq!(setting(&config, "database.url").display_value, "postgres://[hidden]@db/urr");
    let problems = problems_of(&[
        ("URR_DATABASE_URL", "mysql://u:hunter2@db"),
        ("AUTH_SERVICE_URL", "u:hunter2@a"),
    ]);
    assert!(problems.len() == 2 && !problems.concat().contains("hunter2"), "{problems:?}");
}

#[test]
fn the_first_start_makes_the_missing_secrets_and_later_starts_keep_them() {
    let folder = Folder::new();
    let first = folder.load(LoadMode::Embedded, &[("JWT_SECRET", SECRET)]).unwrap();
    let second = folder.load(LoadMode::Embedded, &[("JWT_SECRET", SECRET)]).unwrap();
    assert!(first.internal.token.matches(second.internal.token.expose()));
    assert!(first.auth.data_key.matches(second.auth.data_key.expose()));
    assert!(!first.internal.token.matches(first.auth.data_key.expose()));
    assert_eq!(first.internal.token.expose().len(), 64);
    assert_eq!(setting(&second, "internal.token").display_value, "[generated]");
    assert_eq!(
        setting(&second, "internal.token").source,
        SettingSource::Generated(folder.secrets())
    );
    assert!(!fs::read_to_string(folder.secrets()).unwrap().contains("jwt_secret"));

    // Without the variable the one secret that is still missing is added, the others stay.
    let third = folder.load(LoadMode::Embedded, &[]).unwrap();
    assert!(third.internal.token.matches(first.internal.token.expose()));
    assert_eq!(third.auth.jwt_key().len(), 48);
}

#[test]
fn only_the_owner_can_read_what_was_made() {
    let folder = Folder::new();
    folder.load(LoadMode::Embedded, &[]).unwrap();
    let rights = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((rights(&folder.0), rights(&folder.secrets())), (0o700, 0o600));
    let names: Vec<_> = fs::read_dir(&folder.0).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["secrets.toml"]);

    fs::set_permissions(folder.secrets(), fs::Permissions::from_mode(0o640)).unwrap();
    let problems = folder.problems(LoadMode::Embedded, &[]);
    assert_eq!(problems.len(), 1);
    assert!(problems[0].contains("run `chmod 600 DATA/secrets.toml`"), "{problems:?}");
}

/// The control is a folder that was only prepared, and one that keeps its secrets elsewhere.
#[test]
fn a_folder_that_was_used_gets_no_new_secrets() {
    let folder = Folder::with_file("");
    fs::write(folder.0.join(FIRST_START_MARK), "").unwrap();
    let problems = folder.problems(LoadMode::Embedded, &[]);
    assert_eq!(problems.len(), 1);
    assert!(problems[0].starts_with("DATA/secrets.toml: missing"), "{problems:?}");
    assert!(!folder.secrets().exists());
    let config = folder.load(LoadMode::Inspect, &[]).unwrap();
    assert!(lost_secrets(&config).is_some(), "`urr doctor` sees it");

    let elsewhere = [
        ("URR_AUTH_DATA_KEY", SECRET),
        ("URR_SEATS_TICKET_SIGNING_KEY", "another-secret-of-32-bytes-or-more"),
    ];
    folder.load(LoadMode::Embedded, &elsewhere).unwrap();
    let prepared = Folder::with_file("");
    let config = prepared.load(LoadMode::Embedded, &[]).unwrap();
    assert_eq!(lost_secrets(&config), None);
}

#[test]
fn nothing_is_written_when_the_configuration_is_wrong_or_only_looked_at() {
    let folder = Folder::new();
    folder.problems(LoadMode::Embedded, &[("PORT", "x")]);
    folder.load(LoadMode::Inspect, &[]).unwrap();
    assert!(!folder.0.exists());
}

#[test]
fn an_empty_secret_in_the_file_does_not_hide_the_one_that_was_made() {
    let folder = Folder::with_file("[internal]\ntoken = \"\"\n");
    let first = folder.load(LoadMode::Embedded, &[]).unwrap();
    let second = folder.load(LoadMode::Embedded, &[]).unwrap();
    assert_eq!(first.internal.token.expose().len(), 64);
    assert!(first.internal.token.matches(second.internal.token.expose()));
}

#[test]
fn secrets_of_a_newer_version_are_kept() {
    let folder = Folder::new();
    folder.load(LoadMode::Embedded, &[("JWT_SECRET", SECRET)]).unwrap();
    let text = fs::read_to_string(folder.secrets()).unwrap() + "future.secret = \"kept\"";
    fs::write(folder.secrets(), text).unwrap();
    folder.load(LoadMode::Embedded, &[]).unwrap();
    let text = fs::read_to_string(folder.secrets()).unwrap();
    assert!(text.contains("future.secret = \"kept\"\n") && text.contains("auth.jwt_secret = "));
}

#[test]
fn first_starts_at_the_same_time_agree_on_the_secrets() {
    let folder = Folder::new();
    let start = || folder.load(LoadMode::Embedded, &[]).unwrap().internal.token;
    let tokens: Vec<_> = std::thread::scope(|scope| {
        let starts: Vec<_> = (0..8).map(|_| scope.spawn(start)).collect();
        starts.into_iter().map(|start| start.join().unwrap()).collect()
    });
    assert!(tokens.iter().all(|token| token.matches(tokens[0].expose())));
}

fn everything() -> LoadMode {
    LoadMode::Distributed(ProcessRole::all())
}

#[test]
fn a_process_demands_the_secrets_of_its_roles_only() {
    let folder = Folder::new();
    let check = |roles: &[ProcessRole], env: &[(&str, &str)], expected: &[&str]| {
        let mode = LoadMode::Distributed(roles.iter().copied().collect());
        let problems = folder.problems(mode, env);
        let keys: Vec<_> = problems.iter().map(|p| p.split(':').next().unwrap()).collect();
        assert_eq!(keys, expected, "{roles:?}");
    };
    use ProcessRole::{Auth, Gateway, Queue, Stats, Ticket};
    check(&[Stats], &[], &["database.role_secret", "internal.token"]);
    check(&[Stats], &[("STATS_DB_PASSWORD", SECRET)], &["internal.token"]);
    check(
        &[Stats, Ticket],
        &[("STATS_DB_PASSWORD", SECRET)],
        &["database.role_secret", "internal.token", "auth.data_key", "seats.ticket_signing_key"],
    );
    check(
        &[Ticket],
        &[("TICKET_DB_PASSWORD", SECRET)],
        &["internal.token", "auth.data_key", "seats.ticket_signing_key"],
    );
    check(&[Gateway], &[], &["internal.token", "auth.jwt_secret", "gateway.entry_token_secret"]);
    check(
        &[Queue],
        &[("QUEUE_DB_PASSWORD", SECRET)],
        &["internal.token", "gateway.entry_token_secret"],
    );
    check(
        &[Auth],
        &[("AUTH_DB_PASSWORD", SECRET)],
        &["internal.token", "auth.jwt_secret", "auth.data_key"],
    );
}

#[test]
fn distributed_processes_refuse_to_start_without_secrets_and_name_them_all() {
    let folder = Folder::new();
    folder.load(LoadMode::Embedded, &[]).unwrap();
    let problems = folder.problems(everything(), &[("JWT_SECRET", SECRET)]);
    let keys: Vec<_> = problems.iter().map(|p| p.split(':').next().unwrap()).collect();
    assert_eq!(
        keys,
        [
            "database.role_secret",
            "internal.token",
            "auth.data_key",
            "gateway.entry_token_secret",
            "seats.ticket_signing_key"
        ]
    );
    assert!(problems[1].contains("set URR_INTERNAL_TOKEN or INTERNAL_API_TOKEN"), "{problems:?}");
}

#[test]
fn distributed_processes_start_with_secrets_from_the_environment() {
    let names = [
        "INTERNAL_API_TOKEN",
        "QUEUE_ENTRY_TOKEN_SECRET",
        "JWT_SECRET",
        "URR_AUTH_DATA_KEY",
        "URR_DATABASE_ROLE_SECRET",
        "URR_SEATS_TICKET_SIGNING_KEY",
    ];
    let secrets = names.map(|name| (OsString::from(name), format!("{name}-{SECRET}").into()));
    let folder = Folder::new();
    let config = load(folder.args(everything()), secrets).unwrap();
    assert!(config.internal.token.expose().starts_with("INTERNAL_API_TOKEN-"));
    assert!(!folder.0.exists());
}
