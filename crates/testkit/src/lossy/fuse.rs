//! Translates the kernel's requests into calls on the tree.
//!
//! The kernel's write-back cache stays off, so every `write` arrives here before it returns. The kernel itself handles
//! locks, permission checks and memory maps. All users of the files are behind the one mount, so its caches are never
//! stale and may live long.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory,
    ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, Request, TimeOrNow, WriteFlags,
};

use super::tree::{Access, Ino, Kind, Node, Tree};

const CACHED: Duration = Duration::from_secs(24 * 60 * 60);
const FIRST: Generation = Generation(0);
const NO_HANDLE: FileHandle = FileHandle(0);

#[derive(Clone, Debug)]
pub(super) struct LossyFs(Arc<Mutex<Tree>>);

impl LossyFs {
    pub(super) fn new(tree: Tree) -> Self {
        Self(Arc::new(Mutex::new(tree)))
    }

    /// Locks the tree. While the lock is held, the disk carries out no request.
    pub(super) fn tree(&self) -> MutexGuard<'_, Tree> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers with the node that `find` returns; the kernel then remembers the node.
    fn answer(&self, reply: ReplyEntry, find: impl FnOnce(&mut Tree) -> io::Result<Ino>) {
        match self.introduce(find) {
            Ok(attributes) => reply.entry(&CACHED, &attributes, FIRST),
            Err(error) => reply.error(error.into()),
        }
    }

    fn introduce(&self, find: impl FnOnce(&mut Tree) -> io::Result<Ino>) -> io::Result<FileAttr> {
        let mut tree = self.tree();
        let ino = find(&mut tree)?;
        Ok(attributes(ino, tree.remember(ino)?))
    }
}

impl Filesystem for LossyFs {
    fn lookup(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        self.answer(reply, |tree| tree.child(parent.0, name));
    }

    fn forget(&self, _req: &Request, ino: INodeNo, nlookup: u64) {
        self.tree().forget(ino.0, nlookup);
    }

    fn getattr(&self, _req: &Request, ino: INodeNo, _fh: Option<FileHandle>, reply: ReplyAttr) {
        match self.tree().node(ino.0) {
            Ok(node) => reply.attr(&CACHED, &attributes(ino.0, node)),
            Err(error) => reply.error(error.into()),
        }
    }

    fn setattr(
        &self,
        _req: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        _atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _fh: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let set = |tree: &mut Tree| -> io::Result<FileAttr> {
            if mode.is_some() || uid.is_some() || gid.is_some() {
                let old = tree.node(ino.0)?.access;
                let mode = mode.map_or(old.mode, |mode| mode & 0o7777);
                let (uid, gid) = (uid.unwrap_or(old.uid), gid.unwrap_or(old.gid));
                tree.set_access(ino.0, Access { mode, uid, gid })?;
            }
            if let Some(size) = size {
                tree.truncate(ino.0, size)?;
            }
            match mtime {
                Some(TimeOrNow::SpecificTime(time)) => tree.node_mut(ino.0)?.modified = time,
                Some(TimeOrNow::Now) => tree.node_mut(ino.0)?.modified = SystemTime::now(),
                None => {}
            }
            Ok(attributes(ino.0, tree.node(ino.0)?))
        };
        match set(&mut self.tree()) {
            Ok(attributes) => reply.attr(&CACHED, &attributes),
            Err(error) => reply.error(error.into()),
        }
    }

    fn readlink(&self, _req: &Request, ino: INodeNo, reply: ReplyData) {
        match self.tree().node(ino.0).map(|node| &node.kind) {
            Ok(Kind::Symlink(target)) => reply.data(target.as_os_str().as_encoded_bytes()),
            Ok(Kind::File(_) | Kind::Directory(_)) => reply.error(Errno::EINVAL),
            Err(error) => reply.error(error.into()),
        }
    }

    fn mkdir(
        &self,
        req: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        reply: ReplyEntry,
    ) {
        self.answer(reply, |tree| {
            tree.make_directory((parent.0, name), access(req, mode))
        });
    }

    fn unlink(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        done(reply, self.tree().remove(parent.0, name));
    }

    fn rmdir(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        done(reply, self.tree().remove(parent.0, name));
    }

    fn symlink(
        &self,
        req: &Request,
        parent: INodeNo,
        name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        let access = access(req, 0o777);
        self.answer(reply, |tree| {
            tree.make_symlink((parent.0, name), target, access)
        });
    }

    fn rename(
        &self,
        _req: &Request,
        parent: INodeNo,
        name: &OsStr,
        newparent: INodeNo,
        newname: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let mut tree = self.tree();
        if flags.intersects(RenameFlags::RENAME_EXCHANGE | RenameFlags::RENAME_WHITEOUT) {
            reply.error(Errno::EINVAL);
        } else if flags.contains(RenameFlags::RENAME_NOREPLACE)
            && tree.child(newparent.0, newname).is_ok()
        {
            reply.error(Errno::EEXIST);
        } else {
            done(reply, tree.rename((parent.0, name), (newparent.0, newname)));
        }
    }

    fn link(
        &self,
        _req: &Request,
        ino: INodeNo,
        newparent: INodeNo,
        newname: &OsStr,
        reply: ReplyEntry,
    ) {
        self.answer(reply, |tree| tree.link(ino.0, newparent.0, newname));
    }

    fn create(
        &self,
        req: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        _flags: i32,
        reply: ReplyCreate,
    ) {
        match self.introduce(|tree| tree.make_file((parent.0, name), access(req, mode))) {
            Ok(attributes) => {
                let flags = FopenFlags::FOPEN_KEEP_CACHE;
                reply.created(&CACHED, &attributes, FIRST, NO_HANDLE, flags);
            }
            Err(error) => reply.error(error.into()),
        }
    }

    fn open(&self, _req: &Request, _ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        reply.opened(NO_HANDLE, FopenFlags::FOPEN_KEEP_CACHE);
    }

    fn read(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        match self.tree().read(ino.0, offset, size) {
            Ok(bytes) => reply.data(&bytes),
            Err(error) => reply.error(error.into()),
        }
    }

    fn write(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match self.tree().write(ino.0, offset, data) {
            Ok(()) => reply.written(data.len() as u32),
            Err(error) => reply.error(error.into()),
        }
    }

    fn flush(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        _lock_owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        // The kernel calls this at every close, and a close promises nothing.
        reply.ok();
    }

    fn fsync(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        _datasync: bool,
        reply: ReplyEmpty,
    ) {
        done(reply, self.tree().sync(ino.0));
    }

    fn readdir(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        match self.tree().list(ino.0, offset) {
            Ok(entries) => {
                for (name, entry, node) in entries {
                    if reply.add(INodeNo(entry.ino), entry.cookie, file_type(node), name) {
                        break;
                    }
                }
                reply.ok();
            }
            Err(error) => reply.error(error.into()),
        }
    }

    fn fsyncdir(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        _datasync: bool,
        reply: ReplyEmpty,
    ) {
        done(reply, self.tree().sync(ino.0));
    }
}

fn done(reply: ReplyEmpty, result: io::Result<()>) {
    match result {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(error.into()),
    }
}

/// The owner and mode of a new file or directory. The kernel has already applied the umask to the mode.
fn access(req: &Request, mode: u32) -> Access {
    Access {
        mode: mode & 0o7777,
        uid: req.uid(),
        gid: req.gid(),
    }
}

fn attributes(ino: Ino, node: &Node) -> FileAttr {
    let (size, nlink) = match &node.kind {
        Kind::File(content) => (content.len(), node.names.len() as u32),
        Kind::Directory(_) => (4096, 2),
        Kind::Symlink(target) => (target.as_os_str().len() as u64, 1),
    };
    FileAttr {
        ino: INodeNo(ino),
        size,
        blocks: size.div_ceil(512),
        atime: node.modified,
        mtime: node.modified,
        ctime: node.modified,
        crtime: node.modified,
        kind: file_type(node),
        perm: node.access.mode as u16,
        nlink,
        uid: node.access.uid,
        gid: node.access.gid,
        rdev: 0,
        blksize: 4096,
        flags: 0,
    }
}

fn file_type(node: &Node) -> FileType {
    match node.kind {
        Kind::File(_) => FileType::RegularFile,
        Kind::Directory(_) => FileType::Directory,
        Kind::Symlink(_) => FileType::Symlink,
    }
}
