//! `berth token`: what programs sign in with.

use berth_api::client::Client;
use berth_api::reference::PersonReference;
use berth_api::tokens::{NewToken, Token as TokenObject};
use berth_model::person::Scope;
use berth_model::{Text, TokenId};
use clap::Subcommand;

use super::Once;
use crate::arguments;
use crate::context::Context;
use crate::handle::{Handle, ending};
use crate::pages::whole;
use crate::show;
use crate::table::{Column, Table};

#[derive(Debug, Subcommand)]
pub enum Token {
    /// List your tokens
    List {
        /// Those of another person (global admins)
        #[arg(long, value_name = "LOGIN")]
        person: Option<PersonReference>,
    },
    /// Make a token; its secret is shown this once
    Create {
        /// What it is for, so that you know later which one to revoke
        label: Text,
        /// What it may do, at most: read, book or manage; repeat it for several
        #[arg(long = "scope", value_name = "SCOPE", required = true, value_parser = arguments::scope)]
        scopes: Vec<Scope>,
        /// When it stops working, as in `2027-01-01` or `+90d`
        #[arg(long, value_name = "WHEN", default_value = "+90d")]
        expires: String,
        #[command(flatten)]
        once: Once,
    },
    /// Make a token stop working at once
    Revoke {
        /// The token, by its id or the end of it
        token: Handle<TokenId>,
        /// It belongs to another person (global admins)
        #[arg(long, value_name = "LOGIN")]
        person: Option<PersonReference>,
    },
}

pub async fn run(command: Token, context: &Context) -> anyhow::Result<()> {
    let (client, out) = (&context.client, &context.out);
    match command {
        Token::List { person } => {
            let tokens = tokens(client, person.as_ref()).await?;
            out.show(&tokens, |screen| {
                context.times.render(&list(&tokens.items, context), screen)
            })
        }
        Token::Create {
            label,
            scopes,
            expires,
            once,
        } => {
            let new = NewToken {
                label,
                scopes: scopes.try_into()?,
                expires_at: context.times.read_moment(&expires)?,
            };
            let made = client.create_token(&new, once.key()).await?.object;
            let Some(secret) = &made.secret else {
                let said =
                    "This key made the token before; its secret was shown then, and is not kept.\n";
                return out.show(&made, |_| said.to_owned());
            };
            out.show(&made, |_| format!("{}\n", secret.expose()))?;
            out.note(format!(
                "Made the token {}, good until {} {}. It is shown this once: keep it in a safe place.",
                made.token.label,
                context.times.moment(made.token.expires_at),
                context.times.zone_name()
            ));
            Ok(())
        }
        Token::Revoke { token, person } => {
            let id = match token {
                Handle::Id(id) => id,
                Handle::Ending(_) => {
                    let all = tokens(client, person.as_ref()).await?.items;
                    token.pick_one(all, |token| token.id, "token")?.id
                }
            };
            match &person {
                Some(person) => client.revoke_token_of(person, id).await?,
                None => client.revoke_my_token(id).await?,
            }
            out.say(&format!("Revoked the token {id}.\n"))
        }
    }
}

async fn tokens(
    client: &Client,
    person: Option<&PersonReference>,
) -> Result<berth_api::Page<TokenObject>, berth_api::client::Error> {
    whole(async |query| match person {
        Some(person) => client.tokens_of(person, &query).await,
        None => client.my_tokens(&query).await,
    })
    .await
}

fn list(tokens: &[TokenObject], context: &Context) -> Table<6> {
    let columns = [
        Column::left("ID"),
        Column::left("LABEL").shrinks(1),
        Column::left("MAY"),
        Column::left("LAST USED"),
        Column::left("EXPIRES"),
        Column::left("STATE"),
    ];
    let now = context.times.now.timestamp();
    let mut table = Table::new(
        columns,
        "There are no tokens. `berth token create LABEL --scope read` makes one.",
    );
    for token in tokens {
        let scopes: Vec<String> = token.scopes.iter().map(show::word).collect();
        let state = match token.revoked_at {
            Some(_) => "revoked",
            None if token.expires_at <= now => "expired",
            None => "good",
        };
        table.row([
            ending(token.id),
            token.label.to_string(),
            scopes.join(", "),
            token
                .last_used_at
                .map_or_else(|| "never".to_owned(), |at| context.times.relative(at)),
            context.times.moment_and_distance(token.expires_at),
            state.to_owned(),
        ]);
    }
    table
}
