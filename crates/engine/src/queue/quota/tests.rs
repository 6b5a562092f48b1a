use proptest::prelude::*;

use super::*;

const GPU: Counted = Counted(0);

fn gpus(amount: u64) -> Amounts {
    Amounts::of([(GPU, amount)])
}

/// A site with sixteen GPUs, two projects with six guaranteed GPUs each, and one person in each project.
struct Lab {
    shares: Shares,
    quotas: Quotas,
    site: Account,
    projects: [Account; 2],
    people: [Account; 2],
}

fn lab() -> Lab {
    let mut shares = Shares::new(1, 0);
    let site = shares.site();
    let projects = [shares.add_project(1.0), shares.add_project(1.0)];
    let people = projects.map(|project| shares.person(project, 1));
    let mut quotas = Quotas::default();
    let allow = |limit, guaranteed| Some(Allowance { guaranteed, limit });
    quotas.allow(site, GPU, allow(Some(16), 0));
    quotas.allow(projects[0], GPU, allow(Some(12), 6));
    quotas.allow(projects[1], GPU, allow(None, 6));
    Lab {
        shares,
        quotas,
        site,
        projects,
        people,
    }
}

#[test]
fn beyond_the_guaranteed_part_it_is_borrowed_up_to_the_limit() {
    let mut lab = lab();
    let ada = lab.people[0];
    assert_eq!(lab.quotas.judge(&lab.shares, ada, &gpus(6)), Verdict::Own);
    lab.quotas.hold(&lab.shares, ada, &gpus(6));
    assert!(!lab.quotas.has_borrowed(&lab.shares, ada, &gpus(6)));
    assert_eq!(
        lab.quotas.judge(&lab.shares, ada, &gpus(6)),
        Verdict::Borrowed
    );
    lab.quotas.hold(&lab.shares, ada, &gpus(6));
    assert!(lab.quotas.has_borrowed(&lab.shares, ada, &gpus(6)));
    let over = Verdict::OverLimit {
        account: lab.projects[0],
        counted: GPU,
    };
    assert_eq!(lab.quotas.judge(&lab.shares, ada, &gpus(1)), over);
}

#[test]
fn what_is_guaranteed_is_ones_own_even_where_others_hold_everything() {
    let mut lab = lab();
    let [ada, bob] = lab.people;
    lab.quotas.hold(&lab.shares, bob, &gpus(16));
    let lent = Verdict::Lent {
        account: lab.site,
        counted: GPU,
    };
    assert_eq!(lab.quotas.judge(&lab.shares, ada, &gpus(6)), lent);
    let during = During { from: 0, to: 1 };
    assert_eq!(lab.quotas.short_of(lab.site, GPU, 6, during), 6);
    assert_eq!(
        lab.quotas.judge(&lab.shares, ada, &gpus(7)),
        Verdict::NothingIdle { counted: GPU }
    );
    lab.quotas.free(&lab.shares, bob, &gpus(16));
    assert_eq!(lab.quotas.used(lab.site, GPU), 0);
}

#[test]
fn what_nobody_rations_is_everybodys() {
    let mut shares = Shares::new(1, 0);
    let project = shares.add_project(1.0);
    let quotas = Quotas::default();
    assert_eq!(quotas.judge(&shares, project, &gpus(1000)), Verdict::Own);
    assert!(!quotas.has_borrowed(&shares, project, &gpus(1000)));
}

proptest! {
    /// If accounts hold only what the verdict allows, no limit is ever exceeded, and nothing leaks.
    #[test]
    fn limits_hold_and_nothing_is_left_over(
        wishes in prop::collection::vec((0..2_usize, 1..9_u64, any::<bool>()), 1..80),
    ) {
        let mut lab = lab();
        let mut held: Vec<(Account, Amounts)> = Vec::new();
        for (whose, amount, gives_back) in wishes {
            if gives_back && !held.is_empty() {
                let (account, amounts) = held.remove(amount as usize % held.len());
                lab.quotas.free(&lab.shares, account, &amounts);
            }
            let (account, more) = (lab.people[whose], gpus(amount));
            if lab.quotas.judge(&lab.shares, account, &more).is_allowed() {
                lab.quotas.hold(&lab.shares, account, &more);
                held.push((account, more));
            }
            let sum = |of: Account| -> u64 {
                held.iter().filter(|(one, _)| *one == of).map(|(_, amounts)| amounts.get(GPU)).sum()
            };
            for (person, project) in lab.people.iter().zip(lab.projects) {
                prop_assert_eq!(lab.quotas.used(project, GPU), sum(*person));
            }
            prop_assert!(lab.quotas.used(lab.projects[0], GPU) <= 12);
            prop_assert!(lab.quotas.used(lab.site, GPU) <= 16);
        }
    }
}
