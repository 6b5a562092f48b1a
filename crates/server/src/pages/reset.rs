//! Where a one-time link leads. These pages run no script, and only a script could read what stands behind the `#`;
//! so where the browser app, which has a page for this, was not built in, this one says how the link is used.

use super::html::escape;
use super::shell::Shell;

pub fn page(shell: &Shell) -> String {
    let example = escape(&shell.example);
    let content = format!(
        "<h1>Set a new password</h1>\n\
         <p class=\"lead\">An admin made this link for you. It works once, and only for a while.</p>\n\
         <p>Copy the whole address of this page, with everything after the <code>#</code>, then run</p>\n\
         <pre><code>berth profile reset</code></pre>\n\
         <p>and paste it when you are asked. Afterwards sign in:</p>\n\
         <pre><code>berth login {example}</code></pre>\n\
         <p>Give the link to nobody: whoever has it can set your password.</p>\n"
    );
    shell.page("Set a new password", content)
}
