//! The tree of files as its users see it, held in memory, above the backing directory, which holds what
//! was synced. Nothing here knows of FUSE.
//!
//! A change of names, owners or modes goes into a journal of steps. A sync carries out the steps up to
//! the last one that touches the synced file or directory, in order; so each step finds the backing
//! directory exactly as the tree was when the step was taken, and the paths in it are right.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown, symlink};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::io::Errno;

use super::content::Content;

pub(super) type Ino = u64;
pub(super) type Entries = BTreeMap<OsString, Entry>;
pub(super) const ROOT: Ino = 1;

#[derive(Debug)]
pub(super) struct Tree {
    root: PathBuf,
    nodes: HashMap<Ino, Node>,
    /// The number given out last; the root gets the first.
    last_number: u64,
    /// Each step with the files and directories whose sync carries it out.
    journal: VecDeque<(Vec<Ino>, Step)>,
}

#[derive(Debug)]
pub(super) struct Node {
    pub(super) kind: Kind,
    pub(super) access: Access,
    /// Last change of the content. Lives in memory only.
    pub(super) modified: SystemTime,
    /// The directory entries that lead here: none for the root and for a file removed while open.
    pub(super) names: Vec<(Ino, OsString)>,
    /// How often the kernel was told of this node and has not forgotten it.
    lookups: u64,
}

#[derive(Debug)]
pub(super) enum Kind {
    File(Content),
    Directory(Entries),
    Symlink(PathBuf),
}

/// One name in a directory. The cookie says where a listing that was cut off goes on: it stays the same
/// while other names come and go.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) ino: Ino,
    pub(super) cookie: u64,
}

#[derive(Debug)]
pub(super) enum New {
    File,
    Directory,
    Symlink(PathBuf),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    pub(super) mode: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
}

/// A change of the backing directory that is still to be made.
#[derive(Debug)]
enum Step {
    Make {
        ino: Ino,
        path: PathBuf,
        new: New,
        access: Access,
    },
    Link {
        from: PathBuf,
        to: PathBuf,
    },
    Rename {
        from: PathBuf,
        to: PathBuf,
    },
    RemoveFile {
        path: PathBuf,
    },
    RemoveDirectory {
        path: PathBuf,
    },
    SetAccess {
        path: PathBuf,
        access: Access,
    },
}

impl Tree {
    /// Reads the whole backing directory; file contents stay where they are until they are written.
    pub(super) fn load(root: PathBuf) -> io::Result<Self> {
        let (nodes, journal) = (HashMap::new(), VecDeque::new());
        let mut tree = Self {
            root: root.clone(),
            nodes,
            last_number: ROOT - 1,
            journal,
        };
        tree.load_node(&root, None, &mut HashMap::new())?;
        Ok(tree)
    }

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
        let access = Access {
            mode: found.mode() & 0o7777,
            uid: found.uid(),
            gid: found.gid(),
        };
        let ino = self.insert(kind, access);
        self.node_mut(ino)?.modified = found.modified()?;
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

    fn node_mut(&mut self, ino: Ino) -> io::Result<&mut Node> {
        Ok(self.nodes.get_mut(&ino).ok_or(Errno::NOENT)?)
    }

    pub(super) fn entries(&self, ino: Ino) -> io::Result<&Entries> {
        match &self.node(ino)?.kind {
            Kind::Directory(entries) => Ok(entries),
            Kind::File(_) | Kind::Symlink(_) => Err(Errno::NOTDIR.into()),
        }
    }

    pub(super) fn child(&self, parent: Ino, name: &OsStr) -> io::Result<Ino> {
        Ok(self.entries(parent)?.get(name).ok_or(Errno::NOENT)?.ino)
    }

    /// The kernel was told of the node, which must therefore live until it is forgotten again.
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

    pub(super) fn make(
        &mut self,
        parent: Ino,
        name: &OsStr,
        new: New,
        access: Access,
    ) -> io::Result<Ino> {
        if self.child(parent, name).is_ok() {
            return Err(Errno::EXIST.into());
        }
        let path = self.path(parent)?.join(name);
        let ino = self.insert(new.kind(), access);
        self.attach(ino, parent, name)?;
        self.note(
            [ino, parent],
            Step::Make {
                ino,
                path,
                new,
                access,
            },
        );
        Ok(ino)
    }

    pub(super) fn link(&mut self, ino: Ino, parent: Ino, name: &OsStr) -> io::Result<Ino> {
        let (from, to) = (self.path(ino)?, self.path(parent)?.join(name));
        self.attach(ino, parent, name)?;
        self.note([ino, parent], Step::Link { from, to });
        Ok(ino)
    }

    pub(super) fn remove_file(&mut self, parent: Ino, name: &OsStr) -> io::Result<()> {
        let path = self.path(parent)?.join(name);
        let ino = self.detach(parent, name)?;
        self.note([ino, parent], Step::RemoveFile { path });
        Ok(())
    }

    pub(super) fn remove_directory(&mut self, parent: Ino, name: &OsStr) -> io::Result<()> {
        let path = self.path(parent)?.join(name);
        if !self.entries(self.child(parent, name)?)?.is_empty() {
            return Err(Errno::NOTEMPTY.into());
        }
        let ino = self.detach(parent, name)?;
        self.note([ino, parent], Step::RemoveDirectory { path });
        Ok(())
    }

    pub(super) fn rename(&mut self, from: (Ino, &OsStr), to: (Ino, &OsStr)) -> io::Result<()> {
        let ino = self.child(from.0, from.1)?;
        let mut touches = vec![ino, from.0, to.0];
        let (old, new) = (self.path(from.0)?.join(from.1), self.path(to.0)?.join(to.1));
        if let Ok(replaced) = self.child(to.0, to.1) {
            if self
                .entries(replaced)
                .is_ok_and(|entries| !entries.is_empty())
            {
                return Err(Errno::NOTEMPTY.into());
            }
            self.detach(to.0, to.1)?;
            touches.push(replaced);
        }
        self.attach(ino, to.0, to.1)?;
        self.detach(from.0, from.1)?;
        self.note(touches, Step::Rename { from: old, to: new });
        Ok(())
    }

    pub(super) fn set_access(&mut self, ino: Ino, access: Access) -> io::Result<()> {
        self.node_mut(ino)?.access = access;
        // A file removed while open has no path, and nothing of it survives a crash anyway.
        if let Ok(path) = self.path(ino) {
            self.note([ino], Step::SetAccess { path, access });
        }
        Ok(())
    }

    pub(super) fn set_modified(&mut self, ino: Ino, modified: SystemTime) -> io::Result<()> {
        self.node_mut(ino)?.modified = modified;
        Ok(())
    }

    pub(super) fn content(&self, ino: Ino) -> io::Result<&Content> {
        match &self.node(ino)?.kind {
            Kind::File(content) => Ok(content),
            Kind::Directory(_) | Kind::Symlink(_) => Err(Errno::ISDIR.into()),
        }
    }

    /// The content of a file that is about to change.
    pub(super) fn content_mut(&mut self, ino: Ino) -> io::Result<&mut Content> {
        let node = self.node_mut(ino)?;
        node.modified = SystemTime::now();
        match &mut node.kind {
            Kind::File(content) => Ok(content),
            Kind::Directory(_) | Kind::Symlink(_) => Err(Errno::ISDIR.into()),
        }
    }

    /// Carries to the disk what an fsync of this file or directory promises.
    pub(super) fn sync(&mut self, ino: Ino) -> io::Result<()> {
        let last = self
            .journal
            .iter()
            .rposition(|(touches, _)| touches.contains(&ino));
        self.commit(last.map_or(0, |last| last + 1))?;
        match &mut self.node_mut(ino)?.kind {
            Kind::File(content) => content.sync(),
            Kind::Directory(_) | Kind::Symlink(_) => Ok(()),
        }
    }

    /// Carries everything to the disk, as an orderly shutdown does.
    pub(super) fn sync_all(&mut self) -> io::Result<()> {
        self.commit(self.journal.len())?;
        for node in self
            .nodes
            .values_mut()
            .filter(|node| !node.names.is_empty())
        {
            if let Kind::File(content) = &mut node.kind {
                content.sync()?;
            }
        }
        Ok(())
    }

    fn commit(&mut self, steps: usize) -> io::Result<()> {
        for _ in 0..steps {
            if let Some((_, step)) = self.journal.pop_front() {
                self.carry_out(step)?;
            }
        }
        Ok(())
    }

    fn carry_out(&mut self, step: Step) -> io::Result<()> {
        match step {
            Step::Make {
                ino,
                path,
                new,
                access,
            } => {
                match new {
                    New::Directory => fs::create_dir(&path)?,
                    New::Symlink(target) => symlink(target, &path)?,
                    New::File => {
                        let file = File::create_new(&path)?;
                        if let Ok(content) = self.content_mut(ino) {
                            content.attach(file);
                        }
                    }
                }
                give(&path, access)
            }
            Step::Link { from, to } => fs::hard_link(from, to),
            Step::Rename { from, to } => fs::rename(from, to),
            Step::RemoveFile { path } => fs::remove_file(path),
            Step::RemoveDirectory { path } => fs::remove_dir(path),
            Step::SetAccess { path, access } => give(&path, access),
        }
    }

    fn note(&mut self, touches: impl Into<Vec<Ino>>, step: Step) {
        self.journal.push_back((touches.into(), step));
    }

    fn path(&self, ino: Ino) -> io::Result<PathBuf> {
        if ino == ROOT {
            return Ok(self.root.clone());
        }
        let (parent, name) = self.node(ino)?.names.first().ok_or(Errno::NOENT)?;
        Ok(self.path(*parent)?.join(name))
    }

    fn fresh(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    fn insert(&mut self, kind: Kind, access: Access) -> Ino {
        let ino = self.fresh();
        let modified = SystemTime::now();
        self.nodes.insert(
            ino,
            Node {
                kind,
                access,
                modified,
                names: Vec::new(),
                lookups: 0,
            },
        );
        ino
    }

    fn attach(&mut self, ino: Ino, parent: Ino, name: &OsStr) -> io::Result<()> {
        let cookie = self.fresh();
        self.entries_mut(parent)?
            .insert(name.to_owned(), Entry { ino, cookie });
        self.node_mut(ino)?.names.push((parent, name.to_owned()));
        Ok(())
    }

    fn detach(&mut self, parent: Ino, name: &OsStr) -> io::Result<Ino> {
        let ino = self
            .entries_mut(parent)?
            .remove(name)
            .ok_or(Errno::NOENT)?
            .ino;
        self.node_mut(ino)?
            .names
            .retain(|(p, n)| (*p, n.as_os_str()) != (parent, name));
        self.drop_if_unused(ino);
        Ok(ino)
    }

    fn entries_mut(&mut self, ino: Ino) -> io::Result<&mut Entries> {
        let node = self.node_mut(ino)?;
        node.modified = SystemTime::now();
        match &mut node.kind {
            Kind::Directory(entries) => Ok(entries),
            Kind::File(_) | Kind::Symlink(_) => Err(Errno::NOTDIR.into()),
        }
    }

    fn drop_if_unused(&mut self, ino: Ino) {
        let unused = |node: &Node| node.names.is_empty() && node.lookups == 0;
        if ino != ROOT && self.nodes.get(&ino).is_some_and(unused) {
            self.nodes.remove(&ino);
        }
    }
}

impl New {
    fn kind(&self) -> Kind {
        match self {
            Self::File => Kind::File(Content::default()),
            Self::Directory => Kind::Directory(Entries::new()),
            Self::Symlink(target) => Kind::Symlink(target.clone()),
        }
    }
}

fn give(path: &Path, access: Access) -> io::Result<()> {
    lchown(path, Some(access.uid), Some(access.gid))?;
    if path.is_symlink() {
        return Ok(());
    }
    fs::set_permissions(path, Permissions::from_mode(access.mode))
}
