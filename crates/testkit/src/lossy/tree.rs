//! The tree of files as its users see it. It is in memory, above the backing directory with the synced data. This
//! module must not depend on FUSE.

use std::collections::{BTreeMap, HashMap};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::io::Errno;

use super::content::Content;
use super::journal::{Journal, New, Step};

pub(super) type Ino = u64;
pub(super) const ROOT: Ino = 1;

#[derive(Debug)]
pub(super) struct Tree {
    root: PathBuf,
    nodes: HashMap<Ino, Node>,
    journal: Journal,
    /// The number that was assigned last; the root gets the first.
    last_number: u64,
}

#[derive(Debug)]
pub(super) struct Node {
    pub(super) kind: Kind,
    pub(super) access: Access,
    /// Time of the last change of the content, in memory only.
    pub(super) modified: SystemTime,
    /// The directory entries of this node: none for the root, or for a file that was removed while open.
    pub(super) names: Vec<(Ino, OsString)>,
    /// How many references to this node the kernel has and has not forgotten.
    lookups: u64,
}

#[derive(Debug)]
pub(super) enum Kind {
    File(Content),
    Directory(Entries),
    Symlink(PathBuf),
}

pub(super) type Entries = BTreeMap<OsString, Entry>;

/// One name in a directory. The cookie says where an interrupted listing continues. It stays the same while other names
/// come and go.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) ino: Ino,
    pub(super) cookie: u64,
}

pub(super) type Listed<'a> = (&'a OsStr, &'a Entry, &'a Node);

#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    pub(super) mode: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
}

impl Tree {
    /// Reads the whole backing directory, but not the bytes of its files.
    pub(super) fn load(root: PathBuf) -> io::Result<Self> {
        let (nodes, journal) = (HashMap::new(), Journal::default());
        let mut tree = Self {
            root: root.clone(),
            nodes,
            journal,
            last_number: ROOT - 1,
        };
        tree.load_node(&root, None, &mut HashMap::new())?;
        Ok(tree)
    }

    /// `seen` finds the node of a file that has a second name.
    fn load_node(
        &mut self,
        path: &Path,
        name: Option<(Ino, OsString)>,
        seen: &mut HashMap<u64, Ino>,
    ) -> io::Result<()> {
        let found = path.symlink_metadata()?;
        if let (Some(&ino), Some((parent, name))) = (seen.get(&found.ino()), &name) {
            return self.attach(ino, *parent, name);
        }
        let kind = match found.file_type() {
            kind if kind.is_file() => Kind::File(Content::open(path)?),
            kind if kind.is_dir() => Kind::Directory(Entries::new()),
            kind if kind.is_symlink() => Kind::Symlink(fs::read_link(path)?),
            _ => return Ok(()),
        };
        let (mode, uid, gid) = (found.mode() & 0o7777, found.uid(), found.gid());
        let ino = self.fresh_number();
        self.insert(ino, kind, Access { mode, uid, gid }, found.modified()?);
        seen.insert(found.ino(), ino);
        if let Some((parent, name)) = name {
            self.attach(ino, parent, &name)?;
        }
        if found.is_dir() {
            for child in fs::read_dir(path)? {
                let child = child?;
                self.load_node(&child.path(), Some((ino, child.file_name())), seen)?;
            }
        }
        Ok(())
    }

    pub(super) fn node(&self, ino: Ino) -> io::Result<&Node> {
        Ok(self.nodes.get(&ino).ok_or(Errno::NOENT)?)
    }

    pub(super) fn node_mut(&mut self, ino: Ino) -> io::Result<&mut Node> {
        Ok(self.nodes.get_mut(&ino).ok_or(Errno::NOENT)?)
    }

    pub(super) fn child(&self, parent: Ino, name: &OsStr) -> io::Result<Ino> {
        let entry = self.node(parent)?.entries()?.get(name);
        Ok(entry.ok_or(Errno::NOENT)?.ino)
    }

    /// The entries of a directory after the entry with this cookie.
    pub(super) fn list(&self, ino: Ino, after: u64) -> io::Result<Vec<Listed<'_>>> {
        let entries = self.node(ino)?.entries()?.iter();
        let listed = entries
            .filter(|(_, entry)| entry.cookie > after)
            .map(|(name, entry)| Ok((name.as_os_str(), entry, self.node(entry.ino)?)));
        let mut listed: Vec<Listed<'_>> = listed.collect::<io::Result<_>>()?;
        listed.sort_by_key(|(_, entry, _)| entry.cookie);
        Ok(listed)
    }

    /// Counts a reference of the kernel. The node must live until the kernel forgets it.
    pub(super) fn remember(&mut self, ino: Ino) -> io::Result<&Node> {
        let node = self.node_mut(ino)?;
        node.lookups += 1;
        Ok(node)
    }

    pub(super) fn forget(&mut self, ino: Ino, times: u64) {
        if let Ok(node) = self.node_mut(ino) {
            node.lookups = node.lookups.saturating_sub(times);
            self.drop_if_unused(ino);
        }
    }

    pub(super) fn make_file(&mut self, at: (Ino, &OsStr), access: Access) -> io::Result<Ino> {
        let ino = self.fresh_number();
        self.make(
            ino,
            at,
            Kind::File(Content::default()),
            New::File(ino),
            access,
        )
    }

    pub(super) fn make_directory(&mut self, at: (Ino, &OsStr), access: Access) -> io::Result<Ino> {
        let ino = self.fresh_number();
        self.make(
            ino,
            at,
            Kind::Directory(Entries::new()),
            New::Directory,
            access,
        )
    }

    pub(super) fn make_symlink(
        &mut self,
        at: (Ino, &OsStr),
        target: &Path,
        access: Access,
    ) -> io::Result<Ino> {
        let ino = self.fresh_number();
        self.make(
            ino,
            at,
            Kind::Symlink(target.into()),
            New::Symlink(target.into()),
            access,
        )
    }

    fn make(
        &mut self,
        ino: Ino,
        (parent, name): (Ino, &OsStr),
        kind: Kind,
        new: New,
        access: Access,
    ) -> io::Result<Ino> {
        if self.child(parent, name).is_ok() {
            return Err(Errno::EXIST.into());
        }
        let path = self.path(parent)?.join(name);
        self.insert(ino, kind, access, SystemTime::now());
        self.attach(ino, parent, name)?;
        self.journal
            .note([ino, parent], Step::Make(path, new, access));
        Ok(ino)
    }

    pub(super) fn link(&mut self, ino: Ino, parent: Ino, name: &OsStr) -> io::Result<Ino> {
        let (from, to) = (self.path(ino)?, self.path(parent)?.join(name));
        self.attach(ino, parent, name)?;
        self.journal.note([ino, parent], Step::Link(from, to));
        Ok(ino)
    }

    /// Removes a file or an empty directory.
    pub(super) fn remove(&mut self, parent: Ino, name: &OsStr) -> io::Result<()> {
        let path = self.path(parent)?.join(name);
        self.node(self.child(parent, name)?)?.refuse_if_full()?;
        let ino = self.detach(parent, name)?;
        self.journal.note([ino, parent], Step::Remove(path));
        Ok(())
    }

    pub(super) fn rename(&mut self, from: (Ino, &OsStr), to: (Ino, &OsStr)) -> io::Result<()> {
        let ino = self.child(from.0, from.1)?;
        let mut touches = vec![ino, from.0, to.0];
        let step = Step::Rename(self.path(from.0)?.join(from.1), self.path(to.0)?.join(to.1));
        if let Ok(replaced) = self.child(to.0, to.1) {
            self.node(replaced)?.refuse_if_full()?;
            self.detach(to.0, to.1)?;
            touches.push(replaced);
        }
        self.attach(ino, to.0, to.1)?;
        self.detach(from.0, from.1)?;
        self.journal.note(touches, step);
        Ok(())
    }

    pub(super) fn set_access(&mut self, ino: Ino, access: Access) -> io::Result<()> {
        self.node_mut(ino)?.access = access;
        // A file that was removed while open has no path, and nothing of it survives a crash.
        if let Ok(path) = self.path(ino) {
            self.journal.note([ino], Step::SetAccess(path, access));
        }
        Ok(())
    }

    pub(super) fn read(&self, ino: Ino, offset: u64, size: u32) -> io::Result<Vec<u8>> {
        match &self.node(ino)?.kind {
            Kind::File(content) => content.read(offset, size),
            Kind::Directory(_) | Kind::Symlink(_) => Err(Errno::ISDIR.into()),
        }
    }

    pub(super) fn write(&mut self, ino: Ino, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.node_mut(ino)?.content_mut()?.write(offset, bytes)
    }

    pub(super) fn truncate(&mut self, ino: Ino, len: u64) -> io::Result<()> {
        self.node_mut(ino)?.content_mut()?.truncate(len);
        Ok(())
    }

    /// Writes to the disk everything that an fsync of this file or directory promises.
    pub(super) fn sync(&mut self, ino: Ino) -> io::Result<()> {
        self.commit(self.journal.steps_for(ino))?;
        match &mut self.node_mut(ino)?.kind {
            Kind::File(content) => content.sync(),
            Kind::Directory(_) | Kind::Symlink(_) => Ok(()),
        }
    }

    /// Writes everything to the disk, as an orderly shutdown does.
    pub(super) fn sync_all(&mut self) -> io::Result<()> {
        self.commit(self.journal.len())?;
        for node in self.nodes.values_mut() {
            if let Kind::File(content) = &mut node.kind {
                content.sync()?;
            }
        }
        Ok(())
    }

    fn commit(&mut self, steps: usize) -> io::Result<()> {
        for _ in 0..steps {
            if let Some((ino, file)) = self.journal.carry_out_first()?
                && let Some(Node {
                    kind: Kind::File(content),
                    ..
                }) = self.nodes.get_mut(&ino)
            {
                content.attach(file);
            }
        }
        Ok(())
    }

    fn path(&self, ino: Ino) -> io::Result<PathBuf> {
        if ino == ROOT {
            return Ok(self.root.clone());
        }
        let (parent, name) = self.node(ino)?.names.first().ok_or(Errno::NOENT)?;
        Ok(self.path(*parent)?.join(name))
    }

    fn fresh_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    fn insert(&mut self, ino: Ino, kind: Kind, access: Access, modified: SystemTime) {
        let names = Vec::new();
        self.nodes.insert(
            ino,
            Node {
                kind,
                access,
                modified,
                names,
                lookups: 0,
            },
        );
    }

    fn attach(&mut self, ino: Ino, parent: Ino, name: &OsStr) -> io::Result<()> {
        let cookie = self.fresh_number();
        let entries = self.node_mut(parent)?.entries_mut()?;
        entries.insert(name.to_owned(), Entry { ino, cookie });
        self.node_mut(ino)?.names.push((parent, name.to_owned()));
        Ok(())
    }

    fn detach(&mut self, parent: Ino, name: &OsStr) -> io::Result<Ino> {
        let entry = self.node_mut(parent)?.entries_mut()?.remove(name);
        let ino = entry.ok_or(Errno::NOENT)?.ino;
        let this = |(p, n): &(Ino, OsString)| *p == parent && n == name;
        self.node_mut(ino)?.names.retain(|other| !this(other));
        self.drop_if_unused(ino);
        Ok(ino)
    }

    fn drop_if_unused(&mut self, ino: Ino) {
        let unused = |node: &Node| node.names.is_empty() && node.lookups == 0;
        if ino != ROOT && self.nodes.get(&ino).is_some_and(unused) {
            self.nodes.remove(&ino);
        }
    }
}

impl Node {
    fn entries(&self) -> io::Result<&Entries> {
        match &self.kind {
            Kind::Directory(entries) => Ok(entries),
            Kind::File(_) | Kind::Symlink(_) => Err(Errno::NOTDIR.into()),
        }
    }

    fn entries_mut(&mut self) -> io::Result<&mut Entries> {
        self.modified = SystemTime::now();
        match &mut self.kind {
            Kind::Directory(entries) => Ok(entries),
            Kind::File(_) | Kind::Symlink(_) => Err(Errno::NOTDIR.into()),
        }
    }

    /// The content of a file, which is about to change.
    fn content_mut(&mut self) -> io::Result<&mut Content> {
        self.modified = SystemTime::now();
        match &mut self.kind {
            Kind::File(content) => Ok(content),
            Kind::Directory(_) | Kind::Symlink(_) => Err(Errno::ISDIR.into()),
        }
    }

    fn refuse_if_full(&self) -> io::Result<()> {
        match &self.kind {
            Kind::Directory(entries) if !entries.is_empty() => Err(Errno::NOTEMPTY.into()),
            Kind::Directory(_) | Kind::File(_) | Kind::Symlink(_) => Ok(()),
        }
    }
}
