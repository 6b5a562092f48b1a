use super::*;

const CONF: &str = "\
ClusterName=lab   # a comment
NodeName=DEFAULT RealMemory=512000 \\
    State=UNKNOWN
NodeName=gpu[01-02] CPUs=64 Gres=gpu:a100:2,shard:4 Feature=ib,avx512
NodeName=Fat1 Sockets=2 CoresPerSocket=8 ThreadsPerCore=2 RealMemory=2048000 State=DRAIN Reason=\"fan # 3\"
PartitionName=all Nodes=ALL
Include other.conf
";

const PRINTED: &str = "\
NodeName=gpu01 Arch=x86_64 CoresPerSocket=32 CPUAlloc=0 CPUTot=128 CPULoad=0.10 AvailableFeatures=ib,h100 ActiveFeatures=ib Gres=gpu:h100:8(S:0-1),gpu:1g.5gb:1(S:0) NodeAddr=gpu01 OS=Linux 6.1 #1 SMP Debian RealMemory=1031000 State=IDLE+DRAIN Reason=two words [root@2026-01-01]
NodeName=cpu01 Arch=x86_64 CPUTot=16 AvailableFeatures=(null) Gres=(null) RealMemory=64000 State=IDLE
";

fn imported(text: &str, site: &Declared, under: Option<&str>) -> (Declared, Vec<String>) {
    let under = under.map(|under| under.parse::<Name>().unwrap());
    let imported = read(text, "slurm.conf", site, under.as_ref()).unwrap();
    (imported.document.flat().unwrap(), imported.notes)
}

fn described(site: &Declared, name: &str) -> String {
    use berth_model::declared::Fields;
    let resource = &site.resources.as_ref().unwrap()[&name.parse::<Name>().unwrap()];
    let fields: Vec<String> = resource
        .fields()
        .into_iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    let parent = resource
        .parent
        .as_ref()
        .map(ToString::to_string)
        .unwrap_or_default();
    format!("{parent}: {}", fields.join(" "))
}

#[test]
fn slurm_conf_becomes_nodes_with_their_parts() {
    let (site, notes) = imported(CONF, &Declared::default(), None);
    let names: Vec<&str> = site
        .resources
        .as_ref()
        .unwrap()
        .keys()
        .map(Name::as_str)
        .collect();
    assert_eq!(
        names,
        [
            "fat1",
            "fat1.cpu",
            "fat1.memory",
            "gpu01",
            "gpu01.cpu",
            "gpu01.gpu0",
            "gpu01.gpu1",
            "gpu01.memory",
            "gpu01.shard",
            "gpu02",
            "gpu02.cpu",
            "gpu02.gpu0",
            "gpu02.gpu1",
            "gpu02.memory",
            "gpu02.shard"
        ]
    );
    assert_eq!(
        described(&site, "gpu01"),
        ": attributes.cpus=64 attributes.feature.avx512=true attributes.feature.ib=true attributes.gpu_model=a100 \
         attributes.gpus=2 attributes.memory_mib=512000 type=node"
    );
    assert_eq!(
        described(&site, "gpu02.gpu1"),
        "gpu02: attributes.gpu_model=a100 type=gpu"
    );
    assert_eq!(
        described(&site, "gpu02.shard"),
        "gpu02: capacity=4 shard type=gres"
    );
    assert_eq!(
        described(&site, "fat1.cpu"),
        "fat1: capacity=32 cpus type=cpu"
    );
    assert_eq!(
        described(&site, "fat1.memory"),
        "fat1: capacity=2048000 mib type=memory"
    );
    let types: Vec<&str> = site
        .types
        .as_ref()
        .unwrap()
        .keys()
        .map(Name::as_str)
        .collect();
    assert_eq!(types, ["cpu", "gpu", "gres", "memory", "node"]);
    let notes = notes.join("\n");
    for wanted in [
        "Fat1 is called fat1",
        "Fat1 is DRAIN in Slurm",
        "slurm.conf:7: what is included",
    ] {
        assert!(notes.contains(wanted), "{notes}");
    }
}

#[test]
fn what_scontrol_prints_is_read_in_one_line_or_many() {
    let (site, notes) = imported(PRINTED, &Declared::default(), None);
    let gpus = site
        .resources
        .as_ref()
        .unwrap()
        .keys()
        .filter(|name| name.as_str().contains(".gpu"))
        .count();
    assert_eq!(gpus, 9);
    assert_eq!(
        described(&site, "gpu01.gpu8"),
        "gpu01: attributes.gpu_model=1g.5gb type=gpu"
    );
    assert_eq!(
        described(&site, "cpu01"),
        ": attributes.cpus=16 attributes.memory_mib=64000 type=node"
    );
    assert!(
        described(&site, "gpu01").contains("feature.h100=true"),
        "{site:?}"
    );
    assert!(
        notes.join("\n").contains("gpu01 is IDLE+DRAIN in Slurm"),
        "{notes:?}"
    );
    let many = PRINTED
        .replace(" CPUAlloc", "\n   CPUAlloc")
        .replace(" OS=", " \n   OS=")
        .replace(" CPUTot=16", "\n   CPUTot=16");
    assert_eq!(imported(&many, &Declared::default(), None).0, site);
}

#[test]
fn what_the_site_knows_beyond_slurm_stays() {
    let site: Document = serde_json::from_value(serde_json::json!({"version": 1,
        "types": {"rack": {"title": "Rack"}, "node": {"title": "Our nodes", "colour": "#000000"}},
        "resources": {"rack-a": {"type": "rack", "children": {"gpu01": {"type": "node", "title": "Number one",
            "attributes": {"warranty": "2029", "cpus": 1}}}}, "rack-b": {"type": "rack"}}}))
    .unwrap();
    let site = site.flat().unwrap();
    let (kept, _) = imported("NodeName=gpu01 CPUs=64\n", &site, None);
    let words = described(&kept, "gpu01");
    assert!(words.starts_with("rack-a: attributes.cpus=64 "), "{words}");
    assert!(
        words.contains("warranty") && words.contains("title=Number one"),
        "{words}"
    );
    assert!(
        !kept
            .types
            .as_ref()
            .unwrap()
            .contains_key(&"node".parse::<Name>().unwrap())
    );
    let memory = "gpu01.memory".parse::<Name>().unwrap();
    assert!(
        !kept.resources.as_ref().unwrap().contains_key(&memory),
        "a memory that Slurm does not name is not made up"
    );
    let (moved, _) = imported("NodeName=gpu01 CPUs=64\n", &site, Some("rack-b"));
    assert!(described(&moved, "gpu01").starts_with("rack-b: "));
    let nowhere = "rack-z".parse().unwrap();
    assert!(
        read("NodeName=n1\n", "f", &site, Some(&nowhere))
            .unwrap_err()
            .contains("no resource `rack-z`")
    );
}

#[test]
fn generic_resources_in_all_their_spellings() {
    for (gres, wanted) in [
        ("gpu", "gpu[('', 1)]"),
        ("gpu:8", "gpu[('', 8)]"),
        ("gpu:a100", "gpu[('a100', 1)]"),
        ("gpu:a100:8", "gpu[('a100', 8)]"),
        ("gpu:a100:8(S:0-1)", "gpu[('a100', 8)]"),
        (
            "gpu:a100:4(S:0,1),gpu:v100:2(IDX:4-5)",
            "gpu[('a100', 4), ('v100', 2)]",
        ),
        ("gpu:tesla:no_consume:2", "gpu[('tesla', 2)]"),
        (
            "craynetwork:4,bandwidth:lustre:no_consume:4G",
            "gpu[] bandwidth=4294967296 craynetwork=4",
        ),
        ("shard:2K", "gpu[] shard=2048"),
    ] {
        let mut node = Node::default();
        add_gres(&mut node, gres).unwrap();
        let gpus: Vec<String> = node
            .gpus
            .iter()
            .map(|(model, count)| format!("('{model}', {count})"))
            .collect();
        let others: String = node
            .others
            .iter()
            .map(|(name, count)| format!(" {name}={count}"))
            .collect();
        assert_eq!(
            format!("gpu[{}]{others}", gpus.join(", ")),
            wanted,
            "{gres}"
        );
    }
}

#[test]
fn what_is_wrong_is_told_with_its_line() {
    for (text, wanted) in [
        ("PartitionName=p\n", "there is no node in it"),
        ("\nNodeName=n[2-1]\n", "f:2: `2-1` is not a range"),
        (
            "NodeName=n1 CPUs=many\n",
            "f:1: cpus=many is not a whole number",
        ),
        (
            "NodeName=n1\nNodeName=n[1-2]\n",
            "f:2: the node n1 is defined twice",
        ),
        ("NodeName=n1 Gres=gpu:99999\n", "at most 1024 GPUs"),
        (
            "NodeName=n1 Boards=9999999999 Sockets=9999999999\n",
            "f:1: that many CPUs",
        ),
        ("NodeName=A1\nNodeName=a1\n", "`a1` comes twice"),
        (
            "NodeName=n[1-60000] Gres=gpu:4\n",
            "more than 50000 resources",
        ),
    ] {
        let said = read(text, "f", &Declared::default(), None).expect_err(text);
        assert!(said.contains(wanted), "{text:?}: {said}");
    }
}
