//! A run in a home whose limit the file system holds.

use berth_drivers::backend::Backend;
use berth_drivers::local::machine::WeakBoundary;
use berth_drivers::local::quota;
use berth_model::PersonId;
use uuid::Uuid;

use super::Machine;

const LIMIT_MIB: u64 = 8;

#[tokio::test]
async fn a_program_that_fills_its_home_cannot_write_above_the_limit_and_nothing_more_starts() {
    let machine = Machine::with(|settings| {
        settings.disk.home_bytes_max = Some(LIMIT_MIB << 20);
        settings.has_network = false;
    });
    let is_root = nix::unistd::Uid::effective().is_root();
    let weak = WeakBoundary::of(true, is_root);
    if let Err(missing) = quota::available(machine.folder.path(), weak) {
        eprintln!("NOT CHECKED: project quotas: {}", missing.why);
        return;
    }
    // A run cannot take its files out of their project, nor write what its quota does not leave.
    let fill = "cd; mkdir folder; dd if=/dev/zero of=folder/big bs=64k count=320 2>&1; \
        chattr -p 0 folder/big 2>&1; stat --format 'took %s' folder/big";
    let (_, _, log) = machine.shell(1, fill).await;
    assert!(
        log.contains("Disk quota exceeded") || log.contains("No space left"),
        "{log}"
    );
    assert!(log.contains("while setting project"), "{log}");
    let took = log.lines().find_map(|line| line.strip_prefix("took "));
    let took: u64 = took.and_then(|size| size.parse().ok()).expect("its size");
    assert!((6 << 20..=LIMIT_MIB << 20).contains(&took), "{log}");

    let person = PersonId(Uuid::from_u128(1));
    let space = machine.local.disk_space(person).await.expect("it works");
    let why = space.home.expect("it is full");
    assert!(why.contains("reached its limit, which is 8 MiB"), "{why}");
}
