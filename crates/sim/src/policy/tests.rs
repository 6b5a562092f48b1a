use super::*;

fn told(text: &str) -> String {
    Candidate::parse(text, "a file").unwrap_err().to_string()
}

#[test]
fn what_is_left_out_is_as_by_default() {
    assert_eq!(
        Candidate::parse("", "a file").unwrap(),
        Candidate::new("a file")
    );
    assert_eq!(
        Candidate::parse("{}", "a file").unwrap(),
        Candidate::new("a file")
    );
}

#[test]
fn toml_and_json_say_the_same() {
    let toml = r#"
        name = "careful"
        order = "shortest"
        half-life = "2d"
        grace = "1m"
        minimum-run = "10m"
        prediction = false
        reservations = "drop"
        [reserve]
        part = 0.2
        ahead = "3d"
        seed = 7
        [weights]
        biology = 2.5
        [[quota]]
        project = "biology"
        of = "gpus"
        guaranteed = 1.5
        limit = 8
    "#;
    let json = r#"{"name": "careful", "order": "shortest", "half-life": "2d", "grace": "1m",
        "minimum-run": "10m", "prediction": false, "reservations": "drop",
        "reserve": {"part": 0.2, "ahead": "3d", "seed": 7}, "weights": {"biology": 2.5},
        "quota": [{"project": "biology", "of": "gpus", "guaranteed": 1.5, "limit": 8}]}"#;
    let read = Candidate::parse(toml, "a file").unwrap();
    assert_eq!(read, Candidate::parse(json, "another").unwrap());
    assert_eq!(read.name, "careful");
    assert_eq!(read.policy.order, Order::Shortest);
    assert_eq!(read.policy.grace, 60_000_000);
    assert_eq!(read.policy.run_min, 600_000_000);
    assert_eq!(read.half_life, 2 * length::DAY);
    assert!(!read.prediction && !read.keeps_reservations);
    assert_eq!(read.reserve.map(|reserve| reserve.seed), Some(7));
    assert_eq!(read.weights.get("biology"), Some(&2.5));
    let allowance = Allowance {
        guaranteed: 1500,
        limit: Some(8000),
    };
    assert_eq!(read.quotas[0].allowance, allowance);
}

#[test]
fn a_key_that_does_not_exist_is_refused_with_the_one_that_was_meant() {
    assert_eq!(
        told("grase = '30s'"),
        "`grase` is not a key of a policy; did you mean `grace`?"
    );
    assert_eq!(
        told("[reserve]\npart = 0.1\nsead = 2"),
        "`sead` is not a key of `reserve`; did you mean `seed`?"
    );
    assert_eq!(
        told("[[quota]]\nproject = 'a'\nof = 'gpus'\nlimits = 2"),
        "`limits` is not a key of a `quota`; did you mean `limit`?"
    );
    assert_eq!(told("colour = 'red'"), "`colour` is not a key of a policy");
}

#[test]
fn a_value_that_cannot_be_is_refused_with_its_key() {
    for (text, says) in [
        ("grace = '5y'", "`grace`: `5y` is not a length of time"),
        ("order = 'random'", "`order`: unknown variant `random`"),
        ("half-life = '10m'", "`half-life` is shorter than an hour"),
        ("[reserve]\npart = 0.9", "`part` of `reserve`"),
        ("[weights]\na = 0", "the weight of `a` is not above zero"),
        (
            "[[quota]]\nproject = 'a'\nof = 'gpus'\nguaranteed = 4\nlimit = 2",
            "`limit` of the quota of `a` is less",
        ),
        (
            "[[quota]]\nproject = 'a'\nof = 'gpus'\nlimit = -2",
            "`limit` of the quota of `a` is not an amount",
        ),
        ("name = ''", "the name of a policy is empty"),
        ("grace = ", "the policy is neither TOML nor JSON"),
        ("{\"grace\": ", "the policy is neither TOML nor JSON"),
    ] {
        assert!(told(text).contains(says), "{text}: {}", told(text));
    }
}

#[test]
fn the_closest_is_the_one_with_the_fewest_changes() {
    assert_eq!(changes("kitten", "sitting"), 3);
    assert_eq!(changes("", "abc"), 3);
    let all = ["grace", "order", "weights"];
    assert_eq!(
        closest("weigths", all.into_iter()),
        Some("weights".to_owned())
    );
    assert_eq!(closest("something else", all.into_iter()), None);
}
