//! The reserve inside an SQLite database: what it takes from the disk stays the database's own.

use std::fs;
use std::os::unix::fs::MetadataExt;

use berth_store::reserve::Missing;

use crate::support::Home;

const MIB: u64 = 1 << 20;

#[tokio::test(flavor = "multi_thread")]
async fn the_reserve_is_free_space_in_the_file_and_its_log() {
    let home = Home::sqlite().await;
    let allocated = |end: &str| {
        let path = home.url.strip_prefix("sqlite:").expect("a file");
        let about = fs::metadata(format!("{path}{end}")).expect("a file");
        about.blocks() * 512
    };
    let before = allocated("");
    let missing = home.store.missing_reserve(16 * MIB, true).await;
    let missing = missing.expect("an answer");
    assert!(missing.file_bytes > 15 * MIB, "{missing:?}");
    home.store.fill_reserve(missing).await.expect("it is kept");
    let still = home.store.missing_reserve(16 * MIB, false).await;
    assert_eq!(still.expect("an answer"), Missing::default());
    home.raw("PRAGMA wal_checkpoint").await.expect("an answer");
    assert!(allocated("") >= before + 15 * MIB, "{}", allocated(""));
    assert!(allocated("-wal") >= 8 * MIB, "{}", allocated("-wal"));
    // Nothing of it is data.
    assert_eq!(home.raw("DELETE FROM reserve").await.expect("an answer"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_keeps_none() {
    let home = Home::postgres().await;
    let missing = home.store.missing_reserve(MIB, true).await;
    assert!(missing.expect("an answer").is_nothing());
}
