//! Signing in, oneself, tokens and people.

use berth_model::TokenId;
use reqwest::Method;
use reqwest::header::SET_COOKIE;
use secrecy::SecretString;

use super::{Client, Created, Credential, Error, call};
use crate::headers::{self, IdempotencyKey, IfMatch};
use crate::members::Settlement;
use crate::page::{DryRunQuery, Page, PageQuery};
use crate::paths;
use crate::people::{CreatedPerson, NewPerson, Person, PersonPatch, ResetLink};
use crate::reference::PersonReference;
use crate::sign_in::{Me, PasswordChange, PasswordReset, ProfilePatch, SignIn, SignedIn};
use crate::tokens::{CreatedToken, NewToken, Token};

impl Client {
    /// Signs in as a browser does. Pass the credential to [`Client::with`] to go on as that person.
    pub async fn sign_in(&self, sign_in: &SignIn) -> Result<(SignedIn, Credential), Error> {
        let call = self.call(Method::POST, paths::SIGN_IN).body(sign_in);
        let answer = call.answer().await?;
        let cookie = session_cookie(&answer)
            .ok_or_else(|| Error::unexpected("the server gave no session cookie"))?;
        let signed_in: SignedIn = call::read(answer, self.base_url()).await?;
        let credential = Credential::Session {
            cookie,
            csrf_token: signed_in.csrf_token.clone().into_inner(),
        };
        Ok((signed_in, credential))
    }

    pub async fn sign_out(&self) -> Result<(), Error> {
        self.call(Method::POST, paths::SIGN_OUT).done().await
    }

    pub async fn me(&self) -> Result<Me, Error> {
        self.call(Method::GET, paths::ME).json().await
    }

    pub async fn change_profile(
        &self,
        version: IfMatch,
        patch: &ProfilePatch,
    ) -> Result<Person, Error> {
        let call = self.call(Method::PATCH, paths::ME);
        call.if_match(version).body(patch).json().await
    }

    pub async fn change_password(&self, change: &PasswordChange) -> Result<(), Error> {
        let call = self.call(Method::POST, paths::MY_PASSWORD);
        call.body(change).done().await
    }

    /// Sets a password with the token of a one-time link; nobody needs to be signed in.
    pub async fn reset_password(&self, reset: &PasswordReset) -> Result<(), Error> {
        let call = self.call(Method::POST, paths::PASSWORD_RESET);
        call.body(reset).done().await
    }

    pub async fn my_tokens(&self, query: &PageQuery) -> Result<Page<Token>, Error> {
        let call = self.call(Method::GET, paths::MY_TOKENS);
        call.query(query).json().await
    }

    pub async fn create_token(
        &self,
        new: &NewToken,
        key: Option<&IdempotencyKey>,
    ) -> Result<Created<CreatedToken>, Error> {
        let call = self.call(Method::POST, paths::MY_TOKENS);
        call.key(key).body(new).created().await
    }

    pub async fn revoke_my_token(&self, token: TokenId) -> Result<(), Error> {
        let path = paths::my_token(&token);
        self.call(Method::DELETE, &path).done().await
    }

    pub async fn tokens_of(
        &self,
        person: &PersonReference,
        query: &PageQuery,
    ) -> Result<Page<Token>, Error> {
        let call = self.call(Method::GET, &paths::person_tokens(person));
        call.query(query).json().await
    }

    pub async fn revoke_token_of(
        &self,
        person: &PersonReference,
        token: TokenId,
    ) -> Result<(), Error> {
        let path = paths::person_token(person, &token);
        self.call(Method::DELETE, &path).done().await
    }

    pub async fn people(&self, query: &PageQuery) -> Result<Page<Person>, Error> {
        let call = self.call(Method::GET, paths::PEOPLE);
        call.query(query).json().await
    }

    pub async fn create_person(
        &self,
        new: &NewPerson,
        key: Option<&IdempotencyKey>,
    ) -> Result<Created<CreatedPerson>, Error> {
        let call = self.call(Method::POST, paths::PEOPLE);
        call.key(key).body(new).created().await
    }

    pub async fn person(&self, person: &PersonReference) -> Result<Person, Error> {
        let path = paths::person(person);
        self.call(Method::GET, &path).json().await
    }

    pub async fn change_person(
        &self,
        person: &PersonReference,
        version: IfMatch,
        patch: &PersonPatch,
    ) -> Result<Person, Error> {
        let call = self.call(Method::PATCH, &paths::person(person));
        call.if_match(version).body(patch).json().await
    }

    pub async fn remove_person(&self, person: &PersonReference) -> Result<Settlement, Error> {
        let path = paths::person(person);
        self.call(Method::DELETE, &path).json().await
    }

    /// What removing the person would do.
    pub async fn preview_remove_person(
        &self,
        person: &PersonReference,
    ) -> Result<Settlement, Error> {
        let call = self.call(Method::DELETE, &paths::person(person));
        call.query(&DryRunQuery { dry_run: true }).json().await
    }

    pub async fn reset_link(&self, person: &PersonReference) -> Result<ResetLink, Error> {
        let path = paths::person_reset_link(person);
        self.call(Method::POST, &path).json().await
    }
}

fn session_cookie(answer: &reqwest::Response) -> Option<SecretString> {
    answer
        .headers()
        .get_all(SET_COOKIE)
        .iter()
        .filter_map(|cookie| cookie.to_str().ok()?.split(';').next())
        .find(|pair| {
            let name = pair.split('=').next().unwrap_or_default();
            [headers::SESSION_COOKIE, headers::HOST_SESSION_COOKIE].contains(&name)
        })
        .map(|pair| pair.to_owned().into())
}
