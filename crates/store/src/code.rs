//! Codes for PostgreSQL's side of the tree: each resource is an IPv6 network that contains its children's.
//!
//! 128 bits, of which the first 24 number the site. Every step down appends the child's branch number as a prefix-free
//! code (Exp-Golomb of order 3): the first eight children of a node take 4 bits each, the next sixteen 6, and the
//! ten-thousandth 24. So a rack of servers of GPUs of slices uses some 60 bits, and a chain may be 26 deep.

use std::net::Ipv6Addr;

use crate::error::{Error, Result};

const SITE_BITS: u8 = 24;
const ORDER: u32 = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Code {
    bits: u128,
    len: u8,
}

impl Code {
    pub fn of_site(number: i64) -> Result<Self> {
        match u128::try_from(number) {
            Ok(number) if number < 1 << SITE_BITS => Ok(Code {
                bits: number << (128 - SITE_BITS),
                len: SITE_BITS,
            }),
            _ => Err(Error::TooDeep),
        }
    }

    /// The code of the child with this branch number.
    pub fn child(self, branch: i64) -> Result<Self> {
        let branch = u64::try_from(branch).map_err(|_| Error::TooDeep)?;
        // Exp-Golomb: the value, shifted past zero, in binary, preceded by one zero for each digit beyond the order's.
        let value = branch + (1 << ORDER);
        let digits = 64 - value.leading_zeros();
        self.append(u128::from(value), digits + (digits - 1 - ORDER))
    }

    /// The code at the same position below `to` that this code has below `from`.
    pub fn rebased(self, from: Code, to: Code) -> Result<Self> {
        let below = self.len - from.len;
        if below == 0 {
            return Ok(to);
        }
        let tail = self.bits << from.len >> (128 - u32::from(below));
        to.append(tail, u32::from(below))
    }

    fn append(self, value: u128, bits: u32) -> Result<Self> {
        let len = u32::from(self.len) + bits;
        if len > 128 {
            return Err(Error::TooDeep);
        }
        Ok(Code {
            bits: self.bits | value << (128 - len),
            len: len as u8,
        })
    }
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", Ipv6Addr::from_bits(self.bits), self.len)
    }
}

impl std::str::FromStr for Code {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        // PostgreSQL omits the length when it is all 128 bits.
        let (address, len) = text.split_once('/').unwrap_or((text, "128"));
        let address: Ipv6Addr = address
            .parse()
            .map_err(|_| format!("`{text}` is not a tree code"))?;
        let len = len
            .parse()
            .map_err(|_| format!("`{text}` is not a tree code"))?;
        Ok(Code {
            bits: address.to_bits(),
            len,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn contains(a: Code, b: Code) -> bool {
        a.len <= b.len && (a.len == 0 || a.bits >> (128 - a.len) == b.bits >> (128 - a.len))
    }

    #[test]
    fn children_lie_inside_their_parent_and_apart_from_each_other() {
        let parent = Code::of_site(5).unwrap().child(3).unwrap();
        let children: Vec<Code> = (0..3000)
            .map(|branch| parent.child(branch).unwrap())
            .collect();
        for (i, a) in children.iter().enumerate() {
            assert!(contains(parent, *a) && *a != parent);
            for b in &children[i + 1..] {
                assert!(!contains(*a, *b) && !contains(*b, *a), "{a} {b}");
            }
        }
    }

    #[test]
    fn room_for_real_trees() {
        let site = Code::of_site((1 << 24) - 1).unwrap();
        let mut code = site;
        for branch in [9, 99, 9_999, 15, 6] {
            code = code.child(branch).unwrap();
        }
        let mut depth = 0;
        let mut code = site;
        while let Ok(next) = code.child(0) {
            (code, depth) = (next, depth + 1);
        }
        assert_eq!(depth, 26);
        assert!(site.child(1 << 40).is_ok());
        assert!(Code::of_site(1 << 24).is_err());
    }

    proptest! {
        #[test]
        fn writing_reads_back_and_rebasing_keeps_the_place(path in prop::collection::vec(0i64..5000, 0..4), to in 0i64..5000) {
            let from = Code::of_site(1).unwrap().child(7).unwrap();
            let target = Code::of_site(1).unwrap().child(to).unwrap();
            let (mut here, mut there) = (from, target);
            for branch in path {
                here = here.child(branch).unwrap();
                there = there.child(branch).unwrap();
            }
            prop_assert_eq!(here.to_string().parse::<Code>(), Ok(here));
            prop_assert_eq!(here.rebased(from, target).unwrap(), there);
        }
    }
}
