//! Which source of a setting wins.

use super::super::source::SettingSource;
use super::super::*;
use super::{Folder, inspect, setting};

#[test]
fn the_command_line_wins_over_the_environment_over_the_file_over_the_default() {
    let folder = Folder::with_file("[server]\nport = 1111\n[queue]\nthreshold = 5\n");
    let config = folder.load(LoadMode::Inspect, &[]).unwrap();
    assert_eq!((config.server.port, config.queue.threshold), (1111, 5));
    let source = setting(&config, "queue.threshold").source.clone();
    assert_eq!(source, SettingSource::File { path: folder.0.join("urr.toml"), line: 4 });
    assert_eq!(setting(&config, "seats.hold_ttl_seconds").source, SettingSource::Default);

    let config = folder.load(LoadMode::Inspect, &[("PORT", "2222")]).unwrap();
    assert_eq!(config.server.port, 2222);
    assert_eq!(
        setting(&config, "server.port").source,
        SettingSource::Environment("PORT".to_owned())
    );

    let mut args = folder.args(LoadMode::Inspect);
    args.overrides.port = Some(3333);
    let config = load(args, [("PORT".into(), "2222".into())]).unwrap();
    assert_eq!(config.server.port, 3333);
    assert_eq!(setting(&config, "server.port").source, SettingSource::CommandLine);
}

#[test]
fn a_file_given_by_name_is_read_instead_of_the_one_in_the_data_folder() {
    let named = Folder::with_file("[queue]\nthreshold = 7\n[data]\ndir = \"/nowhere/urr\"\n");
    let folder = Folder::with_file("[server]\nport = 1111\n");
    let config_file = Some(named.0.join("urr.toml"));
    let config = load(
        LoadOptions { config_file: config_file.clone(), ..folder.args(LoadMode::Inspect) },
        [],
    );
    let config = config.unwrap();
    assert_eq!((config.queue.threshold, config.server.port), (7, 3001));
    assert_eq!(config.data.dir, folder.0);

    let args = LoadOptions {
        mode: LoadMode::Inspect,
        config_file,
        overrides: CommandLineOverrides::default(),
    };
    assert_eq!(load(args, []).unwrap().data.dir, Path::new("/nowhere/urr"));
}

#[test]
fn a_file_given_by_name_must_exist() {
    let folder = Folder::new();
    let config_file = Some(folder.0.join("absent.toml"));
    let error =
        load(LoadOptions { config_file, ..folder.args(LoadMode::Inspect) }, []).unwrap_err();
    assert!(error.problems[0].contains("absent.toml: cannot be read: No such file"), "{error}");
    assert_eq!(error.problems.len(), 1);
}

#[test]
fn the_data_folder_cannot_be_named_by_the_file_inside_it() {
    let folder = Folder::with_file("[data]\ndir = \"elsewhere\"\n");
    let problems = folder.problems(LoadMode::Inspect, &[]);
    assert!(
        problems[0].starts_with("data.dir (DATA/urr.toml, line 2): the file is in that folder")
    );
}

#[test]
fn an_empty_variable_counts_as_not_set() {
    let config = inspect(&[("MANAGEMENT_PORT", ""), ("CORS_ALLOWED_ORIGINS", " ")]);
    assert_eq!(config.gateway.cors_allowed_origins, ["http://localhost:3000"]);
    assert_eq!(setting(&config, "server.management_port").source, SettingSource::Default);
}
