//! The settings that our promises rest on, read from live databases; and that a bad one is noticed.

use berth_store::{Engine, Store, settings};

use crate::support::{Home, on_both};

on_both!(a_fresh_database_is_as_it_must_be);

async fn a_fresh_database_is_as_it_must_be(home: &Home) {
    let found = settings::read(&home.store).await.expect("live settings");
    let bad: Vec<_> = found.iter().filter(|setting| !setting.good).collect();
    assert!(bad.is_empty(), "{bad:?}");

    let names: Vec<&str> = found.iter().map(|setting| setting.name).collect();
    let promised: &[&str] = match home.store.engine() {
        Engine::Sqlite => &["journal_mode", "synchronous", "foreign_keys"],
        Engine::Postgres => &["fsync", "synchronous_commit", "transaction_isolation"],
    };
    for name in promised {
        assert!(names.contains(name), "{name} is not read at all: {names:?}");
    }
}

/// Settings are read over a fresh connection, since a database's own settings reach only those who come after.
async fn bad_settings_after(home: &Home, change: &str) -> Vec<(&'static str, String)> {
    let database = home
        .url
        .split(['/', '?'])
        .find(|part| part.starts_with("berth_test"));
    let database = database.expect("the name of the database");
    home.raw(&format!("ALTER DATABASE {database} SET {change}"))
        .await
        .expect("a changed setting");
    let store = Store::connect(&home.url, 1).await.expect("a second store");
    let found = settings::read(&store).await.expect("live settings");
    store.close().await;
    let bad = found.into_iter().filter(|setting| !setting.good);
    bad.map(|setting| (setting.name, setting.is)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_that_does_not_wait_for_the_disk_is_noticed() {
    let home = Home::postgres().await;
    for value in ["off", "local"] {
        assert_eq!(
            bad_settings_after(&home, &format!("synchronous_commit = {value}")).await,
            [("synchronous_commit", value.to_owned())]
        );
    }
    let none: [(&str, String); 0] = [];
    assert_eq!(
        bad_settings_after(&home, "synchronous_commit = remote_apply").await,
        none,
        "more than `on` is not a fault"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_store_s_own_isolation_holds_whatever_the_server_s_default() {
    let home = Home::postgres().await;
    let none: [(&str, String); 0] = [];
    assert_eq!(
        bad_settings_after(&home, "default_transaction_isolation = 'repeatable read'").await,
        none
    );
}
