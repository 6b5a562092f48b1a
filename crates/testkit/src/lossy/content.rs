//! The bytes of one file: the bytes on the disk, and the newer bytes that no sync has written there yet.

use std::cmp::{max, min};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::io::Errno;

const PAGE_BYTES: u64 = 4096;
type Page = Box<[u8; PAGE_BYTES as usize]>;

#[derive(Debug, Default)]
pub(super) struct Content {
    /// The file on the disk; `None` while its creation is only in the journal.
    disk: Option<File>,
    /// How many leading bytes of `disk` still count. Truncating lowers it, and only a sync raises it.
    disk_len: u64,
    /// The length that readers see; never below `disk_len`.
    len: u64,
    /// Written pages by number, each complete, with zeros past `len`.
    unsynced: BTreeMap<u64, Page>,
}

impl Content {
    /// The content of a file that exists on the disk.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let disk = File::options().read(true).write(true).open(path)?;
        let len = disk.metadata()?.len();
        Ok(Self {
            disk: Some(disk),
            disk_len: len,
            len,
            unsynced: BTreeMap::new(),
        })
    }

    /// Sets the disk file of a new file, once it exists on the disk.
    pub(super) fn attach(&mut self, disk: File) {
        self.disk = Some(disk);
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    pub(super) fn read(&self, offset: u64, size: u32) -> io::Result<Vec<u8>> {
        let end = min(self.len, offset + u64::from(size));
        if end <= offset {
            return Ok(Vec::new());
        }
        let mut bytes = vec![0; (end - offset) as usize];
        self.read_disk(offset, &mut bytes)?;
        for (number, page) in self
            .unsynced
            .range(offset / PAGE_BYTES..end.div_ceil(PAGE_BYTES))
        {
            let start = number * PAGE_BYTES;
            let (from, to) = (max(start, offset), min(start + PAGE_BYTES, end));
            let target = (from - offset) as usize..(to - offset) as usize;
            bytes[target].copy_from_slice(&page[(from - start) as usize..(to - start) as usize]);
        }
        Ok(bytes)
    }

    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let (mut at, mut rest) = (offset, bytes);
        while !rest.is_empty() {
            let (number, within) = (at / PAGE_BYTES, (at % PAGE_BYTES) as usize);
            let mut page = match self.unsynced.remove(&number) {
                Some(page) => page,
                None => self.disk_page(number)?,
            };
            let (now, later) = rest.split_at(min(rest.len(), page.len() - within));
            page[within..within + now.len()].copy_from_slice(now);
            self.unsynced.insert(number, page);
            (at, rest) = (at + now.len() as u64, later);
            self.len = max(self.len, at);
        }
        Ok(())
    }

    pub(super) fn truncate(&mut self, len: u64) {
        self.unsynced.split_off(&len.div_ceil(PAGE_BYTES));
        if let Some(last) = self.unsynced.get_mut(&(len / PAGE_BYTES)) {
            last[(len % PAGE_BYTES) as usize..].fill(0);
        }
        self.disk_len = min(self.disk_len, len);
        self.len = len;
    }

    /// Writes everything to the disk.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        let disk = self.disk.as_ref().ok_or(Errno::IO)?;
        // Cut first, so that bytes dropped by a truncation do not come back as the tail.
        disk.set_len(self.disk_len)?;
        for (number, page) in &self.unsynced {
            let start = number * PAGE_BYTES;
            disk.write_all_at(&page[..min(PAGE_BYTES, self.len - start) as usize], start)?;
        }
        disk.set_len(self.len)?;
        self.disk_len = self.len;
        self.unsynced.clear();
        Ok(())
    }

    fn disk_page(&self, number: u64) -> io::Result<Page> {
        let mut page = Box::new([0; PAGE_BYTES as usize]);
        self.read_disk(number * PAGE_BYTES, page.as_mut_slice())?;
        Ok(page)
    }

    /// Fills the front of `bytes` with the disk's bytes from `offset` on.
    fn read_disk(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let there = min(self.disk_len.saturating_sub(offset), bytes.len() as u64) as usize;
        match &self.disk {
            Some(disk) => disk.read_exact_at(&mut bytes[..there], offset),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Action {
        Write { offset: u64, bytes: Vec<u8> },
        Truncate(u64),
        Sync,
        Crash,
    }

    fn action() -> impl Strategy<Value = Action> {
        let offset = 0..4 * PAGE_BYTES;
        prop_oneof![
            4 => (offset.clone(), vec(any::<u8>(), 1..2 * PAGE_BYTES as usize))
                .prop_map(|(offset, bytes)| Action::Write { offset, bytes }),
            2 => offset.prop_map(Action::Truncate),
            1 => Just(Action::Sync),
            1 => Just(Action::Crash),
        ]
    }

    proptest! {
        #[test]
        fn behaves_like_bytes_of_which_a_crash_keeps_the_last_synced(actions in vec(action(), 1..30)) {
            let file = tempfile::NamedTempFile::new()?;
            let mut content = Content::open(file.path())?;
            let (mut seen, mut synced) = (Vec::new(), Vec::new());
            for action in actions {
                match action {
                    Action::Write { offset, bytes } => {
                        content.write(offset, &bytes)?;
                        let (start, end) = (offset as usize, offset as usize + bytes.len());
                        seen.resize(max(seen.len(), end), 0);
                        seen[start..end].copy_from_slice(&bytes);
                    }
                    Action::Truncate(len) => {
                        content.truncate(len);
                        seen.resize(len as usize, 0);
                    }
                    Action::Sync => {
                        content.sync()?;
                        synced.clone_from(&seen);
                    }
                    Action::Crash => {
                        content = Content::open(file.path())?;
                        seen.clone_from(&synced);
                    }
                }
                prop_assert_eq!(content.len(), seen.len() as u64);
                prop_assert!(content.read(0, u32::MAX)? == seen);
                prop_assert!(content.read(3000, 5000)? == seen[min(3000, seen.len())..min(8000, seen.len())]);
            }
        }
    }
}
