//! Answers to booking forms, as they are typed.
//!
//! The form says what each answer is: `5` may be a number or a text. A secret is never taken from the command line,
//! where every user of the machine could read it, but from the standard input or by asking.

use std::collections::BTreeMap;
use std::path::PathBuf;

use berth_api::client::Client;
use berth_api::reference::{Reference, SiteReference};
use berth_api::reservations::{AnswersByType, FormAnswers};
use berth_model::Name;
use berth_model::parameter::{Parameter, ParameterKind};
use clap::Args;
use secrecy::ExposeSecret;
use serde_json::Value;

use crate::arguments::{Answer, Question};
use crate::commands::types::read_text;
use crate::failure::usage;
use crate::prompt;

#[derive(Debug, Args)]
pub struct AnswerArguments {
    /// Answer a question of a type's booking form; repeat it for several
    #[arg(long = "param", value_name = "TYPE.KEY=VALUE")]
    answers: Vec<Answer>,
    /// Ask for this answer, a secret, or take it as a line from the standard input
    #[arg(long = "param-stdin", value_name = "TYPE.KEY")]
    secrets: Vec<Question>,
    /// A file with answers by type and key, JSON or TOML (`-` for the standard input)
    #[arg(long = "params", value_name = "FILE", conflicts_with = "secrets")]
    file: Option<PathBuf>,
}

impl AnswerArguments {
    pub fn is_empty(&self) -> bool {
        self.answers.is_empty() && self.secrets.is_empty() && self.file.is_none()
    }

    /// The answers as the API takes them. Asks the server for the forms of the types that are named, and only those.
    pub async fn read(&self, client: &Client, site: &SiteReference) -> anyhow::Result<FormAnswers> {
        let mut all = match &self.file {
            Some(file) => parse_file(&read_text(file)?)
                .map_err(|why| usage(format!("{}: {why}", file.display())))?,
            None => AnswersByType::new(),
        };
        let mut forms: BTreeMap<Name, Vec<Parameter>> = BTreeMap::new();
        let asked = self.answers.iter().map(|answer| &answer.question);
        for question in asked.chain(&self.secrets) {
            if !forms.contains_key(&question.type_name) {
                let reference = Reference::Name(question.type_name.clone());
                let kind = client.resource_type(site, &reference).await?;
                forms.insert(question.type_name.clone(), kind.parameters);
            }
        }
        for answer in &self.answers {
            let kind = kind_of(&answer.question, &forms)?;
            put(&mut all, &answer.question, value(answer, kind)?);
        }
        for question in &self.secrets {
            kind_of(question, &forms)?;
            let Question { type_name, key } = question;
            let secret = if prompt::can_ask() {
                prompt::secret(&format!("{type_name}.{key}"))?
            } else {
                prompt::secret_from_stdin()?
            };
            put(&mut all, question, secret.expose_secret().into());
        }
        all.try_into()
            .map_err(|error: berth_api::reservations::FormAnswersError| usage(error.to_string()))
    }
}

fn put(all: &mut AnswersByType, question: &Question, value: Value) {
    let of_type = all.entry(question.type_name.clone()).or_default();
    of_type.insert(question.key.to_string(), value);
}

fn kind_of<'a>(
    question: &Question,
    forms: &'a BTreeMap<Name, Vec<Parameter>>,
) -> anyhow::Result<&'a ParameterKind> {
    let Question { type_name, key } = question;
    let form = forms.get(type_name).map(Vec::as_slice).unwrap_or_default();
    let found = form.iter().find(|parameter| parameter.key == *key);
    found.map(|parameter| &parameter.kind).ok_or_else(|| {
        let known: Vec<&str> = form
            .iter()
            .map(|parameter| parameter.key.as_str())
            .collect();
        usage(match known.as_slice() {
            [] => format!("a booking of `{type_name}` asks for no parameters, so not for `{key}`"),
            known => format!(
                "a booking of `{type_name}` does not ask for `{key}`, but for {}",
                known.join(", ")
            ),
        })
    })
}

/// The answer as the kind of the question wants it. Whether it is within bounds is for the server to say.
fn value(answer: &Answer, kind: &ParameterKind) -> anyhow::Result<Value> {
    let text = answer.value.as_str();
    let Question { type_name, key } = &answer.question;
    let refuse = |wanted: &str| {
        usage(format!(
            "`{type_name}.{key}` must be {wanted}, and is `{text}`"
        ))
    };
    match kind {
        ParameterKind::Text { .. } | ParameterKind::Choice { .. } | ParameterKind::Date { .. } => {
            Ok(text.into())
        }
        ParameterKind::Number { .. } => {
            let whole = text.parse::<i64>().ok().map(Value::from);
            let number = || {
                text.parse::<f64>()
                    .ok()
                    .filter(|n| n.is_finite())
                    .map(Value::from)
            };
            whole.or_else(number).ok_or_else(|| refuse("a number"))
        }
        ParameterKind::Boolean {} => match text {
            "true" | "yes" => Ok(true.into()),
            "false" | "no" => Ok(false.into()),
            _ => Err(refuse("true or false")),
        },
        ParameterKind::Secret {} => Err(usage(format!(
            "`{type_name}.{key}` is a secret, and arguments can be seen by others on this machine; \
             give it with --param-stdin {type_name}.{key}"
        ))),
    }
}

fn parse_file(text: &str) -> Result<AnswersByType, String> {
    if text.trim_start().starts_with('{') {
        serde_json::from_str(text).map_err(|error| error.to_string())
    } else {
        // Only the message: the excerpt that goes with it could show a secret.
        toml::from_str(text).map_err(|error| error.message().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(text: &str, kind: ParameterKind) -> Result<Value, String> {
        let answer: Answer = text.parse().unwrap();
        value(&answer, &kind).map_err(|error| error.to_string())
    }

    #[test]
    fn the_form_says_what_an_answer_is() {
        let number = ParameterKind::Number {
            min: None,
            max: None,
            integer: false,
        };
        let text = ParameterKind::Text { max_length: None };
        assert_eq!(read("gpu.n=5", number.clone()), Ok(json!(5)));
        assert_eq!(read("gpu.n=2.5", number.clone()), Ok(json!(2.5)));
        assert_eq!(read("gpu.n=5", text), Ok(json!("5")));
        assert_eq!(
            read("gpu.b=yes", ParameterKind::Boolean {}),
            Ok(json!(true))
        );
        assert!(read("gpu.n=many", number).unwrap_err().contains("a number"));
        let said = read("gpu.s=canary", ParameterKind::Secret {}).unwrap_err();
        assert!(
            said.contains("--param-stdin gpu.s") && !said.contains("canary"),
            "{said}"
        );
    }

    #[test]
    fn a_question_that_nobody_asks_is_refused_with_those_that_are() {
        let parameter: Parameter =
            serde_json::from_value(json!({"key": "image", "label": "I", "kind": {"text": {}}}))
                .unwrap();
        let forms = BTreeMap::from([("gpu".parse().unwrap(), vec![parameter])]);
        let said = kind_of(&"gpu.imgae".parse().unwrap(), &forms)
            .unwrap_err()
            .to_string();
        assert!(said.contains("but for image"), "{said}");
    }

    #[test]
    fn answers_come_from_a_file_too() {
        let json = parse_file(r#"{"gpu": {"image": "ubuntu", "n": 2}}"#).unwrap();
        assert_eq!(
            json,
            parse_file("[gpu]\nimage = \"ubuntu\"\nn = 2\n").unwrap()
        );
        let said = parse_file("[gpu]\nkey = \"canary").unwrap_err();
        assert!(!said.contains("canary"), "{said}");
    }
}
