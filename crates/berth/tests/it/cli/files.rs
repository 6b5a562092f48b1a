//! A site as a file, at the terminal: what is shown, what is asked, what is said when it cannot be.

use super::lab::lab;
use crate::support::desk::Desk;

const FILE: &str = "\
version: 1
site:
  name: torino
  title: Torino
  time_zone: Europe/Rome
  outsiders_see: nothing
resources:
  rack-a:
    type: rack
    children:
      gpu-01:
        type: gpu-server
        attributes:
          gpus: 16
  rack-b:
    type: rack
    children:
      gpu-02:
        type: gpu-server
        attributes:
          gpus: 4
        facts:
          provisioning_address: {from_env: BMC_ADDRESS}
";

const ENVIRONMENT: &[(&str, &str)] = &[("BMC_ADDRESS", "10.9.8.7-canary")];

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_shown_confirmed_applied_and_done_once() {
    let desk = lab().await;
    desk.write("site.yaml", FILE);
    let shown = desk.run_in("diff -f site.yaml", ENVIRONMENT);
    shown.ends_with(9);
    assert_eq!(
        shown.stdout,
        "+ resource rack-b: type=rack\n\
         ~ resource gpu-01\n    attributes.gpus: 8 -> 16\n\
         ~ resource gpu-02\n    facts.provisioning_address: (none) -> (hidden)\n\
         ? resource licences\n\
         > resource gpu-02: rack-a -> rack-b\n\n\
         1 to add, 2 to change, 1 to move, 0 to remove.\n\
         1 not in the file; --prune would remove it.\n"
    );
    let unasked = desk.run_in("apply -f site.yaml", ENVIRONMENT);
    unasked.ends_with(2);
    assert!(
        unasked.stderr.contains("repeat it with --yes"),
        "{unasked:?}"
    );
    let applied = desk
        .run_in("apply -f site.yaml --yes", ENVIRONMENT)
        .succeeds();
    assert!(
        applied.stdout.ends_with("Applied 4 changes.\n"),
        "{applied:?}"
    );
    let json = desk
        .run_in("apply -f site.yaml --yes -o json", ENVIRONMENT)
        .succeeds();
    assert_eq!(json.json()["differences"][0]["act"], "extra");
    let again = desk.run_in("apply -f site.yaml", ENVIRONMENT).succeeds();
    assert!(
        again
            .stdout
            .contains("Nothing to do: the site is as the file says.\n"),
        "{again:?}"
    );
    for said in [&shown, &unasked, &applied, &json, &again] {
        assert!(!format!("{said:?}").contains("canary"), "{said:?}");
    }
    let changed = [("BMC_ADDRESS", "10.9.8.8-canary")];
    let changed = desk.run_in("diff -f site.yaml", &changed);
    assert!(
        changed
            .stdout
            .contains("facts.provisioning_address: (hidden) -> (hidden)"),
        "{changed:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_exported_is_what_there_is() {
    let desk = lab().await;
    let exported = desk.run("export").succeeds().stdout;
    assert_eq!(desk.run("export").succeeds().stdout, exported);
    assert!(
        exported.contains("    capacity: {amount: 10, unit: seats}\n"),
        "{exported}"
    );
    assert!(
        exported.contains("        kind: {choice: {options: [ubuntu, debian]}}\n"),
        "{exported}"
    );
    desk.write("site.yaml", &exported);
    let none = desk.run("diff -f site.yaml --prune").succeeds();
    assert_eq!(
        none.stdout,
        "Nothing to do: the site is as the file says.\n"
    );
    desk.run("apply -f site.yaml --prune").succeeds();
    assert_eq!(desk.run("export").succeeds().stdout, exported);
    let json = desk.run("export -o json").succeeds().stdout;
    desk.write("site.json", &json);
    desk.run("diff -f site.json").succeeds();
    let piped = desk.run_with("diff -f -", &exported).succeeds();
    assert!(piped.stdout.starts_with("Nothing to do"), "{piped:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_in_a_file_is_shown_with_its_line() {
    let desk = lab().await;
    let refused = |text: &str, code: i32, wanted: &str| {
        desk.write("site.yaml", text);
        let ended = desk.run("apply -f site.yaml --yes");
        ended.ends_with(code);
        assert!(ended.stderr.contains(wanted), "{ended:?}");
    };
    refused(
        "version: 1\nresources:\n  rack-a:\n    typ: rack\n",
        2,
        "site.yaml:4:5: resources.rack-a: unknown field `typ`",
    );
    refused(
        "version: 1\nresources:\n  rack-a:\n    typ: rack\n",
        2,
        "     4 |     typ: rack",
    );
    refused("version: 1\nresources: [\n", 2, "site.yaml:");
    refused("version: 1\nmembers: {}\n", 2, "unknown field `members`");
    // Only the server knows which types there are.
    refused(
        "version: 1\nresources:\n  rack-a:\n    type: rack\n    children:\n      new: {type: lorry}\n",
        1,
        "site.yaml:6:7: resources.new.type: there is no resource type `lorry`",
    );
    refused(
        "version: 1\nsite: {title: {from_env: NOWHERE}}\n",
        2,
        "the environment variable NOWHERE is not set",
    );
    refused(
        "version: 1\nsite: {name: pisa, title: P, time_zone: UTC, outsiders_see: nothing}\n",
        4,
        "",
    );
    let elsewhere = desk.run("--site torino apply -f site.yaml");
    elsewhere.ends_with(1);
    assert!(
        elsewhere.stderr.contains("the file is for the site `pisa`"),
        "{elsewhere:?}"
    );
    desk.run("diff -f missing.yaml").ends_with(1);
    desk.run("site list -o csv").ends_with(2);
}

#[tokio::test(flavor = "multi_thread")]
async fn bookings_in_the_way_are_shown_and_nothing_is_changed() {
    let desk = lab().await;
    desk.run("book licences:3 --from |2101-03-08 09:00| --for 2h --title render")
        .succeeds();
    let exported = desk.run("export").succeeds().stdout;
    let at = exported.find("  licences:").expect("licences");
    let end = exported[at + 2..].find("\n  rack-a").expect("the next") + at + 3;
    desk.write(
        "site.yaml",
        &format!("{}{}", &exported[..at], &exported[end..]),
    );
    let refused = desk.run("apply -f site.yaml --prune --yes");
    refused.ends_with(5);
    for wanted in [
        "- resource licences\n",
        "These bookings are in the way",
        "3 of licences",
        "render",
    ] {
        assert!(refused.stdout.contains(wanted), "{refused:?}");
    }
    assert_eq!(desk.run("export").succeeds().stdout, exported);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_inventory_goes_through_a_spreadsheet() {
    let desk = lab().await;
    desk.run("resource edit gpu-01 --title |=2+2| --attribute slope=-3")
        .succeeds();
    let table = desk.run("resource export -o csv").succeeds().stdout;
    assert!(
        table.contains("\ngpu-01,gpu-server,rack-a,'=2+2,"),
        "{table}"
    );
    assert!(table.contains(",'-3\n"), "{table}");
    desk.write("lab.csv", &table);
    let same = desk.run("resource import lab.csv").succeeds();
    assert!(same.stdout.starts_with("Nothing to do"), "{same:?}");
    desk.write(
        "more.csv",
        "name,type,parent,attr:gpus\ngpu-03,gpu-server,rack-a,2\ngpu-01,gpu-server,,8\n",
    );
    let tried = desk.run("resource import more.csv --dry-run").succeeds();
    assert!(
        tried
            .stdout
            .contains("+ resource gpu-03: attributes.gpus=2, type=gpu-server\n"),
        "{tried:?}"
    );
    assert!(
        tried
            .stdout
            .contains("> resource gpu-01: rack-a -> the top of the tree\n"),
        "{tried:?}"
    );
    desk.run("resource import more.csv --yes").succeeds();
    desk.write(
        "wrong.csv",
        "name,type\ngpu-04,gpu-server\nGPU,gpu-server\n",
    );
    let wrong = desk.run("resource import wrong.csv --yes");
    wrong.ends_with(2);
    assert!(
        wrong
            .stderr
            .contains("wrong.csv:3: column 1 (name): `GPU` is not a name"),
        "{wrong:?}"
    );
    desk.run("resource show gpu-04").ends_with(4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slurm_cluster_becomes_a_tree() {
    let desk: Desk = lab().await;
    desk.write(
        "slurm.conf",
        "ClusterName=lab\nNodeName=n[01-02] CPUs=64 RealMemory=512000 Gres=gpu:a100:2(S:0-1) Feature=ib State=DOWN\n",
    );
    let made = desk
        .run("resource import-slurm slurm.conf --in rack-a --yes")
        .succeeds();
    assert!(made.stdout.ends_with("Applied 14 changes.\n"), "{made:?}");
    assert!(!made.stdout.contains("not in the file"), "{made:?}");
    assert!(
        made.stderr.contains("note: n01 is DOWN in Slurm"),
        "{made:?}"
    );
    let found = desk
        .run("resource list --under rack-a --type gpu --where gpu_model=a100 -o json")
        .succeeds();
    assert_eq!(found.json()["items"].as_array().map(Vec::len), Some(4));
    let again = desk.run("resource import-slurm slurm.conf").succeeds();
    assert!(again.stdout.contains("Nothing to do"), "{again:?}");
}
