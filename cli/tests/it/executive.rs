//! `measure executive`, for real: each design has a row for each number of tasks, warm and cold.

use std::fs;

use crate::{Dir, json, json_file, refused, run, stderr, stdout};

#[test]
fn each_design_stands_beside_the_others() {
    let args = ["measure", "executive", "--tasks", "1,100", "--duration", "600ms", "--json", "-"];
    let out = run(args);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let result = json(&out);
    assert_eq!(result["experiment"], "measure executive");
    let rows = result["rows"].as_array().expect("rows");
    let key = |row: &serde_json::Value| {
        let name = row["design"].as_str().unwrap_or_default().to_owned();
        (row["n"].as_u64(), row["cold"].as_bool(), name)
    };
    let seen: Vec<_> = rows.iter().map(key).collect();
    for n in [1, 100] {
        for cold in [false, true] {
            for design in ["punctual", "art-linux", "ant", "heap", "wheel"] {
                let wanted = (Some(n), Some(cold), design.to_owned());
                assert!(seen.contains(&wanted), "{wanted:?} in {seen:?}");
            }
        }
    }
    for row in rows {
        let times = ["release_ns", "dispatch_ns", "wait_ns", "cycle_ns", "floor_ns"];
        let known = |key: &str| row[key].as_f64().is_some_and(|ns| ns > 0.0);
        assert!(times.iter().all(|key| known(key)), "{row}");
        assert!(row["cycles"].as_u64().is_some_and(|n| n >= 3), "{row}");
    }
    let ratios = result["ratios"].as_array().expect("ratios");
    assert_eq!(ratios.len(), 4, "release and cycle of 100 against two designs: {ratios:?}");
    assert!(result["turn"]["cycles"].as_u64().is_some_and(|n| n > 10), "{}", result["turn"]);
}

#[test]
fn the_page_names_what_is_compared_and_bad_numbers_are_refused() {
    let out = run(["measure", "executive", "--tasks", "10", "--duration", "300ms"]);
    let page = stdout(&out);
    for words in ["10 tasks, warm", "10 tasks, cold", "art-linux", "adds"] {
        assert!(page.contains(words), "{words:?} in {page}");
    }
    assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
    let with = |args: &[&str]| run(["measure", "executive"].iter().chain(args));
    refused(&with(&["--tasks", "0"]), &["--tasks"]);
    refused(&with(&["--tasks", "100001"]), &["--tasks"]);
    refused(&with(&["--tasks", "1,x"]), &["--tasks"]);
    refused(&with(&["--cpu", "0-1"]), &["--cpu", "one CPU"]);
}

#[test]
fn its_page_has_the_tables() {
    let dir = Dir::new("executive-page");
    let (result, page) = (dir.path("result.json"), dir.path("page.html"));
    let measure = ["measure", "executive", "--tasks", "1", "--duration", "200ms", "--json"];
    let out = run(measure.map(str::to_owned).into_iter().chain([result.display().to_string()]));
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    // The turn of the loop alone is measured for 400 ms.
    let warnings = json_file(&result)["warnings"].to_string();
    assert!(warnings.contains("not for the 200 ms of --duration"), "{warnings}");
    let out = run(["report", &result.display().to_string(), "-o", &page.display().to_string()]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let page = fs::read_to_string(page).expect("written");
    for words in ["What each design costs", "art-linux", "loop overhead with one task"] {
        assert!(page.contains(words), "{words}");
    }
    assert!(!page.contains("no sample file next to"), "it has no samples by its kind");
}
