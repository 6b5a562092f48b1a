//! The first page: what this is, who can sign in to a demo, and the first steps.

use std::fmt::Write;

use berth_api::about::Demo;
use berth_api::paths;

use super::PROBLEMS;
use super::html::escape;
use super::shell::Shell;

pub fn page(shell: &Shell, demo: Option<&Demo>) -> String {
    let base = escape(&shell.base);
    let example = escape(&shell.example);
    let login = demo
        .and_then(|demo| demo.people.first())
        .map_or("YOUR-LOGIN", |person| &person.login);
    let login = escape(login);
    let sign_ins = demo.map(sign_ins).unwrap_or_default();
    let (docs, api) = (paths::DOCS, paths::API);
    let me = paths::ME;
    let content = format!(
        "<h1>Berth</h1>\n\
         <p class=\"lead\">Shared research compute, booked by everyone and promised to nobody twice. Servers, GPUs \
         and their slices, switch ports, rooms: one inventory, one timeline, one rule about who has what, and \
         when.</p>\n\
         {sign_ins}\
         <h2>First steps</h2>\n\
         <pre><code>berth login {example} --login {login}\n\
         berth site list                      <i># the sites you may see</i>\n\
         berth site use SITE                  <i># work in one of them</i>\n\
         berth resource tree                  <i># what there is</i>\n\
         berth free --for 2h                  <i># what you can have, and when</i>\n\
         berth book RESOURCE --from \"tomorrow 09:00\" --for 2h --title \"first try\"\n\
         berth reservation list</code></pre>\n\
         <p>Every command explains itself with <code>--help</code>, prints JSON with <code>-o json</code>, and shows \
         what it would do with <code>--dry-run</code>.</p>\n\
         <h2>For programs</h2>\n\
         <p>The command line uses nothing but the <a href=\"{base}{docs}\">API</a>, and so can you. Make a token \
         with <code>berth token create</code>, then:</p>\n\
         <pre><code>curl -H \"Authorization: Bearer $BERTH_TOKEN\" {example}{api}{me}</code></pre>\n\
         <ul>\n\
         <li><a href=\"{base}{docs}\">The API, readable</a>: every route with what it takes and answers.</li>\n\
         <li><a href=\"{base}{api}{openapi}\">The API as OpenAPI 3.1</a>, to make a client from.</li>\n\
         <li><a href=\"{base}{PROBLEMS}\">Problems</a>: every error code, why it comes and what to do.</li>\n\
         </ul>\n",
        openapi = paths::OPENAPI,
    );
    shell.page("Berth", content)
}

fn sign_ins(demo: &Demo) -> String {
    let mut rows = String::new();
    for person in &demo.people {
        writeln!(
            rows,
            "<tr><td><code>{}</code></td><td><code>{}</code></td><td>{}</td></tr>",
            escape(&person.login),
            escape(&person.password),
            escape(&person.who),
        )
        .unwrap_or_default();
    }
    format!(
        "<h2>This is a demo</h2>\n\
         <p>Everything in it is made up, and these people can sign in. Nothing you do here lasts.</p>\n\
         <div class=\"wide\"><table>\n<thead><tr><th>Login</th><th>Password</th><th>Who</th></tr></thead>\n\
         <tbody>\n{rows}</tbody></table></div>\n"
    )
}
