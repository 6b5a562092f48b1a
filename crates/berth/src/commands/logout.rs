//! `berth logout`: forgets the sign-in, and makes its token useless to whoever may have copied it.

use berth_api::Credential;
use berth_api::client::Client;

use crate::cli::Options;
use crate::exit::Exit;
use crate::failure::{Failure, usage};
use crate::output::{Output, complain};
use crate::remembered::Remembered;

pub async fn run(options: &Options) -> anyhow::Result<()> {
    let path = Remembered::path()?;
    let mut all = Remembered::read(&path)?;
    let server = options.server.clone().or_else(|| all.server.clone());
    let server = server.ok_or_else(|| usage("you are not signed in anywhere"))?;
    let client = Client::new(&server, Credential::None)?;
    let account = all.servers.remove(client.base_url());
    let account = account
        .filter(|account| account.token.is_some())
        .ok_or_else(|| {
            Failure::new(
                Exit::SignIn,
                format!("you are not signed in to {}", client.base_url()),
            )
        })?;
    if let (Some(id), Some(token)) = (account.token_id, account.token) {
        let client = match &account.certificates {
            Some(file) => {
                Client::trusting(&server, Credential::Token(token), &std::fs::read(file)?)?
            }
            None => client.with(Credential::Token(token)),
        };
        if let Err(error) = client.revoke_my_token(id).await {
            // It is forgotten here all the same; a token that expired or was revoked cannot be revoked again.
            if Exit::of_client(&error) != Exit::SignIn {
                complain(&format!(
                    "warning: the token {id} could not be revoked and works until it expires: {error}"
                ));
            }
        }
    }
    if all.server.as_deref() == Some(client.base_url()) {
        all.server = all.servers.keys().next().cloned();
    }
    all.write(&path)?;
    Output::new(options.output).say(&format!("Signed out of {}.\n", client.base_url()))
}
