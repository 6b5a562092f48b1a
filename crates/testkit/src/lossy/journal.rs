//! The changes of names, owners and modes that the backing directory does not have yet, in order.
//!
//! A sync carries out the steps up to the last one that touches the synced file or directory. So each step finds the
//! backing directory exactly as the tree was when the step was noted, and its paths are correct.

use std::collections::VecDeque;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, lchown, symlink};
use std::path::{Path, PathBuf};

use super::tree::{Access, Ino};

#[derive(Debug, Default)]
pub(super) struct Journal(VecDeque<(Vec<Ino>, Step)>);

/// A change that the backing directory does not have yet.
#[derive(Debug)]
pub(super) enum Step {
    Make(PathBuf, New, Access),
    Link(PathBuf, PathBuf),
    Rename(PathBuf, PathBuf),
    Remove(PathBuf),
    SetAccess(PathBuf, Access),
}

#[derive(Debug)]
pub(super) enum New {
    /// A file, with the inode number under which its content waits for a file on the disk.
    File(Ino),
    Directory,
    Symlink(PathBuf),
}

/// A file that now exists on the disk.
pub(super) type Made = Option<(Ino, File)>;

impl Journal {
    pub(super) fn note(&mut self, touches: impl Into<Vec<Ino>>, step: Step) {
        self.0.push_back((touches.into(), step));
    }

    /// The number of steps that a sync of this file or directory must carry out.
    pub(super) fn steps_for(&self, ino: Ino) -> usize {
        let last = self
            .0
            .iter()
            .rposition(|(touches, _)| touches.contains(&ino));
        last.map_or(0, |last| last + 1)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn carry_out_first(&mut self) -> io::Result<Made> {
        self.0
            .pop_front()
            .map_or(Ok(None), |(_, step)| step.carry_out())
    }
}

impl Step {
    fn carry_out(self) -> io::Result<Made> {
        let mut made = None;
        match self {
            Self::Make(path, new, access) => {
                match new {
                    New::File(ino) => made = Some((ino, File::create_new(&path)?)),
                    New::Directory => fs::create_dir(&path)?,
                    New::Symlink(target) => symlink(target, &path)?,
                }
                set_access(&path, access)?;
            }
            Self::Link(from, to) => fs::hard_link(from, to)?,
            Self::Rename(from, to) => fs::rename(from, to)?,
            Self::Remove(path) if path.symlink_metadata()?.is_dir() => fs::remove_dir(path)?,
            Self::Remove(path) => fs::remove_file(path)?,
            Self::SetAccess(path, access) => set_access(&path, access)?,
        }
        Ok(made)
    }
}

fn set_access(path: &Path, access: Access) -> io::Result<()> {
    lchown(path, Some(access.uid), Some(access.gid))?;
    if !path.is_symlink() {
        fs::set_permissions(path, Permissions::from_mode(access.mode))?;
    }
    Ok(())
}
