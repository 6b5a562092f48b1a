//! Environments that are really made: packages come from the index, in the sandbox of whoever asked for them.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use berth_testkit::{repository, wait};
use serde_json::{Value, json};

use crate::support::desk::{Desk, PASSWORD};

const CONFIG: &str = "listen = \"127.0.0.1:{port}\"\ndata_dir = \"{directory}\"\nqueue_backend = \"local\"\n\
     prepared_environments = \"{cache}\"\n";

const QUEUE: &str = "roles: { node: node, cpu: cores, memory: memory }\n";
/// Machines are busy, and packages come from far away.
const PATIENCE: Duration = Duration::from_secs(300);

/// Where what can be made again is kept: between runs of the tests as well.
fn cache() -> PathBuf {
    repository::cache().join("environments")
}

/// A site of one node, which is this machine; `ada` is its admin, `bo` a member.
async fn site() -> (Desk, Desk) {
    let desk =
        Desk::with_admin_of(&CONFIG.replace("{cache}", &cache().display().to_string())).await;
    let desk = desk.with_site(QUEUE);
    desk.run_with(
        "person create bo --name Bo --password-stdin",
        &format!("{PASSWORD}\n"),
    )
    .succeeds();
    desk.run("member add bo --role member").succeeds();
    let bo = desk.another();
    bo.login("bo");
    bo.run("site use torino").succeeds();
    (desk, bo)
}

impl Desk {
    fn work(&self) -> PathBuf {
        self.server().directory().join("work")
    }

    /// How many environments have something on the disk.
    fn folders(&self) -> usize {
        let shelf = fs::read_dir(self.work().join("environments"));
        shelf.expect("the shelf").count()
    }

    /// What every run here has said, for whoever reads a failure.
    fn said(&self) -> String {
        let runs = fs::read_dir(self.work().join("runs")).expect("runs");
        let logs = runs.filter_map(|run| fs::read_to_string(run.ok()?.path().join("log")).ok());
        logs.map(|log| log.chars().rev().take(3000).collect::<String>())
            .map(|log| log.chars().rev().collect::<String>())
            .collect::<Vec<_>>()
            .join("\n---\n")
    }

    /// Submits a script, and waits until it has ended well.
    async fn sees_through(&self, server: &Desk, image: &str, script: &str) {
        let line = format!(
            "submit --image {image} --cores 0.5 --memory 512MiB --time 10m --script - -o json"
        );
        let submitted = self.run_with(&line, script).succeeds().json();
        self.until_completed(server, &submitted).await;
    }

    async fn until_completed(&self, server: &Desk, submitted: &Value) {
        let line = format!("why {} -o json", submitted["id"].as_str().expect("an id"));
        let state = wait::some("the work to be over", PATIENCE, async || {
            let state = self.run(&line).succeeds().json()["state"].clone();
            let is_over = ["COMPLETED", "FAILED", "CANCELLED"].contains(&state.as_str()?);
            is_over.then_some(state)
        });
        assert_eq!(state.await, "COMPLETED", "{}", server.said());
    }

    fn environment(&self, reference: &str) -> Value {
        self.run(&format!("env show {reference} -o json"))
            .succeeds()
            .json()
    }

    async fn until_ready(&self, reference: &str) -> Value {
        wait::some("the environment to be ready", PATIENCE, async || {
            let one = self.environment(reference);
            assert_ne!(one["state"], "failed", "{one}");
            (one["state"] == "ready").then_some(one)
        })
        .await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_environment_is_made_extended_used_and_never_changed() {
    let (ada, bo) = site().await;
    let made = bo.run("env create tiny iniconfig==2.0.0 --wait");
    assert!(
        made.succeeds().stdout.contains("~bo/tiny@1 is ready"),
        "{made:#?}"
    );
    assert!(
        made.stderr.contains(" %  "),
        "it said how far it was: {made:#?}"
    );
    let log = bo.run("env log tiny").succeeds().stdout;
    assert!(log.contains("Successfully installed"), "{log}");

    let cloned = bo
        .run("env clone tiny more six==1.17.0 --wait -o json")
        .succeeds()
        .json();
    assert_eq!(cloned["base"], "~bo/tiny@1");
    let (whole, part) = (bo.environment("tiny@1"), &cloned["bytes"]);
    assert!(
        part.as_u64() < whole["bytes"].as_u64().map(|bytes| bytes / 4),
        "{cloned} {whole}"
    );

    // In the clone there is what it has, and what its base has; in the base there is no more than there was.
    let both = "#!/usr/bin/env python3\nimport iniconfig, six, ipykernel, sys\n\
        assert sys.prefix == '/opt/berth/environments/~bo/more/1', sys.prefix\n\
        assert six.__file__.startswith(sys.prefix), six.__file__\n\
        assert '~bo/tiny/1' in iniconfig.__file__, iniconfig.__file__\n";
    bo.sees_through(&ada, "more", both).await;
    let neither = "#!/bin/sh\npython -c 'import iniconfig' && ! python -c 'import six'\n";
    bo.sees_through(&ada, "tiny@1", neither).await;

    // Nobody writes in it: not its owner, and not somebody else, who may use it.
    let writes = "#!/bin/sh\npython -c 'import six' || exit 9\n\
        for at in $VIRTUAL_ENV $VIRTUAL_ENV/bin/python $VIRTUAL_ENV/lib; do touch $at/x $at && exit 8; done\n\
        pip install --no-deps six==1.16.0 && exit 7; true\n";
    bo.sees_through(&ada, "more", writes).await;
    ada.sees_through(&ada, "~bo/more", writes).await;
    for line in ["env delete ~bo/more", "env update ~bo/more --add toml"] {
        let cy = ada.another();
        ada.run_with(
            "person create cy --name Cy --password-stdin",
            &format!("{PASSWORD}\n"),
        );
        ada.run("member add cy --role member");
        cy.login("cy");
        cy.run("site use torino").succeeds();
        cy.run(line).ends_with(7);
    }

    // The next version is another one; the first stays.
    let second = bo
        .run("env update more --add toml==0.10.2 --remove six --wait -o json")
        .succeeds()
        .json();
    assert_eq!(
        (second["version"].as_u64(), &second["packages"]),
        (Some(2), &json!(["toml==0.10.2"]))
    );
    bo.sees_through(&ada, "more@1", both).await;
    bo.sees_through(
        &ada,
        "more",
        "#!/bin/sh\npython -c 'import toml' && ! python -c 'import six'\n",
    )
    .await;

    // What is extended stays on the disk for as long as that is used.
    assert_eq!(ada.folders(), 3);
    bo.run("env delete tiny").succeeds();
    bo.run("submit --image tiny --cores 1 --time 10m -- true")
        .fails();
    bo.run("env delete more@2").succeeds();
    wait::until("the second version to be gone", PATIENCE, async || {
        ada.folders() == 2
    })
    .await;
    bo.sees_through(&ada, "more@1", both).await;
    bo.run("env delete more").succeeds();
    wait::until("all of them to be gone", PATIENCE, async || {
        ada.folders() == 0
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_made_says_why_and_leaves_nothing() {
    let (ada, bo) = site().await;
    let made = bo.run("env create broken berth-has-no-such-package --wait");
    made.ends_with(1);
    assert!(
        made.stdout.contains("berth-has-no-such-package"),
        "{made:#?}"
    );
    wait::until("its folder to be gone", PATIENCE, async || {
        ada.folders() == 0
    })
    .await;
    for line in [
        "env create x --curated",
        "env create x -- --index-url=http://evil.example",
        "env create x https://evil.example/x.whl",
    ] {
        bo.run(line).fails();
    }
    // Made again under the same name, it is the next version.
    bo.run("env create broken").succeeds();
    assert_eq!(bo.environment("broken")["version"], 2);
    // Not wanted any more while it is being made, it ends.
    bo.run("env delete broken").succeeds();
    wait::until("what was begun to be gone", PATIENCE, async || {
        ada.folders() == 0
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_being_made_is_made_though_the_server_is_killed() {
    let (mut ada, bo) = site().await;
    bo.run("env create tiny iniconfig==2.0.0").succeeds();
    wait::until("it to be begun", PATIENCE, async || {
        let log = bo.run("env log tiny").succeeds().stdout;
        log.contains("collecting")
    })
    .await;
    ada.server_mut().kill9().expect("it is killed");
    ada.server_mut().restart().await.expect("it starts again");
    let ready = bo.until_ready("tiny").await;
    assert_eq!(ready["version"], 1);
    bo.sees_through(&ada, "tiny", "#!/bin/sh\npython -c 'import iniconfig'\n")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_prepared_is_there_from_the_start_and_all_are_kernels() {
    let into = cache();
    let (ada, bo) = site().await;
    ada.run(&format!("env prepare jupyterlab --into {}", into.display()))
        .succeeds();
    let again = ada
        .run(&format!("env prepare jupyterlab --into {}", into.display()))
        .succeeds();
    assert!(again.stderr.contains("is ready"), "{again:#?}");
    wait::until("it to be taken in", PATIENCE, async || {
        // Others may have been there from the start.
        let listed = bo.run("env list -o json").succeeds().json();
        let mut items = listed["items"].as_array().into_iter().flatten();
        items.any(|item| item["name"] == "jupyterlab")
    })
    .await;
    let lab = bo.until_ready("jupyterlab").await;
    assert_eq!(lab["owner"], Value::Null);
    bo.run("env clone jupyterlab mine iniconfig==2.0.0 --wait")
        .succeeds();

    // A notebook server finds the curated ones and one's own, each once and by its own interpreter: the one that it runs in
    // by its own name for that. The clone's own programs run.
    let script = "#!/bin/sh\nset -e\njupyter kernelspec list --json > kernels.json\n\
        python - <<'END'\n\
        import json\n\
        specs = json.load(open('kernels.json'))['kernelspecs']\n\
        called = lambda start: [name for name in specs if name.startswith(start)]\n\
        assert 'python3' in specs and len(called('{other}')) == 1 and not called('{own}'), specs\n\
        END\n\
        cat > note.py <<'END'\n\
        from jupyter_client.manager import start_new_kernel\n\
        manager, client = start_new_kernel(kernel_name='{mine}')\n\
        said = []\n\
        client.execute_interactive('import iniconfig, sys; print(sys.prefix)', timeout=120,\n\
            output_hook=lambda message: said.append(message['content'].get('text', '')))\n\
        manager.shutdown_kernel(now=True)\n\
        assert any('~bo/mine/1' in text for text in said), said\n\
        END\n\
        python note.py\njupyter lab --version\n";
    let token = bo
        .run("token create notebooks --scope read --scope book -o json")
        .succeeds()
        .json();
    let token = token["token"]
        .as_str()
        .or(token["secret"].as_str())
        .expect("a secret")
        .to_owned();
    let (lab, clone) = ("berth-jupyterlab-", "berth-bo-mine-1");
    for (image, own, other, mine) in [
        ("jupyterlab", lab, clone, clone),
        ("mine", clone, lab, "python3"),
    ] {
        let words = [("{own}", own), ("{other}", other), ("{mine}", mine)];
        let fill = |text: String, (word, name): (&str, &str)| text.replace(word, name);
        let script = words.into_iter().fold(script.to_owned(), fill);
        let body = json!({
            "title": "a notebook",
            "wishes": [{"task": {"cores_milli": 500, "memory_mib": 1024}, "limit": "PT10M"}],
            "program": {"script": script, "image": image, "serves": {"port": 8888}},
        });
        let address = ada.server().url("/api/v1/sites/torino/workloads");
        let request = reqwest::Client::new()
            .post(address)
            .bearer_auth(&token)
            .json(&body);
        let answer = request.send().await.expect("an answer");
        let status = answer.status();
        let submitted: Value = answer.json().await.expect("JSON");
        assert_eq!(status, 201, "{submitted}");
        bo.until_completed(&ada, &submitted).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_prepared_leaves_nothing_and_the_reason_is_shown() {
    let (ada, _) = site().await;
    let into = tempfile::tempdir().expect("a folder");
    let folder = into.path().display();
    let failed = ada.run(&format!(
        "env prepare tensorboard --into {folder} --index http://packages.invalid/simple"
    ));
    failed.ends_with(1);
    let reason = failed.stderr.contains("the environment could not be made");
    assert!(reason && failed.stderr.contains("absl-py"), "{failed:#?}");
    let left = fs::read_dir(into.path()).expect("the folder");
    let left: Vec<_> = left.flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left, [".lock"], "{failed:#?}");
}
