//! `berth whoami`: who one is, where, and what one may do.

use berth_api::sign_in::Me;

use super::person;
use crate::context::Context;
use crate::details::Details;
use crate::remembered::Remembered;
use crate::show;

pub async fn run(context: &Context) -> anyhow::Result<()> {
    let me = context.client.me().await?;
    context.out.show(&me, |screen| {
        details(&me, context).render(screen) + &context.times.footnote()
    })
}

fn details(me: &Me, context: &Context) -> Details {
    let sites = me.memberships.iter();
    let asked = me.asked.iter();
    let scopes = me
        .scopes
        .iter()
        .flatten()
        .map(show::word)
        .collect::<Vec<_>>();
    // A token from the environment is not the remembered one, so nothing is known of its end.
    let remembered = Remembered::load().ok();
    let expires = remembered
        .as_ref()
        .and_then(|all| all.account(context.client.base_url()))
        .filter(|_| std::env::var_os("BERTH_TOKEN").is_none_or(|token| token.is_empty()))
        .and_then(|account| account.expires_at);
    person::details(&me.person, context)
        .line("Server", context.client.base_url())
        .maybe("Site at hand", context.site_if_any())
        .lines(
            "Sites",
            sites.map(|of| format!("{} ({})", of.site.name, show::word(of.role))),
        )
        .lines(
            "Asked to join",
            asked.map(|of| format!("{}, {}", of.site.name, context.times.moment(of.since))),
        )
        .line("May", scopes.join(", "))
        .maybe(
            "Sign-in ends",
            expires.map(|at| show::expires(at, &context.times)),
        )
}
