//! The states of jobs and nodes, with their short and long names.

use crate::UsageError;
use crate::argv::Given;

macro_rules! job_states {
    ($($state:ident $short:literal $long:literal,)*) => {
        /// In the order in which Slurm sorts them.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum JobState { $($state,)* }

        impl JobState {
            pub const ALL: &[Self] = &[$(Self::$state,)*];

            /// As in the column ST.
            pub fn short(self) -> &'static str {
                match self { $(Self::$state => $short,)* }
            }

            /// As in the column STATE.
            pub fn long(self) -> &'static str {
                match self { $(Self::$state => $long,)* }
            }
        }
    };
}

job_states! {
    Pending "PD" "PENDING",
    Running "R" "RUNNING",
    Suspended "S" "SUSPENDED",
    Completed "CD" "COMPLETED",
    Cancelled "CA" "CANCELLED",
    Failed "F" "FAILED",
    Timeout "TO" "TIMEOUT",
    NodeFail "NF" "NODE_FAIL",
    Preempted "PR" "PREEMPTED",
    BootFail "BF" "BOOT_FAIL",
    Deadline "DL" "DEADLINE",
    OutOfMemory "OOM" "OUT_OF_MEMORY",
    Completing "CG" "COMPLETING",
    Configuring "CF" "CONFIGURING",
    Resizing "RS" "RESIZING",
    ReservationDeleted "RD" "RESV_DEL_HOLD",
    Requeued "RQ" "REQUEUED",
    RequeueFederated "RF" "REQUEUE_FED",
    RequeueHold "RH" "REQUEUE_HOLD",
    Revoked "RV" "REVOKED",
    Signaling "SI" "SIGNALING",
    SpecialExit "SE" "SPECIAL_EXIT",
    StageOut "SO" "STAGE_OUT",
    Stopped "ST" "STOPPED",
}

impl JobState {
    /// By either name, in upper or lower case.
    pub fn named(text: &str) -> Option<Self> {
        let all = Self::ALL.iter().copied();
        all.into_iter().find(|state| {
            text.eq_ignore_ascii_case(state.short()) || text.eq_ignore_ascii_case(state.long())
        })
    }

    /// It waits, or runs, or is about to leave.
    pub fn is_live(self) -> bool {
        matches!(
            self,
            Self::Pending
                | Self::Running
                | Self::Suspended
                | Self::Completing
                | Self::Configuring
                | Self::Resizing
                | Self::ReservationDeleted
                | Self::Requeued
                | Self::RequeueHold
                | Self::Signaling
                | Self::SpecialExit
                | Self::StageOut
                | Self::Stopped
        )
    }

    /// It ended badly, for a reason worth printing where its nodes would be.
    pub(crate) fn is_failure(self) -> bool {
        matches!(
            self,
            Self::Failed | Self::Timeout | Self::NodeFail | Self::OutOfMemory | Self::Deadline
        )
    }
}

/// The states of a list such as `pd,RUNNING`; none for `all`.
pub(crate) fn job_states<K>(option: &Given<K>) -> Result<Option<Vec<JobState>>, UsageError> {
    let words = option.list();
    if words.iter().any(|word| word.eq_ignore_ascii_case("all")) {
        return Ok(None);
    }
    let states = words.iter().map(|word| {
        JobState::named(word).ok_or_else(|| {
            let known: Vec<_> = JobState::ALL.iter().map(|state| state.long()).collect();
            let known = known.join(",");
            option.invalid(format!("{word} is no state; they are {known}"))
        })
    });
    Ok(Some(states.collect::<Result<_, _>>()?))
}

macro_rules! node_states {
    ($($state:ident $order:literal $short:literal $long:literal,)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum NodeState { $($state,)* }

        impl NodeState {
            pub const ALL: &[Self] = &[$(Self::$state,)*];

            pub fn short(self) -> &'static str {
                match self { $(Self::$state => $short,)* }
            }

            pub fn long(self) -> &'static str {
                match self { $(Self::$state => $long,)* }
            }

            /// `sinfo` lists larger ones first.
            pub(crate) fn order(self) -> u32 {
                match self { $(Self::$state => $order,)* }
            }
        }
    };
}

node_states! {
    Unknown 0 "unk" "unknown",
    Down 1 "down" "down",
    Idle 2 "idle" "idle",
    Allocated 3 "alloc" "allocated",
    Mixed 5 "mix" "mixed",
    Reserved 0x22 "resv" "reserved",
    Drained 0x202 "drain" "drained",
    Draining 0x203 "drng" "draining",
    Completing 0x402 "comp" "completing",
    Fail 0x2002 "fail" "fail",
    Failing 0x2003 "failg" "failing",
    PoweringUp 0x4002 "pow_up" "powering_up",
    Maintenance 0x8002 "maint" "maint",
    Planned 0x1000_0002 "plnd" "planned",
}

impl NodeState {
    /// Jobs can be given to it, or it has some.
    pub fn is_usable(self) -> bool {
        !matches!(
            self,
            Self::Down
                | Self::Drained
                | Self::Draining
                | Self::Fail
                | Self::Failing
                | Self::Maintenance
        )
    }

    /// Something of it is in use.
    pub fn is_busy(self) -> bool {
        matches!(
            self,
            Self::Allocated | Self::Mixed | Self::Draining | Self::Failing | Self::Completing
        )
    }

    /// Whether the word of a filter means this state. `drain` means both those that drain and those that have drained.
    pub(crate) fn is_meant_by(self, word: &str) -> bool {
        match word {
            // A node that has drained is idle, though nothing will be given to it.
            "idle" => matches!(self, Self::Idle | Self::Drained),
            "drain" => matches!(self, Self::Drained | Self::Draining),
            "fail" => matches!(self, Self::Fail | Self::Failing),
            "alloc" => matches!(self, Self::Allocated),
            _ => word == self.short() || word == self.long(),
        }
    }

    pub(crate) fn is_known(word: &str) -> bool {
        let mut all = Self::ALL.iter();
        all.any(|state| state.is_meant_by(word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_goes_by_its_short_and_its_long_name() {
        assert_eq!(JobState::named("pd"), Some(JobState::Pending));
        assert_eq!(
            JobState::named("Out_Of_Memory"),
            Some(JobState::OutOfMemory)
        );
        assert_eq!(JobState::named("foo"), None);
        for state in JobState::ALL {
            assert_eq!(JobState::named(state.short()), Some(*state));
            assert_eq!(JobState::named(state.long()), Some(*state));
        }
    }
}
