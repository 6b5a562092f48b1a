//! A small site to work in.

use crate::support::desk::Desk;

const FORM: &str = r#"
[[parameters]]
key = "image"
label = "Operating system"
required = true
kind = { choice = { options = ["ubuntu", "debian"] } }

[[parameters]]
key = "root-password"
label = "Password of root"
kind = { secret = {} }
"#;

/// A site with a rack of two GPU servers and ten licences, and its admin signed in.
pub async fn lab() -> Desk {
    let desk = Desk::with_admin().await;
    desk.write("form.toml", FORM);
    for line in [
        "site create torino --title Torino --time-zone Europe/Rome",
        "site use torino",
        "profile edit --time-zone Europe/Rome",
        "type create rack --title Rack",
        "type create gpu-server --title GPU --parameters form.toml",
        "type create pool --title Pool",
        "resource add rack-a --type rack",
        "resource add gpu-01 --type gpu-server --in rack-a --attribute gpus=8",
        "resource add gpu-02 --type gpu-server --in rack-a --attribute gpus=4",
        "resource add licences --type pool --capacity 10:seats",
    ] {
        desk.run(line).succeeds();
    }
    desk
}
