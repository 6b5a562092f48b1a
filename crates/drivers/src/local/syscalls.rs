//! Seccomp filters for the system calls that no run may make.
//!
//! By then bubblewrap has dropped every capability and denied new namespaces. The filters block the parts of the kernel
//! that need neither and have been used to escape from sandboxes. Debugging one's own processes still works.

use std::collections::BTreeMap;
use std::io;

use nix::libc;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

/// Refused with `EPERM`.
const REFUSED: &[i64] = &[
    // Mounts.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    // New namespaces, and other processes' namespaces.
    libc::SYS_unshare,
    libc::SYS_setns,
    // Programs in the kernel, its counters, its keys and its modules.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_syslog,
    // Memory that another process fills, and `io_uring`, a queue of calls that no filter sees.
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // Files by handles instead of paths; the machine's clock, accounting, swap and name.
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_quotactl,
    libc::SYS_acct,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
];

/// `clone` with one of these flags would make a namespace.
const NAMESPACES: [i32; 7] = [
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];

/// From this number on, the system calls are those of x32, which duplicate the others.
#[cfg(target_arch = "x86_64")]
const X32: u32 = 0x4000_0000;

/// The filters, each as the bytes that bubblewrap and the kernel accept. The kernel applies both.
pub fn filters() -> io::Result<[Vec<u8>; 2]> {
    let refused = REFUSED.iter().map(|number| (*number, Vec::new()));
    let mut refused: BTreeMap<i64, Vec<SeccompRule>> = refused.collect();
    let clones = NAMESPACES.iter().map(|flag| makes_namespace(*flag));
    refused.insert(libc::SYS_clone, clones.collect::<io::Result<_>>()?);
    // The flags of `clone3` are in memory, which no filter can read. Programs that find it missing use `clone` instead.
    let missing = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    let mut first = without_x32();
    first.extend(compile(refused, libc::EPERM)?);
    Ok([bytes(&first), bytes(&compile(missing, libc::ENOSYS)?)])
}

fn makes_namespace(flag: i32) -> io::Result<SeccompRule> {
    let flag = u64::from(flag.cast_unsigned());
    let is_set = SeccompCondition::new(
        0,
        SeccompCmpArgLen::Qword,
        SeccompCmpOp::MaskedEq(flag),
        flag,
    );
    let rule = is_set.and_then(|is_set| SeccompRule::new(vec![is_set]));
    rule.map_err(io::Error::other)
}

fn compile(rules: BTreeMap<i64, Vec<SeccompRule>>, error: i32) -> io::Result<BpfProgram> {
    let machine = TargetArch::try_from(std::env::consts::ARCH).map_err(io::Error::other)?;
    let answer = SeccompAction::Errno(error.cast_unsigned());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, answer, machine);
    let program = filter.and_then(BpfProgram::try_from);
    program.map_err(io::Error::other)
}

/// Instructions for the start of a filter: a call of x32 does not exist. The library knows architectures, but not x32.
#[cfg(target_arch = "x86_64")]
fn without_x32() -> BpfProgram {
    const LOAD_NUMBER: u16 = 0x20;
    const JUMP_IF_AT_LEAST: u16 = 0x35;
    const RETURN: u16 = 0x06;
    const ANSWER_ERROR: u32 = 0x0005_0000;
    let missing = ANSWER_ERROR | libc::ENOSYS.cast_unsigned();
    [
        (LOAD_NUMBER, 0, 0, 0),
        (JUMP_IF_AT_LEAST, 0, 1, X32),
        (RETURN, 0, 0, missing),
    ]
    .map(|(code, jt, jf, k)| seccompiler::sock_filter { code, jt, jf, k })
    .into()
}

#[cfg(not(target_arch = "x86_64"))]
fn without_x32() -> BpfProgram {
    Vec::new()
}

/// The kernel's layout of an instruction: two bytes, one, one, four.
fn bytes(program: &BpfProgram) -> Vec<u8> {
    let instruction = |one: &seccompiler::sock_filter| {
        let [a, b] = one.code.to_ne_bytes();
        let [c, d, e, f] = one.k.to_ne_bytes();
        [a, b, one.jt, one.jf, c, d, e, f]
    };
    program.iter().flat_map(instruction).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filters_are_whole_instructions_and_within_the_kernels_limit() {
        for filter in filters().unwrap() {
            assert_eq!(filter.len() % 8, 0);
            assert!((8..4096 * 8).contains(&filter.len()), "{}", filter.len());
        }
    }
}
