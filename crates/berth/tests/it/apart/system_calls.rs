//! The system calls that the boundary refuses, each made inside a live session and outside any; and a debugger, which works.

use std::process::Command;

use nix::libc;

use super::people::{Person, site_with};

/// With arguments that mean nothing, so that one which is let through fails in another way, or does nothing.
const REFUSED: &[(&str, i64, &str)] = &[
    ("mount", libc::SYS_mount, "0, 0, 0, 0, 0"),
    ("umount2", libc::SYS_umount2, "0, 0"),
    ("pivot_root", libc::SYS_pivot_root, "0, 0"),
    ("open_tree", libc::SYS_open_tree, "-1, 0, 0"),
    ("move_mount", libc::SYS_move_mount, "-1, 0, -1, 0, 0"),
    ("fsopen", libc::SYS_fsopen, "0, 0"),
    ("unshare", libc::SYS_unshare, "0"),
    ("unshare of users", libc::SYS_unshare, "0x10000000"),
    ("setns", libc::SYS_setns, "-1, 0"),
    ("clone of users", libc::SYS_clone, "0x10000011, 0, 0, 0, 0"),
    (
        "clone of networks",
        libc::SYS_clone,
        "0x40000011, 0, 0, 0, 0",
    ),
    ("bpf", libc::SYS_bpf, "-1, 0, 0"),
    (
        "perf_event_open",
        libc::SYS_perf_event_open,
        "0, 0, -1, -1, 0",
    ),
    ("add_key", libc::SYS_add_key, "0, 0, 0, 0, 0"),
    ("request_key", libc::SYS_request_key, "0, 0, 0, 0"),
    ("keyctl", libc::SYS_keyctl, "-1, 0, 0, 0, 0"),
    ("userfaultfd", libc::SYS_userfaultfd, "-1"),
    ("io_uring_setup", libc::SYS_io_uring_setup, "0, 0"),
    (
        "io_uring_enter",
        libc::SYS_io_uring_enter,
        "-1, 0, 0, 0, 0, 0",
    ),
    (
        "io_uring_register",
        libc::SYS_io_uring_register,
        "-1, 0, 0, 0",
    ),
    ("open_by_handle_at", libc::SYS_open_by_handle_at, "-1, 0, 0"),
    (
        "name_to_handle_at",
        libc::SYS_name_to_handle_at,
        "-1, 0, 0, 0, 0",
    ),
];

/// Prints the error of each call, a line each.
fn script() -> String {
    let mut script = "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n".to_owned();
    for (name, number, arguments) in REFUSED {
        script.push_str(&format!(
            "ctypes.set_errno(0)\nlibc.syscall({number}, {arguments})\nprint(\"{name}:\", ctypes.get_errno(), flush=True)\n"
        ));
        // A copy of this process that a call made after all has nothing more to say.
        script.push_str("os.getpid() == me or os._exit(0)\n");
    }
    script.replacen(
        "import ctypes, os\n",
        "import ctypes, os\nme = os.getpid()\n",
        1,
    )
}

/// A debugger stops its own child, reads its memory and lets it go.
const DEBUGGER: &str = r#"
import ctypes, os, signal
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long] * 4
child = os.fork()
if child == 0:
    while True:
        signal.pause()
assert libc.ptrace(16, child, 0, 0) == 0, os.strerror(ctypes.get_errno())
os.waitpid(child, 0)
start = int(open("/proc/%d/maps" % child).readline().split("-")[0], 16)
memory = os.open("/proc/%d/mem" % child, os.O_RDONLY)
assert os.pread(memory, 4, start) == b"\x7fELF"
assert libc.ptrace(17, child, 0, 0) == 0
os.kill(child, signal.SIGKILL)
os.waitpid(child, 0)
print("debugged")
"#;

fn not_refused(said: &str) -> Vec<&str> {
    let refused = format!(": {}", libc::EPERM);
    said.lines()
        .filter(|line| !line.ends_with(&refused))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_let_programs_out_are_refused_and_debuggers_work() {
    let desk = site_with("").await;
    let bo = Person::at_work(&desk, "bo").await;
    let quoted = script().replace('\'', "'\\''");
    let said = bo.shell(&format!("python3 -c '{quoted}' 2>&1")).await;
    assert_eq!(said.lines().count(), REFUSED.len(), "{said}");
    assert_eq!(not_refused(&said), [""; 0], "{said}");
    // The table can fail: the same program as nobody, outside, is refused less.
    let outside = Command::new("setpriv")
        .args([
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            "/usr/bin/python3",
            "-c",
            &script(),
        ])
        .output()
        .expect("setpriv is a part of util-linux");
    let outside = String::from_utf8(outside.stdout).expect("text");
    assert!(not_refused(&outside).len() > REFUSED.len() / 2, "{outside}");
    // It does not exist at all: programs take `clone`, whose flags the filter reads.
    let clone3 = format!(
        "python3 -c 'import ctypes; l = ctypes.CDLL(None, use_errno=True); l.syscall({}, 0, 0); print(ctypes.get_errno())'",
        libc::SYS_clone3
    );
    assert_eq!(bo.shell(&clone3).await.trim(), libc::ENOSYS.to_string());
    let quoted = DEBUGGER.replace('\'', "'\\''");
    assert_eq!(
        bo.shell(&format!("python3 -c '{quoted}' 2>&1")).await,
        "debugged\n"
    );
    bo.end().await;
}
