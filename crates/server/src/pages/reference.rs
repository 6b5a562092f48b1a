//! The API's reference, from its OpenAPI document.

use std::fmt::Write;

use berth_api::paths;
use serde_json::Value;

use super::PROBLEMS;
use super::html::escape;
use super::markdown::{inline, to_html};
use super::schema;
use super::shell::Shell;

pub fn page(shell: &Shell, document: &Value) -> String {
    let groups = groups(document);
    let mut content = "<h1>The API</h1>\n".to_owned();
    content += &introduction(shell, document);
    content += &contents(&groups);
    for group in &groups {
        put(
            &mut content,
            format_args!(
                "<section>\n<h2 id=\"tag-{0}\">{0}</h2>\n<p>{1}</p>\n",
                escape(group.name),
                inline(group.about)
            ),
        );
        for operation in &group.operations {
            content += &operation.to_html(shell);
        }
        content += "</section>\n";
    }
    content += &schemas(document);
    shell.page("API · Berth", content)
}

struct Group<'a> {
    name: &'a str,
    about: &'a str,
    operations: Vec<Operation<'a>>,
}

struct Operation<'a> {
    method: String,
    path: &'a str,
    told: &'a Value,
}

/// The operations of each tag, in the order in which the document lists the tags.
fn groups(document: &Value) -> Vec<Group<'_>> {
    let all: Vec<Operation> = document["paths"]
        .as_object()
        .into_iter()
        .flatten()
        .flat_map(|(path, item)| operations(path, item))
        .collect();
    let mut all: Vec<Option<Operation>> = all.into_iter().map(Some).collect();
    let tags = document["tags"].as_array().into_iter().flatten();
    tags.map(|tag| {
        let name = text(&tag["name"]);
        let of_this = |operation: &mut Option<Operation<'_>>| {
            operation
                .as_ref()
                .is_some_and(|o| text(&o.told["tags"][0]) == name)
        };
        let operations = all
            .iter_mut()
            .filter_map(|o| if of_this(o) { o.take() } else { None });
        Group {
            name,
            about: text(&tag["description"]),
            operations: operations.collect(),
        }
    })
    .collect()
}

fn operations<'a>(path: &'a str, item: &'a Value) -> Vec<Operation<'a>> {
    ["get", "post", "put", "patch", "delete"]
        .into_iter()
        .filter_map(|method| {
            let told = item.get(method)?;
            let method = method.to_uppercase();
            Some(Operation { method, path, told })
        })
        .collect()
}

fn introduction(shell: &Shell, document: &Value) -> String {
    let address = escape(format!("{}{}", shell.example, paths::API));
    let mut html = to_html(text(&document["info"]["description"]), |_| None);
    put(
        &mut html,
        format_args!(
            "<p>Paths are relative to <code>{address}</code>. Sign in with an API token in the header \
             <code>Authorization: Bearer …</code>, or as a browser does, with the session's cookie.</p>\n"
        ),
    );
    html
}

fn contents(groups: &[Group<'_>]) -> String {
    let mut html = "<ul class=\"contents\">\n".to_owned();
    for group in groups {
        put(
            &mut html,
            format_args!(
                "<li><a href=\"#tag-{0}\">{0}</a> <span>{1}</span></li>\n",
                escape(group.name),
                group.operations.len(),
            ),
        );
    }
    html + "<li><a href=\"#schemas\">schemas</a></li>\n</ul>\n"
}

impl Operation<'_> {
    fn to_html(&self, shell: &Shell) -> String {
        let method = &self.method;
        let mut html = format!(
            "<details class=\"route\"><summary><span class=\"method {method}\">{method}</span>\
             <code>{}</code> <span class=\"says\">{}</span></summary>\n<div id=\"{}\">\n",
            escape(self.path),
            inline(text(&self.told["summary"])),
            escape(text(&self.told["operationId"])),
        );
        let description = text(&self.told["description"]);
        html += &to_html(description, |_| None);
        if let Some(parameters) = self.told["parameters"].as_array() {
            put(
                &mut html,
                format_args!("<h3>Parameters</h3>\n{}", parameters_table(parameters)),
            );
        }
        let body = &self.told["requestBody"]["content"]["application/json"]["schema"];
        if !body.is_null() {
            put(
                &mut html,
                format_args!("<h3>Body</h3>\n<p>{}</p>\n", schema::phrase(body)),
            );
        }
        put(
            &mut html,
            format_args!("<h3>Answers</h3>\n{}", self.answers(shell)),
        );
        html + "</div></details>\n"
    }

    /// What the route itself says of its answers, and then the statuses of the problems that all routes share.
    fn answers(&self, shell: &Shell) -> String {
        let mut html = "<div class=\"wide\"><table><tbody>\n".to_owned();
        let mut problems = Vec::new();
        for (status, answer) in self.told["responses"].as_object().into_iter().flatten() {
            let status = escape(status);
            if answer.get("$ref").is_some() {
                let index = escape(format!("{}{PROBLEMS}", shell.base));
                problems.push(format!("<a href=\"{index}#http-{status}\">{status}</a>"));
                continue;
            }
            let content = answer["content"].as_object().and_then(|c| c.iter().next());
            let body = content.map(|(kind, content)| match &content["schema"] {
                schema if kind.ends_with("json") => schema::phrase(schema),
                _ => format!("<code>{}</code>", escape(kind)),
            });
            put(
                &mut html,
                format_args!(
                    "<tr><td class=\"number\">{status}</td><td>{}</td><td>{}</td></tr>\n",
                    body.unwrap_or_default(),
                    schema::about(answer),
                ),
            );
        }
        html += "</tbody></table></div>\n";
        put(
            &mut html,
            format_args!("<p>Problems: {}</p>\n", problems.join(" ")),
        );
        html
    }
}

fn parameters_table(parameters: &[Value]) -> String {
    let mut html = "<div class=\"wide\"><table><tbody>\n".to_owned();
    for parameter in parameters {
        let need = if parameter["required"] == true {
            ", required"
        } else {
            ""
        };
        put(
            &mut html,
            format_args!(
                "<tr><td><code>{}</code></td><td class=\"note\">{}{need}</td><td>{}</td><td>{}</td></tr>\n",
                escape(text(&parameter["name"])),
                escape(text(&parameter["in"])),
                schema::phrase(&parameter["schema"]),
                schema::about(parameter),
            ),
        );
    }
    html + "</tbody></table></div>\n"
}

fn schemas(document: &Value) -> String {
    let mut html = "<section>\n<h2 id=\"schemas\">schemas</h2>\n".to_owned();
    for (name, schema) in document["components"]["schemas"]
        .as_object()
        .into_iter()
        .flatten()
    {
        let name = escape(name);
        put(
            &mut html,
            format_args!(
                "<details><summary><code>{name}</code> <span class=\"says\">{}</span></summary>\n<div id=\"schema-{name}\">\n",
                schema::about(schema),
            ),
        );
        match schema::fields(schema) {
            Some(fields) => html += &fields,
            None => put(
                &mut html,
                format_args!("<p>{}</p>\n", schema::phrase(schema)),
            ),
        }
        html += "</div></details>\n";
    }
    html + "</section>\n"
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn put(html: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a text cannot fail.
    html.write_fmt(text).unwrap_or_default();
}
