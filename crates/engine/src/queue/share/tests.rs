use std::cmp::Ordering;

use proptest::prelude::*;

use super::*;

const HOUR: Micros = 3_600_000_000;
const WEEK: Micros = 7 * 24 * HOUR;

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-6 * a.abs().max(b.abs()).max(1.0)
}

/// The account with the lower load first; of equal ones the older.
fn compare(shares: &Shares, a: Account, b: Account) -> Ordering {
    shares.load(a).total_cmp(&shares.load(b)).then(a.cmp(&b))
}

#[test]
fn who_used_less_for_their_weight_is_first() {
    let mut shares = Shares::new(WEEK, 0);
    let (heavy, light) = (shares.add_project(2.0), shares.add_project(1.0));
    assert_eq!(
        compare(&shares, heavy, light),
        Ordering::Less,
        "equals by age"
    );
    shares.charge(heavy, Mode::Batch, 0, HOUR, 1.0);
    assert_eq!(compare(&shares, heavy, light), Ordering::Greater);
    shares.charge(light, Mode::Reserved, 0, HOUR, 1.0);
    assert_eq!(compare(&shares, heavy, light), Ordering::Less);
}

#[test]
fn what_was_used_a_half_life_ago_counts_half() {
    let mut shares = Shares::new(WEEK, 0);
    let (old, new) = (shares.add_project(1.0), shares.add_project(1.0));
    shares.charge(old, Mode::Batch, 0, HOUR, 2.0);
    shares.charge(new, Mode::Batch, WEEK, WEEK + HOUR, 1.0);
    assert!(close(shares.load(old), shares.load(new)));
}

#[test]
fn what_has_begun_counts_until_it_is_over() {
    let mut shares = Shares::new(WEEK, 0);
    let (a, b) = (shares.add_project(1.0), shares.add_project(1.0));
    let begun = shares.commit(a, 0, 8 * HOUR, 1.0);
    assert_eq!(compare(&shares, a, b), Ordering::Greater);
    shares.release(begun);
    shares.charge(a, Mode::Batch, 0, HOUR, 1.0);
    shares.charge(b, Mode::Batch, 0, 2 * HOUR, 1.0);
    assert_eq!(
        compare(&shares, a, b),
        Ordering::Less,
        "it took an hour, not eight"
    );
}

#[test]
fn one_is_told_how_much_of_ones_share_one_has() {
    let mut shares = Shares::new(WEEK, 0);
    let project = shares.add_project(3.0);
    let other = shares.add_project(1.0);
    let (ada, bob) = (shares.person(project, 1), shares.person(project, 2));
    shares.charge(ada, Mode::Reserved, 0, HOUR, 1.0);
    shares.charge(ada, Mode::Batch, 0, HOUR, 2.0);
    shares.charge(other, Mode::Batch, 0, HOUR, 1.0);
    let standing = shares.standing(ada, |_| true);
    assert!(
        close(standing.due, 0.75 / 2.0),
        "three quarters, shared by two"
    );
    assert!(close(standing.used, 0.75));
    assert!(close(standing.of_share, 2.0));
    assert!(close(standing.modes[Mode::Reserved as usize], 1.0 / 3.0));
    let alone = shares.standing(ada, |account| account != bob);
    assert!(
        close(alone.due, 0.75),
        "who asks for nothing leaves it to the others"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// A change of the ledger's units changes no result.
    #[test]
    fn a_ledger_that_runs_for_years_is_the_sum_of_what_decayed(
        charges in prop::collection::vec((0..3_usize, 0..2000_i64, 1..100_i64, 1..5_u32), 1..40),
    ) {
        let mut charges = charges;
        charges.sort_by_key(|(_, from, length, _)| from + length);
        let mut shares = Shares::new(HOUR, 0);
        let accounts: Vec<Account> = (0..3).map(|_| shares.add_project(1.0)).collect();
        for (whose, from, length, rate) in &charges {
            let (from, to) = (from * HOUR, (from + length) * HOUR);
            shares.charge(accounts[*whose], Mode::Batch, from, to, f64::from(*rate));
        }
        // By the definition, in hours: the use of each moment, halved for every hour since.
        let end = charges.iter().map(|(_, from, length, _)| (from + length) as f64).fold(0.0, f64::max);
        let decayed = |whose: usize| -> f64 {
            let own = charges.iter().filter(|charge| charge.0 == whose);
            let one = |(_, from, length, rate): &(usize, i64, i64, u32)| {
                let (from, to) = (*from as f64, (from + length) as f64);
                let worth = (to - end).exp2() - (from - end).exp2();
                f64::from(*rate) * worth / std::f64::consts::LN_2
            };
            own.map(one).sum()
        };
        let all: f64 = (0..3).map(decayed).sum();
        for (whose, account) in accounts.iter().enumerate() {
            let standing = shares.standing(*account, |_| true);
            prop_assert!((standing.used - decayed(whose) / all).abs() < 1e-6);
        }
    }
}
