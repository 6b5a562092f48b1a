use super::*;

/// An environment with a home, as every shell has, and the given variables.
fn env(variables: &[(&str, &str)]) -> impl Iterator<Item = (String, String)> {
    let home = [("HOME", "/home/ada"), ("PATH", "/bin")];
    let all: Vec<_> = home.iter().chain(variables).copied().collect();
    all.into_iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
}

fn flags(given: &[(&'static str, &str)]) -> BTreeMap<&'static str, String> {
    given
        .iter()
        .map(|(key, value)| (*key, (*value).to_owned()))
        .collect()
}

fn from_file(text: &str) -> Result<Loaded, Vec<ConfigError>> {
    Config::layer(Some(("berth.toml", text)), env(&[]), flags(&[]))
}

/// Value and source of one setting, as `berth config check` prints them.
fn shown(loaded: &Loaded, key: &str) -> (String, String) {
    let resolved = loaded
        .sources
        .iter()
        .find(|resolved| resolved.key == key)
        .expect("a setting");
    (resolved.value.clone(), resolved.source.to_string())
}

#[track_caller]
fn refused(result: Result<Loaded, Vec<ConfigError>>, expected: &[&str]) {
    let errors = result.expect_err("a refusal");
    let messages: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(messages, expected);
}

#[test]
fn without_anything_written_the_defaults_hold() {
    let loaded = Config::layer(None, env(&[]), flags(&[])).expect("defaults");
    let config = &loaded.config;
    assert_eq!(config.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(config.public_url, None);
    assert_eq!(config.base_path.as_str(), "");
    assert_eq!(config.data_dir, Path::new("/home/ada/.local/share/berth"));
    assert_eq!(
        config.database.to_string(),
        "sqlite:/home/ada/.local/share/berth/berth.sqlite"
    );
    assert_eq!(
        config.secret_key_file,
        Path::new("/home/ada/.local/share/berth/secret.key")
    );
    assert_eq!(config.tls(), None);
    assert_eq!(config.trusted_proxies, []);
    assert_eq!(config.log_format, LogFormat::Text);
    assert_eq!(config.log_filter, "info");
    assert_eq!(config.db_connections, 64);
    assert_eq!(config.request_body_limit_bytes, 1 << 20);
    assert_eq!(
        (config.request_timeout_s, config.header_timeout_s),
        (30, 10)
    );
    assert_eq!(config.connections_max, 4096);
    assert_eq!(
        (config.rate_limit_per_s, config.rate_limit_burst),
        (50, 200)
    );
    assert_eq!(config.sign_in_attempts_max, 10);
    assert_eq!(config.sign_in_attempts_login_max, 50);
    assert_eq!(config.sign_in_attempts_network_max, 200);
    assert_eq!((config.session_idle_h, config.session_absolute_d), (12, 30));
    assert_eq!(config.password_min_length, 12);
    assert_eq!(config.event_retention_d, 400);

    let keys: Vec<_> = loaded.sources.iter().map(|resolved| resolved.key).collect();
    assert_eq!(
        keys,
        settings::KEYS,
        "every setting is shown, once and in order"
    );
    assert!(
        loaded
            .sources
            .iter()
            .all(|resolved| resolved.source == Source::Default)
    );
}

#[test]
fn a_flag_beats_the_environment_which_beats_the_file_which_beats_the_default() {
    let file = "# Our server\nlisten = \"127.0.0.1:1\"\nlog_format = \"json\"\n\
                db_connections = 1_0\n\nsession_idle_h = 1\n";
    let variables = [
        ("BERTH_LISTEN", "127.0.0.1:2"),
        ("BERTH_DB_CONNECTIONS", "20"),
    ];
    let flags = flags(&[("listen", "127.0.0.1:3"), ("base_path", "lab/")]);
    let loaded =
        Config::layer(Some(("/etc/berth.toml", file)), env(&variables), flags).expect("sound");
    for (key, value, source) in [
        ("listen", "127.0.0.1:3", "--listen"),
        ("base_path", "/lab", "--base-path"),
        ("db_connections", "20", "BERTH_DB_CONNECTIONS"),
        ("log_format", "json", "/etc/berth.toml:3"),
        ("session_idle_h", "1", "/etc/berth.toml:6"),
        ("connections_max", "4096", "default"),
    ] {
        assert_eq!(
            shown(&loaded, key),
            (value.to_owned(), source.to_owned()),
            "{key}"
        );
    }
    assert_eq!(loaded.config.listen.port(), 3);
    assert_eq!(loaded.config.db_connections, 20);
}

#[test]
fn defaults_follow_the_data_directory() {
    let loaded = from_file("data_dir = \"/srv/berth\"").expect("sound");
    assert_eq!(
        shown(&loaded, "database").0,
        "sqlite:/srv/berth/berth.sqlite"
    );
    assert_eq!(
        shown(&loaded, "secret_key_file"),
        ("/srv/berth/secret.key".into(), "default".into())
    );

    let variables = [("XDG_DATA_HOME", "/data/ada")];
    let loaded = Config::layer(None, env(&variables), flags(&[])).expect("sound");
    assert_eq!(loaded.config.data_dir, Path::new("/data/ada/berth"));
    let variables = [("XDG_DATA_HOME", "relative")];
    let loaded = Config::layer(None, env(&variables), flags(&[])).expect("sound");
    assert_eq!(
        loaded.config.data_dir,
        Path::new("/home/ada/.local/share/berth")
    );
}

#[test]
fn without_a_home_the_data_directory_must_be_given() {
    let nowhere = || std::iter::empty();
    refused(
        Config::layer(None, nowhere(), flags(&[])),
        &["no directory for Berth's data: set data_dir, or HOME in the environment"],
    );
    let loaded = Config::layer(None, nowhere(), flags(&[("data_dir", "/srv/berth")]));
    assert_eq!(
        loaded.expect("sound").config.data_dir,
        Path::new("/srv/berth")
    );
}

#[test]
fn unknown_names_are_refused_with_the_one_that_was_meant() {
    let file = "lisen = \"127.0.0.1:80\"\nfrobnicate = true\n\n[tls_cert]\nfile = \"x\"\n";
    let variables = [
        ("BERTH_LOGFORMAT", "json"),
        ("BERTH_TOKN", "s3cret"),
        ("BERTH_X", ""),
    ];
    refused(
        Config::layer(
            Some(("berth.toml", file)),
            env(&variables),
            flags(&[("listen_on", "x")]),
        ),
        &[
            "`lisen` (berth.toml:1) is not a setting. Did you mean `listen`?",
            "`frobnicate` (berth.toml:2) is not a setting. \
             Remove it; `berth config check` then lists every setting.",
            "`tls_cert` (berth.toml:4) is not a setting. Did you mean `tls_certificate`?",
            "the environment variable `BERTH_LOGFORMAT` is not a setting. \
             Did you mean `BERTH_LOG_FORMAT`?",
            "the environment variable `BERTH_TOKN` is not a setting. Did you mean `BERTH_TOKEN`?",
            "the environment variable `BERTH_X` is not a setting. \
             Remove it; `berth config check` then lists every setting.",
            "the flag `--listen-on` is not a setting. Did you mean `listen`?",
        ],
    );
}

#[test]
fn the_variables_of_client_and_tests_are_left_alone() {
    let variables = [
        ("BERTH_BINARY", "x"),
        ("BERTH_SERVER", "x"),
        ("BERTH_TOKEN", "x"),
        ("BERTH_CACHE", "x"),
        ("BERTH_TEST_POSTGRES", "x"),
        ("BERTH_CONFIG", "x"),
        ("BERTH_SITE", "x"),
    ];
    Config::layer(None, env(&variables), flags(&[])).expect("sound");
}

#[test]
fn all_mistakes_are_told_at_once_each_with_its_place() {
    let file = "listen = 8080\ndb_connections = 0\nlog_format = \"xml\"\n\
                data_dir = [\"/srv\"]\ntls_key = \"key.pem\"\nrequest_timeout_s = true\n";
    let variables = [
        ("BERTH_TRUSTED_PROXIES", "10.0.0.0/8, proxy"),
        ("BERTH_LOG_FILTER", ""),
    ];
    refused(
        Config::layer(
            Some(("berth.toml", file)),
            env(&variables),
            flags(&[("public_url", "https://example.org/berth")]),
        ),
        &[
            "tls_key is set (berth.toml:5) but tls_certificate is not: set both or neither",
            "listen = `8080` (berth.toml:1) is not accepted: \
             give an address and port such as 127.0.0.1:8080",
            "public_url = `https://example.org/berth` (--public-url) is not accepted: give an \
             address such as https://berth.example.org (a path goes into base_path)",
            "data_dir = `/srv` (berth.toml:4) is not accepted: give a path",
            "trusted_proxies = `10.0.0.0/8, proxy` (BERTH_TRUSTED_PROXIES) is not accepted: \
             give a list, each item an address or network such as 10.0.0.0/8",
            "log_format = `xml` (berth.toml:3) is not accepted: give text or json",
            "log_filter = `` (BERTH_LOG_FILTER) is not accepted: give some text",
            "db_connections = `0` (berth.toml:2) is not accepted: \
             give a whole number from 1 to 1000",
            "request_timeout_s = `true` (berth.toml:6) is not accepted: \
             give a whole number from 1 to 3600",
        ],
    );
}

#[test]
fn yes_and_no_are_words_of_toml_and_texts_elsewhere() {
    let loaded = from_file("unsafe_shared_user = true\nqueue_backend = \"local\"").expect("sound");
    assert!(loaded.config.shares_a_user());
    let loaded = from_file("unsafe_shared_user = true").expect("sound");
    assert!(!loaded.config.shares_a_user(), "nothing runs here");
    let variables = [("BERTH_UNSAFE_SHARED_USER", "true")];
    let loaded = Config::layer(None, env(&variables), flags(&[])).expect("sound");
    assert!(loaded.config.unsafe_shared_user);
    refused(
        from_file("unsafe_shared_user = \"perhaps\"\nlog_filter = true\nmachine_site = \"My Lab\""),
        &[
            "machine_site = `My Lab` (berth.toml:3) is not accepted: give the name of a site",
            "unsafe_shared_user = `perhaps` (berth.toml:1) is not accepted: give true or false",
            "log_filter = `true` (berth.toml:2) is not accepted: give some text",
        ],
    );
}

#[test]
fn lists_are_arrays_in_the_file_and_have_commas_elsewhere() {
    let loaded = from_file("trusted_proxies = [\"10.0.0.1/8\", \"::1\"]").expect("sound");
    assert_eq!(shown(&loaded, "trusted_proxies").0, "10.0.0.0/8, ::1");
    let variables = [("BERTH_TRUSTED_PROXIES", "10.0.0.1,::1")];
    let loaded = Config::layer(None, env(&variables), flags(&[])).expect("sound");
    assert_eq!(loaded.config.trusted_proxies.len(), 2);
    let loaded = from_file("trusted_proxies = []").expect("sound");
    assert_eq!(
        shown(&loaded, "trusted_proxies"),
        ("none".into(), "berth.toml:1".into())
    );
}

#[test]
fn certificate_and_key_come_together() {
    let loaded = from_file("tls_key = \"key.pem\"\ntls_certificate = \"c.pem\"").expect("sound");
    assert_eq!(
        loaded.config.tls(),
        Some((Path::new("c.pem"), Path::new("key.pem")))
    );
    refused(
        from_file("tls_certificate = \"c.pem\"\ntls_key = \"\""),
        &["tls_certificate is set (berth.toml:1) but tls_key is not: set both or neither"],
    );
}

#[test]
fn an_empty_value_takes_an_optional_setting_back() {
    let file = ("berth.toml", "public_url = \"https://berth.example.org\"");
    let loaded = Config::layer(Some(file), env(&[("BERTH_PUBLIC_URL", "")]), flags(&[]));
    let loaded = loaded.expect("sound");
    assert_eq!(loaded.config.public_url, None);
    assert_eq!(
        shown(&loaded, "public_url"),
        ("none".into(), "BERTH_PUBLIC_URL".into())
    );
}

#[test]
fn no_password_is_ever_shown() {
    let loaded = from_file("database = \"postgres://me:s3cret@db/berth\"").expect("sound");
    let expected = ("postgres://me:****@db/berth".into(), "berth.toml:1".into());
    assert_eq!(shown(&loaded, "database"), expected);
    assert!(!format!("{loaded:?}").contains("s3cret"));

    for wrong in [
        "database = \"postgress://me:s3cret@db/berth\"",
        "database = \"postgres//me:s3cret@db/berth\"",
        "database = \"host=db password=s3cret\"",
        "database = \"postgres://me:s3cret\"",
        "database = [\"postgres://me:s3cret@db/berth\"]",
        "database = { url = \"postgres://me:s3cret@db/berth\" }",
        "database = \"postgres://me:s3cret@db/berth",
        "database = postgres://me:s3cret@db/berth",
        "databse = \"postgres://me:s3cret@db/berth\"",
        "database = \"postgres://db\"\ndatabase = \"postgres://me:s3cret@db/berth\"",
    ] {
        let errors = from_file(wrong).expect_err(wrong);
        let told: String = errors
            .iter()
            .map(|error| format!("{error} {error:?}\n"))
            .collect();
        assert!(!told.contains("s3cret"), "{told}");
    }
    refused(
        from_file("database = \"postgress://me:s3cret@db/berth\""),
        &[
            "database = `postgress****` (berth.toml:1) is not accepted: \
           give sqlite: and the path of a file, or postgres://user:password@host/name",
        ],
    );
}

#[test]
fn a_file_that_is_not_toml_is_refused_with_the_line_and_the_rest_is_still_checked() {
    let file = ("berth.toml", "listen = \"127.0.0.1:80\"\nlog_format text\n");
    let errors = Config::layer(Some(file), env(&[("BERTH_LISTEN", "x")]), flags(&[]))
        .expect_err("two mistakes");
    let messages: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert!(
        messages[0].starts_with("berth.toml:2: this is not TOML: "),
        "{messages:?}"
    );
    assert!(
        messages[1].starts_with("listen = `x` (BERTH_LISTEN)"),
        "{messages:?}"
    );
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let missing = Path::new("no/such/berth.toml");
    let errors = Config::load(Some(missing), flags(&[("data_dir", "/srv")])).expect_err("missing");
    assert_eq!(
        errors[0].to_string(),
        "cannot read the configuration file no/such/berth.toml"
    );
    assert!(std::error::Error::source(&errors[0]).is_some());
}

#[test]
fn a_variable_that_is_not_text_matters_only_if_it_is_ours() {
    use std::os::unix::ffi::OsStringExt;
    let broken = || OsString::from_vec(vec![0xff]);
    let (text, errors) = readable(
        [
            ("OTHER".into(), broken()),
            ("BERTH_LISTEN".into(), broken()),
            ("A".into(), "b".into()),
        ]
        .into_iter(),
    );
    assert_eq!(text, [("A".to_owned(), "b".to_owned())]);
    let messages: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        messages,
        ["the environment variable BERTH_LISTEN is not UTF-8 text"]
    );
}

#[test]
fn the_documentation_has_a_row_for_every_setting() {
    let documentation = Config::documentation();
    let rows: Vec<&str> = documentation.lines().skip(2).collect();
    assert_eq!(rows.len(), settings::KEYS.len());
    for (row, key) in rows.iter().zip(settings::KEYS) {
        assert!(
            row.starts_with(&format!("| `{key}` | `BERTH_{}` |", key.to_uppercase())),
            "{row}"
        );
        assert_eq!(row.matches('|').count(), 6, "{row}");
    }
    let row = |key: &str| {
        let place = settings::KEYS.iter().position(|known| *known == key);
        rows[place.unwrap()]
    };
    assert_eq!(
        row("data_dir"),
        "| `data_dir` | `BERTH_DATA_DIR` | `$XDG_DATA_HOME/berth` | a path | Where Berth keeps its \
         files. Without `XDG_DATA_HOME` the default is below `~/.local/share`. |"
    );
    let key_file = row("secret_key_file");
    assert!(
        key_file.contains("| `{data_dir}/secret.key` |"),
        "{key_file}"
    );
}

#[test]
fn the_documentation_is_what_the_code_says() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
    let page = std::fs::read_to_string(path).unwrap();
    let printed = Config::documentation();
    let head = printed.lines().next().unwrap();
    let (before, _) = page.split_once(head).expect("the page has the table");
    let expected = format!("{before}{printed}");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, &expected).unwrap();
        return;
    }
    assert!(
        page == expected,
        "docs/configuration.md is not what the settings say; run UPDATE_DOCS=1 cargo test -p berth-server --lib config"
    );
}
