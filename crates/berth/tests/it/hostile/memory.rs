//! The memory of a process, as the kernel counts it.

/// What a process has in memory, and the most that it has had.
#[derive(Debug, Clone, Copy)]
pub struct Memory {
    pub now_mib: u64,
    pub peak_mib: u64,
}

impl Memory {
    pub fn of(process: u32) -> Memory {
        let status = std::fs::read_to_string(format!("/proc/{process}/status"));
        let status = status.expect("a process");
        Memory {
            now_mib: mib(&status, "VmRSS:"),
            peak_mib: mib(&status, "VmHWM:"),
        }
    }
}

fn mib(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kib = line.and_then(|rest| rest.trim().strip_suffix(" kB"));
    kib.and_then(|kib| kib.parse::<u64>().ok())
        .map(|kib| kib / 1024)
        .expect("a size in kB")
}
